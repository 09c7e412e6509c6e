"""What `import toolspan` costs over the bare interpreter: median of alternating fresh processes, with the bytecode that an
installed package has."""

import os
import statistics
import subprocess
import sys
import time

ROUNDS = 15
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def run(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=ENVIRONMENT)
    return (time.perf_counter() - start) * 1000


run("import toolspan")
bare, ours = [], []
for _ in range(ROUNDS):
    bare.append(run("pass"))
    ours.append(run("import toolspan"))
extra = statistics.median(ours) - statistics.median(bare)
print(f"python import: {extra:.1f} ms over the bare interpreter's {statistics.median(bare):.1f} ms (budget 30 ms)")
