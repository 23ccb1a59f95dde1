"""Stories of an app whose users sign in: Google's own Firestore client over TLS, with people's
tokens, against rules.

    access_stories.py ONDOL DIRECTORY [STORY...]

The server is one that other machines could reach. See stories.py.
"""

from __future__ import annotations

import json
import os
import pathlib
import queue
import secrets
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request

from stories import PATIENCE, ServerProcess, expect, run

PROJECT = "shop"
RULES = """rules_version = '2';
service cloud.firestore {
  match /databases/{database}/documents {
    match /notes/{note} {
      allow read: if resource == null || resource.data.owner == request.auth.uid;
      allow create: if request.resource.data.owner == request.auth.uid;
      allow update, delete: if resource.data.owner == request.auth.uid;
    }
  }
}
"""


class Server(ServerProcess):
    """`ondol serve` with a certificate, an administrators' token, and rules."""

    def __init__(
        self, program: str, directory: str, *options: str, certified_as: Server | None = None
    ) -> None:
        self.program, folder = program, pathlib.Path(directory)
        self.folder, self.audit = folder, folder / "audit.jsonl"
        folder.mkdir(parents=True, exist_ok=True)
        if certified_as:
            # Clients in this process trust one certificate.
            self.certificate, self.key = certified_as.certificate, certified_as.key
        else:
            self.certificate, self.key = folder / "certificate.pem", folder / "key.pem"
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                 "ec_paramgen_curve:P-256", "-nodes", "-keyout", self.key, "-out",
                 self.certificate, "-days", "2", "-subj", "/CN=localhost", "-addext",
                 "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                check=True, capture_output=True)
        self.token = secrets.token_hex(16)
        self.token_file, self.rules = folder / "token", folder / "firestore.rules"
        self.token_file.write_text(self.token)
        self.rules.write_text(RULES)
        self.launch(
            program, folder / "shop.ondol", "--listen", "0.0.0.0", "--tls-cert", self.certificate,
            "--tls-key", self.key, "--admin-token-file", self.token_file, "--rules", self.rules,
            "--port-firestore", 0, "--port-auth", 0, "--port-database", 0, "--audit-log",
            self.audit, *options)
        self.port, self.auth_port, self.tree_port = (self.address(r"\w+")[1] for _ in range(3))
        # gRPC reads it when the first channel is made.
        os.environ["GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"] = str(self.certificate)

    def sign_up(self) -> tuple[str, str]:
        """A new person's uid and ID token."""
        body = {"email": f"{secrets.token_hex(8)}@example.org", "password": secrets.token_hex(8),
                "returnSecureToken": True}
        request = urllib.request.Request(
            f"https://localhost:{self.auth_port}/identitytoolkit.googleapis.com/v1/accounts:signUp"
            f"?key={PROJECT}", data=json.dumps(body).encode(),
            headers={"content-type": "application/json"})
        context = ssl.create_default_context(cafile=str(self.certificate))
        with urllib.request.urlopen(request, timeout=PATIENCE, context=context) as answer:
            found = json.load(answer)
        return found["localId"], found["idToken"]

    def tree(self, method: str, path: str, token: str | None, body=None, **headers):
        """An answer of the Realtime Database's REST interface, as it comes."""
        request = urllib.request.Request(
            f"https://localhost:{self.tree_port}/{path}.json?ns={PROJECT}", method=method,
            data=None if body is None else json.dumps(body).encode(), headers=headers)
        if token:
            request.add_header("authorization", f"Bearer {token}")
        context = ssl.create_default_context(cafile=str(self.certificate))
        return urllib.request.urlopen(request, timeout=PATIENCE, context=context)

    def web_socket(self, namespace: str = PROJECT) -> bytes:
        """What a WebSocket of the Realtime Database's gets first."""
        context = ssl.create_default_context(cafile=str(self.certificate))
        with socket.create_connection(("localhost", self.tree_port), timeout=PATIENCE) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as connection:
                connection.sendall(
                    f"GET /.ws?v=5&ns={namespace} HTTP/1.1\r\nhost: localhost\r\n"
                    "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n"
                    "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode())
                received = b""
                while b'"t":"h"' not in received:
                    piece = connection.recv(4_096)
                    if not piece:
                        break
                    received += piece
                return received

    def events(self) -> list[dict]:
        return [json.loads(line) for line in self.audit.read_text().splitlines()]

    def client(self, token: str | None):
        """Firestore's client with somebody's token; nobody's for None."""
        from google.auth.credentials import AnonymousCredentials
        from google.cloud import firestore
        from google.oauth2.credentials import Credentials

        return firestore.Client(
            project=PROJECT, credentials=Credentials(token) if token else AnonymousCredentials(),
            client_options={"api_endpoint": f"localhost:{self.port}"})

    def deploy(self, rules: str, *options) -> subprocess.CompletedProcess:
        file = self.rules.with_name("other.rules")
        file.write_text(rules)
        return subprocess.run(
            [self.program, "rules", "deploy", f"https://localhost:{self.port}/{PROJECT}", file,
             "--certificates", self.certificate, *options], capture_output=True, text=True)


def refused(action, name: str = "PermissionDenied") -> None:
    try:
        action()
    except Exception as error:
        if type(error).__name__ == name:
            return
        raise
    raise AssertionError(f"this was not refused with {name}")


def people_have_their_own_notes(server: Server) -> None:
    (ann, ann_token), (ben, ben_token) = server.sign_up(), server.sign_up()
    notes, other = server.client(ann_token).collection("notes"), server.client(ben_token)
    notes.document("a").set({"owner": ann, "text": "mine"})
    expect(notes.document("a").get().to_dict()["text"] == "mine", "Ann reads her note")
    expect([n.id for n in notes.where("owner", "==", ann).stream()] == ["a"], "and lists it")
    refused(lambda: other.document("notes/a").get())
    refused(lambda: other.document("notes/a").update({"text": "his"}))
    refused(lambda: list(other.collection("notes").stream()))
    refused(lambda: other.document("notes/b").set({"owner": ann}))
    refused(lambda: server.client(None).document("notes/a").get())
    admin = server.client(server.token)
    expect(admin.document("notes/a").get().to_dict()["owner"] == ann, "administrators read all")


def tokens_must_be_right(server: Server) -> None:
    _, token = server.sign_up()
    head, claims, signature = token.split(".")
    for wrong in [f"{head}.{claims}.{signature[:-4]}AAAA", f"{head}.{claims}.", "owner", "nonsense"]:
        refused(lambda: server.client(wrong).document("notes/a").get(), "Unauthenticated")


def a_listener_sees_what_it_may(server: Server) -> None:
    ann, token = server.sign_up()
    notes, states = server.client(token).collection("notes"), queue.Queue()
    watch = notes.where("owner", "==", ann).on_snapshot(
        lambda documents, changes, time: states.put({d.id for d in documents}))
    expect(states.get(timeout=PATIENCE) == set(), "at first there is nothing")
    notes.document("seen").set({"owner": ann})
    while states.get(timeout=PATIENCE) != {"seen"}:
        pass
    watch.unsubscribe()


def rules_are_exchanged_while_the_server_runs(server: Server) -> None:
    ann, token = server.sign_up()
    note = server.client(token).document("notes/exchanged")
    note.set({"owner": ann})
    closed = RULES.replace("allow read:", "allow list:")
    answer = server.deploy(closed)
    expect(answer.returncode == 1 and "token" in answer.stderr, f"owner may not: {answer}")
    answer = server.deploy("service cloud.firestore {", "--admin-token-file", server.token_file)
    expect(answer.returncode == 1 and ":1:" in answer.stderr, f"an error has a place: {answer}")
    expect(note.get().exists, "the old rules stay")
    for rules, wanted in [(closed, "in force"), (closed, "already")]:
        answer = server.deploy(rules, "--admin-token-file", server.token_file)
        expect(answer.returncode == 0 and wanted in answer.stderr, f"{wanted}: {answer}")
    refused(note.get)
    answer = server.deploy(RULES, "--admin-token-file", server.token_file)
    expect(note.get().exists, f"and back: {answer}")


def status(action) -> int:
    try:
        with action() as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def the_tree_has_rules_and_listeners_follow_them(server: Server) -> None:
    (ann, ann_token), (_, ben_token) = server.sign_up(), server.sign_up()
    own = {"rules": {"people": {"$uid": {
        ".read": "auth.uid === $uid", ".write": "auth.uid === $uid"}}}}
    place = f"people/{ann}"
    expect(status(lambda: server.tree("PUT", ".settings/rules", ann_token, own)) == 401, "a person")
    expect(status(lambda: server.tree("PUT", ".settings/rules", server.token, own)) == 200, "admin")
    expect(status(lambda: server.tree("PUT", place, ann_token, {"name": "Ann"})) == 200, "her own")
    for token, wanted in [(ann_token, 200), (ben_token, 401), (None, 401), ("nonsense", 401)]:
        found = status(lambda: server.tree("GET", place, token))
        expect(found == wanted, f"{found} instead of {wanted}")
    with server.tree("GET", place, ann_token, accept="text/event-stream") as stream:
        lines = iter(stream)
        expect(next(lines).strip() == b"event: put", "what is there comes first")
        server.tree("PUT", ".settings/rules", server.token, {"rules": {}}).close()
        expect(any(line.strip() == b"event: cancel" for line in lines), "then it is cancelled")
    expect(b"101" in server.web_socket() and b'"t":"h"' in server.web_socket(), "a WebSocket")


def the_audit_has_what_happened(server: Server) -> None:
    ann, token = server.sign_up()
    refused(lambda: server.client(token).document("secrets/a").get())
    refused(lambda: server.client("nonsense").document("notes/a").get(), "Unauthenticated")
    events = server.events()
    found = {(event["kind"], event.get("account")) for event in events}
    for wanted in [("sign-in", ann), ("denial", ann), ("refused-token", None)]:
        expect(wanted in found, f"{wanted} is missing")
    expect(any(event["kind"] == "rules-change" for event in events), "deployments")
    text = server.audit.read_text()
    expect(all(secret not in text for secret in [token, server.token, "@"]), "and no secrets")
    # A rotation takes the file away.
    server.audit.rename(server.audit.with_suffix(".1"))
    _, other = server.sign_up()
    expect([event["kind"] for event in server.events()] == ["sign-in"], "a new file begins")
    server.audit.with_suffix(".1").unlink()


def limits_hold_on_every_port(server: Server) -> None:
    limited = Server(
        server.program, server.folder / "limited", "--limit", "calls-of-address=30",
        certified_as=server)
    try:
        _, token = limited.sign_up()
        note = limited.client(token).document("notes/a")
        from google.api_core import exceptions

        def reach() -> None:
            for _ in range(60):
                note.get(retry=None)

        try:
            reach()
            raise AssertionError("no limit was reached")
        except (exceptions.ResourceExhausted, exceptions.TooManyRequests):
            pass
        expect(status(lambda: limited.tree("GET", "a", token)) == 429, "REST of the tree")
        expect(b'"t":"h"' not in limited.web_socket(), "WebSocket of the tree")
        try:
            limited.sign_up()
            raise AssertionError("a sign-up went through")
        except urllib.error.HTTPError as error:
            expect(error.code == 429 and error.headers["retry-after"], "accounts")
        # Administrators go on, so the server has not stopped.
        admin = limited.client(limited.token)
        for number in range(60):
            admin.document(f"notes/{number}").set({"owner": "x"})
        limits = [event for event in limited.events() if event["kind"] == "limit"]
        expect(0 < len(limits) <= 3, f"a flood is reported once: {len(limits)}")
    finally:
        expect(limited.stop() == 0, "it ends well")


STORIES = [
    people_have_their_own_notes, tokens_must_be_right, a_listener_sees_what_it_may,
    rules_are_exchanged_while_the_server_runs, the_tree_has_rules_and_listeners_follow_them,
    the_audit_has_what_happened, limits_hold_on_every_port,
]


if __name__ == "__main__":
    sys.exit(run(STORIES, Server))
