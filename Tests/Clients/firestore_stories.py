"""Stories of Google's own Firestore client for Python, unchanged, on `ondol serve`.

    firestore_stories.py ONDOL DIRECTORY [STORY...]

Each story has a collection of its own. See stories.py.
"""

from __future__ import annotations

import datetime
import os
import queue
import sys
import threading

from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import FieldFilter, Or

from stories import PATIENCE, ServerProcess, expect, expect_error, run


class Server(ServerProcess):
    """`ondol serve --many`, which can be killed and started again on the same port."""

    def __init__(self, program: str, directory: str) -> None:
        self.program, self.directory = program, directory
        self.port = 0
        self.start()

    def start(self) -> None:
        self.launch(
            self.program, "--many", self.directory, "--port-firestore", self.port)
        host, self.port = self.address("FIRESTORE_EMULATOR_HOST")
        os.environ["FIRESTORE_EMULATOR_HOST"] = host


class World:
    """A story's environment."""

    def __init__(self, server: Server, name: str) -> None:
        self.server, self.name = server, name
        self.client = self.new_client()
        self.items = self.client.collection(name)

    def new_client(self, database: str = "(default)") -> firestore.Client:
        return firestore.Client(
            project="stories", credentials=AnonymousCredentials(), database=database)


class Listener:
    """A listener's snapshots, which a story can wait for."""

    def __init__(self, source) -> None:
        self.snapshots: queue.Queue = queue.Queue()
        self.watch = source.on_snapshot(
            lambda documents, changes, time: self.snapshots.put(
                ({d.id: d.to_dict() for d in documents if d.exists},
                 [(c.type.name, c.document.id) for c in changes])))

    def next(self):
        return self.snapshots.get(timeout=PATIENCE)

    def until(self, wanted) -> dict:
        """Waits for the first wanted state."""
        while True:
            state, _ = self.next()
            if wanted(state):
                return state

    def close(self) -> None:
        self.watch.unsubscribe()


# The stories.


def documents_are_what_was_set(world: World) -> None:
    now = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.timezone.utc)
    other = world.items.document("other")
    fields = {
        "null": None, "yes": True, "count": 9_007_199_254_740_993, "price": 0.1, "name": "Стол 🪑",
        "when": now, "raw": b"\x00\xff", "place": firestore.GeoPoint(-12.5, 170.25),
        "other": other, "list": [1, "two", {"three": 3}], "map": {"a.b": {"c`d": 1}}, "empty": {},
        "none": [],
    }
    lamp = world.items.document("lamp")
    lamp.set(fields)
    snapshot = lamp.get()
    expect(snapshot.to_dict() == fields, f"other fields: {snapshot.to_dict()}")
    expect(snapshot.create_time == snapshot.update_time, "made and updated at once")
    expect(not other.get().exists, "what nobody made is not there")


def spellings_of_one_name_are_not_merged(world: World) -> None:
    lamp = world.items.document("lamp")
    error = expect_error(
        exceptions.InvalidArgument, lambda: lamp.set({"caf\u00e9": 1, "cafe\u0301": 2}))
    expect("spelling" in str(error), f"says why: {error}")
    expect(not lamp.get().exists, "nothing of it was stored")


def writes_have_their_conditions(world: World) -> None:
    lamp = world.items.document("lamp")
    error = expect_error(exceptions.NotFound, lambda: lamp.update({"n": 1}))
    expect("No document to update" in str(error), f"Firestore's words: {error}")
    first = lamp.create({"n": 1})
    expect_error(exceptions.AlreadyExists, lambda: lamp.create({"n": 2}))
    lamp.update({"n": firestore.Increment(2), "tags": firestore.ArrayUnion(["x", "y"]),
                 "when": firestore.SERVER_TIMESTAMP})
    lamp.update({"tags": firestore.ArrayRemove(["x"]), "map.inner": 5})
    state = lamp.get()
    expect(state.get("n") == 3 and state.get("tags") == ["y"], f"transforms: {state.to_dict()}")
    expect(state.get("map") == {"inner": 5}, "a path inside a map")
    option = world.client.write_option(last_update_time=first.update_time)
    expect_error(exceptions.FailedPrecondition, lambda: lamp.delete(option=option))
    lamp.update({"when": firestore.DELETE_FIELD})
    expect("when" not in lamp.get().to_dict(), "a field that was deleted")
    lamp.delete(option=world.client.write_option(last_update_time=lamp.get().update_time))
    expect(not lamp.get().exists, "deleted")


def queries_answer_as_firestore(world: World) -> None:
    batch = world.client.batch()
    for number in range(40):
        batch.set(world.items.document(f"d{number:02}"),
                  {"n": number, "kind": "even" if number % 2 == 0 else "odd",
                   "tags": [number % 3, "all"]})
    batch.commit()
    where = lambda *words: world.items.where(filter=FieldFilter(*words))
    ids = lambda query: [d.id for d in query.stream()]
    expect(ids(where("n", ">=", 37)) == ["d37", "d38", "d39"], "a range")
    expect(len(ids(where("n", "in", list(range(0, 40, 4))))) == 10, "in of any length")
    expect(len(ids(where("tags", "array_contains", 1))) == 13, "array_contains")
    expect(len(ids(where("n", "not-in", [1, 2]))) == 38, "not-in")
    either = Or([FieldFilter("n", "==", 3), FieldFilter("kind", "==", "even")])
    expect(len(ids(world.items.where(filter=either))) == 21, "or")
    page = where("kind", "==", "odd").order_by("n", direction="DESCENDING").limit(3)
    first = list(page.stream())
    expect([d.id for d in first] == ["d39", "d37", "d35"], "the first page")
    expect(ids(page.start_after(first[-1])) == ["d33", "d31", "d29"], "the second")
    expect([d.id for d in world.items.order_by("n").limit_to_last(2).get()] == ["d38", "d39"],
           "the last")
    expect(ids(world.items.select([]).limit(1)) == ["d00"], "names alone")
    numbers = (world.items.count(alias="all").sum("n", alias="sum").avg("n", alias="mean").get())[0]
    expect({a.alias: a.value for a in numbers} == {"all": 40, "sum": 780, "mean": 19.5}, "numbers")
    for document in world.items.limit(2).stream():
        document.reference.collection("parts").document("p").set({"n": 1})
    group = world.client.collection_group("parts")
    expect(len(ids(group)) == 2, "a group")
    expect(sorted(c.id for c in world.items.document("d00").collections()) == ["parts"], "below")


def transactions_do_not_lose_updates(world: World) -> None:
    counter = world.items.document("counter")
    counter.set({"n": 0})

    @firestore.transactional
    def add(transaction) -> None:
        n = counter.get(transaction=transaction).get("n")
        transaction.update(counter, {"n": n + 1})

    def work() -> None:
        client = world.new_client()
        for _ in range(5):
            add(client.transaction(max_attempts=50))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    expect(counter.get().get("n") == 20, f"{counter.get().to_dict()} instead of 20")


def listeners_follow(world: World) -> None:
    listener = Listener(world.items.where(filter=FieldFilter("n", ">", 1)))
    expect(listener.next() == ({}, []), "the first state is empty")
    batch = world.client.batch()
    for number in range(4):
        batch.set(world.items.document(f"d{number}"), {"n": number})
    batch.commit()
    state, changes = listener.next()
    expect(set(state) == {"d2", "d3"} and len(changes) == 2, f"a commit at once: {changes}")
    world.items.document("d2").update({"n": 0})
    state, changes = listener.next()
    expect(changes == [("REMOVED", "d2")], f"one that leaves: {changes}")
    world.items.document("d3").delete()
    state, changes = listener.next()
    expect(state == {} and changes == [("REMOVED", "d3")], f"one that is gone: {changes}")
    listener.close()


def databases_are_apart(world: World) -> None:
    other = world.new_client("another")
    world.items.document("a").set({"n": 1})
    mine = other.collection(world.name).document("a")
    expect(not mine.get().exists, "not in the other database")
    mine.set({"n": 2})
    expect(world.items.document("a").get().get("n") == 1, "nor the other way round")


def nothing_is_lost_when_the_server_is_killed(world: World) -> None:
    listener = Listener(world.items)
    listener.next()
    for number in range(20):
        world.items.document(f"d{number}").set({"n": number})
    world.server.kill()
    world.server.start()
    expect(len(list(world.items.stream())) == 20, "every acknowledged write is there")
    world.items.document("after").set({"n": 20})
    state = listener.until(lambda state: "after" in state)
    expect(len(state) == 21, f"the listener goes on: {len(state)}")
    listener.close()


STORIES = [
    documents_are_what_was_set, spellings_of_one_name_are_not_merged, writes_have_their_conditions,
    queries_answer_as_firestore, transactions_do_not_lose_updates, listeners_follow,
    databases_are_apart, nothing_is_lost_when_the_server_is_killed,
]


if __name__ == "__main__":
    sys.exit(run(STORIES, Server, lambda server, story: World(server, story.__name__)))
