"""Devices of `ondol sync` and Google's own client, on one `ondol serve`: they write and listen at the
same time, are killed and started again, and lose the line.

    sync_stories.py ONDOL DIRECTORY [STORY...]
    sync_stories.py ONDOL DIRECTORY --kills N [--seed N]
    sync_stories.py ONDOL DIRECTORY --minutes N [--delay MS] [--seed N]

Without a number, the stories of stories.py. --kills kills devices and the server at random, and
needs nothing but Python; --minutes has devices write through a proxy that cuts the line at random,
and watches their memory. With --delay, the line is slow as well, and one part in twenty takes three
times as long, as one that was lost and sent again. In the end, increments must have counted once each, all must be equal, and
every content must have its bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import pathlib
import random
import subprocess
import sys
import threading
import time

from stories import PATIENCE, ServerProcess, expect, run

PROJECT = "stories"
COLLECTIONS = ["counters", "photos"]


class Server(ServerProcess):
    """`ondol serve` with storage, on the same ports after each start."""

    def __init__(self, program: str, directory: str) -> None:
        self.program, self.directory = program, directory
        self.place = f"{directory}/server.ondol"
        self.port = self.storage_port = 0
        self.start()

    def start(self) -> None:
        self.launch(
            self.program, self.place, "--port-firestore", self.port, "--port-storage",
            self.storage_port)
        host, self.port = self.address("FIRESTORE_EMULATOR_HOST")
        _, self.storage_port = self.address("STORAGE_EMULATOR_HOST")
        os.environ["FIRESTORE_EMULATOR_HOST"] = host

    def device(self, name: str, *options: str, port: int | None = None,
               storage_port: int | None = None) -> Device:
        return Device(
            self.program, f"{self.directory}/{name}.ondol", port or self.port,
            storage_port or self.storage_port, options)


class Device:
    """`ondol sync --lines`, which can be killed."""

    def __init__(self, program: str, place: str, port: int, storage_port: int,
                 options: tuple[str, ...]) -> None:
        self.command = [
            program, "sync", place, "--with", f"http://127.0.0.1:{port}", "--project", PROJECT,
            "--lines", *options,
            *([] if "--google" in options else ["--storage", f"http://127.0.0.1:{storage_port}"]),
            *(part for name in COLLECTIONS for part in ("--follow", name))]
        self.place = place
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True)

    def ask(self, **line) -> dict:
        """Asks for one thing. An error is one of the story."""
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        text = self.process.stdout.readline()
        if not text.endswith("\n"):
            raise ConnectionError("the device is gone")
        answer = json.loads(text)
        expect("error" not in answer, f"{line}: {answer}")
        return answer

    def document(self, path: str) -> dict | None:
        return self.ask(path=path, get=True)["document"]

    def number(self, path: str) -> int:
        return (self.document(path) or {}).get("n", 0)

    def until(self, path: str, wanted) -> None:
        end = time.monotonic() + PATIENCE
        while not wanted(self.document(path)):
            expect(time.monotonic() < end, f"{path} of {self.place}: {self.document(path)}")
            time.sleep(0.02)

    def photo(self, path: str) -> bytes:
        file = f"{self.place}.photo"
        self.ask(path=path, write={"photo": file})
        return pathlib.Path(file).read_bytes()

    def put(self, path: str, photo: bytes) -> None:
        file = f"{self.place}.put"
        pathlib.Path(file).write_bytes(photo)
        self.ask(path=path, put={"photo": file})

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.process.stdin.close()
        expect(self.process.wait(timeout=PATIENCE) == 0, f"{self.place} ended well")

    def memory(self) -> int:
        """The resident bytes, without those of mapped files."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")


# The stories.


class World:
    """A story's environment."""

    def __init__(self, server: Server, name: str) -> None:
        from google.auth.credentials import AnonymousCredentials
        from google.cloud import firestore

        self.server, self.name = server, name
        self.client = firestore.Client(project=PROJECT, credentials=AnonymousCredentials())
        self.firestore = firestore


def a_device_and_googles_client_write_and_listen(world: World) -> None:
    device = world.server.device(world.name)
    counter = world.client.collection("counters").document(world.name)
    seen: list[int] = []
    is_done = threading.Event()

    def see(documents, changes, moment) -> None:
        for document in documents:
            if document.exists:
                seen.append(document.to_dict()["n"])
        if seen and seen[-1] == 100:
            is_done.set()

    counter.set({"n": 0})
    device.until(f"counters/{world.name}", lambda document: document is not None)
    watch = counter.on_snapshot(see)

    def write() -> None:
        for _ in range(50):
            counter.update({"n": world.firestore.Increment(1)})

    other = threading.Thread(target=write)
    other.start()
    for _ in range(50):
        device.ask(path=f"counters/{world.name}", increment={"n": 1})
    other.join()
    expect(is_done.wait(PATIENCE), f"the listener has seen {seen[-3:]}")
    watch.unsubscribe()
    expect(seen == sorted(seen), f"the number never falls: {seen}")
    device.ask(settle=True)
    # The last increment may be the other one's, and be on its way to the device.
    device.until(f"counters/{world.name}", lambda document: document == {"n": 100})
    device.stop()


def fields_of_both_are_kept(world: World) -> None:
    device = world.server.device(world.name)
    path = f"counters/{world.name}"
    document = world.client.document(path)
    document.set({"n": 1, "theirs": "a", "nested": {"list": [1, 2.5, None, True]}})
    device.until(path, lambda fields: fields is not None)
    expect(device.document(path) == document.get().to_dict(), "as Google's client wrote it")
    device.ask(path=path, merge={"mine": "b"})
    document.update({"theirs": "c"})
    device.ask(settle=True)
    device.until(path, lambda fields: fields.get("theirs") == "c")
    fields = document.get().to_dict()
    expect(fields["mine"] == "b" and fields["theirs"] == "c", f"both: {fields}")
    document.delete()
    device.until(path, lambda fields: fields is None)
    device.stop()


def a_device_takes_the_server_for_googles(world: World) -> None:
    path = f"counters/{world.name}"
    device = world.server.device(world.name, "--google")
    for _ in range(20):
        device.ask(path=path, increment={"n": 1})
    device.ask(settle=True)
    expect(world.client.document(path).get().to_dict() == {"n": 20}, "each counts")
    world.client.document(path).update({"n": 5})
    device.until(path, lambda fields: fields == {"n": 5})
    device.stop()


def photographs_go_from_device_to_device(world: World) -> None:
    one, two = world.server.device(f"{world.name}-1"), world.server.device(f"{world.name}-2")
    path = f"photos/{world.name}"
    for size in (1, 5_000, 6_000_000):
        photo = random.randbytes(size)
        one.put(path, photo)
        two.until(path, lambda fields: fields is not None and fields["photo"] is not None
                  and hashlib.sha256(photo).hexdigest() in json.dumps(fields))
        expect(two.photo(path) == photo, f"{size} bytes")
    one.stop()
    two.stop()


# What all rounds have: devices that count, and what was acknowledged.


class Ledger:
    """The increments that a device asked for, and those that it has acknowledged."""

    def __init__(self) -> None:
        self.asked: dict[str, int] = {}
        self.done: dict[str, int] = {}
        self.lock = threading.Lock()

    def count(self, device: Device, path: str) -> None:
        with self.lock:
            self.asked[path] = self.asked.get(path, 0) + 1
        device.ask(path=path, increment={"n": 1})
        with self.lock:
            self.done[path] = self.done.get(path, 0) + 1

    def check(self, path: str, number: int) -> None:
        asked, done = self.asked.get(path, 0), self.done.get(path, 0)
        expect(done <= number <= asked, f"{path} is {number}: {done} acknowledged of {asked}")


def work(device: Device, name: str, ledger: Ledger, is_over, photos: int = 10) -> None:
    """Counts, and now and then puts a photograph."""
    turn = 0
    while not is_over():
        turn += 1
        ledger.count(device, f"counters/{name}")
        ledger.count(device, "counters/all")
        if turn % photos == 0:
            photo = random.randbytes(random.choice([200, 20_000, 300_000]))
            device.put(f"photos/{name}", photo)
        # Slow enough that a busy machine keeps up.
        time.sleep(random.uniform(0.02, 0.2))


def compare(server: Server, devices: dict[str, Device], ledger: Ledger) -> None:
    """Expects that all have settled to the same, and that nothing was lost or counted twice."""
    for device in devices.values():
        device.ask(settle=True)
    # What one has sent last may still be on its way to the others. A new device has what the server
    # has.
    first = server.device("new")
    first.ask(settle=True)
    for path in ["counters/all", *(f"counters/{name}" for name in devices)]:
        number = first.number(path)
        ledger.check(path, number)
        for device in devices.values():
            device.until(path, lambda fields: (fields or {}).get("n", 0) == number)
    for name in devices:
        path, photos = f"photos/{name}", []
        wanted = first.document(path)
        for device in devices.values():
            device.until(path, lambda fields: fields == wanted)
        for device in devices.values():
            if device.document(path) is not None:
                photos.append(hashlib.sha256(device.photo(path)).digest())
        expect(len(set(photos)) <= 1, f"{path} differs")
        expect(len(photos) in (0, len(devices)), f"{path} is on {len(photos)} devices")
    first.stop()


def kill_at_random(program: str, directory: str, kills: int) -> None:
    server = Server(program, directory)
    devices = {
        f"d{number}": server.device(f"d{number}", *(["--eager"] if number == 0 else []))
        for number in range(3)}
    ledger, failures = Ledger(), []
    is_over = threading.Event()
    ended: dict[str, threading.Event] = {}

    def use(name: str) -> None:
        """Works until the device is killed, or all is over."""
        is_killed = ended[name]
        try:
            work(devices[name], name, ledger, lambda: is_over.is_set() or is_killed.is_set())
        except (OSError, ConnectionError, ValueError) as error:
            if not is_killed.wait(2):
                failures.append(error)
        except Exception as error:
            failures.append(error)

    def begin(name: str) -> threading.Thread:
        ended[name] = threading.Event()
        thread = threading.Thread(target=use, args=(name,))
        thread.start()
        return thread

    threads = {name: begin(name) for name in devices}
    servers = 0
    for _ in range(kills):
        time.sleep(random.uniform(0.05, 0.8))
        if failures:
            break
        victim = random.choice([None, *devices])
        if victim is None:
            servers += 1
            server.kill()
            time.sleep(random.uniform(0, 0.3))
            server.start()
        else:
            ended[victim].set()
            devices[victim].kill()
            threads[victim].join()
            time.sleep(random.uniform(0, 0.3))
            devices[victim].start()
            threads[victim] = begin(victim)
    is_over.set()
    for thread in threads.values():
        thread.join()
    if failures:
        raise failures[0]
    compare(server, devices, ledger)
    for device in devices.values():
        device.stop()
    expect(server.stop() == 0, "the server ended well")
    total = sum(ledger.done.values())
    print(f"ok      {kills} kills, {servers} of them of the server: {total} increments, nothing lost "
          "and nothing twice", flush=True)


class Proxy:
    """Forwards connections, after some seconds, and cuts them or refuses them for a while."""

    def __init__(self, port: int, delay: float) -> None:
        self.target, self.port, self.delay = port, 0, delay
        self.is_cut = False
        self.cuts = 0
        self.open: set[asyncio.StreamWriter] = set()
        self.loop = asyncio.new_event_loop()
        is_ready = threading.Event()
        threading.Thread(target=self._run, args=(is_ready,), daemon=True).start()
        is_ready.wait()

    def _run(self, is_ready: threading.Event) -> None:
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        is_ready.set()
        self.loop.run_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_cut:
            return writer.close()
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            return writer.close()
        ends = {writer, far_writer}
        self.open |= ends
        await asyncio.gather(
            self._pump(reader, far_writer), self._pump(far_reader, writer),
            return_exceptions=True)
        self.open -= ends

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A part that is late holds up those after it. None of the queue is the end.
        queue: asyncio.Queue = asyncio.Queue(64)

        async def take() -> None:
            try:
                while data := await reader.read(65536):
                    late = self.delay * (3 if random.random() < 0.05 else 1)
                    await queue.put((self.loop.time() + late, data))
            finally:
                await queue.put(None)

        taking = asyncio.ensure_future(take())
        try:
            while part := await queue.get():
                due, data = part
                await asyncio.sleep(max(0, due - self.loop.time()))
                writer.write(data)
                await writer.drain()
        finally:
            taking.cancel()
            writer.close()

    def cut(self, is_cut: bool) -> None:
        """Takes the line away, or brings it back."""

        def change() -> None:
            self.is_cut = is_cut
            self.cuts += is_cut
            if is_cut:
                for writer in list(self.open):
                    writer.transport.abort()

        self.loop.call_soon_threadsafe(change)


def soak(program: str, directory: str, minutes: float, delay: float) -> None:
    server = Server(program, directory)
    proxies = [Proxy(port, delay) for port in (server.port, server.storage_port)]
    devices = {
        f"d{number}": server.device(
            f"d{number}", *(["--eager"] if number == 0 else []), port=proxies[0].port,
            storage_port=proxies[1].port)
        for number in range(3)}
    ledger, failures = Ledger(), []
    begin = time.monotonic()
    end = begin + minutes * 60

    def use(name: str) -> None:
        try:
            work(devices[name], name, ledger, lambda: time.monotonic() > end, photos=40)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=use, args=(name,)) for name in devices]
    for thread in threads:
        thread.start()
    samples: list[dict[str, int]] = []
    while time.monotonic() < end and not failures:
        time.sleep(random.uniform(0.5, 4))
        is_long = random.random() < 0.3
        for proxy in proxies:
            proxy.cut(True)
        time.sleep(random.uniform(1, 5) if is_long else 0.05)
        for proxy in proxies:
            proxy.cut(False)
        samples.append({name: device.memory() for name, device in devices.items()})
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    compare(server, devices, ledger)
    words = []
    for name in devices:
        half = [sample[name] for sample in samples[len(samples) // 4:]]
        early, late = half[:len(half) // 3], half[-(len(half) // 3):]
        words.append(f"{max(early) >> 20} and {max(late) >> 20}")
        # The lengths of memtables and caches differ from one moment to the next.
        expect(max(late) <= max(early) * 1.25 + (8 << 20),
               f"the memory of {name} grows from {max(early)} to {max(late)} bytes")
    for device in devices.values():
        device.stop()
    expect(server.stop() == 0, "the server ended well")
    print(f"ok      {minutes} minutes, the line was cut {proxies[0].cuts} times: "
          f"{sum(ledger.done.values())} increments, nothing lost and nothing twice; MiB of memory "
          f"early and late: {', '.join(words)}", flush=True)


def main() -> int:
    if not {"--kills", "--minutes"} & set(sys.argv):
        return run(
            [a_device_and_googles_client_write_and_listen, fields_of_both_are_kept,
             a_device_takes_the_server_for_googles, photographs_go_from_device_to_device],
            Server, lambda server, story: World(server, story.__name__))
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("directory")
    parser.add_argument("--kills", type=int)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--delay", type=float, default=0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    random.seed(options.seed)
    print(f"devices: seed {options.seed}", flush=True)
    for amount, judge, more in (
            (options.kills, kill_at_random, ()),
            (options.minutes, soak, (options.delay / 1000,))):
        if amount is not None:
            directory = f"{options.directory}/{judge.__name__}"
            pathlib.Path(directory).mkdir(parents=True, exist_ok=True)
            judge(options.program, directory, amount, *more)
    return 0


if __name__ == "__main__":
    sys.exit(main())
