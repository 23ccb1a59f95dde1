"""The routes of the stand-in server, over the shop in memory."""

import base64
import json
import os
import secrets
import threading
import time

from mockupkeep import Upkeep
from mockvalues import MISSING, Condition, Refusal, canonical, get, kind, moment, names_of, sort_key


class Console(Upkeep):
    """The routes, by method and name."""

    def __init__(self, shop, follower):
        self.shop, self.follower = shop, follower
        self.opened = moment()
        threading.Thread(target=self.measure, daemon=True).start()

    # MARK: the database

    def get_database(self, query, _):
        holder = {"pid": 812, "since": self.opened} if self.follower else None
        return {
            "path": "/data/shop.ondol",
            "name": "shop.ondol",
            "identity": "3f9c-27aa",
            "role": "follower" if self.follower else "writer",
            "pid": os.getpid(),
            "holder": holder,
            "access": "read" if self.follower else "edit",
            "version": str(self.shop.version),
            "token": self.shop.token(),
            "keepsChanges": False,
            "opened": self.opened,
            "library": "mock", "pages": [],
        }

    def get_collections(self, query, _):
        below = query.get("below")
        counts = {}
        for path in self.shop.documents:
            parts = path.split("/")
            depth = len(below.split("/")) if below else 0
            if below is None or path.startswith(below + "/"):
                counts.setdefault("/".join(parts[: depth + 1]), [0])[0] += len(parts) == depth + 2
        return {
            "collections": [
                {"id": path.rpartition("/")[2], "path": path, "count": count[0], "exact": count[0] < 1000}
                for path, count in sorted(counts.items())
            ]
        }

    def get_schema(self, query, _):
        found = self.shop.members(query)[:200]
        fields = {}
        for doc in found:
            for name, value in doc["fields"].items():
                entry = fields.setdefault(name, {})
                entry[kind(value)] = entry.get(kind(value), 0) + 1
        rows = [
            {
                "field": name if name.isidentifier() else f"`{name}`",
                "share": sum(kinds.values()) / len(found),
                "kinds": {key: count / sum(kinds.values()) for key, count in kinds.items()},
            }
            for name, kinds in fields.items()
        ]
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
            page = found[first : first + limit]
            answer.update(
                documents=[self.shaped(doc, body) for doc in page],
                cursor=shop.cursor(page),
                last=first + limit >= len(found),
            )
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
        return canonical(
            {"average": sum(numbers) / len(numbers), "minimum": min(numbers), "maximum": max(numbers)}[op]
        )

    def plan(self, body, tree, answer, found, seconds):
        first = tree if tree and "field" in tree else (tree or {}).get("and", [None])[0]
        field = first.get("field") if first else None
        index = next(
            (
                one
                for one in self.shop.indexes
                if one["collection"] == body.get("collection") and one["fields"][0] == field
            ),
            None,
        )
        access = {"way": "index", "name": index["name"], "ranges": 1} if index else {"way": "scan"}
        if tree and "or" in tree:
            access = {"way": "union", "ways": [access, {"way": "scan"}]}
        plan = {
            "query": f"{body.get('collection') or body.get('group')} where {body.get('where')}",
            "access": access,
            "sorts": bool(body.get("order")) and not index,
            "needsNoDocuments": False,
            "suggestedIndex": [field] if field and not index else None,
            "buildingIndexes": [],
            "isPlanCutShort": False,
            "unknownFields": ["prcie"] if field == "prcie" else [],
        }
        if body["explain"] == "analyze":
            examined = len(found) if index else len(self.shop.members(body))
            plan.update(
                entriesVisited=examined,
                documentsExamined=examined,
                documentsReturned=len(answer["documents"]),
                duration=seconds,
            )
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
        return {
            "document": self.shop.write(
                f"{query['collection']}/{name}", canonical_fields(body["fields"]), "0"
            )
        }

    def put_document(self, query, body, match):
        return {"document": self.shop.write(query["path"], canonical_fields(body["fields"]), match)}

    def patch_document(self, query, body, match):
        with self.shop.lock:
            found = self.shop.documents.get(query["path"])
            if not found:
                raise Refusal(
                    409 if match != "0" else 404,
                    "aborted",
                    "the document is gone",
                    path=query["path"],
                    current=None,
                )
            fields = json.loads(json.dumps(found["fields"]))
            for path, value in [
                *(body.get("set") or {}).items(),
                *((p, MISSING) for p in body.get("delete") or []),
            ]:
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
        return {
            "indexes": [
                {
                    **one,
                    "entries": sum(
                        1
                        for _ in self.shop.members(
                            {"group" if one["group"] else "collection": one["collection"]}
                        )
                    ),
                }
                for one in self.shop.indexes
            ],
            "timeToLive": [{"collection": "sessions", "field": "expires"}],
            "links": [{"collection": "items", "field": "imagePath", "folder": "images/"}],
        }

    def post_indexes(self, _, body):
        if not (body.get("collection") or body.get("group")):
            raise Refusal(400, "invalidArgument", "name either a collection or a group")
        index = self.shop.index(
            body.get("collection") or body["group"],
            body["fields"],
            body.get("unique", False),
            body.get("elements", False),
            "group" in body,
            body.get("where"),
            distinct=body.get("nullsDistinct", True),
        )
        if any(
            one["name"] == index["name"] and one["collection"] == index["collection"]
            for one in self.shop.indexes
        ):
            raise Refusal(409, "alreadyExists", "this index exists already")
        if body.get("where"):
            Condition(body["where"])
        index["state"] = "building"

        def ready():
            index["state"] = "ready"

        task = self.start(
            "createIndex", f"Create index {index['name']} of {index['collection']}", "documents", ready
        )
        self.shop.indexes.append(index)
        return {"task": task}

    def delete_indexes(self, query, _):
        collection = query.get("collection") or query.get("group")
        kept = [
            one
            for one in self.shop.indexes
            if (one["name"], one["collection"]) != (query["name"], collection)
        ]
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
        folders = sorted(
            {
                prefix + path[len(prefix) :].split("/")[0] + "/"
                for path in inside
                if "/" in path[len(prefix) :]
            }
        )
        return {
            "prefix": prefix,
            "folders": folders,
            "objects": [self.shop.objects[path] for path in inside if "/" not in path[len(prefix) :]],
        }

    def get_object(self, query, _):
        if query["path"] not in self.shop.objects:
            raise Refusal(404, "notFound", "there is no object", path=query["path"])
        return {"object": self.shop.objects[query["path"]]}

    def put_object(self, query, body, match):
        return {
            "object": self.shop.put_object(
                query["path"], body, query.get("type", "application/octet-stream"), match
            )
        }

    def patch_object(self, query, body, match):
        found = self.get_object(query, None)["object"]
        self.shop.check_object(query["path"], found, match)
        self.shop.objects[query["path"]] = {
            **found,
            **body,
            "metageneration": str(int(found["metageneration"]) + 1),
            "updated": moment(),
        }
        with self.shop.lock:
            self.shop.commit()
        return {"object": self.shop.objects[query["path"]]}

    def delete_object(self, query, _, match):
        self.shop.delete_object(query["path"], match)
        return {}

    def get_holders(self, query, _):
        digest = query["sha256"]
        holders = [
            {"kind": "path", "path": path}
            for path, one in self.shop.objects.items()
            if one["sha256"] == digest
        ]
        holders += [
            {"kind": "document", "path": path}
            for path, doc in self.shop.documents.items()
            if digest in json.dumps(doc["fields"])
        ]
        return {"holders": holders}

    def get_storage_accounting(self, query, _):
        total = sum(len(data) for data in self.shop.contents.values())
        held = {one["sha256"] for one in self.shop.objects.values()}
        unheld = [
            {"sha256": digest, "size": len(data), "leased": False}
            for digest, data in self.shop.contents.items()
            if digest not in held
        ]
        return {
            "contents": len(self.shop.contents),
            "bytes": total,
            "storedBytes": total * 9 // 10,
            "paths": len(self.shop.objects),
            "documents": 48,
            "derived": 0,
            "heldBytes": total * 3,
            "unheldContents": len(unheld),
            "unheldBytes": sum(one["size"] for one in unheld),
            "reclaimedContents": 4,
            "reclaimedBytes": 18200,
            "unheld": unheld,
            "files": [{"name": "contents-000001.pack", "bytes": total * 9 // 10}],
        }

    def state(self, watch):
        """The state that a watch reports."""
        what = watch["kind"]
        if what == "query":
            with self.shop.lock:
                found, _ = self.shop.find(watch)
                page = found[: watch["limit"]]
            return {
                "documents": page,
                "cursor": self.shop.cursor(page),
                "last": len(page) == len(found),
                "unreadable": [],
            }
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
