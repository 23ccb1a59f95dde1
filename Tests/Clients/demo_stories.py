"""Stories of the demo's apps in both of their forms. Each runs twice, on databases of its own: in Swift
with Ondol, and in Python with Google's clients on `ondol serve`. Then their results are compared.

    demo_stories.py ONDOL DIRECTORY [STORY...]

`ondol-demo` is beside ONDOL. The photo diary has no second form: its photos are values in documents,
counted and searched, which Google's products do not have. See stories.py.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import zlib

from stories import PATIENCE, ServerProcess, expect, run

HERE = pathlib.Path(__file__).parent
RULES = """rules_version = '2';
service cloud.firestore {
  match /databases/{database}/documents {
    match /private/{uid}/{path=**} { allow read, write: if request.auth.uid == uid; }
    match /posts/{id} { allow read, create: if request.auth != null; }
  }
}
service firebase.storage {
  match /b/{bucket}/o { match /images/{path=**} { allow read, write: if true; } }
}
"""


class World(ServerProcess):
    """A story's two databases, and a server on the second."""

    def __init__(self, program: str, folder: pathlib.Path) -> None:
        self.program, self.folder = program, folder
        self.demo = pathlib.Path(program).parent / "ondol-demo"
        self.swift, self.served = str(folder / "swift.ondol"), str(folder / "served.ondol")

    def tell(self, app: str, *options: object) -> str:
        """Runs the form in Swift, and gives what it says."""
        done = subprocess.run(
            [str(self.demo), app, "--at", self.swift, *(str(one) for one in options)],
            capture_output=True, text=True, timeout=600)
        expect(done.returncode == 0, f"ondol-demo {app}: {done.stderr}")
        return done.stdout

    def run(self, app: str, *arguments: object, text: str | None = None) -> dict:
        """Runs the form in Python on a server, and gives its results."""
        rules = self.folder / "firestore.rules"
        rules.write_text(RULES)
        self.launch(
            self.program, self.served, "--port-firestore", 0, "--port-auth", 0, "--port-database", 0,
            "--port-storage", 0, "--rules", rules)
        try:
            environment = dict(os.environ)
            for name in ("FIRESTORE_EMULATOR_HOST", "FIREBASE_AUTH_EMULATOR_HOST",
                         "FIREBASE_DATABASE_EMULATOR_HOST", "STORAGE_EMULATOR_HOST"):
                environment[name] = self.address(name)[0]
            done = subprocess.run(
                [sys.executable, str(HERE / "demo" / f"{app}.py"), *(str(one) for one in arguments)],
                input=text, capture_output=True, text=True, timeout=600, env=environment)
            expect(done.returncode == 0, f"{app}.py: {done.stderr}")
        finally:
            self.stop()
        found: dict = {}
        for line in done.stdout.splitlines():
            found.update(json.loads(line))
        return found

    def ondol(self, *words: str) -> str:
        done = subprocess.run(
            [self.program, *words], capture_output=True, text=True, timeout=PATIENCE)
        expect(done.returncode in (0, 1), f"{words}: {done.stderr}")
        return done.stdout

    def differences(self) -> dict[str, list]:
        """The documents that are not the same in both databases."""
        lines = self.ondol("diff", self.swift, self.served, "--format", "jsonl").splitlines()
        return {one["document"]: one["fields"] for one in map(json.loads, lines)
                if not one["document"].startswith(("account", "serverRules"))}

    def objects(self, place: str) -> dict[str, int]:
        lines = self.ondol("blob", "ls", place, "--format", "jsonl").splitlines()
        return {one["digest"]: one["length"] for one in map(json.loads, lines) if one["holders"]}


def pictures(folder: pathlib.Path) -> pathlib.Path:
    """Six small PNGs, each of another size."""
    place = folder / "pictures"
    place.mkdir()
    for number in range(6):
        def chunk(kind: bytes, data: bytes) -> bytes:
            crc = zlib.crc32(kind + data)
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)

        side = 4 + number
        rows = zlib.compress((b"\0" + bytes([40 * number]) * side) * side)
        (place / f"{number}.png").write_bytes(
            b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", rows) + chunk(b"IEND", b""))
    return place


# The stories.


def the_shop(world: World) -> None:
    files = pictures(world.folder)
    said = world.tell("shop", "--pictures", files)
    found = world.run("shop", files)
    expect(found["sold"] == {"left": 1, "pictures": ["images/lamp-1.png", "images/lamp-2.png"]},
           f"the sale: {found['sold']}")
    expect("the write's answer: 1 left, pictures images/lamp-1.png, images/lamp-2.png" in said, said)
    expect(found["cushion"] is False and "Is it still there? No." in said, "the cushion is gone")
    for id in found["named"] + found["cheap"]:
        expect(f"{id}: " in said, f"{id} in what Swift finds")
    expect(found["cheap"] == ["cups", "lamp", "vase"], f"the cheap ones: {found['cheap']}")
    expect(found["orders"] == {"count": 200, "whole": True} and "Took 200 orders" in said, "orders")
    expect(found["replaced"] is False and found["removed"] is False, "old pictures are gone")
    for path, size in found["pictures"].items():
        expect(f"{path}: image/png, {size} bytes" in said, f"{path} in Swift's words")
    for name, fields in world.differences().items():
        # Times are the servers', and Ondol computes checksums for clients alone.
        allowed = {"created", "checksums"} if name.startswith("images/") else {"updated"}
        expect(set(fields) <= allowed, f"the databases: {name} {fields}")
    expect(world.objects(world.swift) == world.objects(world.served), "and their pictures")


def the_diary_of_working_hours(world: World) -> None:
    said = world.tell("workdiary")
    found = world.run("workdiary")
    expect(f"The diary has {found['days']} days" in said, f"{found['days']} days")
    for day, start, status in found["week"]:
        expect(re.search(rf"{day}  {start}-18:00  {status}", said), f"{day} in Swift's week")
    expect(found["begun"] == "working", "work begins")
    expect(f"Days that have ended: {', '.join(found['ended'])}." in said, f"{found['ended']}")
    watched = found["watched"]
    expect(watched["before"] == [7, "prepare"], f"before: {watched}")
    expect(f"the week: {' and '.join(watched['changed'])} have changed" in said, f"{watched}")
    expect(f"the day: {watched['day']}" in said and watched["together"], f"{watched}")
    expect("Do all three show the same commit? Yes" in said, "as Swift says")
    expect(world.differences() == {}, f"the databases: {world.differences()}")


def the_packages_of_this_machine(world: World) -> None:
    if not shutil.which("dpkg-query"):
        print("        left out: there is no dpkg-query here", flush=True)
        return
    form = "${binary:Package}\\t${Version}\\t${Section}\\t${Installed-Size}\\t${binary:Summary}\\n"
    packages = subprocess.run(
        ["dpkg-query", "--show", "--showformat", form], capture_output=True, text=True,
        check=True).stdout
    said = world.tell("packages")
    found = world.run("packages", text=packages)
    expect(f"Imported {found['imported']} packages" in said, f"{found['imported']} packages")
    for name, size in found["largest"] + found["medium"]["first"]:
        expect(re.search(rf"{re.escape(name)} .*, {size:,} KiB", said), f"{name} as Swift has it")
    expect(f"{found['medium']['count']} packages have from 10,000" in said, "the medium ones")
    expect(f"{found['libraries']['count']} names begin with \"lib\"" in said, "the libraries")
    for name in found["libraries"]["first"]:
        expect(f"{name} " in said, f"{name} in what Swift finds")
    expect(world.differences() == {}, f"the databases: {world.differences()}")


def the_live_list_of_cars(world: World) -> None:
    said = world.tell("cars")
    found = world.run("cars")
    expect(found["first"] == ["put", "/", None], f"nothing at first: {found['first']}")
    expect(found["followed"], "the listener has what is stored")
    for name, is_hybrid in found["cars"]:
        expect(f"{name}, {'hybrid' if is_hybrid else 'electric'}" in said, f"{name} in Swift's list")
    expect(f"A query finds {found['electric']} electric cars." in said, f"{found['electric']}")

    def cars(place: str) -> list:
        tree = json.loads(world.ondol("tree", "get", place, "cars"))
        return [{name: value for name, value in tree[key].items() if name != "id"} for key in sorted(tree)]

    expect(cars(world.swift) == cars(world.served), "the trees, but for their keys")


def signing_up_and_in(world: World) -> None:
    said = world.tell("signup")
    found = world.run("signup")
    for email in ("a.b@c.kr", "a-b@c.kr", "a.b@C.KR"):
        is_in = re.search(rf"{re.escape(email)}: \S+ is (in|refused)", said)[1] == "in"
        expect((found[email] == "in") == is_in, f"{email}: {found[email]}")
    expect(found["a.b@C.KR"] == "EMAIL_EXISTS", "for the same reason")
    expect(found["winners"] == 1 and "It works for 1 of them" in said, "a race has one winner")
    expect(found["guesses"] is True, "a wrong password and nobody's address look the same")
    expect(found["sees her note"] is False and "at the same path? No." in said, "notes are private")
    expect(found["deletes her post"] is False and "하준 tries to delete it" in said, "and posts hers")
    expect(found["gone"] is True and "profile: gone" in said, "who leaves is gone")


STORIES = [
    the_shop, the_diary_of_working_hours, the_packages_of_this_machine, the_live_list_of_cars,
    signing_up_and_in,
]


class Program:
    """Where each story gets its own databases."""

    def __init__(self, program: str, directory: str) -> None:
        self.program, self.directory = program, pathlib.Path(directory)

    def world(self, story) -> World:
        folder = self.directory / story.__name__
        folder.mkdir()
        return World(self.program, folder)

    def stop(self) -> int:
        return 0


if __name__ == "__main__":
    sys.exit(run(STORIES, Program, Program.world))
