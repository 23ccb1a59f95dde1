"""Runs the tests, ends them where one waits for ever, and says which suites take longest.

    limited.py SECONDS COMMAND...

COMMAND is `swift test`, or the program that it runs, with its options. A test that waits for ever would hold up the whole run until
whoever started it loses patience, and nothing would say which one it was. Here the command is ended
after so many seconds, the tests that had begun and not ended are named, and the status is 124.

What begins and ends comes through a pipe, which any number of test programs may write to one after
the other. Tests run side by side, so a suite's time is that of all its tests together.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict

SLOWEST = 10


class Events:
    """What is known of tests and suites."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.suites: set[str] = set()
        self.begun: dict[str, list[float]] = defaultdict(list)
        self.seconds: dict[str, float] = defaultdict(float)

    def take(self, line: str) -> None:
        try:
            record = json.loads(line)
        except ValueError:
            return
        event = record["payload"]
        if record["kind"] == "test":
            self.names[event["id"]] = event.get("displayName", event["name"])
            if event["kind"] == "suite":
                self.suites.add(event["id"])
            return
        test, kind = event.get("testID"), event["kind"]
        if kind == "testCaseStarted":
            self.begun[test].append(event["instant"]["absolute"])
        elif kind == "testCaseEnded" and self.begun[test]:
            # Which of a test's cases it is does not matter to their sum.
            seconds = event["instant"]["absolute"] - self.begun[test].pop()
            self.seconds[self.suite(test)] += seconds

    def suite(self, test: str) -> str:
        """The outermost suite of a test, or what stands for it in its name."""
        around = [suite for suite in self.suites if test.startswith(suite + "/")]
        return min(around, key=len, default=test.split("/")[0])

    def report(self) -> None:
        slowest = sorted(self.seconds.items(), key=lambda entry: -entry[1])[:SLOWEST]
        if not slowest:
            return
        total = sum(self.seconds.values())
        print(f"The slowest suites, of {total:.0f} s of all their tests together:")
        for suite, seconds in slowest:
            print(f"{seconds:8.1f} s  {self.names.get(suite, suite)}")


def main() -> int:
    limit, command = float(sys.argv[1]), sys.argv[2:]
    events = Events()
    has_ended_it = threading.Event()
    with tempfile.TemporaryDirectory() as folder:
        pipe = os.path.join(folder, "events")
        os.mkfifo(pipe)
        # Open for writing, too: there is no end before the last of those who write has come.
        descriptor = os.open(pipe, os.O_RDWR)

        def read() -> None:
            with open(descriptor, encoding="utf-8", closefd=False) as lines:
                for line in lines:
                    if line == "end\n":
                        return
                    events.take(line)

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        process = subprocess.Popen(
            [*command, "--event-stream-output-path", pipe, "--event-stream-version", "0"],
            start_new_session=True)

        def end() -> None:
            has_ended_it.set()
            os.killpg(process.pid, signal.SIGKILL)

        timer = threading.Timer(limit, end)
        timer.daemon = True
        timer.start()
        try:
            status = process.wait()
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGINT)
            status = process.wait()
        timer.cancel()
        # Behind whatever the last program left unfinished.
        os.write(descriptor, b"\nend\n")
        reader.join()
        os.close(descriptor)
    events.report()
    if not has_ended_it.is_set():
        return status if status >= 0 else 128 - status
    print(f"test: ended after {limit:.0f} s; these had begun and not ended:", file=sys.stderr)
    for name in sorted(events.names.get(test, test) for test, cases in events.begun.items() if cases):
        print(f"  {name}", file=sys.stderr)
    return 124


if __name__ == "__main__":
    sys.exit(main())
