"""The fixtures program for the Python programs of the benchmark."""

import contextlib
import json
import subprocess
import urllib.request
from collections.abc import Iterator


@contextlib.contextmanager
def scenario(program: str, script: dict) -> Iterator[dict]:
    """Starts the program, creates one scenario, gives its addresses, and ends both."""
    with subprocess.Popen([program, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as peer:
        assert peer.stdin and peer.stdout
        control = json.loads(peer.stdout.readline())["control"]
        request = urllib.request.Request(
            f"{control}/scenarios", json.dumps(script).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request) as answer:
            yield json.load(answer)
        peer.stdin.close()


def words(count: int) -> dict:
    """A model that answers with this many words, one delta each when streamed."""
    text = " ".join(f"w{n}" for n in range(count))
    return {"llm": {"model": {"style": "openai", "replies": [{"text": text}], "then": "repeat"}}}
