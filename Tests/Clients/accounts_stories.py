"""Stories of accounts on `ondol serve`: Google's own library for administrators, as it is, and
calls as Firebase's clients make them.

    accounts_stories.py ONDOL DIRECTORY [STORY...]

See stories.py.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys
import urllib.error
import urllib.request

import firebase_admin
from firebase_admin import auth

from stories import PATIENCE, ServerProcess, expect, expect_error, run

PROJECT = "stories"


class Server(ServerProcess):
    """`ondol serve --many`, which can be killed and started again on the same port."""

    def __init__(self, program: str, directory: str) -> None:
        self.program, self.directory, self.port = program, directory, 0
        self.start()

    def start(self) -> None:
        self.launch(
            self.program, "--many", self.directory, "--port-firestore", 0, "--port-auth",
            self.port, "--insecure-emulator")
        self.address("FIRESTORE_EMULATOR_HOST")
        host, self.port = self.address("FIREBASE_AUTH_EMULATOR_HOST")
        os.environ["FIREBASE_AUTH_EMULATOR_HOST"] = host

    def post(self, path: str, body: dict, headers: dict | None = None) -> tuple[int, dict]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", data=json.dumps(body).encode(),
            headers={"content-type": "application/json", **(headers or {})})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def client(self, call: str, **fields) -> dict:
        """What a client gets; raises the error's name."""
        status, answer = self.post(
            f"/identitytoolkit.googleapis.com/v1/accounts:{call}?key={PROJECT}", fields)
        if status != 200:
            raise Refused(answer["error"]["message"])
        return answer

    def refresh(self, token: str) -> dict:
        status, answer = self.post(
            f"/securetoken.googleapis.com/v1/token?key={PROJECT}",
            {"grant_type": "refresh_token", "refresh_token": token})
        if status != 200:
            raise Refused(answer["error"]["message"])
        return answer


class Refused(Exception):
    """An error of Firebase's calls, by its name."""


# The stories.


def a_person_signs_up_and_in(server: Server) -> None:
    there = server.client("signUp", email="ann@example.com", password="secret")
    claims = auth.verify_id_token(there["idToken"])
    expect(claims["uid"] == there["localId"], f"the token is hers: {claims}")
    expect(claims["firebase"]["sign_in_provider"] == "password", f"by a password: {claims}")
    here = server.client("signInWithPassword", email="ANN@example.com", password="secret")
    expect(here["localId"] == there["localId"], "the same account")
    error = expect_error(
        Refused, lambda: server.client("signUp", email="Ann@example.com", password="secret"))
    expect(str(error) == "EMAIL_EXISTS", f"the address is taken: {error}")
    error = expect_error(Refused, lambda: server.client(
        "signInWithPassword", email="ann@example.com", password="another"))
    expect(str(error) == "INVALID_LOGIN_CREDENTIALS", f"a wrong password: {error}")
    error = expect_error(Refused, lambda: server.client(
        "signUp", email="weak@example.com", password="12345"))
    expect(str(error).startswith("WEAK_PASSWORD : "), f"five characters: {error}")


def a_session_goes_on_after_the_server_was_killed(server: Server) -> None:
    signed_up = server.client("signUp", email="bob@example.com", password="secret")
    auth.set_custom_user_claims(signed_up["localId"], {"admin": True})
    server.kill()
    server.start()
    refreshed = server.refresh(signed_up["refreshToken"])
    claims = auth.verify_id_token(refreshed["id_token"])
    expect(claims["admin"] is True, f"with the claims of now: {claims}")
    users = server.client("lookup", idToken=signed_up["idToken"])["users"]
    expect(users[0]["email"] == "bob@example.com", f"an older token is taken: {users}")


def administrators_rule(server: Server) -> None:
    user = auth.create_user(email="eve@example.com", password="secret", display_name="Eve")
    expect(auth.get_user_by_email("EVE@example.com").uid == user.uid, "found by her address")
    signed_in = server.client("signInWithPassword", email="eve@example.com", password="secret")
    auth.update_user(user.uid, disabled=True)
    error = expect_error(Refused, lambda: server.refresh(signed_in["refreshToken"]))
    expect(str(error) == "USER_DISABLED", f"no new token: {error}")
    expect_error(auth.UserDisabledError,
                 lambda: auth.verify_id_token(signed_in["idToken"], check_revoked=True))
    found = {listed.uid for listed in auth.list_users().iterate_all()}
    expect(user.uid in found, "she is in the list")
    auth.delete_user(user.uid)
    expect_error(auth.UserNotFoundError, lambda: auth.get_user(user.uid))


def a_link_resets_a_password(server: Server) -> None:
    user = auth.create_user(email="joe@example.com", password="secret")
    link = auth.generate_password_reset_link("joe@example.com")
    code = re.search(r"oobCode=([^&]+)", link)[1]
    answer = server.client("resetPassword", oobCode=code, newPassword="other secret")
    expect(answer["email"] == "joe@example.com", f"for him: {answer}")
    expect(auth.get_user(user.uid).email_verified, "who has shown that the address is his")
    server.client("signInWithPassword", email="joe@example.com", password="other secret")


def a_custom_token_signs_in(server: Server) -> None:
    token = auth.create_custom_token("machine-1", {"kind": "robot"})
    signed_in = server.client("signInWithCustomToken", token=token.decode())
    claims = auth.verify_id_token(signed_in["idToken"])
    expect(claims["uid"] == "machine-1" and claims["kind"] == "robot", f"as it says: {claims}")


def strangers_are_no_administrators(server: Server) -> None:
    path = f"/identitytoolkit.googleapis.com/v1/projects/{PROJECT}/accounts:query"
    status, _ = server.post(path, {})
    expect(status == 401, f"without a proof: {status}")
    status, _ = server.post(path, {}, {"authorization": "Bearer owner"})
    expect(status == 200, f"an administrator: {status}")
    status, _ = server.post(
        path, {}, {"authorization": "Bearer owner", "origin": "https://evil.example"})
    expect(status == 401, f"a page of a stranger's: {status}")
    head = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    body = base64.urlsafe_b64encode(b'{"sub":"ann"}').rstrip(b"=").decode()
    error = expect_error(Refused, lambda: server.client("lookup", idToken=f"{head}.{body}."))
    expect(str(error) == "INVALID_ID_TOKEN", f"a token of nobody's: {error}")


def large_requests_are_refused(server: Server) -> None:
    status, answer = server.post(
        f"/identitytoolkit.googleapis.com/v1/accounts:signUp?key={PROJECT}",
        {"email": "x" * (17 << 20)})
    expect(status == 413, f"17 MiB: {status} {answer}")


STORIES = [
    a_person_signs_up_and_in, a_session_goes_on_after_the_server_was_killed, administrators_rule,
    a_link_resets_a_password, a_custom_token_signs_in, strangers_are_no_administrators,
    large_requests_are_refused,
]


def start(program: str, directory: str) -> Server:
    server = Server(program, directory)
    firebase_admin.initialize_app(options={"projectId": PROJECT})
    return server


if __name__ == "__main__":
    sys.exit(run(STORIES, start))
