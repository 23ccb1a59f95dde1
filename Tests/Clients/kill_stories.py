"""A server that is killed while devices put files and promise writes for the end of their
connections: nothing acknowledged is lost, no such write is missed, and none is done twice.

    kill_stories.py ONDOL DIRECTORY [--kills N] [--seed N]

Needs nothing but Python. In each round one connection asks for writes on disconnect, each of which
adds one to a counter of its own, and two threads upload, at once and in pieces. After a moment the
server is killed and started again. What was acknowledged before must then be there; what was not may
be there once.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import socket
import struct
import threading
import time

from stories import PATIENCE, ServerProcess, call, expect

NAMESPACE = "kills"
BUCKET = "kills.appspot.com"
PIECE = 1 << 18


class Server(ServerProcess):
    """`ondol serve` with the tree and storage, on the same ports after each start."""

    def __init__(self, program: str, directory: str) -> None:
        self.program, self.place = program, f"{directory}/kills.ondol"
        self.tree_port = self.storage_port = 0
        self.start()

    def start(self) -> None:
        self.launch(
            self.program, self.place, "--port-firestore", 0, "--port-database", self.tree_port,
            "--port-storage", self.storage_port)
        self.address("FIRESTORE_EMULATOR_HOST")
        _, self.tree_port = self.address("FIREBASE_DATABASE_EMULATOR_HOST")
        _, self.storage_port = self.address("STORAGE_EMULATOR_HOST")

    def call(self, method: str, path: str, body: bytes | None = None, **headers) -> tuple:
        url = path if path.startswith("http") else f"http://127.0.0.1:{self.storage_port}{path}"
        return call(method, url, body, **headers)

    def tree(self, path: str):
        status, _, body = self.call(
            "GET", f"http://127.0.0.1:{self.tree_port}{path}.json?ns={NAMESPACE}")
        expect(status == 200, f"{path}: {status}")
        return json.loads(body)


class Device:
    """A connection of the Realtime Database's, as far as writes on disconnect need one."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.socket.sendall((
            f"GET /.ws?v=5&ns={NAMESPACE} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
            "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n"
            "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n").encode())
        self.rest = b""
        head = b""
        while b"\r\n\r\n" not in head:
            head += self._more()
        expect(head.startswith(b"HTTP/1.1 101"), f"a WebSocket: {head[:40]!r}")
        self.rest = head.split(b"\r\n\r\n", 1)[1]
        self.number = 0

    def _more(self) -> bytes:
        some = self.socket.recv(65536)
        if not some:
            raise ConnectionError("the server is gone")
        return some

    def _take(self, count: int) -> bytes:
        while len(self.rest) < count:
            self.rest += self._more()
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def ask(self, action: str, body: object) -> None:
        """Sends a request, and returns when it is acknowledged."""
        self.number += 1
        text = json.dumps({"t": "d", "d": {"r": self.number, "a": action, "b": body}}).encode()
        # A mask of zeros leaves the text as it is.
        self.socket.sendall(struct.pack(">BBH4x", 0x81, 0x80 | 126, len(text)) + text)
        while True:
            _, size = self._take(2)
            if size == 126:
                size, = struct.unpack(">H", self._take(2))
            elif size == 127:
                size, = struct.unpack(">Q", self._take(8))
            message = json.loads(self._take(size))
            if isinstance(message, dict) and message["d"].get("r") == self.number:
                return expect(message["d"]["b"]["s"] == "ok", f"{action}: {message}")


class Round:
    """What the threads of one round asked for, and what was acknowledged."""

    def __init__(self, server: Server, number: int) -> None:
        self.server, self.number = server, number
        self.asked: list[int] = []
        self.promised: set[int] = set()
        self.files: dict[str, bytes] = {}
        self.uploads: list[dict] = []

    def promise(self) -> None:
        device = Device(self.server.tree_port)
        for number in range(100_000):
            self.asked.append(number)
            path = f"/gone/r{self.number}/c{number}"
            device.ask("o", {"p": path, "d": {".sv": {"increment": 1}}})
            self.promised.add(number)

    def put(self) -> None:
        for number in range(100_000):
            name, content = f"r{self.number}-{number}", os.urandom(random.randrange(1, 300_000))
            status, _, _ = self.server.call(
                "POST", f"/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={name}", content,
                content_type="application/octet-stream")
            expect(status == 200, f"a file: {status}")
            self.files[name] = hashlib.sha256(content).digest()

    def put_in_pieces(self) -> None:
        for number in range(100_000):
            upload = {"name": f"r{self.number}-pieces{number}", "sent": 0, "isDone": False}
            content = upload["content"] = os.urandom(5 * PIECE + number)
            status, headers, _ = self.server.call(
                "POST",
                f"/upload/storage/v1/b/{BUCKET}/o?uploadType=resumable&name={upload['name']}", b"{}",
                content_type="application/json")
            expect(status == 200, f"begun: {status}")
            upload["url"] = headers["location"]
            self.uploads.append(upload)
            while not upload["isDone"]:
                self.send_piece(upload)

    def send_piece(self, upload: dict) -> None:
        content, start = upload["content"], upload["sent"]
        end = min(len(content), start + PIECE)
        status, _, body = self.server.call(
            "PUT", upload["url"], content[start:end],
            content_range=f"bytes {start}-{end - 1}/{len(content)}")
        expect(status == (200 if end == len(content) else 308), f"a piece: {status} {body}")
        upload["sent"], upload["isDone"] = end, end == len(content)

    # After the kill.

    def check(self) -> None:
        counters = self.server.tree(f"/gone/r{self.number}") or {}
        counters = {int(key[1:]): value for key, value in counters.items()}
        for number in self.asked:
            value = counters.get(number, 0)
            expect(value == 1 or value == 0 and number not in self.promised,
                   f"counter {number} is {value}, acknowledged: {number in self.promised}")
        for name, digest in self.files.items():
            self.check_file(name, digest)
        for upload in self.uploads:
            self.finish(upload)
            self.check_file(upload["name"], hashlib.sha256(upload["content"]).digest())

    def finish(self, upload: dict) -> None:
        if upload["isDone"]:
            return
        status, headers, _ = self.server.call(
            "PUT", upload["url"], b"", content_range=f"bytes */{len(upload['content'])}")
        # The last piece may have been taken without an answer.
        if status == 200:
            return
        expect(status == 308, f"asked: {status}")
        there = int(headers["range"].split("-")[1]) + 1 if "range" in headers else 0
        expect(there >= upload["sent"], f"{upload['sent']} bytes were acknowledged, {there} are there")
        upload["sent"] = there
        while not upload["isDone"]:
            self.send_piece(upload)

    def check_file(self, name: str, digest: bytes) -> None:
        status, _, body = self.server.call("GET", f"/download/storage/v1/b/{BUCKET}/o/{name}?alt=media")
        expect(status == 200 and hashlib.sha256(body).digest() == digest, f"{name}: {status}")


def until_the_kill(body, is_killed: threading.Event, failures: list[Exception]) -> None:
    """Runs what ends with the server. An error before the kill is a failure."""
    try:
        body()
    except (OSError, ConnectionError, ValueError) as error:
        if not is_killed.wait(0.5):
            failures.append(error)
    except Exception as error:
        failures.append(error)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("directory")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    random.seed(options.seed)
    os.makedirs(options.directory, exist_ok=True)
    print(f"kills: seed {options.seed}", flush=True)
    server = Server(options.program, options.directory)
    promised = files = pieces = 0
    for number in range(options.kills):
        turn = Round(server, number)
        is_killed, failures = threading.Event(), []
        threads = [
            threading.Thread(target=until_the_kill, args=(body, is_killed, failures))
            for body in (turn.promise, turn.put, turn.put_in_pieces)]
        for thread in threads:
            thread.start()
        time.sleep(random.uniform(0.02, 0.6))
        is_killed.set()
        server.kill()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        server.start()
        turn.check()
        promised += len(turn.promised)
        files += len(turn.files)
        pieces += len(turn.uploads)
    expect(server.stop() == 0, "the server ended well")
    print(f"ok      {options.kills} kills: {promised} writes on disconnect, {files} files and "
          f"{pieces} uploads in pieces, nothing lost and nothing twice", flush=True)


if __name__ == "__main__":
    main()
