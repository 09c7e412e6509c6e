"""The peers every test talks to: one `toolspan-fixtures` process, one scenario a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
import urllib.request
from pathlib import Path
from typing import Any, Iterator

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "bindings" / "python" / "python"


def _fixtures_program() -> str:
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    program = os.environ.get("TOOLSPAN_FIXTURES") or str(target / "debug" / "toolspan-fixtures")
    if not Path(program).is_file():
        pytest.exit(f"{program} is missing: cargo build -p toolspan-fixtures", returncode=3)
    return program


class Scenario:
    def __init__(self, control: str, answer: dict[str, Any]) -> None:
        self._base = f"{control}/scenarios/{answer['id']}"
        self.mcp: dict[str, Any] = answer["mcp"]
        self.llm: dict[str, Any] = answer["llm"]

    def seen(self) -> dict[str, Any]:
        return _request("GET", f"{self._base}/seen")

    def wait(self, **until: Any) -> None:
        _request("POST", f"{self._base}/wait", {"until": until, "timeoutMs": 10_000})

    def open(self, gate: str) -> None:
        _request("POST", f"{self._base}/gates/{gate}")

    def drop(self) -> None:
        _request("DELETE", self._base)

    def client_options(self, name: str = "main", style: str = "openai") -> dict[str, Any]:
        return {"base_url": self.llm[name]["baseUrl"], "style": style, "model": "m", "api_key": "k"}


def _request(method: str, url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=15) as answer:
        text = answer.read()
    return json.loads(text) if text else None


class Peers:
    def __init__(self, control: str) -> None:
        self.control = control
        self._open: list[Scenario] = []

    def __call__(self, mcp: dict[str, Any] | None = None, llm: dict[str, Any] | None = None) -> Scenario:
        """A scenario; `llm` may be a list of replies of one OpenAI-style upstream named `main`."""
        if isinstance(llm, list):
            llm = {"main": {"style": "openai", "replies": llm}}
        answer = _request("POST", f"{self.control}/scenarios", {"mcp": mcp or {}, "llm": llm or {}})
        self._open.append(Scenario(self.control, answer))
        return self._open[-1]

    def drop(self) -> None:
        while self._open:
            self._open.pop().drop()


@pytest.fixture(scope="session")
def _control() -> Iterator[str]:
    process = subprocess.Popen([_fixtures_program(), "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdin is not None
    yield json.loads(process.stdout.readline())["control"]
    process.stdin.close()
    process.wait(timeout=10)
    process.stdout.close()


@pytest.fixture
def peers(_control: str) -> Iterator[Peers]:
    made = Peers(_control)
    yield made
    made.drop()


class Ended:
    def __init__(self, code: int, out: str, err: str, seconds: float) -> None:
        self.code, self.out, self.err, self.seconds = code, out, err, seconds


def fresh(script: str, *args: str, within: float = 20.0, **env: str) -> Ended:
    """Runs a program in an interpreter of its own."""
    started = time.monotonic()
    process = subprocess.run(
        [
            sys.executable,
            "-W",
            "default::ResourceWarning",
            "-W",
            "ignore::DeprecationWarning",
            "-c",
            textwrap.dedent(script),
            *args,
        ],
        env={**os.environ, "PYTHONPATH": str(PACKAGE), **env},
        capture_output=True,
        text=True,
        timeout=within,
    )
    return Ended(process.returncode, process.stdout, process.stderr, time.monotonic() - started)
