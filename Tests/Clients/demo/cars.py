"""The demo's live list of cars with Google's library for the Realtime Database.

    FIREBASE_DATABASE_EMULATOR_HOST=… cars.py

Prints what it finds as lines of JSON. The library listens to whole places, so the list is read from
each event's data. See Sources/OndolDemo/Cars.swift.
"""

import json
import queue

import firebase_admin
from firebase_admin import db

PATIENCE = 60
CARS = [("아이오닉 5", False), ("쏘렌토", True), ("EV6", False)]


def say(name: str, result: object) -> None:
    print(json.dumps({name: result}, ensure_ascii=False), flush=True)


def main() -> None:
    firebase_admin.initialize_app(options={
        "projectId": "demo-cars", "databaseURL": "https://demo-cars.firebaseio.com"})
    cars = db.reference("cars")
    cars.delete()
    events: queue.Queue = queue.Queue()
    listening = cars.listen(events.put)
    first = events.get(timeout=PATIENCE)
    say("first", [first.event_type, first.path, first.data])

    shown: dict = {}

    def follow() -> None:
        event = events.get(timeout=PATIENCE)
        changes = event.data if event.event_type == "patch" else {"": event.data}
        for path, data in changes.items():
            steps = [step for step in f"{event.path}/{path}".split("/") if step]
            if not steps:
                shown.clear()
                shown.update(data or {})
                continue
            place = shown
            for step in steps[:-1]:
                place = place[step]
            if data is None:
                place.pop(steps[-1], None)
            else:
                place[steps[-1]] = data

    ids = []
    for name, is_hybrid in CARS:
        # The library writes an empty text at a new key, so a car is two events.
        place = cars.push()
        follow()
        ids.append(place.key)
        place.set({
            "id": place.key, "name": name, "description": "시승 가능", "isHybrid": is_hybrid})
        follow()
    # One commit: the listener hears of it at once, whole.
    db.reference().update({f"cars/{ids[0]}/name": "아이오닉 6", f"cars/{ids[1]}": None})
    follow()
    listening.close()
    stored = cars.get()
    say("followed", shown == stored)
    say("cars", [[stored[key]["name"], stored[key]["isHybrid"]] for key in sorted(stored)])
    electric = cars.order_by_child("isHybrid").equal_to(False).get()
    say("electric", len(electric))


main()
