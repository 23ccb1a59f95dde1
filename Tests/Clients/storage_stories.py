"""Stories of files on `ondol serve`: Google's own clients for Cloud Storage and for Firebase, as they
are, and calls as Firebase's clients on devices make them.

    storage_stories.py ONDOL DIRECTORY [STORY...]

See stories.py.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import pathlib
import sys
import urllib.parse
import urllib.request

from stories import PATIENCE, ServerProcess, call, expect, expect_error, run

PROJECT = "stories"
BUCKET = "stories.appspot.com"
RULES = """rules_version = '2';
service firebase.storage {
  match /b/{bucket}/o {
    match /users/{uid}/{file=**} {
      allow read, delete: if request.auth.uid == uid;
      allow create: if request.auth.uid == uid && request.resource.size < 1000000;
    }
  }
}
"""


class Server(ServerProcess):
    """`ondol serve` with storage, which can be killed and started again on the same port."""

    def __init__(self, program: str, directory: str) -> None:
        self.program, self.place, self.port = program, f"{directory}/stories.ondol", 0
        self.auth_port = 0
        self.start()

    def start(self, *more: str) -> None:
        self.launch(
            self.program, self.place, "--port-firestore", 0, "--port-auth", self.auth_port,
            "--port-storage", self.port, *more)
        self.address("FIRESTORE_EMULATOR_HOST")
        _, self.auth_port = self.address("FIREBASE_AUTH_EMULATOR_HOST")
        self.host, self.port = self.address("STORAGE_EMULATOR_HOST")
        os.environ["STORAGE_EMULATOR_HOST"] = self.host

    def call(self, method: str, path: str, body: bytes | None = None, **headers) -> tuple:
        """Status, headers by lower case, and body. A header's "_" is "-"."""
        return call(method, path if path.startswith("http") else f"{self.host}{path}", body, **headers)

    def sign_up(self, email: str) -> tuple[str, str]:
        """The uid and the ID token of a new account."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.auth_port}/identitytoolkit.googleapis.com/v1/accounts:signUp"
            f"?key={PROJECT}",
            data=json.dumps({"email": email, "password": "secret"}).encode(),
            headers={"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            account = json.load(answer)
        return account["localId"], account["idToken"]


def client():
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    return storage.Client(project=PROJECT, credentials=AnonymousCredentials())


# The stories.


def a_shop_keeps_its_pictures(server: Server) -> None:
    """Some fifty steps of Google's client, on one bucket."""
    from google.api_core import exceptions

    store = client()
    bucket = store.bucket(BUCKET)
    expect(bucket.exists(), "1: the bucket is there")
    bucket = store.get_bucket(BUCKET)
    expect(bucket.name == BUCKET, "2: and is found")
    expect([found.name for found in store.list_buckets()] == [BUCKET], "3: it is the only one")
    lamp = bucket.blob("shop/lamp.png")
    expect(not lamp.exists(), "4: no lamp yet")
    expect_error(exceptions.NotFound, lamp.download_as_bytes)  # 5
    lamp.metadata = {"colour": "red"}
    lamp.cache_control = "max-age=60"
    lamp.upload_from_string(b"png of a lamp", content_type="image/png")  # 6
    expect(lamp.exists() and lamp.size == 13, "7: now there is one")
    expect(lamp.download_as_bytes() == b"png of a lamp", "8: as it was")
    lamp.reload()
    expect(lamp.content_type == "image/png", "9: with its type")
    expect(lamp.metadata == {"colour": "red"}, f"10: and its metadata: {lamp.metadata}")
    expect(lamp.cache_control == "max-age=60", "11: and this")
    md5 = base64.b64encode(hashlib.md5(b"png of a lamp").digest()).decode()
    expect(lamp.md5_hash == md5 and lamp.crc32c, "12: and both checksums")
    expect(lamp.metageneration == 1 and lamp.generation > 0, "13: of its first generation")
    first = lamp.generation
    lamp.metadata = {"colour": "blue", "size": "L"}
    lamp.patch()
    expect(lamp.metageneration == 2 and lamp.generation == first, "14: metadata may change")
    expect(lamp.metadata == {"colour": "blue", "size": "L"}, f"15: {lamp.metadata}")
    lamp.content_language = "en"
    lamp.update()
    lamp.reload()
    expect(lamp.content_language == "en" and lamp.metadata["size"] == "L", "16: or all of it")
    error = expect_error(
        exceptions.PreconditionFailed,
        lambda: lamp.upload_from_string(b"x", if_generation_match=0))
    expect(error.code == 412, "17: it may only be made once")
    expect_error(
        exceptions.PreconditionFailed, lambda: lamp.patch(if_metageneration_match=99))  # 18
    lamp.upload_from_string(b"another lamp", if_generation_match=first)
    expect(lamp.generation > first, "19: or replaced by who knows the present one")
    expect(lamp.download_as_bytes(if_generation_match=lamp.generation) == b"another lamp", "20")
    expect_error(
        exceptions.PreconditionFailed, lambda: lamp.download_as_bytes(if_generation_match=first))
    expect(lamp.download_as_bytes(start=0, end=6) == b"another", "22: the beginning")
    expect(lamp.download_as_bytes(start=8) == b"lamp", "23: the end")
    expect_error(exceptions.RequestRangeNotSatisfiable,
                 lambda: lamp.download_as_bytes(start=100))  # 24
    for name in ["shop/chair.png", "shop/old/lamp.png", "shop/old/chair.png", "shop-window.txt",
                 "shop/ö ?&#+%2F.txt"]:
        bucket.blob(name).upload_from_string(name)  # 25 to 29
    odd = bucket.blob("shop/ö ?&#+%2F.txt")
    expect(odd.download_as_text() == "shop/ö ?&#+%2F.txt", "30: any name")
    listed = [blob.name for blob in store.list_blobs(BUCKET, prefix="shop")]
    expect(listed == sorted(listed, key=str.encode) and len(listed) == 6, f"31: {listed}")
    pages = store.list_blobs(BUCKET, prefix="shop/", delimiter="/", page_size=2)
    names = [blob.name for blob in pages]
    expect(names == ["shop/chair.png", "shop/lamp.png", "shop/ö ?&#+%2F.txt"], f"32: {names}")
    expect(pages.prefixes == {"shop/old/"}, f"33: {pages.prefixes}")
    some = [b.name for b in store.list_blobs(BUCKET, start_offset="shop/", end_offset="shop/l")]
    expect(some == ["shop/chair.png"], f"34: {some}")
    expect(len(list(store.list_blobs(BUCKET, max_results=3))) == 3, "35: three of them")
    copy = bucket.copy_blob(lamp, bucket, "shop/copy.png")
    expect(copy.download_as_bytes() == b"another lamp", "36: a copy")
    moved = bucket.rename_blob(copy, "shop/moved.png")
    expect(moved.exists() and not bucket.blob("shop/copy.png").exists(), "37: a new name")
    rewritten = bucket.blob("shop/rewritten.png")
    token, done, total = rewritten.rewrite(moved)
    expect((token, done, total) == (None, 12, 12), f"38: {token} {done} {total}")
    whole = bucket.blob("shop/both.txt")
    whole.content_type = "text/plain"
    whole.compose([lamp, bucket.blob("shop/chair.png")])
    expect(whole.download_as_bytes() == b"another lampshop/chair.png", "39: one of two")
    expect_error(exceptions.NotFound,
                 lambda: bucket.blob("x").compose([bucket.blob("none"), lamp]))  # 40
    with bucket.blob("shop/stream.txt").open("w") as file:
        for number in range(1_000):
            file.write(f"line {number}\n")
    with bucket.blob("shop/stream.txt").open("r") as file:
        lines = file.readlines()
    expect(len(lines) == 1_000 and lines[999] == "line 999\n", "41: a file")
    large = os.urandom(3_000_000)
    slow = bucket.blob("shop/large.bin", chunk_size=1 << 20)
    slow.upload_from_file(io.BytesIO(large), checksum="crc32c")
    expect(slow.size == len(large), "42: in pieces")
    expect(bucket.blob("shop/large.bin", chunk_size=1 << 18).download_as_bytes() == large, "43")
    unknown = bucket.blob("shop/unknown.bin", chunk_size=1 << 18)
    unknown.upload_from_file(Unseekable(large[:700_000]))
    expect(unknown.download_as_bytes() == large[:700_000], "44: of unknown length")
    error = expect_error(exceptions.PreconditionFailed,
                         lambda: slow.upload_from_file(io.BytesIO(large), if_generation_match=0))
    expect(error.code == 412, "45: also in pieces")
    status, headers, body = server.call("GET", lamp.public_url)
    expect(status == 200 and body == b"another lamp", f"46: a browser: {status}")
    expect(headers["x-content-type-options"] == "nosniff", "47: that does not guess")
    page = bucket.blob("shop/page.html")
    page.upload_from_string("<script>alert(1)</script>", content_type="text/html")
    _, headers, _ = server.call("GET", page.public_url)
    expect(headers["content-disposition"] == "attachment", "48: and runs nothing")
    with store.batch():
        bucket.blob("shop/moved.png").delete()
        bucket.blob("shop/rewritten.png").delete()
    expect(not bucket.blob("shop/moved.png").exists(), "49: several in one request")
    expect_error(exceptions.NotFound, bucket.blob("shop/moved.png").delete)  # 50
    expect_error(exceptions.PreconditionFailed, lambda: lamp.delete(if_generation_match=first))
    lamp.delete(if_generation_match=lamp.generation)
    expect(not lamp.exists(), "52: gone")
    bucket.delete_blobs(list(store.list_blobs(BUCKET)))
    expect(list(store.list_blobs(BUCKET)) == [], "53: all of them")


class Unseekable(io.RawIOBase):
    """A stream that does not know its length."""

    def __init__(self, data: bytes) -> None:
        self.inner = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self.inner.read(size)

    def tell(self) -> int:
        return self.inner.tell()

    def seekable(self) -> bool:
        return False


def wrong_checksums_are_found(server: Server) -> None:
    from google.api_core import exceptions

    blob = client().bucket(BUCKET).blob("checked")
    blob.crc32c = "AAAAAA=="
    path = f"/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name=checked"
    status, _, _ = server.call("POST", path, b"hello", x_goog_hash="crc32c=AAAAAA==")
    expect(status == 400, f"another checksum: {status}")
    expect(not blob.exists(), "nothing is kept")
    status, _, _ = server.call("POST", path, b"hello", x_goog_hash="crc32c=mnG7TA==")
    expect(status == 200, f"the right one: {status}")
    blob.delete()
    expect_error(exceptions.NotFound, blob.reload)


def an_upload_goes_on_after_the_server_was_killed(server: Server) -> None:
    from google.cloud.storage import Client  # noqa: F401

    content = os.urandom(2_000_000)
    status, headers, _ = server.call(
        "POST", f"/upload/storage/v1/b/{BUCKET}/o?uploadType=resumable&name=film.mp4",
        b'{"contentType": "video/mp4"}', x_upload_content_length=str(len(content)))
    expect(status == 200, f"begun: {status}")
    upload = headers["location"]
    total, sent = len(content), 0
    while sent < total:
        end = min(total, sent + (1 << 18))
        status, headers, body = server.call(
            "PUT", upload, content[sent:end], content_range=f"bytes {sent}-{end - 1}/{total}")
        expect(status == (200 if end == total else 308), f"{end}: {status} {body}")
        sent = end
        if sent in (1 << 18, 3 << 18):
            server.kill()
            server.start()
            status, headers, _ = server.call("PUT", upload, b"", content_range="bytes */*")
            expect(headers["range"] == f"bytes=0-{sent - 1}", f"it has what it said: {headers}")
    blob = client().bucket(BUCKET).blob("film.mp4")
    expect(blob.download_as_bytes() == content, "all of it")
    expect(blob.content_type == "video/mp4", "a film")
    blob.delete()


def an_administrator_uses_firebase(server: Server) -> None:
    import firebase_admin
    from firebase_admin import storage
    from google.auth.credentials import AnonymousCredentials

    class Anonymous(firebase_admin.credentials.Base):
        def get_credential(self):
            return AnonymousCredentials()

    app = firebase_admin.initialize_app(
        Anonymous(), {"projectId": PROJECT, "storageBucket": BUCKET}, "files")
    bucket = storage.bucket(app=app)
    expect(bucket.name == BUCKET and bucket.exists(), "the app's bucket")
    blob = bucket.blob("data/test.txt")
    blob.upload_from_string("Hello World")
    expect(blob.download_as_bytes() == b"Hello World", "as in the library's own test")
    expect(storage.bucket("other-bucket", app=app).exists(), "by another name as well")
    blob.delete()
    expect(not bucket.blob("data/test.txt").exists(), "and gone")
    firebase_admin.delete_app(app)


def a_device_shares_a_photo(server: Server) -> None:
    """As Firebase's clients on devices call it, by plain HTTP."""
    server.stop()
    rules = pathlib.Path(server.place).parent / "storage.rules"
    rules.write_text(RULES)
    server.start("--rules", str(rules))
    uid, token = server.sign_up("ann@example.com")
    _, stranger = server.sign_up("bob@example.com")
    ann, bob = f"Firebase {token}", f"Firebase {stranger}"
    objects = f"/v0/b/{BUCKET}/o"
    name = urllib.parse.quote(f"users/{uid}/photo.png", safe="")
    place = f"{objects}/{name}"

    def post(path: str, body: bytes, who: str | None, **headers) -> tuple:
        if who:
            headers["authorization"] = who
        status, headers, body = server.call("POST", path, body, **headers)
        try:
            return status, headers, json.loads(body or b"null")
        except ValueError:
            return status, headers, body

    parts = (b'--b\r\nContent-Type: application/json; charset=utf-8\r\n\r\n'
             + json.dumps({"name": f"users/{uid}/photo.png", "contentType": "image/png",
                           "metadata": {"k": "v"}}).encode()
             + b'\r\n--b\r\nContent-Type: image/png\r\n\r\n\x89PNG bytes\r\n--b--')
    multipart = {"x_goog_upload_protocol": "multipart",
                 "content_type": "multipart/related; boundary=b"}
    status, _, _ = post(f"{objects}?name={name}", parts, bob, **multipart)
    expect(status == 403, f"not a stranger's: {status}")
    status, _, _ = post(f"{objects}?name={name}", parts, None, **multipart)
    expect(status == 403, f"not nobody's: {status}")
    status, _, made = post(f"{objects}?name={name}", parts, ann, **multipart)
    expect(status == 200 and made["metadata"] == {"k": "v"}, f"hers: {status} {made}")
    secret = made["downloadTokens"]
    url = f"{place}?alt=media&token={secret}"
    status, headers, body = server.call("GET", url)
    expect(status == 200 and body == b"\x89PNG bytes", f"an address to share: {status}")
    expect(headers["content-type"] == "image/png", "a picture")
    status, _, _ = server.call("GET", f"{place}?alt=media")
    expect(status == 403, f"without the token: {status}")
    status, _, body = server.call("GET", place, authorization=ann)
    expect(status == 200 and json.loads(body)["size"] == "10", f"metadata: {status}")
    status, _, _ = server.call("GET", place, authorization=bob)
    expect(status == 403, f"not for him: {status}")

    film = os.urandom(600_000)
    target = urllib.parse.quote(f"users/{uid}/film.mp4", safe="")
    status, headers, _ = post(
        f"{objects}?name={target}", b'{"contentType": "video/mp4"}', ann,
        x_goog_upload_protocol="resumable", x_goog_upload_command="start",
        x_goog_upload_header_content_length=str(len(film)),
        x_goog_upload_header_content_type="video/mp4")
    expect(status == 200 and headers["x-goog-upload-status"] == "active", f"begun: {status}")
    upload = headers["x-goog-upload-url"]
    status, headers, _ = post(upload, film[:262_144], ann, x_goog_upload_command="upload",
                              x_goog_upload_offset="0")
    expect(status == 200 and headers["x-goog-upload-status"] == "active", f"a piece: {status}")
    server.kill()
    server.start("--rules", str(rules))
    status, headers, _ = post(upload, b"", ann, x_goog_upload_command="query")
    expect(headers["x-goog-upload-size-received"] == "262144", f"it is there: {headers}")
    status, headers, body = post(
        upload, film[262_144:], ann, x_goog_upload_command="upload, finalize",
        x_goog_upload_offset="262144")
    expect(status == 200 and headers["x-goog-upload-status"] == "final", f"done: {status} {body}")
    status, _, body = server.call("GET", f"{objects}/{target}?alt=media", authorization=ann)
    expect(status == 200 and body == film, "the film")
    status, headers, body = server.call(
        "GET", f"{objects}/{target}?alt=media", authorization=ann, range="bytes=5-9")
    expect(status == 206 and body == film[5:10], f"a part of it: {status}")

    folder = urllib.parse.quote(f"users/{uid}/", safe="")
    status, _, body = server.call(
        "GET", f"{objects}?prefix={folder}&delimiter=/&maxResults=1", authorization=ann)
    page = json.loads(body)
    expect([i["name"] for i in page["items"]] == [f"users/{uid}/film.mp4"], f"a page: {page}")
    status, _, body = server.call(
        "GET", f"{objects}?prefix={folder}&delimiter=/&pageToken={page['nextPageToken']}",
        authorization=ann)
    expect([i["name"] for i in json.loads(body)["items"]] == [f"users/{uid}/photo.png"], "another")
    status, _, _ = server.call("GET", f"{objects}?prefix={folder}", authorization=bob)
    expect(status == 403, f"not his folder: {status}")
    status, _, _ = post(f"{objects}?name={target}2", os.urandom(1_000_001), ann,
                        content_type="video/mp4")
    expect(status == 403, f"too large: {status}")
    status, _, _ = server.call("PATCH", place, b"{}", authorization=ann)
    expect(status == 403, f"nobody may update: {status}")
    status, _, _ = server.call("DELETE", place, authorization=bob)
    expect(status == 403, f"nor may he delete: {status}")
    status, _, _ = server.call("DELETE", place, authorization=ann)
    expect(status == 204, f"she may: {status}")
    status, _, _ = server.call("GET", url)
    expect(status == 403, f"gone: {status}")


STORIES = [
    a_shop_keeps_its_pictures, wrong_checksums_are_found,
    an_upload_goes_on_after_the_server_was_killed, an_administrator_uses_firebase,
    a_device_shares_a_photo,
]


if __name__ == "__main__":
    sys.exit(run(STORIES, Server))
