"""The types a user's checker sees."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from conftest import PACKAGE

HERE = Path(__file__).resolve().parent


def check(*command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=HERE.parent,
        env={**os.environ, "MYPYPATH": str(PACKAGE), "PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_and_a_strict_consumer_pass_mypy() -> None:
    check("mypy", "--strict", "--python-version", "3.10", "python/toolspan", "tests/types/consumer.py")


def test_the_stub_of_the_native_module_is_what_is_there() -> None:
    check("mypy.stubtest", "toolspan._toolspan")


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "toolspan" / "py.typed").is_file()
