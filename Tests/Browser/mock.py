"""A stand-in for the console's server: the contract of Sources/OndolConsole/README.md over a shop in memory.

It exists so that pages can be written and tested without building anything in Swift:

    python3 Tests/Browser/mock.py [--port N] [--rows N] [--follower] [--tick]

prints the address with its token and runs until interrupted.
"""

import argparse
import base64
import hmac
import io
import json
import secrets
import tarfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from mockdata import Shop
from mockroutes import Console, difference
from mockvalues import Refusal, canonical, moment

WEB = Path(__file__).resolve().parents[2] / "Sources/OndolConsole/Web"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def shipped(text):
    """A file as the console sends it: without indentation, empty lines and comments on lines of their own."""
    lines, is_comment = [], False
    for line in text.splitlines():
        bare = line.strip()
        is_comment = is_comment or bare.startswith("/*")
        if bare and not is_comment and not bare.startswith("//"):
            lines.append(bare)
        is_comment = is_comment and "*/" not in bare
    return "\n".join(lines) + "\n"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def answer(self, status, body, content_type="application/json", **more):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {
            **HEADERS,
            "Content-Security-Policy": POLICY,
            "Content-Type": content_type,
            "Content-Length": str(len(data)),
            **more,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def serve(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        try:
            self.route(body)
        except Refusal as refusal:
            self.answer(refusal.status, refusal.body)
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            self.answer(400, {"code": "invalidArgument", "message": f"the request is wrong: {error!r}"})

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_HEAD = serve

    def route(self, body):
        port = self.server.server_port
        if self.headers.get("Host") not in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}"):
            raise Refusal(421, "invalidArgument", "the console does not serve this host")
        if self.headers.get("Origin") not in (None, f"http://{self.headers.get('Host')}"):
            raise Refusal(403, "permissionDenied", "foreign origin")
        url = urlsplit(self.path)
        if self.command == "OPTIONS":
            raise Refusal(405, "unimplemented", "no such method")
        if not url.path.startswith("/api/v1/"):
            return self.asset(url.path)
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            raise Refusal(401, "unauthenticated", "the token is missing or wrong")
        name, query = url.path[len("/api/v1/") :], dict(parse_qsl(url.query, keep_blank_values=True))
        console = self.server.console
        if name == "live":
            return self.live(json.loads(base64.urlsafe_b64decode(query["watch"] + "==")))
        if name.startswith("content/"):
            data = console.shop.contents.get(name[8:])
            if data is None:
                raise Refusal(404, "notFound", "no such content")
            return self.answer(200, data, "application/octet-stream", **{"Content-Disposition": "attachment"})
        if name == "backup.tar":
            return self.answer(
                200, self.archive(), "application/octet-stream", **{"Content-Disposition": "attachment"}
            )
        extra = ()
        if name.startswith("tasks/"):
            name, extra = "tasks", (unquote(name[6:]),)
        method = self.command.lower()
        action = getattr(console, f"{method}_{name.replace('/', '_')}", None)
        if action is None:
            raise Refusal(404, "notFound", "no such route")
        reads = method == "get" or name in ("query", "count", "tasks")
        if console.follower and not reads:
            raise Refusal(403, "permissionDenied", "this process only reads", hint="embed the console")
        if name in ("document", "object") and method in ("put", "patch", "delete"):
            if "If-Match" not in self.headers:
                raise Refusal(400, "invalidArgument", "If-Match is missing")
            extra = (self.headers["If-Match"].strip('"'),)
        if (name, method) != ("object", "put"):
            body = json.loads(body) if body else {}
        with console.shop.lock:
            answer = action(query, body, *extra)
        self.answer(200, answer)

    def asset(self, path):
        if path == "/favicon.ico":
            return self.answer(204, b"")
        name = "index.html" if path == "/" else path.removeprefix("/assets/")
        file = WEB / name
        if "/" in name or not file.is_file():
            raise Refusal(404, "notFound", "no such page")
        self.answer(200, shipped(file.read_text()).encode(), TYPES[file.suffix] + "; charset=utf-8")

    def archive(self):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            data = json.dumps(list(self.server.console.shop.documents)).encode()
            entry = tarfile.TarInfo("backup.ondol/documents.json")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        return buffer.getvalue()

    # MARK: live

    def live(self, watches):
        shop = self.server.console.shop
        self.send_response(200)
        for name, value in {**HEADERS, "Content-Type": "text/event-stream", "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        known, told, beat, sampled = {}, -1, time.time(), 0
        feed = {one["id"]: one.get("since") or shop.token() for one in watches if one["kind"] == "feed"}
        while not self.server.stopping:
            with shop.lock:
                events = []
                if told != shop.version:
                    told = shop.version
                    events.append(("version", {"version": str(told), "time": moment()}))
                second = int(time.time())
                for watch in watches:
                    if watch["kind"] == "statistics" and second == sampled:
                        continue
                    events += self.news(watch, known, feed)
                sampled = second
            if time.time() - beat > 10:
                beat = time.time()
                self.wfile.write(b": beat\n\n")
            for place, (name, data) in enumerate(events, 1):
                # Only after the last event has everything up to this version been sent.
                token = f"id: m-{told}\n" if place == len(events) else ""
                self.wfile.write(f"event: {name}\n{token}data: {json.dumps(data)}\n\n".encode())
            self.wfile.flush()
            with shop.lock:
                if told == shop.version:
                    shop.news.wait(0.5)

    def news(self, watch, known, feed):
        console, name = self.server.console, watch["id"]
        if watch["kind"] == "feed":
            changes = console.feed(watch.get("path"), feed[name])
            feed[name] = console.shop.token()
            return [("changes", {"watch": name, "changes": changes})] if changes else []
        if watch["kind"] == "query":
            stamp = (
                console.shop.changed_in.get(watch.get("collection"))
                if watch.get("collection")
                else console.shop.version
            )
            if name in known and known[name][0] == stamp:
                return []
            try:
                state = console.state(watch)
            except Refusal as refusal:
                known[name] = (stamp, None)
                return [("problem", {"watch": name, "error": refusal.body})]
            before = known.get(name)
            known[name] = (stamp, state)
            changes = difference(before[1]["documents"], state["documents"]) if before else None
            if changes is None:
                return [("state", {"watch": name, **state})]
            change = {"watch": name, "changes": changes, "last": state["last"], "cursor": state["cursor"]}
            return [("changes", change)] if changes else []
        state = console.state(watch)
        text = json.dumps(state)
        if known.get(name) == text:
            return []
        known[name] = text
        return [("state", {"watch": name, **state})]


def serve(port=0, rows=0, follower=False):
    """Starts the server in a thread; returns the server, whose `url` has the token."""
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads, server.stopping = True, False
    server.token = secrets.token_urlsafe(32)
    server.console = Console(Shop(rows), follower)
    server.url = f"http://127.0.0.1:{server.server_port}/#token={server.token}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--follower", action="store_true")
    parser.add_argument("--tick", action="store_true", help="an item's stock changes every second")
    options = parser.parse_args()
    running = serve(options.port, options.rows, options.follower)
    print(running.url, flush=True)
    number = 0
    while True:
        time.sleep(1)
        if options.tick:
            number += 1
            item = running.console.shop.documents.get("items/item-01")
            if item:
                running.console.shop.write(item["path"], {**item["fields"], "stock": canonical(number)})
