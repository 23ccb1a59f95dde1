"""The stand-in server's data: a shop in memory, and its changes."""

import base64
import hashlib
import random
import threading
import time

from mockvalues import MISSING, Condition, Refusal, double, get, integer, kind, meets, moment, png, sort_key


class Shop:
    """Documents, tree, objects and their changes, under one lock."""

    def __init__(self, rows):
        self.lock = threading.RLock()
        self.news = threading.Condition(self.lock)
        self.version, self.commits = 100, 0
        self.documents, self.contents, self.objects = {}, {}, {}
        self.changed_in = {}
        self.feed, self.tasks, self.samples = [], [], []
        self.latency = [0] * 64
        self.indexes = [
            self.index("items", ["price"], uses=1204),
            self.index("items", ["category", "-price"], uses=88),
            self.index("users", ["email"], unique=True, uses=310),
            self.index("items", ["tags"], elements=True),
            self.index("orders", ["-placed"], group=True, uses=12),
        ]
        self.tree = {}
        self.fill(rows)
        self.feed.clear()

    def index(self, collection, fields, unique=False, elements=False, group=False, where=None, uses=0, distinct=True):
        name = ",".join(fields) + ("[]" if elements else "") + (" unique" if unique else "")
        name += "" if distinct else " nulls not distinct"
        name += (" group" if group else "") + (f" where {where}" if where else "")
        return {
            "collection": collection,
            "group": group,
            "name": name,
            "fields": fields,
            "unique": unique,
            **({"nullsDistinct": distinct} if unique else {}),
            "elements": elements,
            "where": where,
            "state": "ready",
            "entries": 48,
            "bytes": 2304,
            "uses": uses,
        }

    def fill(self, rows):
        chance = random.Random(7)
        names = [
            "라탄 조명",
            "원목 의자",
            "도자기 화병",
            "모직 담요",
            "찻잔 세트",
            "온돌 방석",
            "Walnut desk",
            "Linen curtain",
            "Brass hook",
            "Oak shelf",
            "Wool rug",
            "Paper lantern",
        ]
        kinds = ["lighting", "seating", "ceramics", "textile", "kitchen"]
        for number in range(12):
            data = png(160, 120, [chance.randint(60, 220) for _ in range(3)])
            self.put_object(f"images/item-{number + 1}.png", data, "image/png", None)
        self.put_object("exports/orders.csv", b"id,total\n1,39000\n", "text/csv", None)
        self.put_object("readme.txt", b"Pictures of the shop.\n", "text/plain", None)
        for number in range(48):
            picture = self.objects[f"images/item-{number % 12 + 1}.png"]
            fields = {
                "name": names[number % 12] + (f" {number // 12 + 1}" if number > 11 else ""),
                "price": integer(9000 + 1500 * chance.randint(0, 60)),
                "stock": integer(chance.randint(0, 40)),
                "category": kinds[number % 5],
                "rating": double(round(chance.uniform(2.5, 5), 1)),
                "tags": chance.sample(["new", "sale", "handmade", "winter", "gift"], 2),
                "size": {"width": double(chance.randint(10, 90)), "height": double(chance.randint(10, 90))},
                "photo": {
                    "$blob": {
                        "sha256": picture["sha256"],
                        "length": picture["size"],
                        "contentType": "image/png",
                        "path": picture["path"],
                    }
                },
                "added": {"$date": moment(1767225600 + number * 86400)},
                "active": number % 7 != 0,
            }
            self.write(f"items/item-{number + 1:02}", fields)
        for number, name in enumerate(["alice", "bora", "chul", "dana", "eun"]):
            self.write(
                f"users/{name}",
                {
                    "email": f"{name}@example.com",
                    "name": name.title(),
                    "logins": integer(9007199254740993 + number),
                    "home": {"$geoPoint": [37.5 + number / 10, 127.0]},
                    "favourite": {"$reference": f"items/item-0{number + 1}"},
                    "key": {"$binary": {"base64": "AQIDBA==", "subType": "00"}},
                    "taste": {"$vector": [0.25, 1.0, -0.5]},
                    "note": None,
                },
            )
            for order in range(number + 1):
                self.write(
                    f"users/{name}/orders/{name}-{order}",
                    {
                        "total": integer(39000 + order),
                        "placed": {"$date": moment(1767225600 + order * 3600)},
                        "items": [{"item": {"$reference": "items/item-01"}, "count": integer(2)}],
                    },
                )
        hostile = "<img src=x onerror=alert(1)>"
        self.write(
            f"hostile/{hostile.replace('/', '')}",
            {
                "<script>alert(1)</script>": hostile,
                "__proto__": "not a prototype",
                "rtl": "\u202eabc",
                "long": "가" * 400,
                "max": integer(2**63 - 1),
                "nan": {"$numberDouble": "NaN"},
                "minus": {"$numberDouble": "-0.0"},
                "marked": {"$literal": {"$date": integer(1)}},
            },
        )
        for number in range(rows):
            self.documents[f"events/e{number:06}"] = {
                "path": f"events/e{number:06}",
                "id": f"e{number:06}",
                "version": "99",
                "created": moment(1767225600),
                "updated": moment(1767225600),
                "fields": {
                    "kind": ["view", "buy", "share"][number % 3],
                    "number": integer(number),
                    "at": {"$date": moment(1767225600 + number)},
                },
            }
        self.tree = {
            "cars": {
                f"car-{n}": {
                    "speed": integer(40 + n),
                    "online": n % 2 == 0,
                    "place": {"lat": double(37.5), "long": double(127)},
                }
                for n in range(1, 8)
            },
            "status": {"message": "All systems normal", "open": True},
            "counters": {f"c{n:03}": integer(n) for n in range(250)},
        }

    # MARK: writing

    def commit(self, documents=(), objects=(), touched=()):
        """Records a commit; the caller has the lock and has made its changes."""
        self.version += 1
        self.commits += 1
        self.latency[random.choice([14, 15, 15, 16, 17, 19])] += 1
        token = f"m-{self.version}"
        for path in [one["path"] for one in documents]:
            self.changed_in[path.rpartition("/")[0]] = self.version
        self.feed.append(
            {
                "token": token,
                "version": str(self.version),
                "time": moment(),
                "cut": False,
                "documents": list(documents),
                "objects": list(objects),
            }
        )
        del self.feed[:-1000]
        self.news.notify_all()

    def write(self, path, fields, expected=None):
        """Stores fields, or deletes with None. `expected` is a version, None for any."""
        with self.lock:
            if len(path.split("/")) % 2 or not all(path.split("/")):
                message = f'"{path}" is not the path of a document'
                raise Refusal(400, "invalidArgument", message, path=path)
            before = self.documents.get(path)
            stored = before["version"] if before else "0"
            if expected is not None and expected != stored:
                code = "alreadyExists" if expected == "0" else "aborted"
                raise Refusal(
                    409, code, f"{path} has version {stored} and not {expected}", path=path, current=before
                )
            now = moment()
            if fields is None:
                if not before:
                    return None
                del self.documents[path]
                what = "removed"
            else:
                what = "modified" if before else "added"
                self.documents[path] = {
                    "path": path,
                    "id": path.rpartition("/")[2],
                    "version": str(self.version + 1),
                    "created": before["created"] if before else now,
                    "updated": now,
                    "fields": fields,
                }
            old = before["fields"] if before else None
            names = sorted({*(old or {}), *(fields or {})})
            names = [
                name for name in names if (old or {}).get(name, MISSING) != (fields or {}).get(name, MISSING)
            ]
            self.commit([{"path": path, "kind": what, "fields": names, "before": old, "after": fields}])
            return self.documents.get(path)

    def put_object(self, path, data, content_type, expected):
        with self.lock:
            before = self.objects.get(path)
            self.check_object(path, before, expected)
            digest = hashlib.sha256(data).hexdigest()
            self.contents[digest] = data
            generation = str(int(time.time() * 1e6))
            self.objects[path] = {
                "path": path,
                "size": len(data),
                "sha256": digest,
                "generation": generation,
                "metageneration": "1",
                "created": moment(),
                "updated": moment(),
                "contentType": content_type,
                "custom": {},
            }
            self.commit(
                objects=[
                    {
                        "path": path,
                        "kind": "modified" if before else "added",
                        "before": before,
                        "after": self.objects[path],
                    }
                ]
            )
            return self.objects[path]

    def check_object(self, path, found, expected):
        stored = found["generation"] if found else "0"
        if expected is not None and stored != expected:
            raise Refusal(
                409,
                "aborted",
                f"the object has generation {stored} and not {expected}",
                path=path,
                current=found,
            )

    def delete_object(self, path, expected):
        with self.lock:
            before = self.objects.get(path)
            if not before:
                raise Refusal(404, "notFound", "there is no object", path=path)
            self.check_object(path, before, expected)
            del self.objects[path]
            self.commit(objects=[{"path": path, "kind": "removed", "before": before, "after": None}])

    # MARK: reading

    def members(self, request):
        """The documents in a request's collection or group, in the order of their paths."""
        collection, group = request.get("collection"), request.get("group")
        if (collection is None) == (group is None):
            raise Refusal(400, "invalidArgument", "a collection or a group must be named")
        if collection is not None:
            return [doc for path, doc in self.documents.items() if path.rpartition("/")[0] == collection]
        return [doc for path, doc in self.documents.items() if path.split("/")[-2] == group]

    def find(self, request):
        """All documents of a query, in order."""
        with self.lock:
            tree = Condition(request["where"]).tree if request.get("where") else None
            found = [doc for doc in self.members(request) if meets(tree, doc)]
            found.sort(key=lambda doc: doc["path"])
            for part in reversed(
                [part.strip() for part in (request.get("order") or "").split(",") if part.strip()]
            ):
                field, _, way = part.partition(" ")
                found = [doc for doc in found if get(doc["fields"], field, MISSING) is not MISSING]
                found.sort(key=lambda doc: sort_key(get(doc["fields"], field)), reverse=way.strip() == "desc")
            return found, tree

    def token(self):
        return f"m-{self.version}"

    def cursor(self, documents):
        return base64.b64encode(documents[-1]["path"].encode()).decode() if documents else None

    def node(self, path):
        value = self.tree
        for key in [key for key in path.split("/") if key]:
            value = value.get(key) if isinstance(value, dict) and kind(value) == "map" else None
        return value

    def node_shape(self, key, value):
        if isinstance(value, dict) and kind(value) == "map":
            return {"key": key, "children": len(value)}
        return {"key": key} if value is None else {"key": key, "value": value}

    def tree_state(self, path, limit=100, after=None):
        value = self.node(path)
        children = sorted(value.items()) if isinstance(value, dict) and kind(value) == "map" else []
        children = [one for one in children if after is None or one[0] > after]
        return {
            "path": path,
            "exists": value is not None,
            "node": self.node_shape(path.rpartition("/")[2], value),
            "children": [self.node_shape(*one) for one in children[:limit]],
            "more": len(children) > limit,
        }

    def tree_set(self, path, value):
        keys = [key for key in path.split("/") if key]
        if not keys:
            self.tree = value or {}
            return
        node, trail = self.tree, []
        for key in keys[:-1]:
            if not isinstance(node.get(key), dict) or kind(node[key]) != "map":
                node[key] = {}
            trail.append((node, key))
            node = node[key]
        node[keys[-1]] = value
        if value is None or value == {}:
            del node[keys[-1]]
            for parent, key in reversed(trail):
                if not parent[key]:
                    del parent[key]
