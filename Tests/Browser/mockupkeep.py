"""The stand-in server's measurements and background work: statistics, changes and tasks."""

import secrets
import threading
import time

from mockvalues import Refusal, moment


class Upkeep:
    """A part of the routes, by method and name; the console has the shop."""

    def measure(self):
        while True:
            with self.shop.lock:
                self.shop.samples = (self.shop.samples + [self.sample()])[-60:]
            time.sleep(1)

    def sample(self):
        shop = self.shop
        return {
            "time": moment(),
            "commits": shop.commits,
            "commitLatency": list(shop.latency),
            "blockLoads": shop.commits // 3,
            "blockEvictions": 0,
            "cachedBytes": 9_400_000 + shop.commits * 512,
            "memoryBytes": 1_200_000,
            "fileBytes": 48_000_000,
            "reclaimableBytes": 2_100_000,
            "runs": 3,
            "delayedCommits": 0,
            "delay": 0,
            "compactionBytesRead": 120_000 * shop.commits,
            "compactionBytesWritten": 90_000 * shop.commits,
            "pinnedBytes": 65536,
            "oldestReadAge": 4.2,
            "oldestReadOwners": ["console"],
            "listeners": 3,
            "pendingChanges": 0,
            "damage": [],
            "processBytes": 61_000_000 + shop.commits * 1000,
            "files": [
                {"kind": "rows", "count": 14, "bytes": 31_000_000},
                {"kind": "log", "count": 2, "bytes": 9_000_000},
                {"kind": "values", "count": 3, "bytes": 5_000_000},
                {"kind": "contents", "count": 6, "bytes": 3_000_000},
            ],
        }

    # MARK: changes, statistics, tasks

    def get_changes(self, query, _):
        path, since, limit = query.get("path"), query.get("since"), int(query.get("limit", 100))
        changes = self.feed(path, since)
        return {
            "changes": changes[:limit] if since else changes[-limit:],
            "token": self.shop.token(),
            "more": bool(since) and len(changes) > limit,
            "source": "memory",
        }

    def feed(self, path, since):
        if since and not (since.startswith("m-") and since[2:].isdigit()):
            raise Refusal(400, "invalidArgument", "this is not a change token")
        first = int(since[2:]) if since else 0
        with self.shop.lock:
            return [
                change
                for change in self.shop.feed
                if int(change["version"]) > first
                and (
                    not path
                    or any(
                        one["path"] == path or one["path"].startswith(path + "/")
                        for one in change["documents"] + change["objects"]
                    )
                )
            ]

    def get_statistics(self, query, _):
        return {"samples": self.shop.samples}

    def get_tasks(self, query, _):
        return {"tasks": self.shop.tasks[:20]}

    def post_tasks(self, _, body):
        titles = {
            "verify": "Verify",
            "compact": "Compact",
            "reclaim": "Reclaim",
            "rebuildIndex": "Rebuild index",
        }
        if body.get("kind") not in titles:
            raise Refusal(400, "invalidArgument", "there is no such task")
        unit = "documents" if body["kind"] == "rebuildIndex" else "bytes"
        return {"task": self.start(body["kind"], titles[body["kind"]], unit, lambda: None)}

    def start(self, task_kind, title, unit, finish):
        if any(task["state"] == "running" for task in self.shop.tasks):
            raise Refusal(409, "failedPrecondition", "another task is running; wait for it or cancel it")
        task = {
            "id": secrets.token_hex(4),
            "kind": task_kind,
            "title": title,
            "state": "running",
            "started": moment(),
            "progress": {"completed": 0, "total": 1000, "unit": unit},
        }
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
                        task["findings"] = [
                            {
                                "severity": "warning",
                                "kind": "log",
                                "file": "000012.log",
                                "offset": 4096,
                                "message": "the log ends in the middle of a commit",
                                "hint": "the database was not closed; opening it for writing recovers it",
                            }
                        ]
                self.shop.news.notify_all()

        threading.Thread(target=run, daemon=True).start()
        return task

    def delete_tasks(self, query, _, name):
        for task in self.shop.tasks:
            if task["id"] == name and task["state"] == "running":
                task["state"] = "cancelled"
                return {}
        raise Refusal(404, "notFound", "no such task is running")
