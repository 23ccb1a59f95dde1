"""A stand-in for the console's server: the contract of Sources/OndolConsole/README.md over a shop in memory.

It exists so that pages can be written and tested without building anything in Swift:

    python3 Tests/Browser/mock.py [--port N] [--rows N] [--follower] [--tick]

prints the address with its token and stays until interrupted.
"""

import argparse
import base64
import hmac
import io
import json
import os
import secrets
import tarfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from mockdata import MISSING, Condition, Refusal, Shop, canonical, get, kind, moment, names_of, sort_key

WEB = Path(__file__).resolve().parents[2] / "Sources/OndolConsole/Web"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src blob:; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
          "trusted-types 'none'")
HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
           "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"}


def shipped(text):
    """A file as it is embedded: without indentation, empty lines and comments on lines of their own."""
    lines, is_comment = [], False
    for line in text.splitlines():
        bare = line.strip()
        is_comment = is_comment or bare.startswith("/*")
        if bare and not is_comment and not bare.startswith("//"):
            lines.append(bare)
        is_comment = is_comment and "*/" not in bare
    return "\n".join(lines) + "\n"


class Console:
    """The routes, by method and name."""

    def __init__(self, shop, follower):
        self.shop, self.follower = shop, follower
        self.opened = moment()
        threading.Thread(target=self.measure, daemon=True).start()

    def measure(self):
        while True:
            with self.shop.lock:
                self.shop.samples = (self.shop.samples + [self.sample()])[-60:]
            time.sleep(1)

    def sample(self):
        shop = self.shop
        return {"time": moment(), "commits": shop.commits, "commitLatency": list(shop.latency),
                "cacheHits": shop.commits * 40, "blockLoads": shop.commits // 3, "blockEvictions": 0,
                "cachedBytes": 9_400_000 + shop.commits * 512, "memoryBytes": 1_200_000, "fileBytes": 48_000_000,
                "reclaimableBytes": 2_100_000, "runs": 3, "delayedCommits": 0, "delay": 0,
                "compactionBytesRead": 120_000 * shop.commits, "compactionBytesWritten": 90_000 * shop.commits,
                "pinnedBytes": 65536, "oldestReadAge": 4.2, "oldestReadOwners": ["console"], "listeners": 3,
                "pendingChanges": 0, "damage": [], "processBytes": 61_000_000 + shop.commits * 1000,
                "files": [{"kind": "rows", "count": 14, "bytes": 31_000_000}, {"kind": "log", "count": 2,
                          "bytes": 9_000_000}, {"kind": "values", "count": 3, "bytes": 5_000_000},
                          {"kind": "contents", "count": 6, "bytes": 3_000_000}]}

    # MARK: the database

    def get_database(self, query, _):
        holder = {"pid": 812, "since": self.opened} if self.follower else None
        return {"path": "/data/shop.ondol", "name": "shop.ondol", "identity": "3f9c-27aa",
                "role": "follower" if self.follower else "writer", "pid": os.getpid(), "holder": holder,
                "access": "read" if self.follower else "edit", "version": str(self.shop.version),
                "token": self.shop.token(), "keepsChanges": False, "opened": self.opened, "library": "mock"}

    def get_collections(self, query, _):
        below = query.get("below")
        counts = {}
        for path in self.shop.documents:
            parts = path.split("/")
            depth = len(below.split("/")) if below else 0
            if below is None or path.startswith(below + "/"):
                counts.setdefault("/".join(parts[:depth + 1]), [0])[0] += len(parts) == depth + 2
        return {"collections": [{"id": path.rpartition("/")[2], "path": path, "count": count[0],
                                 "exact": count[0] < 1000} for path, count in sorted(counts.items())]}

    def get_schema(self, query, _):
        found = self.shop.members(query)[:200]
        fields = {}
        for doc in found:
            for name, value in doc["fields"].items():
                entry = fields.setdefault(name, {})
                entry[kind(value)] = entry.get(kind(value), 0) + 1
        rows = [{"field": name if name.isidentifier() else f"`{name}`", "share": sum(kinds.values()) / len(found),
                 "kinds": {key: count / sum(kinds.values()) for key, count in kinds.items()}}
                for name, kinds in fields.items()]
        return {"sampled": len(found), "fields": sorted(rows, key=lambda row: -row["share"])}

    # MARK: documents

    def post_query(self, _, body):
        shop, limit = self.shop, body.get("limit", 50)
        if not 0 < limit <= 500:
            raise Refusal(400, "invalidArgument", "the limit is from 1 to 500")
        start = time.perf_counter()
        found, tree = shop.find(body)
        answer = {"documents": [], "last": True, "unreadable": [], "token": shop.token(), "condition": tree}
        if body.get("aggregate"):
            answer["groups"] = self.groups(found, body)
        elif body.get("explain") != "plan":
            first = 0
            if body.get("after"):
                path = base64.b64decode(body["after"]).decode()
                first = next((n + 1 for n, doc in enumerate(found) if doc["path"] == path), len(found))
            page = found[first:first + limit]
            answer.update(documents=[self.shaped(doc, body) for doc in page], cursor=shop.cursor(page),
                          last=first + limit >= len(found))
        if body.get("explain"):
            answer["plan"] = self.plan(body, tree, answer, found, time.perf_counter() - start)
        return answer

    def shaped(self, doc, body):
        fields = dict(doc["fields"])
        if body.get("select"):
            wanted = [name.strip() for name in body["select"].split(",")]
            fields = {name: get(fields, name) for name in wanted if get(fields, name, MISSING) is not MISSING}
        for lookup in body.get("lookups") or []:
            value = get(doc["fields"], lookup["field"])
            if isinstance(value, dict) and "$reference" in value:
                value = value["$reference"].rpartition("/")[2]
            other = self.shop.documents.get(f"{lookup['in']}/{value}")
            fields[lookup["as"]] = other["fields"] if other else None
        return {**doc, "fields": fields}

    def groups(self, found, body):
        by = [name.strip() for name in (body.get("by") or "").split(",") if name.strip()]
        groups = {}
        for doc in found:
            key = [get(doc["fields"], name, MISSING) for name in by]
            if MISSING not in key:
                groups.setdefault(json.dumps(key), []).append(doc)
        answers = []
        for key, members in sorted(groups.items()):
            values = []
            for ask in body["aggregate"]:
                all_values = [get(doc["fields"], ask.get("field", ""), None) for doc in members]
                numbers = [sort_key(v)[1] for v in all_values if kind(v) in ("integer", "double")]
                values.append(self.aggregate(ask["op"], members, numbers))
            answers.append({"key": json.loads(key), "values": values})
        return answers

    def aggregate(self, op, members, numbers):
        if op == "count":
            return canonical(len(members))
        if op == "sum":
            return canonical(sum(numbers, 0.0))
        if not numbers:
            return None
        return canonical({"average": sum(numbers) / len(numbers), "minimum": min(numbers),
                          "maximum": max(numbers)}[op])

    def plan(self, body, tree, answer, found, seconds):
        first = tree if tree and "field" in tree else (tree or {}).get("and", [None])[0]
        field = first.get("field") if first else None
        index = next((one for one in self.shop.indexes if one["collection"] == body.get("collection")
                      and one["fields"][0] == field), None)
        access = {"way": "index", "name": index["name"], "ranges": 1} if index else {"way": "scan"}
        if tree and "or" in tree:
            access = {"way": "union", "ways": [access, {"way": "scan"}]}
        plan = {"query": f"{body.get('collection') or body.get('group')} where {body.get('where')}",
                "access": access, "sorts": bool(body.get("order")) and not index, "needsNoDocuments": False,
                "suggestedIndex": [field] if field and not index else None, "buildingIndexes": [],
                "isPlanCutShort": False, "unknownFields": ["prcie"] if field == "prcie" else []}
        if body["explain"] == "analyze":
            examined = len(found) if index else len(self.shop.members(body))
            plan.update(entriesVisited=examined, documentsExamined=examined,
                        documentsReturned=len(answer["documents"]), duration=seconds)
        return plan

    def post_count(self, _, body):
        return {"count": len(self.shop.find(body)[0])}

    def existing(self, path):
        if path not in self.shop.documents:
            raise Refusal(404, "notFound", "there is no such document", path=path)
        return self.shop.documents[path]

    def get_document(self, query, _):
        return {"document": self.existing(query["path"])}

    def post_document(self, query, body):
        name = body.get("id") or secrets.token_urlsafe(15)
        return {"document": self.shop.write(f"{query['collection']}/{name}", canonical_fields(body["fields"]), "0")}

    def put_document(self, query, body, match):
        return {"document": self.shop.write(query["path"], canonical_fields(body["fields"]), match)}

    def patch_document(self, query, body, match):
        with self.shop.lock:
            found = self.shop.documents.get(query["path"])
            if not found:
                raise Refusal(409 if match != "0" else 404, "aborted", "the document is gone",
                              path=query["path"], current=None)
            fields = json.loads(json.dumps(found["fields"]))
            for path, value in [*(body.get("set") or {}).items(), *((p, MISSING) for p in body.get("delete") or [])]:
                node, names = fields, names_of(path)
                for name in names[:-1]:
                    node = node.setdefault(name, {})
                    node = node.get("$literal", node)
                if value is MISSING:
                    node.pop(names[-1], None)
                else:
                    node[names[-1]] = canonical(value)
            return {"document": self.shop.write(query["path"], fields, match)}

    def delete_document(self, query, _, match):
        self.shop.write(query["path"], None, match)
        if query.get("recursive") == "true":
            for path in [path for path in self.shop.documents if path.startswith(query["path"] + "/")]:
                self.shop.write(path, None)
        return {}

    def post_delete(self, _, body):
        found = self.shop.find(body)[0]
        if not body["dryRun"]:
            for doc in found:
                self.shop.write(doc["path"], None)
        return {"count": len(found), "last": True}

    # MARK: indexes, tree

    def get_indexes(self, query, _):
        return {"indexes": [{**one, "entries": sum(1 for _ in self.shop.members(
            {"group" if one["group"] else "collection": one["collection"]}))} for one in self.shop.indexes],
            "timeToLive": [{"collection": "sessions", "field": "expires"}],
            "links": [{"collection": "items", "field": "imagePath", "folder": "images/"}]}

    def post_indexes(self, _, body):
        index = self.shop.index(body.get("collection") or body["group"], body["fields"], body.get("unique", False),
                                body.get("elements", False), "group" in body, body.get("where"))
        if any(one["name"] == index["name"] and one["collection"] == index["collection"]
               for one in self.shop.indexes):
            raise Refusal(409, "alreadyExists", "there is such an index")
        if body.get("where"):
            Condition(body["where"])
        index["state"] = "building"

        def ready():
            index["state"] = "ready"
        task = self.start("createIndex", f"Create index {index['name']} of {index['collection']}", "documents", ready)
        self.shop.indexes.append(index)
        return {"task": task}

    def delete_indexes(self, query, _):
        collection = query.get("collection") or query.get("group")
        kept = [one for one in self.shop.indexes
                if (one["name"], one["collection"]) != (query["name"], collection)]
        if len(kept) == len(self.shop.indexes):
            raise Refusal(404, "notFound", "there is no such index")
        self.shop.indexes = kept
        return {}

    def get_tree(self, query, _):
        return self.shop.tree_state(query.get("path", ""), int(query.get("limit", 100)), query.get("after"))

    def get_tree_value(self, query, _):
        return {"value": self.shop.node(query.get("path", ""))}

    def tree_change(self, values):
        with self.shop.lock:
            for path, value in values.items():
                self.shop.tree_set(path, canonical(value))
            self.shop.commit()
            return {"version": str(self.shop.version)}

    def put_tree(self, query, body):
        path = query.get("path", "")
        if "expected" in body and self.shop.node(path) != canonical(body["expected"]):
            current = self.shop.node_shape(path.rpartition("/")[2], self.shop.node(path))
            raise Refusal(409, "aborted", "the node has changed", path=path, current=current)
        return self.tree_change({path: body["value"]})

    def patch_tree(self, query, body):
        base = query.get("path", "")
        return self.tree_change({f"{base}/{path}": value for path, value in body["values"].items()})

    def delete_tree(self, query, _):
        return self.tree_change({query.get("path", ""): None})

    # MARK: storage

    def get_storage(self, query, _):
        prefix = query.get("prefix", "")
        inside = sorted(path for path in self.shop.objects if path.startswith(prefix))
        folders = sorted({prefix + path[len(prefix):].split("/")[0] + "/" for path in inside
                          if "/" in path[len(prefix):]})
        return {"prefix": prefix, "folders": folders,
                "objects": [self.shop.objects[path] for path in inside if "/" not in path[len(prefix):]]}

    def get_object(self, query, _):
        if query["path"] not in self.shop.objects:
            raise Refusal(404, "notFound", "there is no object", path=query["path"])
        return {"object": self.shop.objects[query["path"]]}

    def put_object(self, query, body, match):
        return {"object": self.shop.put_object(query["path"], body, query.get("type", "application/octet-stream"),
                                               match)}

    def patch_object(self, query, body, match):
        found = self.get_object(query, None)["object"]
        self.shop.check_object(query["path"], found, match)
        self.shop.objects[query["path"]] = {**found, **body, "metageneration":
                                            str(int(found["metageneration"]) + 1), "updated": moment()}
        with self.shop.lock:
            self.shop.commit()
        return {"object": self.shop.objects[query["path"]]}

    def delete_object(self, query, _, match):
        self.shop.delete_object(query["path"], match)
        return {}

    def get_holders(self, query, _):
        digest = query["sha256"]
        holders = [{"kind": "path", "path": path} for path, one in self.shop.objects.items()
                   if one["sha256"] == digest]
        holders += [{"kind": "document", "path": path} for path, doc in self.shop.documents.items()
                    if digest in json.dumps(doc["fields"])]
        return {"holders": holders}

    def get_storage_accounting(self, query, _):
        total = sum(len(data) for data in self.shop.contents.values())
        held = {one["sha256"] for one in self.shop.objects.values()}
        unheld = [{"sha256": digest, "size": len(data), "leased": False}
                  for digest, data in self.shop.contents.items() if digest not in held]
        return {"contents": len(self.shop.contents), "bytes": total, "storedBytes": total * 9 // 10,
                "paths": len(self.shop.objects), "documents": 48, "derived": 0, "heldBytes": total * 3,
                "unheldContents": len(unheld), "unheldBytes": sum(one["size"] for one in unheld),
                "reclaimedContents": 4, "reclaimedBytes": 18200, "unheld": unheld,
                "files": [{"name": "contents-000001.pack", "bytes": total * 9 // 10}]}

    # MARK: changes, statistics, tasks

    def get_changes(self, query, _):
        path, since, limit = query.get("path"), query.get("since"), int(query.get("limit", 100))
        changes = self.feed(path, since)
        return {"changes": changes[:limit] if since else changes[-limit:], "token": self.shop.token(),
                "more": bool(since) and len(changes) > limit, "source": "memory"}

    def feed(self, path, since):
        if since and not (since.startswith("m-") and since[2:].isdigit()):
            raise Refusal(400, "invalidArgument", "this is no change token")
        first = int(since[2:]) if since else 0
        with self.shop.lock:
            return [change for change in self.shop.feed if int(change["version"]) > first and (
                not path or any(one["path"] == path or one["path"].startswith(path + "/")
                                for one in change["documents"] + change["objects"]))]

    def get_statistics(self, query, _):
        return {"samples": self.shop.samples}

    def get_tasks(self, query, _):
        return {"tasks": self.shop.tasks[:20]}

    def post_tasks(self, _, body):
        titles = {"verify": "Verify", "compact": "Compact", "reclaim": "Reclaim", "rebuildIndex": "Rebuild index"}
        if body.get("kind") not in titles:
            raise Refusal(400, "invalidArgument", "there is no such task")
        unit = "documents" if body["kind"] == "rebuildIndex" else "bytes"
        return {"task": self.start(body["kind"], titles[body["kind"]], unit, lambda: None)}

    def start(self, task_kind, title, unit, finish):
        if any(task["state"] == "running" for task in self.shop.tasks):
            raise Refusal(409, "failedPrecondition", "another task is running; wait for it or cancel it")
        task = {"id": secrets.token_hex(4), "kind": task_kind, "title": title, "state": "running",
                "started": moment(), "progress": {"completed": 0, "total": 1000, "unit": unit}}
        self.shop.tasks.insert(0, task)

        def run():
            while task["state"] == "running" and task["progress"]["completed"] < 1000:
                time.sleep(0.05)
                with self.shop.lock:
                    task["progress"]["completed"] += 40
                    self.shop.news.notify_all()
            with self.shop.lock:
                finish()
                task["ended"] = moment()
                if task["state"] == "running":
                    task["state"] = "done"
                    if task_kind == "verify":
                        task["findings"] = [{
                            "severity": "warning", "kind": "log", "file": "000012.log", "offset": 4096,
                            "message": "the log ends in the middle of a commit",
                            "hint": "the database was not closed; opening it for writing recovers it"}]
                self.shop.news.notify_all()
        threading.Thread(target=run, daemon=True).start()
        return task

    def delete_tasks(self, query, _, name):
        for task in self.shop.tasks:
            if task["id"] == name and task["state"] == "running":
                task["state"] = "cancelled"
                return {}
        raise Refusal(404, "notFound", "no such task runs")

    def state(self, watch):
        """What a watch tells of."""
        what = watch["kind"]
        if what == "query":
            with self.shop.lock:
                found, _ = self.shop.find(watch)
                page = found[:watch["limit"]]
            return {"documents": page, "cursor": self.shop.cursor(page), "last": len(page) == len(found),
                    "unreadable": []}
        if what == "document":
            return {"document": self.shop.documents.get(watch["path"])}
        if what == "statistics":
            return self.shop.samples[-1] if self.shop.samples else self.sample()
        return getattr(self, f"get_{what}")({key: str(value) for key, value in watch.items()}, None)


def canonical_fields(fields):
    return {name: canonical(value) for name, value in fields.items()}


def difference(old, new):
    """The changes that turn one list of documents into another, one after the other."""
    changes, now = [], list(old)
    paths = {doc["path"]: place for place, doc in enumerate(new)}
    before = {doc["path"]: doc for doc in old}
    for doc in old:
        if doc["path"] not in paths:
            place = now.index(doc)
            now.pop(place)
            changes.append({"type": "removed", "oldIndex": place, "document": doc})
    for place, doc in enumerate(new):
        if doc["path"] not in before:
            at = sum(1 for other in now if paths[other["path"]] < place)
            now.insert(at, doc)
            changes.append({"type": "added", "newIndex": at, "document": doc})
    for place, doc in enumerate(new):
        if doc["path"] in before and doc != before[doc["path"]]:
            at = next(n for n, other in enumerate(now) if other["path"] == doc["path"])
            now.pop(at)
            to = sum(1 for other in now if paths[other["path"]] < place)
            now.insert(to, doc)
            changes.append({"type": "modified", "oldIndex": at, "newIndex": to, "document": doc})
    return changes if now == new else None


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
        for name, value in {**HEADERS, "Content-Security-Policy": POLICY, "Content-Type": content_type,
                            "Content-Length": str(len(data)), **more}.items():
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
            raise Refusal(421, "invalidArgument", "this host is not served here")
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
        name, query = url.path[len("/api/v1/"):], dict(parse_qsl(url.query, keep_blank_values=True))
        console = self.server.console
        if name == "live":
            return self.live(json.loads(base64.urlsafe_b64decode(query["watch"] + "==")))
        if name.startswith("content/"):
            data = console.shop.contents.get(name[8:])
            if data is None:
                raise Refusal(404, "notFound", "no such content")
            return self.answer(200, data, "application/octet-stream", **{"Content-Disposition": "attachment"})
        if name == "backup.tar":
            return self.answer(200, self.archive(), "application/octet-stream",
                               **{"Content-Disposition": "attachment"})
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
            for name, data in events:
                self.wfile.write(f"event: {name}\nid: m-{told}\ndata: {json.dumps(data)}\n\n".encode())
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
            stamp = (console.shop.changed_in.get(watch.get("collection")) if watch.get("collection")
                     else console.shop.version)
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
    """Starts the server in a thread; answers the server, whose `url` has the token."""
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
