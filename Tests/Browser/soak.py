"""Pages come and go: neither descriptors nor memory of the console grow.

    python3 Tests/Browser/soak.py PROGRAM                  some hundred loads without a browser: half a minute
    python3 Tests/Browser/soak.py PROGRAM --minutes 60     ten pages of a browser that reload every second

It fails if more than a few descriptors, or more than some megabytes, stay in use.
"""

import argparse
import base64
import http.client
import json
import re
import socket
import sys
import tempfile
import time
from urllib.parse import quote

import client
import serving

DESCRIPTORS, BYTES = 6, 24 << 20
WATCHES = [
    {"id": "a", "kind": "query", "collection": "secrets", "limit": 50},
    {"id": "b", "kind": "collections"},
    {"id": "c", "kind": "statistics"},
    {"id": "d", "kind": "feed"},
]
WATCH = base64.urlsafe_b64encode(json.dumps(WATCHES).encode()).decode().rstrip("=")


def settled(served, most):
    """The number of descriptors after those of closed pages are gone."""
    end = time.monotonic() + 30
    while served.descriptors > most and time.monotonic() < end:
        time.sleep(0.1)
    return served.descriptors


def load(served, round):
    """One load of the page: its files, its requests, a stream, and a silent end."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    headers = {"Authorization": f"Bearer {served.token}"}
    names = set(re.findall(r'(?:src|href)="/?([^"]+)"', fetch(connection, "/").decode()))
    assert names, "the page has no files"
    for name in [*names, "api/v1/database", "api/v1/collections", f"api/v1/schema?collection={quote('secrets')}"]:
        fetch(connection, f"/{name}", headers)
    connection.request("GET", f"/api/v1/live?watch={WATCH}", headers=headers)
    wire = connection.sock
    answer = connection.getresponse()
    assert answer.status == 200, f"round {round}: {answer.status} {answer.read()}"
    text = b""
    while b"event: state" not in text:
        text += answer.read1(65536)
    if round % 2:
        # Gone like a process that was killed.
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    answer.close()
    connection.close()


def fetch(connection, target, headers={}):
    connection.request("GET", target, headers=headers)
    answer = connection.getresponse()
    assert answer.status == 200, f"{target}: {answer.status}"
    return answer.read()


def loads_leave_nothing_behind(served):
    api = client.API(served.url)

    def loads(count):
        for round in range(count):
            load(served, round)
            if round % 5 == 0:
                api.patch("secrets/one", count={"$numberLong": f"{round}"})

    loads(40)
    descriptors = settled(served, 0 if served.descriptors < 10 else served.descriptors - 1)
    memory = served.memory
    loads(160)
    now = settled(served, descriptors + DESCRIPTORS)
    print(
        f"      descriptors {descriptors} and then {now}; memory {memory / 1e6:.1f} MB and then "
        f"{served.memory / 1e6:.1f} MB",
        flush=True,
    )
    assert now <= descriptors + DESCRIPTORS, f"{now} descriptors, {descriptors} before"
    assert served.memory <= memory + BYTES, f"{served.memory} bytes, {memory} before"


def pages_reload_for(served, minutes, count=10):
    """Pages of a browser that reload every second, while an app writes."""
    import browser

    api = client.API(served.url)
    with tempfile.TemporaryDirectory() as folder:
        page = browser.Page(served.url, folder, "--disable-renderer-backgrounding", "--disable-background-timer-throttling")
        try:
            for place in range(count):
                if place:
                    page.driver.switch_to.new_window("tab")
                page.driver.get(served.url)
                page.go(["#/data/secrets/one", "#/changes", "#/statistics", "#/tree"][place % 4])
            samples, loads, begin = [], 0, time.monotonic()
            handles = page.driver.window_handles
            while time.monotonic() - begin < minutes * 60:
                start = time.monotonic()
                for place, handle in enumerate(handles):
                    page.driver.switch_to.window(handle)
                    page.driver.execute_script("location.reload()")
                    loads += 1
                api.patch("secrets/one", count={"$numberLong": f"{loads}"})
                if len(samples) < (time.monotonic() - begin) / 10:
                    samples.append((time.monotonic() - begin, served.descriptors, served.memory))
                    print(f"      {samples[-1][0]:5.0f} s: {loads} loads, {samples[-1][1]} descriptors, "
                          f"{samples[-1][2] / 1e6:.1f} MB", flush=True)
                time.sleep(max(0, 1 - (time.monotonic() - start)))
            page.wait(lambda: page.has(".dot.live"), "the last page is live")
        finally:
            page.driver.quit()
    third = max(1, len(samples) // 3)
    first, last = samples[:third], samples[-third:]
    for place, name, room in [(1, "descriptors", DESCRIPTORS * 4), (2, "bytes of memory", BYTES)]:
        before, after = max(one[place] for one in first), min(one[place] for one in last)
        assert after <= before + room, f"{after} {name}, {before} in the beginning"
    api.document("secrets/one")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--minutes", type=float, default=0)
    options = parser.parse_args()
    with serving.Served(options.program) as served:
        stories, arguments = [loads_leave_nothing_behind], [served]
        if options.minutes:
            stories, arguments = [pages_reload_for], [served, options.minutes]
        failed = serving.run("soak", stories, *arguments)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
