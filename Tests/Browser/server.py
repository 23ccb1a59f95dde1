"""The stories of the server's page, in a real browser beside `ondol serve`.

    python3 Tests/Browser/server.py PROGRAM [--shots DIR]

PROGRAM is an `ondol` with the traits Console and Server; of one without Server the stories are left
out. Calls come from this program, as a device makes them, without Google's clients. Needs what run.py
needs.
"""

import argparse
import json
import re
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request

from selenium.webdriver.common.keys import Keys

import telling

OPEN = """rules_version = '2';
service cloud.firestore {
  match /databases/{database}/documents { match /{path=**} { allow read; } }
}
"""
TREE = '{"rules": {"open": {".read": true}}}'


class Server:
    def __init__(self, program, folder):
        self.process = subprocess.Popen(
            [
                program, "serve", f"{folder}/shop.ondol", "--port-firestore", "0", "--port-auth", "0",
                "--port-database", "0", "--console", "0",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.firestore, self.auth, self.tree = [self.line(r"export \w+=(\S+)") for _ in range(3)]
        self.console = self.line(r"# console: (http://127\.0\.0\.1:\d+/#token=\S+)")

    def line(self, pattern):
        text = self.process.stdout.readline()
        found = re.fullmatch(pattern + "\n", text)
        assert found, f"the server said {text!r}"
        return found[1]

    def call(self, url, body=None, method=None, **headers):
        request = urllib.request.Request(
            f"http://{url}",
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"content-type": "application/json", **headers},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or "null")

    def sign_up(self, email):
        status, answer = self.call(
            f"{self.auth}/identitytoolkit.googleapis.com/v1/accounts:signUp?key=demo",
            {"email": email, "password": "secret"},
        )
        assert status == 200, answer
        return answer

    def listen(self, path):
        """Begins a stream of events, and gives what ends it."""
        request = urllib.request.Request(
            f"http://{self.tree}/{path}.json?ns=demo", headers={"accept": "text/event-stream"}
        )
        stream = urllib.request.urlopen(request, timeout=60)
        assert b"put" in stream.readline()
        return stream

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


def arrive(t, page):
    """Opens one of the server's pages by its link."""
    t.click(page, "nav.pages a")
    t.wait(lambda: page in t.text("main h1"), f"the page {page} is there")


def the_console_leads_to_its_server(t):
    t.load()
    t.click("Server", "nav.pages a")
    t.see("its server")
    t.wait(lambda: t.has(".dot.live"), "the numbers come")
    t.see("Calls a second")


def calls_and_listeners_are_seen_while_they_are_open(t):
    arrive(t, "Calls")
    stream = t.server.listen("rooms/a")
    t.see("database.stream")
    t.see("/rooms/a.json")
    for _ in range(5):
        t.server.call(f"{t.server.tree}/rooms/a.json?ns=demo", {"b": 1}, "PUT")
    t.wait(lambda: re.search(r"database\.PUT\s+0\s+5", t.text("main")), "five writes are counted")
    stream.close()
    # The server notices that the client has left when it sends the next change.
    t.server.call(f"{t.server.tree}/rooms/a.json?ns=demo", {"b": 2}, "PUT")
    t.wait(lambda: "/rooms/a.json" not in t.text("main"), "the listener is gone")


def accounts_are_listed(t):
    for name in ["ann", "eve"]:
        t.server.sign_up(f"{name}@example.com")
    arrive(t, "Accounts")
    t.see("ann@example.com")
    t.see("eve@example.com")
    t.see("2 accounts")
    t.see("password")


def rules_are_checked_as_one_types(t):
    arrive(t, "Rules")
    t.see("none are deployed")
    field = t.named("The file")
    field.send_keys("service cloud.firestore {")
    t.wait(lambda: t.has(".problem"), "a mistake is seen")
    assert t.js("return [...document.querySelectorAll('button')].find((one) => one.innerText === 'Put in force').disabled")
    t.js("arguments[0].value = ''", field)
    field.send_keys(OPEN.replace("allow read;", "allow raed;").replace("\n", " "))
    t.see("allow is followed by get, list, read", ".problem")
    place = t.js("return document.querySelector('.problem button').innerText")
    assert re.fullmatch(r"Line 1, column \d+", place), place
    t.js("document.querySelector('.problem button').click()")
    chosen = t.js("return [arguments[0].selectionStart, arguments[0].value]", field)
    assert chosen[1][chosen[0] :].startswith("raed"), f"the mistake is selected: {chosen[1][chosen[0]:]}"
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(OPEN.replace("\n", " "))
    t.see("The rules are whole.")


def rules_are_put_in_force_from_the_page(t):
    status, _ = t.server.call(f"{t.server.tree}/open.json?ns=demo")
    assert status == 200, "without rules, this machine may read"
    t.click("Put in force")
    t.see("Put these rules in force?", "dialog")
    t.click("Put in force", "dialog button")
    t.see("Deployment 1 is in force.")
    t.click("Realtime Database", "[role=tab]")
    # Until then, the file is the other one.
    t.wait(lambda: t.text("[role=tab][aria-selected=true]") == "Realtime Database", "its tab is chosen")
    t.named("The file").send_keys(TREE)
    t.see("The rules are whole.")
    t.click("Put in force")
    t.click("Put in force", "dialog button")
    t.see("Deployment 2 is in force.")
    assert t.server.call(f"{t.server.tree}/open.json?ns=demo")[0] == 200, "the rules allow it"
    assert t.server.call(f"{t.server.tree}/secret.json?ns=demo")[0] == 401, "the rules deny it"
    arrive(t, "Calls")
    t.wait(lambda: re.search(r"denial\s+database\.GET\s+nobody\s+127\.0\.0\.1", t.text("main")), "it is seen")


def the_page_is_light_and_fits_a_phone(t):
    telling.is_light(t, 90_000)
    for page in ["Calls", "Rules", "Accounts"]:
        arrive(t, page)
        telling.fits_a_phone(t, f"server-{page.lower()}")


STORIES = [
    the_console_leads_to_its_server, calls_and_listeners_are_seen_while_they_are_open,
    accounts_are_listed, rules_are_checked_as_one_types, rules_are_put_in_force_from_the_page,
    the_page_is_light_and_fits_a_phone, telling.no_token_no_view,
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--shots")
    options = parser.parse_args()
    said = subprocess.run([options.program, "serve", "/dev/null"], capture_output=True, text=True).stderr
    if "does not serve" in said:
        print("left out: this build does not serve")
        return
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        server = Server(options.program, folder)
        try:
            failed += telling.tell_all(STORIES, server.console, folder, options.shots, server=server)
        finally:
            failed += server.stop() != 0
    telling.end(failed)


if __name__ == "__main__":
    main()
