"""Requests that no browser sends: handwritten ones on a socket, to a console that has a secret.

    python3 Tests/Browser/wire.py PROGRAM [--only WORD]

After each story the console still answers requests with the token, nothing in the database has
changed, and no answer without the token has revealed anything from the database. Needs no browser.
"""

import argparse
import base64
import json
import random
import re
import socket
import sys
import time
from urllib.parse import quote

import client
import serving

DATABASE = "/api/v1/database"


class Answer:
    """An answer; status 0 for a connection that was closed without one."""

    def __init__(self, text, asked=b""):
        self.raw, self.asked = text, asked
        head, _, self.rest = text.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        found = re.fullmatch(r"HTTP/1\.1 (\d{3}) .*", lines[0])
        self.status = int(found[1]) if found else 0
        self.headers = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)

    @property
    def body(self):
        return self.rest[: int(self.headers.get("content-length", len(self.rest)))]


class Wire:
    """A console, and sockets to it."""

    def __init__(self, served):
        self.served, self.heard = served, []
        self.api = client.API(served.url)
        self.before = self.state()
        # Begins a request and never finishes it. It is checked at the end.
        self.unfinished = self.open()
        self.unfinished.settimeout(30)
        self.unfinished.sendall(b"GET / HT")

    def state(self):
        """The whole state: documents, tree, objects and the newest version."""
        read = self.api.call
        return [
            read("GET", "database")["version"],
            read("POST", "query", {"group": "secrets"})["documents"],
            read("GET", "collections")["collections"],
            read("GET", "tree", path="")["children"],
            read("GET", "storage", prefix="")["objects"],
        ]

    def open(self):
        return socket.create_connection(("127.0.0.1", self.served.port), timeout=15)

    def head(self, method="GET", target=DATABASE, *lines, host=None, token=True):
        """The head of a request as the page would send it, followed by these lines."""
        first = [f"{method} {target} HTTP/1.1"]
        first += [f"Host: {host or f'127.0.0.1:{self.served.port}'}"] if host != "" else []
        first += [f"Authorization: Bearer {self.served.token}"] if token else []
        return "\r\n".join([*first, *lines, "", ""]).encode()

    def send(self, data, until=None):
        """Sends bytes and reads until the other side sends no more."""
        with self.open() as wire:
            try:
                wire.sendall(data)
            except OSError:
                pass
            answer = self.hear(wire, until)
            answer.asked = data[:300]
            return answer

    def hear(self, wire, until=None):
        """Reads one whole answer, or up to some bytes, or to the end."""
        text = b""
        while True:
            head, found, rest = text.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: (\d+)", head)
            if until is None and found and length and len(rest) >= int(length[1]):
                break
            if until is not None and until in text:
                break
            try:
                piece = wire.recv(65536)
            except OSError:
                break
            if not piece:
                break
            text += piece
        return Answer(text)

    def stranger(self, *arguments, **options):
        """A request without the token. Its answers are checked at the end."""
        answer = self.send(self.head(*arguments, token=False, **options))
        self.heard.append(answer.raw)
        return answer

    def is_well(self):
        assert self.served.is_running, "the console has ended"
        answer = self.send(self.head())
        assert answer.status == 200, f"it answers {answer.raw[:300]}"
        assert self.state() == self.before, "something in the database has changed"
        forbidden = [serving.SECRET, self.served.token, self.served.directory, "secrets/one"]
        for text in self.heard:
            for word in forbidden:
                assert word.encode() not in text, f"{word} was told without the token: {text[:300]}"
        self.heard = []


def expect(answer, *statuses):
    assert answer.status in statuses, f"{answer.status} and not {statuses}: {answer.raw[:300]} for {answer.asked}"
    return answer


# MARK: - Callers


def no_other_name_is_served(w):
    port = w.served.port
    for host in ["evil.test", f"evil.test:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", f"127.0.0.1:{port}.evil.test",
                 f"127.0.0.1:{port}@evil.test", f"127.1:{port}", f"2130706433:{port}", f"[::1]:{port + 1}",
                 f"localhost.:{port}", f"0.0.0.0:{port}", "", f"127.0.0.1:{port},evil.test", f"xn--80ak6aa92e.com:{port}"]:
        for target in ["/", DATABASE, "/assets/app.js"]:
            expect(w.send(w.head("GET", target, host=host)), 421)
            expect(w.stranger("GET", target, host=host), 421)
    for host in [f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}"]:
        expect(w.send(w.head(host=host)), 200)
    # A name that occurs twice is two names, and an ambiguous one is none.
    for first, second in [(f"127.0.0.1:{port}", f"evil.test:{port}"), (f"evil.test:{port}", f"127.0.0.1:{port}"),
                          (f"127.0.0.1:{port}", f"127.0.0.1:{port}")]:
        expect(w.send(w.head("GET", DATABASE, f"Host: {second}", host=first)), 421)
        expect(w.stranger("GET", DATABASE, f"hOST: {second}", host=first), 421)
    for line in [f"Host : evil.test:{port}", " folded: yes", "\tfolded", "No-Colon", ": no name", "X: a\rHost: evil.test"]:
        expect(w.send(w.head("GET", DATABASE, line)), 400)


def no_other_page_is_served(w):
    port = w.served.port
    for line in ["Origin: null", "Origin: http://evil.test", f"Origin: http://evil.test:{port}",
                 f"Origin: https://127.0.0.1:{port}", f"Origin: http://127.0.0.1:{port + 1}",
                 f"Origin: http://localhost:{port}", f"Origin: http://127.0.0.1:{port}.evil.test", "Origin: file://",
                 "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"]:
        expect(w.send(w.head("GET", DATABASE, line)), 403)
        expect(w.send(w.head("PUT", "/api/v1/document?path=a%2Fb", line, 'If-Match: "0"', "Content-Length: 13")
                      + b'{"fields":{}}'), 403)
        expect(w.stranger("GET", DATABASE, line), 403)
    expect(w.send(w.head("GET", DATABASE, f"Origin: http://127.0.0.1:{port}")), 200)
    expect(w.stranger("GET", "/", "Sec-Fetch-Site: cross-site"), 200)
    for answer in [expect(w.stranger("OPTIONS", DATABASE, f"Origin: http://evil.test"), 403),
                   expect(w.stranger("OPTIONS", DATABASE, "Access-Control-Request-Method: PUT"), 405)]:
        assert not [name for name in answer.headers if name.startswith("access-control")], answer.headers


def no_token_no_data(w):
    token = w.served.token
    for line in [None, "Authorization: ", "Authorization: Bearer ", "Authorization: Bearer wrong",
                 f"Authorization: Bearer {token[:-1]}", f"Authorization: Bearer {token}x",
                 f"Authorization: bearer {token}", f"Authorization: Basic {token}", f"Authorization: {token}",
                 f"Authorization: Bearer {token} {token}", f"Cookie: token={token}; Authorization={token}",
                 f"X-Authorization: Bearer {token}", f"Authorization: Bearer {token.swapcase()}"]:
        expect(w.stranger("GET", DATABASE, *([line] if line else [])), 401)
    for target in [f"{DATABASE}?token={token}", f"{DATABASE}?Authorization=Bearer%20{token}", f"{DATABASE}#token={token}"]:
        answer = w.send(w.head("GET", target, token=False))
        expect(answer, 401)
        assert token.encode() not in answer.raw, "the token comes back"
    for method, target in [("GET", "/api/v1/collections"), ("GET", "/api/v1/backup.tar"), ("GET", "/api/v1/nothing"),
                           ("GET", "/api/v1/live?watch=W10"), ("DELETE", "/api/v1/document?path=secrets%2Fone"),
                           ("GET", "/api/v1/content/" + "0" * 64)]:
        expect(w.stranger(method, target, 'If-Match: "1"'), 401)


# MARK: - Addresses and bodies


def only_the_pages_files_are_files(w):
    for name in ["/assets/../Package.swift", "/assets/..%2fPackage.swift", "/assets/%2e%2e/%2e%2e/etc/passwd",
                 "/assets/....//etc/passwd", "/../../etc/passwd", "//etc/passwd", "/assets//etc/passwd", "/assets/",
                 "/assets", "/assets/app.js%00.css", "/assets/app.js/", "/assets/App.js", "/assets/.", "/assets/..",
                 "/assets/\\..\\app.js", "/assets/%61pp.js", "/index.html", "/api", "/api/v1", "/API/v1/database",
                 "/%61pi/v1/database", "/api%2fv1%2fdatabase", "*", "",
                 "/assets/" + "a" * 5000]:
        answer = w.stranger("GET", name)
        # A line without a target is no request.
        expect(answer, 404 if name else 400)
        assert b"root:" not in answer.raw and b"swift-tools-version" not in answer.raw
    expect(w.send(w.head("GET", "/api/v1/../v1/database")), 404)
    for target in [f"http://127.0.0.1:{w.served.port}{DATABASE}", f"http://evil.test{DATABASE}", "evil.test:80"]:
        expect(w.stranger("GET", target), 404, 401)
    for method in ["POST", "PUT", "DELETE", "TRACE", "CONNECT", "get"]:
        expect(w.stranger(method, "/"), 405)
        expect(w.send(w.head(method, "/api/v1/nothing")), 404 if method in ("POST", "PUT", "DELETE") else 405)
    for target in ["/", "/api/v1/nothing"]:
        answer = w.send(w.head("HEAD", target, "Connection: close"), until=b"never")
        assert expect(answer, 405).rest == b"", "an answer to HEAD has no body"
    for method in ["G\x00T", "🦆", "GE(T", '"GET"']:
        expect(w.stranger(method, "/"), 400)


def ranges_are_ranges(w):
    data = bytes(range(256)) * 40
    found = w.api.call("PUT", "object", None, "0", data, path="range/bytes")["object"]
    content = f"/api/v1/content/{found['sha256']}"
    size = len(data)
    for text, first, last in [("bytes=0-0", 0, 0), ("bytes=5-9", 5, 9), ("bytes=-1", size - 1, size - 1),
                              (f"bytes={size - 1}-", size - 1, size - 1), ("bytes=0-99999999999999", 0, size - 1),
                              ("bytes=0-9223372036854775807", 0, size - 1), ("bytes=-9223372036854775807", 0, size - 1),
                              ("bytes=00000-000001", 0, 1)]:
        answer = expect(w.send(w.head("GET", content, f"Range: {text}")), 206)
        assert answer.body == data[first : last + 1], f"{text} has other bytes"
        assert answer.headers["content-range"] == f"bytes {first}-{last}/{size}", answer.headers
    for text in ["bytes=9-5", f"bytes={size}-", f"bytes={size}-{size}", "bytes=-0", "bytes=", "bytes=-", "bytes=a-b",
                 "bytes=0-1,3-4", "bytes=+1-2", "bytes=-+5", "bytes=--5", "bytes=0-99999999999999999999999999",
                 "bytes=9223372036854775807-9223372036854775807", "bytes=18446744073709551616-", "bytes=١-٢", "items=0-1",
                 "bytes=0x1-0x2", "bytes= 0-1", "bytes=1.5-2", "bytes=-9223372036854775808"]:
        answer = w.send(w.head("GET", content, "Range: " + text.encode().decode("latin-1")))
        expect(answer, 400)
    answer = expect(w.send(w.head("GET", content)), 200)
    assert answer.body == data
    # The headers of bytes: a browser must never show them as a page.
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == "attachment" and answer.headers["x-content-type-options"] == "nosniff"
    w.api.call("DELETE", "object", None, found["generation"], path="range/bytes")
    w.before = w.state()


def odd_queries_are_refused(w):
    for target in ["document", "document?path", "document?path=", "document?path=a", "document?path=a/b/c",
                   "document?path=%", "document?path=%zz", "document?path=%ff", "document?path=a&path=b",
                   "document?pa%74h=a&path=b", "document?path=a/b&", "document?=x", "document?&&=&",
                   "document?path=" + quote("/a/b"), "document?path=" + quote("a//b"), "document?path=a%2F%00",
                   "document?path=" + quote("a/" + "x" * 1501), "document?path=" + quote("a/" + "가" * 501),
                   "document?path=" + quote("/".join(["a"] * 202)), "document?path=a%2F..", "document?path=a%2F__x__",
                   "collections?below=a", "collections?below=" + quote("a/b/c"), "schema", "schema?collection=a&group=b",
                   "schema?collection=", "schema?collection=a%2Fb", "schema?group=a%2Fb", "schema?group=",
                   "tree?path=a.b", "tree?path=%23", "tree?path=" + quote("/".join("a" * 40)), "tree?limit=0",
                   "tree?path=a&limit=99999999999999999999", "tree?path=a&limit=-1", "tree?path=a&limit=1e3",
                   "tree?path=" + "a" * 800, "storage?prefix=" + quote("../" * 5), "storage?prefix=a&limit=0",
                   "storage?prefix=&page=nonsense", "object", "object?path=", "object?path=" + "a" * 3000,
                   "changes?since=nonsense", "changes?limit=-5", "changes?since=" + "9" * 400, "changes?since=-1",
                   "holders", "holders?sha256=", "holders?sha256=zz", "content/", "content/..", "content/" + "g" * 64,
                   "content/" + "0" * 63, "live", "live?watch=", "live?watch=%21", "live?watch=W10=", "live?watch=" + "A" * 70000, "live?watch=bnVsbA",
                   "tree/value", "tree/value?path=a.b", "tree/value/", "statistics?x=1",
                   "tasks/t1", "indexes?x=1", "database/", "database?", "//database", "?", "#", "%2e%2e"]:
        answer = w.send(w.head("GET", f"/api/v1/{target}"), until=b"\r\n\r\n" if "live" in target else None)
        expect(answer, 200, 400, 404)
        if answer.status != 200 and "live" not in target:
            assert json.loads(answer.body)["message"], answer.raw


def odd_watches_are_refused(w):
    def watch(*watches):
        text = base64.urlsafe_b64encode(json.dumps(watches).encode()).decode().rstrip("=")
        return w.send(w.head("GET", f"/api/v1/live?watch={text}"), until=b"\r\n\r\n")

    for wrong in [[1], ["a"], [None], [[]], [{}], [{"kind": "query"}], [{"id": "a"}, {"id": "a"}], [{"id": 1, "kind": "tasks"}],
                  [{"id": "a", "kind": "tasks"}] * 2, [{"id": f"{n}", "kind": "tasks"} for n in range(17)]]:
        expect(watch(*wrong), 400)
    for fields in [{}, {"kind": "nothing"}, {"kind": "query"}, {"kind": "query", "collection": "a", "group": "b"},
                   {"kind": "query", "collection": "a", "limit": 0}, {"kind": "query", "collection": "a", "limit": 1.5},
                   {"kind": "query", "collection": "a", "limit": 10**30}, {"kind": "query", "collection": "a/b"},
                   {"kind": "query", "collection": ""}, {"kind": "query", "group": "a/b"},
                   {"kind": "query", "collection": "a", "where": "(" * 5000}, {"kind": "document"},
                   {"kind": "query", "collection": "a", "order": "," * 50}, {"kind": "document", "path": ""},
                   {"kind": "document", "path": "a"}, {"kind": "tree", "path": "a.b"}, {"kind": "tree", "path": "a", "limit": -1},
                   {"kind": "collections", "below": "a"}, {"kind": "feed", "since": "x"}, {"kind": "feed", "path": "a/b/"},
                   {"kind": "storage", "prefix": "/../"}, {"kind": "document", "path": 7}, {"kind": ["tasks"]}]:
        text = base64.urlsafe_b64encode(json.dumps([{"id": "x", **fields}]).encode()).decode().rstrip("=")
        data = w.send(w.head("GET", f"/api/v1/live?watch={text}"), until=b"\n\n")
        expect(data, 200)
        assert b"event: version" in data.raw


def odd_bodies_are_refused(w):
    seed = random.randrange(1 << 32)
    draw = random.Random(seed)
    deep = 200_000
    texts = [b"", b"{", b"}", b"null", b"1", b"[]", b"\xff\xfe", b'{"collection":"\xff"}', b'{"collection":"a"}x',
             b'{"collection":"a","collection":"b"}', b'{"collection":"a","limit":1e999}',
             b'{"collection":"a","limit":-0.0}', b'{"collection":"a","limit":{"$numberLong":"1"}}',
             b'{"collection":"a","limit":9223372036854775808}', b'{"collection":"\\ud800"}', b'{"collection":"\\udc00\\ud800"}',
             b'{"collection":"a\\u0000"}', b'{"collection":{"$date":1}}', b'{"$numberLong":"x"}', b"[" * deep, b'{"a":' * deep,
             b'{"collection":"a","where":"' + b"(" * deep + b'"}', b'{"collection":"a","where":"' + b"not " * deep + b'"}',
             b'{"collection":"a","where":"' + b" or ".join([b"a = 1"] * 20_000) + b'"}',
             b'{"collection":"a","where":"' + b" and ".join([b"a = 1"] * 20_000) + b'"}',
             b'{"collection":"a","where":"a = ' + b"[" * deep + b'"}', b'{"collection":"a","where":"a in ["}',
             b'{"collection":"a","where":"a = 1e999"}', b'{"collection":"a","where":"a = 99999999999999999999"}',
             b'{"collection":"a","where":"a = -9223372036854775808"}', b'{"collection":"a","where":"`"}',
             b'{"collection":"a","order":"' + b"a," * 5000 + b'a"}', b'{"collection":"a","after":"x"}', b'{"collection":"a","select":"``"}',
             b'{"collection":"a","select":"' + b"a." * 5000 + b'a"}', b'{"collection":"a","aggregate":[{"op":"sum"}]}',
             b'{"collection":"a","aggregate":[{"op":"sum","field":""}]}', b'{"collection":"a","aggregate":[{"op":"x","field":"a"}]}',
             b'{"collection":"a","aggregate":[{"op":"count"}],"by":"a.."}', b'{"collection":"a","lookups":[{"field":"","in":"","as":""}]}',
             b'{"collection":"a","lookups":[{"field":"a","in":"b/c","as":"d"}]}', b'{"collection":"a","lookups":[[]]}',
             b'{"collection":"' + b"a" * 2000 + b'"}', b'{"collection":"..","explain":"analyze"}', b'{"group":"__all__"}']
    for text in texts:
        answer = w.send(w.head("POST", "/api/v1/query", f"Content-Length: {len(text)}") + text)
        expect(answer, 200, 400, 413)
    # Values that go into the database and come back unchanged, or not at all.
    kept = [{"$numberDouble": "NaN"}, {"$numberDouble": "-Infinity"}, {"$numberLong": str(2**63 - 1)}, {"$literal": {"$date": "x"}},
            {"$date": "0001-01-01T00:00:00.000001Z"}, {"$date": "9999-12-31T23:59:59.999999Z"}, "\u202e\u0000\ufeff", "😀" * 1000]
    wrong = [{"$numberLong": str(2**63)}, {"$numberDouble": "0x1"}, {"$date": "2026-02-30T00:00:00Z"}, {"$geoPoint": [91, 0]},
             {"$date": {"$numberLong": str(2**63 - 1)}}, {"$reference": "a"}, {"$reference": "/"}, {"$blob": {"sha256": "x"}}, {"$binary": "%"},
             {"$vector": ["a"]}, {"$geoPoint": [1]}, {"$geoPoint": [{"$numberDouble": "NaN"}, 0]}, [[1]] * 2, {"$numberLong": 1.5}]
    for value in kept + wrong:
        text = json.dumps({"fields": {"v": value}}).encode()
        answer = w.send(w.head("POST", "/api/v1/document?collection=odd", f"Content-Length: {len(text)}") + text)
        expect(answer, *([200] if value in kept else [200, 400]))
        if answer.status == 200:
            document = json.loads(answer.body)["document"]
            if value in kept:
                assert document["fields"]["v"] == value, f"{value} came back as {document['fields']['v']}"
            w.api.delete(document["path"])
    for name in ["", ".", "..", "a/b", "__a__", "\u0000", "a" * 1501, "가" * 501, "\u202e", " ", "\n", "%2F", "😀", "`", "\\"]:
        text = json.dumps({"id": name, "fields": {}}).encode()
        answer = w.send(w.head("POST", "/api/v1/document?collection=odd", f"Content-Length: {len(text)}") + text)
        expect(answer, 200, 400)
        if answer.status == 200:
            path = json.loads(answer.body)["document"]["path"]
            assert w.api.document(path), f"{path!r} is not found again"
            w.api.delete(path)
    for text in [b'{"id":"\\ud800","fields":{}}', b'{"fields":{"\\udfff":1}}', b'{"fields":{"a":"\\ud800"}}', b'{"fields":{"":1}}',
                 b'{"fields":' + b'{"a":' * 150 + b"1" + b"}" * 151, b'{"fields":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001,
                 b'{"fields":{"a":"' + b"x" * (17 << 20) + b'"}}', b'{"fields":{"' + b"n" * 70_000 + b'":1}}']:
        answer = w.send(w.head("POST", "/api/v1/document?collection=odd", f"Content-Length: {len(text)}") + text)
        expect(answer, 200, 400, 413)
        if answer.status == 200:
            w.api.delete(json.loads(answer.body)["document"]["path"])
    for target, text in [("PATCH document?path=odd%2Ftarget", b'{"set":{"":1}}'), ("PATCH document?path=odd%2Ftarget", b'{"set":{"a..b":1}}'),
                         ("PATCH document?path=odd%2Ftarget", b'{"set":{"`":1}}'), ("PATCH document?path=odd%2Ftarget", b'{"delete":[""]}'),
                         ("PATCH document?path=odd%2Ftarget", b'{"delete":["' + b"a." * 5000 + b'a"]}'), ("PATCH document?path=odd%2Ftarget", b"[]"),
                         ("PATCH document?path=odd%2Ftarget", b'{"set":{"a":1,"a.b":2}}'), ("PUT tree?path=a", b'{"value":{"a.b":1}}'),
                         ("PUT tree?path=a", b'{"value":1,"priority":[1]}'), ("PUT tree?path=" + "a/" * 40, b'{"value":1}'),
                         ("PUT tree?path=a", b'{"value":' + b"[" * 60_000), ("PUT tree?path=.info", b'{"value":1}'),
                         ("PATCH tree?path=a", b'{"values":{"/":1,"a/b":1,"a":2}}'), ("PATCH tree?path=a", b'{"values":{"":1}}'),
                         ("POST indexes", b'{"collection":"a","fields":[]}'), ("POST indexes", b'{"collection":"a","fields":[""]}'),
                         ("POST indexes", b'{"collection":"a","fields":["-"]}'), ("POST indexes", b'{"collection":"a","group":"b","fields":["x"]}'),
                         ("POST indexes", b'{"collection":"a/b","fields":["x"]}'), ("POST indexes", b'{"collection":"","fields":["x"]}'),
                         ("POST indexes", b'{"collection":"a","fields":["x","x"]}'), ("POST indexes", b'{"collection":"a","fields":["x"],"where":"y ="}'),
                         ("DELETE indexes?name=x", b""), ("DELETE indexes?name=x&collection=a/b/c/", b""), ("POST tasks", b'{"kind":"nothing"}'),
                         ("POST tasks", b'{"kind":"compact","bytesPerSecond":0}'), ("POST tasks", b'{"kind":"compact","bytesPerSecond":1e300}'),
                         ("POST tasks", b'{"kind":"rebuildIndex","collection":"//","name":"x"}'), ("POST tasks", b'{"kind":"verify","depth":"x"}'),
                         ("DELETE tasks/", b""), ("DELETE tasks/..", b""), ("POST delete", b'{"collection":"secrets"}'),
                         ("POST delete", b'{"collection":"secrets","dryRun":"no"}'), ("POST delete", b'{"group":"a/b","dryRun":true}'),
                         ("PUT object?path=", b"x"), ("PUT object?path=" + quote("a/../b/\n"), b""), ("PATCH object?path=none", b'{"custom":{"a":1}}'),
                         ("DELETE object?path=none", b""), ("DELETE document?path=none", b""), ("DELETE document?path=a%2Fb&recursive=x", b"")]:
        method, _, route = target.partition(" ")
        version = w.api.put("odd/target", {"a": 1})["version"]
        answer = w.send(w.head(method, f"/api/v1/{route}", f"Content-Length: {len(text)}", f'If-Match: "{version}"') + text)
        w.api.delete("odd/target")
        if answer.status == 200 and route.startswith("tree"):
            for node in ["a", ".info"]:
                w.api.call("DELETE", "tree", path=node)
            continue
        expect(answer, 200, 400, 404, 409, 413)
        if answer.status == 200 and "object" in json.loads(answer.body):
            made = json.loads(answer.body)["object"]
            w.api.call("DELETE", "object", None, made["generation"], path=made["path"])
    for match in ['""', '"-1"', '"18446744073709551616"', "1", '"1', "*", 'W/"1"', '"1", "2"', '"+1"', '"0x1"', '"٣"']:
        answer = w.send(w.head("PUT", "/api/v1/document?path=secrets%2Fone", f"If-Match: {match}".encode().decode("latin-1"),
                               "Content-Length: 13") + b'{"fields":{}}')
        expect(answer, 400, 409)
    # Noise of all kinds, the same for the same seed.
    for number in range(300):
        body = bytes(draw.choice(b'{}[]",:0123456789eE+-.\\u$ntrufalse \xff\x00') for _ in range(draw.randrange(60)))
        target = draw.choice(["query", "count", "delete", "indexes", "tasks", "document?collection=odd", "tree?path=a"])
        answer = w.send(w.head(draw.choice(["POST", "PUT", "PATCH"]), f"/api/v1/{target}", f"Content-Length: {len(body)}") + body)
        assert 400 <= answer.status < 500, f"seed {seed}, body {number}: {body!r} {answer.raw[:200]}"
    w.before[0] = w.state()[0]
    w.api.call("DELETE", "tree", path="a")
    changed = w.state()
    assert changed[1:] == w.before[1:], f"seed {seed}: {changed[1:]} and not {w.before[1:]}"
    w.before = changed


# MARK: - Form of requests


def framing_is_strict(w):
    own = w.head()
    for head in [w.head("POST", "/api/v1/query", "Transfer-Encoding: chunked", "Content-Length: 5"),
                 w.head("POST", "/api/v1/query", "Content-Length: -1"), w.head("POST", "/api/v1/query", "Content-Length: x"),
                 w.head("POST", "/api/v1/query", "Content-Length: 99999999999999999999"),
                 w.head("POST", "/api/v1/query", "Transfer-Encoding: gzip"),
                 w.head("POST", "/api/v1/query", "Transfer-Encoding: chunked, gzip")]:
        # The bytes after it are not a second request, whatever they contain.
        answers = w.send(head + b"0\r\n\r\n" + own, until=b"never")
        assert answers.raw.count(b"HTTP/1.1 ") <= 1 and serving.SECRET.encode() not in answers.raw, answers.raw[:500]
        assert b"HTTP/1.1 200" not in answers.raw, answers.raw[:500]
    chunked = w.head("POST", "/api/v1/count", "Transfer-Encoding: chunked")
    answer = w.send(chunked + b"A\r\n{\"group\":\"\r\n9;x=y\r\nsecrets\"}\r\n0\r\nTrailer: x\r\n\r\n")
    assert expect(answer, 200).body == b'{"count":1}', answer.raw
    for size in [b"-1", b"x", b"", b"FFFFFFFFFFFFFFFFF", b"0x5", b"+5", b" 5"]:
        answers = w.send(chunked + size + b"\r\n{}\r\n0\r\n\r\n" + own, until=b"never")
        assert b"HTTP/1.1 200" not in answers.raw, f"{size}: {answers.raw[:500]}"
    # A length beyond memory is fine, and has no effect if the bytes do not come.
    with w.open() as wire:
        wire.sendall(chunked + b"7FFFFFFFFFFFFFFF\r\n{}\r\n0\r\n\r\n" + own)
        wire.shutdown(socket.SHUT_WR)
        assert expect(w.hear(wire, until=b"never"), 400).raw.count(b"HTTP/1.1 ") == 1
    for line in [b"GET", b"GET /", b" / HTTP/1.1", b"\x00\x01\x02", b"GET / HTTP/1.1 extra", b"\xff\xfe / HTTP/1.1",
                 b"GET / SMTP/9", b"PRI * HTTP/2.0", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"]:
        answer = w.send(line + b"\r\nHost: x\r\n\r\n", until=b"never") if b"GET /" != line else w.send(line + b"\r\n\r\n", until=b"never")
        w.heard.append(answer.raw)
        assert b"HTTP/1.1 200" not in answer.raw, answer.raw[:300]


def what_is_refused_is_not_asked_behind_it(w):
    """A refused body is not a request, although another site's page could post one that looks like
    it."""
    hidden = w.head("DELETE", "/api/v1/document?path=secrets%2Fone", 'If-Match: "1"')
    for size in [0, 100, 5000, 70_000, 3 << 20, 9 << 20]:
        body = b"x" * size + b"\r\n" + hidden * 3
        for method, target in [("POST", "/api/v1/query"), ("GET", "/"), ("GET", "/assets/app.js"), ("PUT", "/api/v1/object?path=x"), ("GET", "/api/v1/live?watch=W10")]:
            data = w.head(method, target, "Origin: http://evil.test", "Sec-Fetch-Site: cross-site", f"Content-Length: {len(body)}", token=False) + body
            answers = w.send(data + w.head("GET", "/nothing-here"), until=b"HTTP/1.1 404")
            found = re.findall(rb"HTTP/1\.1 (\d+)", answers.raw)
            assert found in ([b"403", b"404"], [b"403"], [b"200", b"404"]), f"{method} {target} {size}: {found}"
            w.heard.append(answers.raw)
        # The same in a chunked body, and from a client with the token.
        chunks = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
        for head in [w.head("POST", "/api/v1/query", "Origin: http://evil.test", "Transfer-Encoding: chunked", token=False),
                     w.head("GET", "/", "Transfer-Encoding: chunked", token=False),
                     w.head("PUT", "/api/v1/object?path=secrets%2Fx", "Transfer-Encoding: chunked")]:
            answers = w.send(head + chunks + w.head("GET", "/nothing-here"), until=b"HTTP/1.1 404")
            found = re.findall(rb"HTTP/1\.1 (\d+)", answers.raw)
            assert found in ([b"403", b"404"], [b"403"], [b"200", b"404"], [b"400", b"404"], [b"400"]), f"chunked, {size}: {found}"


def old_clients_and_careful_ones_are_answered(w):
    old = w.head().replace(b"HTTP/1.1", b"HTTP/1.0")
    assert expect(w.send(old, until=b"never"), 200).headers["connection"] == "close"
    answer = w.send(w.head("GET", "/api/v1/backup.tar").replace(b"HTTP/1.1", b"HTTP/1.0"), until=b"never")
    assert "transfer-encoding" not in expect(answer, 200).headers and len(answer.rest) > 512, answer.headers
    answer = w.send(w.head("GET", DATABASE, "Connection: close"), until=b"never")
    assert expect(answer, 200).headers["connection"] == "close"
    # An announced body comes when the server wants it, and not when the request is refused.
    with w.open() as wire:
        wire.sendall(w.head("POST", "/api/v1/count", "Content-Length: 19", "Expect: 100-continue"))
        assert w.hear(wire, until=b"\r\n\r\n").status == 100
        wire.sendall(b'{"group":"secrets"}')
        assert expect(w.hear(wire), 200).body == b'{"count":1}'
    answer = w.send(w.head("POST", "/api/v1/count", "Content-Length: 99", "Expect: 100-continue", "Origin: null"), until=b"never")
    assert expect(answer, 403).raw.count(b"HTTP/1.1 ") == 1


def requests_come_in_a_row(w):
    count = 40
    data = b"".join(w.head("GET", target) for target in [DATABASE, "/api/v1/nothing"] * (count // 2))
    answers = w.send(data + w.head("GET", "/nothing-here"), until=b"no such page")
    found = re.findall(rb"HTTP/1\.1 (\d+)", answers.raw)
    assert found == [b"200", b"404"] * (count // 2) + [b"404"], found


def a_head_has_a_limit(w):
    """Long heads are read as fast as short ones, and not without end, because other sites' pages
    can send them."""
    for head in [w.head("GET", DATABASE, "X-Long: " + "x" * 100_000), w.head("GET", f"{DATABASE}#" + "x" * 100_000)]:
        start = time.monotonic()
        expect(w.send(head), 200, 401, 404)
        assert time.monotonic() - start < 5, "a long line takes long"
    for head in [w.head("GET", DATABASE, "X-Long: " + "x" * (1 << 20)), w.head("GET", "/" + "x" * (1 << 20), token=False),
                 b"x" * (3 << 20), b"GET / HTTP/1.1\r\n" + b"X" * (3 << 20)]:
        answer = expect(w.send(head), 431)
        w.heard.append(answer.raw)
        w.is_well()
    expect(w.send(w.head("GET", DATABASE, *[f"X-{n}: {n}" for n in range(200)])), 400)
    expect(w.send(w.head("GET", DATABASE, *[f"X-{n}: {n}" for n in range(90)])), 200)


def bodies_have_a_limit(w):
    longest = 32 << 20
    head = w.head("POST", "/api/v1/query", f"Content-Length: {longest + (1 << 20)}")
    with w.open() as wire:
        wire.sendall(head)
        try:
            for _ in range(33):
                wire.sendall(b" " * (1 << 20))
        except OSError:
            pass
        expect(w.hear(wire), 413)
    # A claimed length far beyond memory costs nothing until the bytes come.
    memory = w.served.memory
    wires = []
    for _ in range(20):
        wire = w.open()
        wire.sendall(w.head("POST", "/api/v1/query", "Content-Length: 9223372036854775807") + b"x" * 1000)
        wires.append(wire)
    w.is_well()
    assert w.served.memory < memory + (64 << 20), f"{w.served.memory - memory} more bytes of memory"
    for wire in wires:
        wire.close()


def who_is_slow_holds_nobody_up(w):
    text = w.head()
    wires = [w.open() for _ in range(30)]
    for place in range(8):
        for wire in wires:
            wire.sendall(text[place : place + 1])
        start = time.monotonic()
        w.is_well()
        took = time.monotonic() - start
        assert took < 10, f"others waited for {took:.1f} s"
    for wire in wires[:10]:
        wire.sendall(text[8:])
        expect(w.hear(wire), 200)
    for wire in wires:
        wire.close()


def connections_are_few_and_who_is_idle_longest_goes(w):
    idle = [w.open() for _ in range(300)]
    w.is_well()
    assert w.served.descriptors < 250, f"{w.served.descriptors} descriptors"
    for wire in idle:
        wire.close()


def a_process_without_descriptors_lives(w):
    """A client takes all of the process's descriptors. When that ends, the process answers
    again."""
    with serving.Served(w.served.program, limit=64) as served:
        other = Wire(served)
        wires = []
        for _ in range(120):
            wire = socket.create_connection(("127.0.0.1", served.port), timeout=5)
            wire.sendall(b"GET ")
            wires.append(wire)
        for wire in wires:
            wire.close()
        other.is_well()


def who_hangs_up_is_forgotten(w):
    w.is_well()
    before = w.served.descriptors
    for place in range(60):
        # Half a head, a head without a body, a half-closed connection after a head, and a reset
        # during the answer.
        with w.open() as wire:
            if place % 4 == 0:
                wire.sendall(w.head()[:40])
            elif place % 4 == 1:
                wire.sendall(w.head("POST", "/api/v1/query", "Content-Length: 100") + b"{")
            elif place % 4 == 2:
                wire.sendall(w.head())
                wire.shutdown(socket.SHUT_WR)
                expect(w.hear(wire), 200)
            else:
                wire.sendall(w.head("GET", "/api/v1/backup.tar"))
                wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    end = time.monotonic() + 30
    while w.served.descriptors > before + 2 and time.monotonic() < end:
        time.sleep(0.05)
    assert w.served.descriptors <= before + 2, f"{w.served.descriptors} descriptors, {before} before"


def a_half_closed_stream_goes_on(w):
    with w.open() as wire:
        wire.sendall(w.head("GET", "/api/v1/live?watch=W10"))
        wire.shutdown(socket.SHUT_WR)
        answer = w.hear(wire, until=b"event: version")
        assert b"event: version" in answer.raw


def streams_are_few_and_places_come_back(w):
    wires = []
    for _ in range(8):
        wire = w.open()
        wire.sendall(w.head("GET", "/api/v1/live?watch=W10"))
        assert b"event: version" in w.hear(wire, until=b"event: version").raw
        wires.append(wire)
    answer = expect(w.send(w.head("GET", "/api/v1/live?watch=W10")), 429)
    assert int(answer.headers["retry-after"]) > 0
    for wire in wires:
        wire.close()
    end = time.monotonic() + 20
    while True:
        answer = w.send(w.head("GET", "/api/v1/live?watch=W10"), until=b"\r\n\r\n")
        if answer.status == 200:
            break
        assert time.monotonic() < end, "places of streams that are gone do not come back"
        time.sleep(0.1)


def who_never_goes_on_is_dropped(w):
    try:
        assert w.unfinished.recv(1000) == b"", "half a line is answered"
    except ConnectionError:
        pass


def nobody_guesses_the_token(w):
    """This story is the last one, because afterwards the console answers nobody for up to a
    minute."""
    # A minute that is about to end would restart the count.
    while time.time() % 60 > 50:
        time.sleep(0.2)
    statuses = [w.stranger("GET", DATABASE, f"Authorization: Bearer {n:064x}").status for n in range(150)]
    assert 429 in statuses and set(statuses) <= {401, 429}, statuses
    assert statuses.index(429) <= 101, statuses
    answer = w.stranger("GET", DATABASE)
    assert 0 < int(expect(answer, 429).headers["retry-after"]) <= 60
    # The page itself and its files exist.
    expect(w.stranger("GET", "/"), 200)
    assert w.served.is_running


STORIES = [
    no_other_name_is_served,
    no_other_page_is_served,
    only_the_pages_files_are_files,
    ranges_are_ranges,
    odd_queries_are_refused,
    odd_watches_are_refused,
    odd_bodies_are_refused,
    framing_is_strict,
    what_is_refused_is_not_asked_behind_it,
    requests_come_in_a_row,
    old_clients_and_careful_ones_are_answered,
    a_head_has_a_limit,
    bodies_have_a_limit,
    who_is_slow_holds_nobody_up,
    connections_are_few_and_who_is_idle_longest_goes,
    a_process_without_descriptors_lives,
    who_hangs_up_is_forgotten,
    a_half_closed_stream_goes_on,
    streams_are_few_and_places_come_back,
    no_token_no_data,
    who_never_goes_on_is_dropped,
    nobody_guesses_the_token,
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    with serving.Served(options.program) as served:
        wire = Wire(served)

        def told(story):
            def tell():
                story(wire)
                if story is not nobody_guesses_the_token:
                    wire.is_well()

            tell.__name__ = story.__name__
            return tell

        stories = [told(one) for one in STORIES if options.only in one.__name__.replace("_", " ")]
        failed = serving.run("wire", stories)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
