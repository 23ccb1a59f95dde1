"""What all files of stories share: the server's process, expectations, and the loop that runs the
stories and names the failed ones.

    FILE.py ONDOL DIRECTORY [STORY...]

Each file starts ONDOL as a server on databases in DIRECTORY. The status is 1 if a story failed or the
server did not end well.
"""

from __future__ import annotations

import pathlib
import re
import signal
import subprocess
import sys
import traceback
import urllib.error
import urllib.request
from collections.abc import Callable

PATIENCE = 60
"""Seconds after which a story that waits has failed."""


class ServerProcess:
    """`ondol serve`, which can be killed."""

    process: subprocess.Popen

    def launch(self, program: str, *options: object) -> None:
        self.process = subprocess.Popen(
            [program, "serve", *(str(option) for option in options)], stdout=subprocess.PIPE,
            text=True)

    def address(self, variable: str) -> tuple[str, int]:
        """The value of the next line, which sets this variable, and the port at its end."""
        line = self.process.stdout.readline()
        found = re.fullmatch(rf"export {variable}=(\S+:(\d+))\n", line)
        if not found:
            raise RuntimeError(f"the server did not say where it listens: {line!r}")
        return found[1], int(found[2])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=PATIENCE)


def call(method: str, url: str, body: bytes | None = None, **headers: str) -> tuple:
    """Status, headers by lower case, and body. A header's "_" is "-"."""
    request = urllib.request.Request(
        url, data=body, method=method,
        headers={name.replace("_", "-"): value for name, value in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, _lower(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, _lower(error.headers), error.read()


def _lower(headers) -> dict:
    return {name.lower(): value for name, value in headers.items()}


def expect(truth: bool, words: str) -> None:
    if not truth:
        raise AssertionError(words)


def expect_error(kind, body) -> Exception:
    try:
        body()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


def run(stories: list[Callable], start: Callable, world: Callable = lambda server, story: server) -> int:
    """Runs the stories that the command line names, or all, on a server; each gets a world."""
    program, directory, *wanted = sys.argv[1:]
    stories = [story for story in stories if not wanted or story.__name__ in wanted]
    if not stories:
        return 0
    pathlib.Path(directory).mkdir(parents=True, exist_ok=True)
    server = start(program, directory)
    failed = 0
    for story in stories:
        try:
            story(world(server, story))
            print(f"ok      {story.__name__}", flush=True)
        except Exception:
            failed += 1
            print(f"FAILED  {story.__name__}\n{traceback.format_exc()}", flush=True)
    status = server.stop()
    if status != 0:
        failed += 1
        print(f"FAILED  the server ended with {status}")
    return 1 if failed else 0
