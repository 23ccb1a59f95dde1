"""Runs the tests, and ends them where one waits for ever.

    limited.py SECONDS COMMAND...

A test that waits for ever would hold up the whole run until whoever started it loses patience, and
nothing would say which one it was. Here the command is ended after so many seconds, the tests that
had begun and not ended are named, and the status is 124.
"""

import os
import re
import signal
import subprocess
import sys
import threading

EVENT = re.compile(r'Test (".+"|\S+\(.*\))(?: with \d+ test cases)? (started|passed|failed|skipped)')


def main() -> int:
    limit, command = float(sys.argv[1]), sys.argv[2:]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    has_ended_it = threading.Event()

    def end() -> None:
        has_ended_it.set()
        os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(limit, end)
    timer.daemon = True
    timer.start()
    under_way: set[str] = set()
    try:
        for line in process.stdout:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
            event = EVENT.search(line.decode(errors="replace"))
            if event is not None:
                (under_way.add if event[2] == "started" else under_way.discard)(event[1])
    except KeyboardInterrupt:
        os.killpg(process.pid, signal.SIGINT)
    status = process.wait()
    timer.cancel()
    if not has_ended_it.is_set():
        return status if status >= 0 else 128 - status
    print(f"test: ended after {limit:.0f} s; these had begun and not ended:", file=sys.stderr)
    for name in sorted(under_way):
        print(f"  {name}", file=sys.stderr)
    return 124


if __name__ == "__main__":
    sys.exit(main())
