"""The stories of the page of synchronisation, in a real browser beside `ondol sync --console`.

    python3 Tests/Browser/syncing.py PROGRAM [--shots DIR]

PROGRAM is an `ondol` with the traits Console, Server and Sync. Needs what run.py needs.
"""

import argparse
import json
import re
import signal
import subprocess
import tempfile
from pathlib import Path

import telling

# A name that would run, and one that would turn the text around.
HOSTILE = ["<img src=x onerror=alert(1)>", "a\u202egnp.exe"]

RULES = """rules_version = '2';
service cloud.firestore {
  match /databases/{database}/documents {
    match /items/{item} {
      allow read, delete: if true;
      allow write: if request.resource.data.n < 10;
    }
  }
}
"""


class Shop:
    """A server that takes no number from ten on, and a device of it with a console."""

    def __init__(self, program, folder):
        self.program, self.folder, self.port = program, folder, 0
        Path(folder, "shop.rules").write_text(RULES)
        self.serve()
        self.device = subprocess.Popen(
            [program, "sync", f"{folder}/device.ondol", "--with", f"http://127.0.0.1:{self.port}",
             "--follow", "items", "--lines", "--console"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        self.address = self.device.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#token=\S+", self.address), self.address

    def serve(self):
        self.server = subprocess.Popen(
            [self.program, "serve", f"{self.folder}/server.ondol", "--port-firestore", str(self.port),
             "--rules", f"{self.folder}/shop.rules"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        self.port = int(self.server.stdout.readline().strip().rpartition(":")[2])

    def end_server(self):
        self.server.send_signal(signal.SIGTERM)
        self.server.wait(timeout=60)

    def ask(self, **line):
        self.device.stdin.write(json.dumps(line) + "\n")
        self.device.stdin.flush()
        answer = json.loads(self.device.stdout.readline())
        assert "error" not in answer, answer
        return answer

    def end(self):
        self.device.stdin.close()
        self.device.wait(timeout=60)
        self.end_server()


def the_console_leads_to_its_synchronisation(t):
    t.load()
    t.click("Sync", "nav.pages a")
    t.see("its synchronisation")
    t.see("online")
    t.see("complete")


def a_write_is_in_the_follow_and_waits_no_longer(t):
    t.shop.ask(path="items/lamp", set={"n": 1})
    t.shop.ask(settle=True)
    t.wait(lambda: rows(t, "Follows")[0][:2] == ["items", "1"], "the follow has a document")
    t.see("The server has all writes.")


def writes_wait_while_the_server_is_away(t):
    t.shop.end_server()
    t.see("offline")
    for name in ["lamp", *HOSTILE]:
        t.shop.ask(path=f"items/{name}", merge={"n": 2})
    t.see("3 waiting writes")
    t.wait(lambda: len(rows(t, "Waiting writes")) == 3, "each commit has a row")
    assert not t.js("return document.querySelectorAll('main img').length")
    assert "\u202e" not in t.text() and "\\u{202e}gnp.exe" in t.text(), "marks of direction are numbers"
    t.shop.serve()
    t.see("The server has all writes.")
    t.wait(lambda: rows(t, "Follows")[0][:2] == ["items", "3"], "they are in the follow")


def a_refused_write_is_put_again_or_forgotten(t):
    for number in [10, 11]:
        t.shop.ask(path="items/lamp", merge={"n": number})
        t.see("permissionDenied")
        if number == 10:
            # It is refused again, as another one.
            before = rows(t, "Refused")
            t.click("Put again")
            t.wait(lambda: len(rows(t, "Refused")) == 1 and rows(t, "Refused") != before, "it is refused again")
        t.click("Forget")
        t.click("Forget", "dialog button")
        t.see("The server has refused nothing.")
    assert t.shop.ask(path="items/lamp", get=True)["document"] == {"n": 2}, "the server's state is back"


def the_page_is_light_and_fits_a_phone(t):
    telling.is_light(t, 60_000)
    telling.fits_a_phone(t, "sync")


def rows(t, heading):
    """The rows of the table below a heading."""
    return t.js("""
        const heading = [...document.querySelectorAll('h2')].find((one) => one.textContent === arguments[0]);
        return [...heading.nextElementSibling.querySelectorAll('tbody tr')].map((row) =>
          [...row.children].map((one) => one.textContent))""", heading)


STORIES = [
    the_console_leads_to_its_synchronisation, a_write_is_in_the_follow_and_waits_no_longer,
    writes_wait_while_the_server_is_away, a_refused_write_is_put_again_or_forgotten,
    the_page_is_light_and_fits_a_phone, telling.no_token_no_view,
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--shots")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        shop = Shop(options.program, folder)
        try:
            failed = telling.tell_all(STORIES, shop.address, folder, options.shots, shop=shop)
        finally:
            shop.end()
    telling.end(failed)


if __name__ == "__main__":
    main()
