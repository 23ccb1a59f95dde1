"""The demo's list of packages with Google's client for Firestore.

    FIRESTORE_EMULATOR_HOST=… packages.py < LIST

LIST has a package a line: name, version, section, size in KiB and summary, with tabs between. Prints
what it finds as lines of JSON. See Sources/OndolDemo/Packages.swift.
"""

import json
import sys

from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import FieldFilter

BATCH = 100


def say(name: str, result: object) -> None:
    print(json.dumps({name: result}, ensure_ascii=False), flush=True)


def package(line: str) -> dict:
    name, version, section, size, summary = (line.split("\t") + [""] * 4)[:5]
    fields = {"name": name, "version": version, "section": section, "summary": summary}
    return {**fields, "size": int(size)} if size.isdigit() else fields


def load(client: firestore.Client, packages: list[dict]) -> None:
    for start in range(0, len(packages), BATCH):
        batch = client.batch()
        for one in packages[start : start + BATCH]:
            batch.set(client.document("packages", one["name"]), one)
        batch.commit()
    say("imported", len(packages))


def ask(packages: firestore.CollectionReference) -> None:
    sections = ["devel", "python", "editors"]
    largest = packages.where(filter=FieldFilter("section", "in", sections)).order_by(
        "size", direction=firestore.Query.DESCENDING).limit(5)
    say("largest", [[one.id, one.get("size")] for one in largest.stream()])
    medium = packages.where(filter=FieldFilter("size", ">=", 10_000)).where(
        filter=FieldFilter("size", "<", 50_000)).order_by("size")
    found = [[one.id, one.get("size")] for one in medium.stream()]
    say("medium", {"count": len(found), "first": found[:3]})
    # Firestore has no prefixes: they are ranges.
    libraries = packages.where(filter=FieldFilter("name", ">=", "lib")).where(
        filter=FieldFilter("name", "<", "lic")).order_by("name")
    found = [one.id for one in libraries.stream()]
    say("libraries", {"count": len(found), "first": found[:3]})


def main() -> None:
    client = firestore.Client(project="demo-packages", credentials=AnonymousCredentials())
    load(client, [package(line.rstrip("\n")) for line in sys.stdin])
    ask(client.collection("packages"))


main()
