"""Builds the native module and puts it beside the package: `python bindings/python/build.py [--release]`.

For tests and for work on the package; users get a wheel (`maturin build`).
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent / "python" / "toolspan"

built = subprocess.run(
    ["cargo", "build", "--package", "toolspan-python", "--message-format=json-render-diagnostics", *sys.argv[1:]],
    cwd=PACKAGE,
    # Otherwise the module would be linked to the libpython of this machine.
    env={**os.environ, "PYO3_BUILD_EXTENSION_MODULE": "1"},
    stdout=subprocess.PIPE,
    check=True,
)
messages = [json.loads(line) for line in built.stdout.splitlines()]
(library,) = [
    message["filenames"][0]
    for message in messages
    if message.get("target", {}).get("name") == "_toolspan" and "filenames" in message
]
target = PACKAGE / ("_toolspan.pyd" if os.name == "nt" else "_toolspan.abi3.so")
target.unlink(missing_ok=True)  # a process may have the old one mapped
shutil.copy(library, target)
