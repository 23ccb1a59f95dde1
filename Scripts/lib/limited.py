"""Runs the tests suite by suite, stops one that waits forever, and lists the slowest.

    limited.py SECONDS PROGRAM [--filter PATTERN...]    the program that has the tests
    limited.py SECONDS swift test OPTIONS...            all at once, where there is no such program

Each suite is a process, and as many run at a time as there are processors. So the system reports
each suite's processor time, a crash affects no other suite, and no suite waits for the threads of
others. A test that waits forever would delay the whole run until someone stops it, and nothing
would name the test. Here a suite fails and is stopped if it waits while nothing of it runs, or if
it takes a quarter of the whole time. The run is stopped after SECONDS, with status 124. In both
cases the script names the tests that had begun and not ended.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

EVENT = re.compile(r'Test (".+"|\S+\(.*\))(?: with \d+ test cases)? (started|passed|failed|skipped)')
SUITE = re.compile(r"[^.]+\.(`[^`]*`|[^/]*)")
SPECIAL = re.compile(r"[\\.^$*+?()\[\]{}|]")
SLOWEST = 10
SHOWN_OF_A_CRASH = 20
# A suite is waiting if it has used less processor time than this, in this number of seconds.
STIR = 0.5
PATIENCE = 120
ARGUMENTS = ["--testing-library", "swift-testing"]


def processor_time(session: int) -> float | None:
    """The processor seconds of a session's processes, including their ended children; None if the
    system does not report them."""
    try:
        processes = [name for name in os.listdir("/proc") if name.isdigit()]
    except FileNotFoundError:
        return None
    ticks = 0
    for process in processes:
        try:
            with open(f"/proc/{process}/stat", "rb") as file:
                # The name before may contain spaces and brackets.
                fields = file.read().rpartition(b")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


class Job:
    """A process with the tests of a suite."""

    def __init__(self, name: str, command: list[str]) -> None:
        self.name, self.command = name, command
        self.output = tempfile.TemporaryFile()
        self.process: subprocess.Popen | None = None
        self.status, self.seconds = 0, 0.0
        self.stirred, self.stirred_at = 0.0, time.monotonic()
        self.end_reason: str | None = None

    def run(self) -> None:
        self.stirred_at = time.monotonic()
        environment = os.environ.copy()
        if self.name.startswith("SimulationTests."):
            # The order of iterating a set or a dictionary is also part of what a seed decides.
            environment["SWIFT_DETERMINISTIC_HASHING"] = "1"
        self.process = subprocess.Popen(
            self.command, stdout=self.output, stderr=subprocess.STDOUT, start_new_session=True,
            env=environment)
        _, status, usage = os.wait4(self.process.pid, 0)
        self.status = os.waitstatus_to_exitcode(status)
        self.seconds = usage.ru_utime + usage.ru_stime

    def end(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def end_when_stuck(self, most: float) -> None:
        taken = processor_time(self.process.pid) if self.process is not None else None
        if taken is None:
            return
        now = time.monotonic()
        if taken - self.stirred >= STIR:
            self.stirred, self.stirred_at = taken, now
        elif now - self.stirred_at >= PATIENCE:
            self.end_reason = f"waited {PATIENCE} s while nothing ran"
        if taken > most:
            self.end_reason = f"took more than {most:.0f} s of the processor"
        if self.end_reason is not None:
            self.end()

    def text(self) -> bytes:
        self.output.seek(0)
        return self.output.read()

    def failures(self) -> list[str]:
        """The output for each failed expectation, or the last lines if there is none."""
        lines = self.text().decode(errors="replace").splitlines()
        return [line for line in lines if "recorded an issue" in line] or lines[-SHOWN_OF_A_CRASH:]

    def under_way(self) -> list[str]:
        begun: set[str] = set()
        for line in self.text().decode(errors="replace").splitlines():
            event = EVENT.search(line)
            if event is not None:
                (begun.add if event[2] == "started" else begun.discard)(event[1])
        return sorted(begun)


def jobs(command: list[str]) -> list[Job]:
    """A job for each suite, those of the last modules first, because they take longest."""
    if not os.path.isfile(command[0]):
        return [Job(" ".join(command), command)]
    patterns = [word for option, word in zip(command[1:], command[2:]) if option == "--filter"]
    listed = subprocess.run(
        [command[0], *ARGUMENTS, "--list-tests"], stdout=subprocess.PIPE, check=True)
    suites: dict[str, list[str]] = {}
    for test in listed.stdout.decode().splitlines():
        if patterns and not any(re.search(pattern, test) for pattern in patterns):
            continue
        suite = SUITE.match(test)
        suites.setdefault(suite[0] if suite else test, []).append(test)
    return [
        Job(suite, [command[0], *ARGUMENTS] + [
            word for test in tests
            for word in ("--filter", "^" + SPECIAL.sub(r"\\\g<0>", test) + "(/|$)")])
        for suite, tests in sorted(suites.items(), reverse=True)
    ]


class Run:
    """Jobs that are waiting, under way and ended."""

    def __init__(self, waiting: list[Job]) -> None:
        self.waiting = waiting
        self.under_way: list[Job] = []
        self.ended: list[Job] = []
        self.lock = threading.Lock()
        self.is_over = False

    def work(self) -> None:
        while True:
            with self.lock:
                if self.is_over or not self.waiting:
                    return
                job = self.waiting.pop(0)
                self.under_way.append(job)
            job.run()
            with self.lock:
                if self.is_over:
                    return
                self.under_way.remove(job)
                self.ended.append(job)
                show(job)

    def until(self, deadline: float) -> bool:
        """Runs all jobs; false if the time ended first."""
        workers = [threading.Thread(target=self.work, daemon=True) for _ in range(os.cpu_count() or 1)]
        for worker in workers:
            worker.start()
        most = (deadline - time.monotonic()) / 4
        try:
            while any(worker.is_alive() for worker in workers) and time.monotonic() < deadline:
                for worker in workers:
                    worker.join(min(1, max(0, deadline - time.monotonic())))
                with self.lock:
                    for job in self.under_way:
                        job.end_when_stuck(most)
        finally:
            with self.lock:
                self.is_over = True
                for job in self.under_way:
                    job.end()
        return not self.under_way

    def report(self) -> None:
        total = sum(job.seconds for job in self.ended)
        print(f"{len(self.ended)} suites took {total:.0f} s of the processors; the slowest:")
        for job in sorted(self.ended, key=lambda job: -job.seconds)[:SLOWEST]:
            print(f"{job.seconds:8.1f} s  {job.name}")
        for job in self.ended:
            if job.end_reason is not None:
                print(f"test: {job.name} {job.end_reason}; begun and not ended:")
                for name in job.under_way():
                    print(f"  {name}")
            elif job.status != 0:
                print(f"test: {job.name} failed with status {job.status}")
                # Repeated at the end, because of a long output only the end may be visible.
                for line in job.failures():
                    print(f"  {line}")


def show(job: Job) -> None:
    sys.stdout.buffer.write(job.text())
    sys.stdout.buffer.flush()


def main() -> int:
    run = Run(jobs(sys.argv[2:]))
    try:
        is_done = run.until(time.monotonic() + float(sys.argv[1]))
    except KeyboardInterrupt:
        return 130
    for job in run.under_way:
        show(job)
    run.report()
    if not is_done:
        print("test: the time is over; these had begun and not ended:")
        for job in run.under_way:
            for name in job.under_way():
                print(f"  {job.name}: {name}")
        return 124
    if not run.ended:
        print("test: no test has such a name")
    return 0 if run.ended and all(job.status == 0 for job in run.ended) else 1


if __name__ == "__main__":
    sys.exit(main())
