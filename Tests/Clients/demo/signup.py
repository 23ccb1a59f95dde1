"""The demo's signing up and in with Firebase's calls for accounts and Google's client for Firestore.

    FIRESTORE_EMULATOR_HOST=… FIREBASE_AUTH_EMULATOR_HOST=… signup.py

Prints what it finds as lines of JSON. Rules keep people's notes apart, which OndolAccounts does by
itself. See Sources/OndolDemo/SignUp.swift.
"""

import concurrent.futures
import json
import os
import urllib.error
import urllib.request

import grpc
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore
from google.cloud.firestore_v1.services.firestore import FirestoreClient
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcTransport

PROJECT = "demo-signup"
ROOT = f"projects/{PROJECT}/databases/(default)/documents"
PASSWORD = "rattan lamp 7"
PEOPLE = [("a.b@c.kr", "민지", "김"), ("a-b@c.kr", "하준", "이"), ("a.b@C.KR", "서연", "박")]


def say(name: str, result: object) -> None:
    print(json.dumps({name: result}, ensure_ascii=False), flush=True)


def call(name: str, **fields) -> dict:
    """A call as a device makes it; its error's name is the answer if it is refused."""
    host = os.environ["FIREBASE_AUTH_EMULATOR_HOST"]
    request = urllib.request.Request(
        f"http://{host}/identitytoolkit.googleapis.com/v1/accounts:{name}?key={PROJECT}",
        data=json.dumps(fields).encode(), headers={"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return {"error": json.load(error)["error"]["message"]}


class Person:
    """Somebody who is signed in, and reads and writes as the rules allow."""

    def __init__(self, token: str) -> None:
        self.metadata = [("authorization", f"Bearer {token}")]
        channel = grpc.insecure_channel(os.environ["FIRESTORE_EMULATOR_HOST"])
        self.client = FirestoreClient(transport=FirestoreGrpcTransport(channel=channel))

    def write(self, path: str, text: str) -> None:
        document = {"name": f"{ROOT}/{path}", "fields": {"text": {"string_value": text}}}
        self.client.update_document({"document": document}, metadata=self.metadata)

    def may(self, body) -> bool:
        try:
            body()
            return True
        except exceptions.PermissionDenied:
            return False

    def read(self, path: str):
        return self.client.get_document({"name": f"{ROOT}/{path}"}, metadata=self.metadata)

    def delete(self, path: str):
        return self.client.delete_document({"name": f"{ROOT}/{path}"}, metadata=self.metadata)


def main() -> None:
    admin = firestore.Client(project=PROJECT, credentials=AnonymousCredentials())
    people = {}
    for email, first, last in PEOPLE:
        answer = call("signUp", email=email, password=PASSWORD)
        if "error" not in answer:
            people[first] = answer
            admin.document("users", answer["localId"]).set({"firstName": first, "lastName": last})
        say(email, answer.get("error", "in"))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(
            lambda number: call("signUp", email="race@c.kr", password=PASSWORD), range(8)))
    say("winners", sum("error" not in answer for answer in answers))
    wrong = [call("signInWithPassword", email=email, password="a wrong password").get("error")
             for email in ("a.b@c.kr", "nobody@c.kr")]
    say("guesses", wrong[0] == wrong[1] and wrong[0] is not None)
    minji, hajun = [Person(call("signInWithPassword", email=email, password=PASSWORD)["idToken"])
                    for email in ("a.b@c.kr", "a-b@c.kr")]
    uid = people["민지"]["localId"]
    minji.write(f"private/{uid}/notes/today", "차 사기")
    say("sees her note", hajun.may(lambda: hajun.read(f"private/{uid}/notes/today")))
    minji.write("posts/hello", "안녕")
    say("deletes her post", hajun.may(lambda: hajun.delete("posts/hello")))
    # What OndolAccounts deletes with an account, an app deletes by itself here.
    admin.document("users", uid).delete()
    admin.document("private", uid, "notes", "today").delete()
    call("delete", idToken=people["민지"]["idToken"])
    again = call("signInWithPassword", email="a.b@c.kr", password=PASSWORD)
    say("gone", "error" in again and not admin.document("users", uid).get().exists)


main()
