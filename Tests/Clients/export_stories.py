"""Stories of projects and exports on `ondol serve`: this program writes a project and an export of
Firebase's emulators by itself, with Google's own messages of Datastore, and Google's clients read them
from the server. Then it reads what `ondol export --firebase` wrote, again with Google's messages.

    export_stories.py ONDOL DIRECTORY [STORY...]

See stories.py.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import urllib.request

import google_crc32c
from google.appengine.datastore import entity_bytes_pb2 as datastore
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore, storage
from google.cloud.firestore_v1.vector import Vector

from stories import PATIENCE, ServerProcess, expect, run

PROJECT = "demo-stories"
APP = f"dev~{PROJECT}"
BUCKET = f"{PROJECT}.appspot.com"
PASSWORD = "a lamp: in the window"
TIME = datetime.datetime(2026, 5, 1, 9, 30, 0, 123456, tzinfo=datetime.timezone.utc)
TREE = {"rooms": {"a": {".value": 1, ".priority": 7}, "b": {"c": "text", ".priority": "high"}}}
BYTES = bytes(range(256)) * 700
BLOCK = 32768
TIMESTAMP, POINT, BLOB, TEXT, ENTITY, EMPTY = 7, 9, 14, 15, 19, 24
RULES = """rules_version = '2';
service cloud.firestore {
  match /databases/{database}/documents { match /items/{id} { allow read: if id == 'open'; } }
}
"""
STORAGE_RULES = """rules_version = '2';
service firebase.storage { match /b/{bucket}/o { match /{path=**} { allow read; } } }
"""

# LevelDB's log, as https://github.com/google/leveldb/blob/main/doc/log_format.md has it.


def _crc(kind: int, data: bytes) -> int:
    crc = google_crc32c.value(bytes([kind]) + data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def log_of(records: list[bytes]) -> bytes:
    out = b""
    for record in records:
        first = True
        while True:
            room = BLOCK - len(out) % BLOCK
            if room < 7:
                out += bytes(room)
                room = BLOCK
            part, record = record[: room - 7], record[room - 7 :]
            kind = (1 if first else 4) if not record else (2 if first else 3)
            out += struct.pack("<IHB", _crc(kind, part), len(part), kind) + part
            first = False
            if not record:
                break
    return out


def records_of(log: bytes) -> list[bytes]:
    found, record, place = [], b"", 0
    while place < len(log):
        room = BLOCK - place % BLOCK
        if room < 7:
            expect(log[place : place + room] == bytes(room), "the end of a block is zeros")
            place += room
            continue
        crc, length, kind = struct.unpack("<IHB", log[place : place + 7])
        part = log[place + 7 : place + 7 + length]
        expect(crc == _crc(kind, part), f"the checksum at {place}")
        record += part
        place += 7 + length
        if kind in (1, 4):
            found.append(record)
            record = b""
    return found


# Entities, in Google's own messages.


def entity(path: str, fields: dict) -> bytes:
    message = datastore.EntityProto()
    message.key.app = APP
    parts = path.split("/")
    for kind, name in zip(parts[::2], parts[1::2]):
        message.key.path.element.add(type=kind, name=name)
    message.entity_group.element.add(type=parts[0], name=parts[1])
    _put_fields(message, fields)
    return message.SerializeToString()


def _put_fields(message, fields: dict) -> None:
    for name, value in fields.items():
        if isinstance(value, list) and not value:
            message.property.add(name=name, multiple=False, meaning=EMPTY).value.SetInParent()
        elif isinstance(value, list):
            for element in value:
                _put(message.raw_property.add(name=name, multiple=True), element)
        else:
            _put(message.raw_property.add(name=name, multiple=False), value)


def _put(made, value) -> None:
    made.value.SetInParent()
    if value is None:
        return
    if isinstance(value, bool):
        made.value.booleanValue = value
    elif isinstance(value, int):
        made.value.int64Value = value
    elif isinstance(value, float):
        made.value.doubleValue = value
    elif isinstance(value, str):
        made.value.stringValue = value.encode()
        if len(value) > 1000:
            made.meaning = TEXT
    elif isinstance(value, bytes):
        made.value.stringValue, made.meaning = value, BLOB
    elif isinstance(value, datetime.datetime):
        made.value.int64Value, made.meaning = round(value.timestamp() * 1e6), TIMESTAMP
    elif isinstance(value, firestore.GeoPoint):
        made.value.pointvalue.x, made.value.pointvalue.y = value.latitude, value.longitude
        made.meaning = POINT
    elif isinstance(value, firestore.DocumentReference):
        made.value.referencevalue.app = APP
        parts = value.path.split("/")
        for kind, name in zip(parts[::2], parts[1::2]):
            made.value.referencevalue.pathelement.add(type=kind, name=name)
    else:
        fields = {"__vector__": list(value)} if isinstance(value, Vector) else value
        inner = datastore.EntityProto()
        inner.key.app = ""
        inner.key.path.SetInParent()
        inner.entity_group.SetInParent()
        _put_fields(inner, fields)
        made.value.stringValue, made.meaning = inner.SerializeToString(), ENTITY


def fields_of(message, client) -> dict:
    found: dict = {}
    for made in list(message.property) + list(message.raw_property):
        if made.meaning == EMPTY:
            found[made.name] = []
        elif made.multiple:
            found.setdefault(made.name, []).append(_value(made, client))
        else:
            found[made.name] = _value(made, client)
    return Vector(found["__vector__"]) if list(found) == ["__vector__"] else found


def _value(made, client):
    (kind, value), *_ = made.value.ListFields() or [(None, None)]
    if kind is None:
        return None
    if made.meaning == TIMESTAMP:
        return datetime.datetime.fromtimestamp(0, datetime.timezone.utc) + datetime.timedelta(
            microseconds=value)
    if made.meaning == ENTITY:
        inner = datastore.EntityProto()
        inner.ParseFromString(value)
        return fields_of(inner, client)
    if kind.name == "stringValue":
        return value if made.meaning == BLOB else value.decode()
    if kind.name == "pointvalue":
        return firestore.GeoPoint(value.x, value.y)
    if kind.name == "referencevalue":
        path = [part for one in value.pathelement for part in (one.type, one.name)]
        return client.document(*path)
    return value


# A project and an export.


def documents(client) -> dict[str, dict]:
    return {
        "items/all": {
            "null": None, "true": True, "false": False, "int": -(1 << 62), "double": -0.5,
            "text": "Стол 🪑", "long": "x" * 100_000, "bytes": b"\x00\xff" * 9, "time": TIME,
            "place": firestore.GeoPoint(37.5, -127.25), "ref": client.document("items", "open"),
            "list": [1, "a", None, {"b": 2.5}], "empty": [], "nothing": {},
            "map": {"deep": {"er": [b"\x01", TIME]}}, "vector": Vector([1.0, -2.5, 0.0]),
        },
        "items/open": {"name": "open"},
        "items/open/parts/p1": {"n": 1},
        "shops/s1": {},
    }


def write_export(folder: pathlib.Path, client) -> None:
    kinds = folder / "firestore_export" / "all_namespaces" / "all_kinds"
    kinds.mkdir(parents=True)
    made = [entity(path, fields) for path, fields in documents(client).items()]
    # Two files, as exports of more documents have.
    for number, part in enumerate([made[:1], made[1:]]):
        (kinds / f"output-{number}").write_bytes(log_of(part))
    begin = b"\x0a" + bytes([len(b"firestore_export")]) + b"firestore_export" + b"\x10\x01\x18\x02"
    parts = b"".join(b"\x12\x0c\x0a\x00\x12\x08output-%d" % number for number in (0, 1))
    (kinds / "all_namespaces_all_kinds.export_metadata").write_bytes(
        b"\x0a" + bytes([len(begin)]) + begin + parts)
    name = b"all_namespaces\\all_kinds\\all_namespaces_all_kinds.export_metadata"
    entry = b"\x0a\x04\x08\x02\x18\x03\x12" + bytes([len(name)]) + name + b"\x18\x04\x20\x4a"
    (folder / "firestore_export" / "firestore_export.overall_export_metadata").write_bytes(
        log_of([b"3", b"\x0a" + bytes([len(entry)]) + entry]))
    accounts = folder / "auth_export"
    accounts.mkdir()
    (accounts / "config.json").write_text('{"signIn":{"allowDuplicateEmails":false}}')
    (accounts / "accounts.json").write_text(json.dumps({
        "kind": "identitytoolkit#DownloadAccountResponse", "users": [{
            "localId": "ann", "email": "ann@example.com", "emailVerified": True, "mfaInfo": [],
            "photoUrl": "", "displayName": "Ann", "createdAt": "1777627800123", "salt": "fakeSaltX",
            "customAttributes": '{"admin":true}', "passwordUpdatedAt": 1777627800123,
            "passwordHash": f"fakeHash:salt=fakeSaltX:password={PASSWORD}",
            "providerUserInfo": [
                {"providerId": "password", "rawId": "ann@example.com", "email": "ann@example.com"},
                {"providerId": "google.com", "rawId": "1234", "email": "ann@example.com"}],
        }]}))
    tree = folder / "database_export"
    tree.mkdir()
    (tree / f"{PROJECT}-default-rtdb.json").write_text(json.dumps(TREE))
    (tree / "other.json").write_text("null")
    files = folder / "storage_export"
    (files / "blobs").mkdir(parents=True)
    (files / "metadata").mkdir()
    (files / "buckets.json").write_text(json.dumps({"buckets": [{"id": BUCKET}]}))
    (files / "blobs" / "7e79ca72").write_bytes(BYTES)
    (files / "metadata" / "7e79ca72.json").write_text(json.dumps({
        "name": "pictures/lamp ü.png", "bucket": BUCKET, "contentType": "image/png",
        "generation": 1717729956431, "metageneration": 1, "storageClass": "STANDARD",
        "contentDisposition": "inline", "downloadTokens": ["99c8304e"], "customMetadata": {"k": "v"},
        "size": len(BYTES), "timeCreated": "2024-06-07T03:12:36.431Z",
        "md5Hash": base64.b64encode(hashlib.md5(BYTES).digest()).decode(),
        "crc32c": str(google_crc32c.value(BYTES))}))
    (folder / "firebase-export-metadata.json").write_text(json.dumps({
        "version": "15.18.0", "auth": {"version": "15.18.0", "path": "auth_export"},
        "firestore": {"version": "1.21.0", "path": "firestore_export", "metadata_file":
                      "firestore_export/firestore_export.overall_export_metadata"},
        "database": {"version": "4.11.2", "path": "database_export"},
        "storage": {"version": "15.18.0", "path": "storage_export"}}))


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Server(ServerProcess):
    """A project of Firebase's, served with an export of its emulators."""

    def __init__(self, program: str, directory: str) -> None:
        self.program, self.folder = program, pathlib.Path(directory)
        self.project = self.folder / "project"
        self.project.mkdir()
        ports = _free_ports(4)
        (self.project / "firebase.json").write_text("// Ours.\n" + json.dumps({
            "firestore": {"rules": "firestore.rules"}, "storage": {"rules": "rules/storage.rules"},
            "functions": [{"source": "functions"}],
            "emulators": {name: {"port": port} for name, port in zip(
                ("firestore", "auth", "database", "storage"), ports)}}))
        (self.project / "firestore.rules").write_text(RULES)
        (self.project / "rules").mkdir()
        (self.project / "rules" / "storage.rules").write_text(STORAGE_RULES)
        (self.project / ".firebaserc").write_text(json.dumps({"projects": {"default": PROJECT}}))
        self.export = self.folder / "saved"
        self.export.mkdir()
        self.place = str(self.folder / "stories.ondol")
        os.environ["FIRESTORE_EMULATOR_HOST"] = f"127.0.0.1:{ports[0]}"
        self.client = firestore.Client(project=PROJECT, credentials=AnonymousCredentials())
        write_export(self.export, self.client)
        self.launch(program, self.place, "--firebase", self.project, "--import", self.export)
        found = [self.address(name)[1] for name in (
            "FIRESTORE_EMULATOR_HOST", "FIREBASE_AUTH_EMULATOR_HOST",
            "FIREBASE_DATABASE_EMULATOR_HOST")]
        host, port = self.address("STORAGE_EMULATOR_HOST")
        expect(found + [port] == ports, f"the ports of firebase.json: {found}")
        os.environ["STORAGE_EMULATOR_HOST"] = host
        self.auth, self.tree = f"http://127.0.0.1:{ports[1]}", f"http://127.0.0.1:{ports[2]}"

    def json(self, url: str, body: object = None, **headers: str):
        request = urllib.request.Request(
            url, data=None if body is None else json.dumps(body).encode(),
            headers={"content-type": "application/json", **headers})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)


# The stories.


def what_an_emulator_exported_is_served(server: Server) -> None:
    client = server.client
    for path, fields in documents(client).items():
        found = client.document(path).get()
        expect(found.exists, f"{path} is there")
        for name, value in fields.items():
            expect(found.get(name) == value, f"{path}: {name} is {found.get(name)!r}")
        expect(set(found.to_dict()) == set(fields), f"{path} has no other fields")
    blob = storage.Client(project=PROJECT, credentials=AnonymousCredentials()).bucket(BUCKET).blob(
        "pictures/lamp ü.png")
    expect(blob.download_as_bytes() == BYTES, "the bytes of the object")
    blob.reload()
    expect(blob.content_type == "image/png", "its type")
    expect(blob.metadata == {"k": "v", "firebaseStorageDownloadTokens": "99c8304e"}, "its metadata")
    found = server.json(f"{server.tree}/.json?format=export", Authorization="Bearer owner")
    expect(found == TREE, f"the tree: {found}")


def people_sign_in_with_the_passwords_they_had(server: Server) -> None:
    url = f"{server.auth}/identitytoolkit.googleapis.com/v1/accounts"
    answer = server.json(
        f"{url}:signInWithPassword?key=any", {"email": "ann@example.com", "password": PASSWORD})
    expect(answer["localId"] == "ann", "she is who she was")
    token = answer["idToken"].split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    expect(claims["admin"] is True and claims["aud"] == PROJECT, f"with her claims: {claims}")


def the_rules_of_the_project_are_in_force(server: Server) -> None:
    root = f"projects/{PROJECT}/databases/(default)/documents"
    from google.api_core import exceptions
    from google.cloud.firestore_v1.services.firestore import FirestoreClient
    from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcTransport
    import grpc

    channel = grpc.insecure_channel(os.environ["FIRESTORE_EMULATOR_HOST"])
    nobody = FirestoreClient(transport=FirestoreGrpcTransport(channel=channel))
    expect(nobody.get_document({"name": f"{root}/items/open"}).fields["name"].string_value == "open",
           "what they allow")
    try:
        nobody.get_document({"name": f"{root}/items/all"})
        expect(False, "what they do not allow is refused")
    except exceptions.PermissionDenied:
        pass


def what_is_served_is_exported_again(server: Server) -> None:
    target = server.folder / "given"
    done = subprocess.run(
        [server.program, "export", server.place, "--firebase", "--project", PROJECT, "-o",
         str(target)], capture_output=True, text=True, timeout=PATIENCE)
    expect(done.returncode == 0, f"the export ends well: {done.stderr}")
    metadata = json.loads((target / "firebase-export-metadata.json").read_text())
    overall = records_of((target / metadata["firestore"]["metadata_file"]).read_bytes())
    expect(overall[0] == b"3" and len(overall) == 2, f"the metadata: {overall}")
    kinds = target / "firestore_export" / "all_namespaces" / "all_kinds"
    made = {}
    for record in records_of((kinds / "output-0").read_bytes()):
        message = datastore.EntityProto()
        message.ParseFromString(record)
        expect(message.IsInitialized() and message.key.app == APP, "a whole entity")
        path = [part for one in message.key.path.element for part in (one.type, one.name)]
        made["/".join(path)] = fields_of(message, server.client)
    expected = documents(server.client)
    expect(made == expected, f"the documents: {made}")
    users = json.loads((target / "auth_export" / "accounts.json").read_text())["users"]
    expect([(one["localId"], one["email"], one["emailVerified"]) for one in users]
           == [("ann", "ann@example.com", True)], f"the accounts: {users}")
    expect("passwordHash" not in users[0] and PASSWORD not in str(users), "without passwords")
    expect({(one["providerId"], one["rawId"]) for one in users[0]["providerUserInfo"]}
           == {("password", "ann@example.com"), ("google.com", "1234")}, "with their providers")
    tree = json.loads(
        (target / "database_export" / f"{PROJECT}-default-rtdb.json").read_text())
    expect(tree == TREE, f"the tree: {tree}")
    buckets = json.loads((target / "storage_export" / "buckets.json").read_text())
    expect(buckets == {"buckets": [{"id": BUCKET}]}, f"the bucket: {buckets}")
    (file,) = (target / "storage_export" / "metadata").iterdir()
    found = json.loads(file.read_text())
    blob = (target / "storage_export" / "blobs" / file.stem).read_bytes()
    expect(blob == BYTES and found["name"] == "pictures/lamp ü.png", "the object")
    expect(found["crc32c"] == str(google_crc32c.value(BYTES)), "its checksum")
    expect(found["md5Hash"] == base64.b64encode(hashlib.md5(BYTES).digest()).decode(), "and MD5")
    expect(found["downloadTokens"] == ["99c8304e"], "its token")
    expect(found["customMetadata"] == {"k": "v"}, "its metadata")


def an_import_is_for_a_new_database(server: Server) -> None:
    other = str(server.folder / "other.ondol")
    subprocess.run([server.program, "put", other, "a/b", "{}"], check=True, capture_output=True)
    done = subprocess.run(
        [server.program, "serve", other, "--import", str(server.export), "--port-firestore", "0"],
        capture_output=True, text=True, timeout=PATIENCE)
    expect(done.returncode == 9 and "has data already" in done.stderr, f"refused: {done.stderr}")
    broken = server.folder / "broken"
    (broken / "auth_export").mkdir(parents=True)
    (broken / "firebase-export-metadata.json").write_text('{"auth": {"path": "auth_export"}}')
    (broken / "auth_export" / "accounts.json").write_text('{"users": [{"localId": 7}]}')
    place = server.folder / "never.ondol"
    done = subprocess.run(
        [server.program, "serve", str(place), "--import", str(broken), "--port-firestore", "0"],
        capture_output=True, text=True, timeout=PATIENCE)
    expect(done.returncode == 1 and "users[0]" in done.stderr, f"named: {done.stderr}")
    expect(not place.exists(), "and no database is made")


STORIES = [
    what_an_emulator_exported_is_served, people_sign_in_with_the_passwords_they_had,
    the_rules_of_the_project_are_in_force, what_is_served_is_exported_again,
    an_import_is_for_a_new_database,
]

if __name__ == "__main__":
    sys.exit(run(STORIES, Server))
