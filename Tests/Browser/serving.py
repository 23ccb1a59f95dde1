"""A separate console for hostile tests: a database in a folder, and the process."""

import os
import subprocess
import tempfile
import time
import traceback
from pathlib import Path

SECRET = "the-secret-of-the-shop"


class Served:
    """`ondol console` on a new database with one document, which contains a secret."""

    def __init__(self, program, limit=None):
        self.program = program
        self.folder = tempfile.TemporaryDirectory(prefix="ondol-served.")
        self.directory = f"{self.folder.name}/shop.ondol"
        self.tool("put", "secrets/one", f'{{"text": "{SECRET}"}}')
        self.start(limit)

    def tool(self, command, *arguments, text=None):
        """Runs the program on the database while no process serves it."""
        done = subprocess.run(
            [self.program, command, self.directory, *arguments],
            input=text,
            text=True,
            capture_output=True,
            timeout=600,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def start(self, limit=None):
        said = Path(self.folder.name, "said")
        command = [self.program, "console", self.directory]
        if limit:
            command = ["sh", "-c", f'ulimit -n {limit}; exec "$0" "$@"', *command]
        with open(said, "w") as out, open(f"{self.folder.name}/log", "w") as log:
            self.process = subprocess.Popen(command, stdout=out, stderr=log)
        end = time.monotonic() + 30
        while "\n" not in said.read_text():
            assert self.process.poll() is None and time.monotonic() < end, "the console did not start"
            time.sleep(0.02)
        self.url = said.read_text().split("\n")[0]
        self.base, _, self.token = self.url.partition("#token=")
        self.port = int(self.base.rstrip("/").rpartition(":")[2])

    @property
    def is_running(self):
        return self.process.poll() is None

    @property
    def descriptors(self):
        """The number of its open files and sockets; 0 if the system does not report it."""
        if not os.path.isdir("/proc/self/fd"):
            return 0
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    @property
    def memory(self):
        """The process's memory in bytes; 0 if the system does not report it."""
        if not os.path.isfile("/proc/self/statm"):
            return 0
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.folder.cleanup()


def run(title, stories, *arguments):
    """Runs stories one after another; returns the number of failed ones."""
    failed = 0
    for story in stories:
        start = time.monotonic()
        name = story.__name__.replace("_", " ")
        try:
            story(*arguments)
            print(f"ok    {title}: {name} ({time.monotonic() - start:.1f} s)", flush=True)
        except Exception:
            failed += 1
            text = traceback.format_exc(limit=-3).partition("Stacktrace:")[0]
            print(f"FAIL  {title}: {name}\n{text}", flush=True)
    return failed
