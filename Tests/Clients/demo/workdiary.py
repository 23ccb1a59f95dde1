"""The demo's diary of working hours with Google's client for Firestore.

    FIRESTORE_EMULATOR_HOST=… workdiary.py

Prints what it finds as lines of JSON. See Sources/OndolDemo/WorkDiary.swift.
"""

import json
import queue

from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import FieldFilter

PERSON = "민지"
LENGTHS = [31, 28, 31, 30, 31, 30]
PATIENCE = 60


def date(month: int, day: int) -> str:
    return f"2026-{month:02}-{day:02}"


WEEK = [date(5, day) for day in range(4, 11)]


def say(name: str, result: object) -> None:
    print(json.dumps({name: result}, ensure_ascii=False), flush=True)


def fill(diary: firestore.CollectionReference) -> None:
    days = [date(month + 1, day + 1) for month, length in enumerate(LENGTHS) for day in range(length)]
    for day in days:
        diary.document(day).set({
            "workDate": day, "status": "prepare", "planStartTime": "09:00", "planEndTime": "18:00"})
    say("days", len(days))


def show_week(diary: firestore.CollectionReference) -> None:
    found = diary.where(filter=FieldFilter("workDate", "in", WEEK)).order_by("workDate").stream()
    say("week", [[one.id, one.get("planStartTime"), one.get("status")] for one in found])


def work(diary: firestore.CollectionReference) -> None:
    today = diary.document(WEEK[1])
    today.set({
        "status": "working", "actualStartTime": "08:57",
        "history": firestore.ArrayUnion([{"at": "08:57", "event": "start"}]),
    }, merge=True)
    say("begun", today.get().get("status"))
    today.update({
        "status": "ended", "actualEndTime": "18:12",
        "history": firestore.ArrayUnion([{"at": "18:12", "event": "end"}]),
    })
    ended = diary.where(filter=FieldFilter("status", "==", "ended")).stream()
    say("ended", [one.id for one in ended])


def watch(client: firestore.Client, diary: firestore.CollectionReference) -> None:
    """A screen with a week and a day of it. Each listener hears of one commit, whole."""
    weeks: queue.Queue = queue.Queue()
    days: queue.Queue = queue.Queue()
    week = diary.where(filter=FieldFilter("workDate", "in", WEEK)).on_snapshot(
        lambda documents, changes, time: weeks.put([change.document for change in changes]))
    day = diary.document(WEEK[2]).on_snapshot(
        lambda documents, changes, time: days.put(documents[0]))
    before = [len(weeks.get(timeout=PATIENCE)), days.get(timeout=PATIENCE).get("status")]
    batch = client.batch()
    batch.update(diary.document(WEEK[2]), {"status": "ended", "actualEndTime": "18:01"})
    batch.update(diary.document(WEEK[3]), {"planStartTime": "10:00"})
    batch.commit()
    changed = weeks.get(timeout=PATIENCE)
    shown = days.get(timeout=PATIENCE)
    say("watched", {
        "before": before, "changed": sorted(one.id for one in changed), "day": shown.get("status"),
        "together": len({one.update_time for one in changed} | {shown.update_time}) == 1})
    week.unsubscribe()
    day.unsubscribe()
    diary.document(WEEK[2]).update({"status": "prepare", "actualEndTime": firestore.DELETE_FIELD})


def main() -> None:
    client = firestore.Client(project="demo-workdiary", credentials=AnonymousCredentials())
    settings = client.document("workInfo", PERSON)
    settings.set({"name": PERSON, "weeklyHours": 40, "zone": "Asia/Seoul"})
    diary = settings.collection("workHistory")
    fill(diary)
    show_week(diary)
    work(diary)
    watch(client, diary)


main()
