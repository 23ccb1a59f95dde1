"""Measures how fast the console is: prints p50, p95 and the best of each figure, asserts none.

    python3 Tests/Browser/figures.py ONDOL DEMO [--rounds 3] [--only WORD]

`ONDOL` serves a database; `DEMO` is an app with a listener that serves its own console. Times from
one process's write to another's display use this machine's clock, which both read. Needs what
run.py needs.
"""

import argparse
import base64
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import browser
import client
import mock
import serving
import stories_data
from mockvalues import integer

SHOWN = """
    const [field, done] = [arguments[0], arguments[1]];
    window.shown = new Map();
    new MutationObserver(() => {
      const text = document.querySelector(`[data-field="${field}"] .place`)?.innerText;
      if (!text || window.shown.has(text)) return;
      window.shown.set(text, 0);
      // The frame that has it is about to be painted.
      requestAnimationFrame(() => window.shown.set(text, performance.timeOrigin + performance.now()));
    }).observe(document.body, { childList: true, subtree: true, characterData: true });
    done();"""


def told(what, goal, rounds, unit="ms"):
    """Prints the median of the rounds' figures, and the best."""
    middle = sorted(rounds)[len(rounds) // 2]
    best = min(rounds)
    print(
        f"{what}: p50 {middle[1]:.1f}, p95 {middle[0]:.1f} {unit}; best round p50 {best[1]:.1f}, p95 {best[0]:.1f}"
        f" (goal {goal}); {len(rounds)} rounds",
        flush=True,
    )


def percentiles(times):
    ordered = sorted(times)
    return ordered[int(len(ordered) * 0.95)], ordered[len(ordered) // 2]


class Demo:
    """The apps at work, with their output and its times."""

    def __init__(self, program, folder):
        self.lines = []
        self.process = subprocess.Popen(
            [program, "console", "--at", f"{folder}/demo.ondol"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        threading.Thread(target=self.listen, daemon=True).start()
        self.url = self.wait("http://", 60)[1].strip()

    def listen(self):
        for line in self.process.stdout:
            self.lines.append((time.time() * 1000, line.decode()))

    def wait(self, text, seconds=15):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for line in list(self.lines):
                if text in line[1]:
                    return line
            time.sleep(0.0005)
        raise AssertionError(f"the demo does not say {text}")

    def stop(self):
        self.process.send_signal(2)
        self.process.wait(30)


def a_write_until_it_is_shown(t):
    """Times from before an app's request is sent to the frame that shows it."""
    api = client.API(t.served.url)
    rounds = []
    for number in range(t.rounds):
        api.put("shown/one", {"value": integer(-1)})
        t.page.load(t.served.url)
        t.page.go("#/data/shown/one")
        t.page.wait(lambda: t.page.value("value") == "-1", "the document is shown")
        t.page.driver.execute_async_script(SHOWN, "value")
        sent = {}
        for step in range(120):
            text = str(number * 1000 + step)
            version = api.document("shown/one")["version"]
            sent[text] = time.time() * 1000
            api.call("PATCH", "document", {"set": {"value": integer(int(text))}}, version, path="shown/one")
            time.sleep(random.uniform(0.05, 0.15))
        time.sleep(0.3)
        shown = dict(t.page.js("return [...window.shown]"))
        times = [shown[text] - at for text, at in sent.items() if shown.get(text)]
        assert len(times) > 100, f"only {len(times)} of 120 were shown"
        rounds.append(percentiles(times))
    told("A write until the page shows it", "50 ms at p95", rounds)


def an_edit_until_the_app_hears_it(t):
    """Times from Enter in the page until the app's listener, in the serving process, has printed
    it."""
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        demo = Demo(t.demo, folder)
        try:
            t.page.load(demo.url)
            t.page.go("#/data/items/lamp")
            t.page.wait(lambda: t.page.value("price"), "the lamp is shown")
            t.page.unlock()
            for number in range(t.rounds):
                times = []
                for step in range(60):
                    price = str(1_000_000 + number * 1000 + step)
                    t.page.js("""document.querySelector('[data-field="price"] .place > .value').click()""")
                    begun = t.page.js( """
                        const control = document.querySelector('[data-field="price"] .control > *');
                        control.value = arguments[0];
                        const now = performance.timeOrigin + performance.now();
                        control.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
                        return now""",
                        price,
                    )
                    heard = demo.wait(f"is ₩{price} now")[0]
                    times.append(heard - begun)
                    t.page.wait(lambda: t.page.value("price") == price, "the page has it")
                rounds.append(percentiles(times))
        finally:
            demo.stop()
    told("An edit until the app's listener has it", "20 ms at p95", rounds)


class Bare(BaseHTTPRequestHandler):
    """A page with one word and the console's headers: the browser's own time to paint."""

    def do_GET(self):
        self.send_response(200)
        for name, value in {**mock.HEADERS, "Content-Security-Policy": mock.POLICY, "Content-Type": "text/html"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"<!DOCTYPE html><title>bare</title><h1>bare</h1>")

    def log_message(self, *_):
        pass


def the_first_paint(t):
    """Times from the navigation to the first paint, in turns for an empty page and the console's.

    The browser starts a process for each, because their headers request one.
    """
    client.API(t.served.url).put("shown/one", {"value": integer(1)})
    bare = ThreadingHTTPServer(("127.0.0.1", 0), Bare)
    threading.Thread(target=bare.serve_forever, daemon=True).start()

    def painted(url):
        t.page.driver.get("about:blank")
        t.page.driver.get(url)
        return t.page.wait(
            lambda: t.page.js("return performance.getEntriesByName('first-contentful-paint')[0]?.startTime"),
            "something is painted",
        )

    floors, paints, rows = [], [], []
    for _ in range(t.rounds):
        floor, first, whole = [], [], []
        for _ in range(15):
            floor.append(painted(f"http://127.0.0.1:{bare.server_port}/"))
            first.append(painted(t.served.url))
            t.page.wait(lambda: t.page.has(".tr"), "rows are shown")
            whole.append(
                t.page.js( """return Math.max(...performance.getEntriesByType('resource').filter((one) =>
                    one.name.includes('/api/')).map((one) => one.responseStart))"""
                )
            )
        floors.append(percentiles(floor))
        paints.append(percentiles(first))
        rows.append(percentiles(whole))
    bare.shutdown()
    told("The first paint of a bare page", "none", floors)
    told("The first paint", "200 ms", paints)
    told("The last of the first answers", "none", rows)


def a_hundred_thousand_documents(t):
    with serving.Served(t.program) as served:
        served.stop()
        text = "".join(
            json.dumps({"id": f"row-{n:06}", "name": f"item {n}", "price": n * 7 % 1000, "stock": n % 50}) + "\n"
            for n in range(100_000)
        )
        path = Path(served.folder.name, "rows.jsonl")
        path.write_text(text)
        served.tool("import", str(path), "--into", "many", "--id-field", "id", "--quiet")
        served.start()
        t.page.url, t.page.api = served.url, client.API(served.url)
        t.page.say = lambda text: print(text, flush=True)
        for _ in range(t.rounds):
            stories_data.a_hundred_thousand_documents_scroll(t.page)


class Writer:
    """An app that writes as fast as it can in the process of its console."""

    def __init__(self, program, folder, *more):
        self.process = subprocess.Popen(
            [program, "rate", "--at", f"{folder}/rate.ondol", *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.url = self.process.stdout.readline().strip()

    def rate(self, seconds=3):
        """Commits a second, and each one's processor time in this process, in microseconds."""
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        commits, took, work = map(float, self.process.stdout.readline().split())
        return commits / took, work / commits * 1e6

    def stop(self):
        self.process.stdin.close()
        self.process.wait(30)


def family(process):
    """A process and all of its descendants."""
    found, parents = [process], {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, _, rest = path.read_text().partition(" (")
        except OSError:
            continue
        parents[int(number)] = int(rest.rpartition(") ")[2].split()[1])
    for one in found:
        found.extend(child for child, parent in parents.items() if parent == one)
    return found


def pin(processes, core):
    """Makes processes run on one core only, or on all for None."""
    for one in processes:
        for thread in Path(f"/proc/{one}/task").glob("*"):
            try:
                os.sched_setaffinity(int(thread.name), {core} if core is not None else range(os.cpu_count()))
            except OSError:
                continue


def follow(url, watch, is_over):
    """Reads a stream, and nothing else."""
    base, _, token = url.partition("#token=")
    port = int(base.rstrip("/").rpartition(":")[2])
    text = base64.urlsafe_b64encode(json.dumps(watch).encode()).decode().rstrip("=")
    with socket.create_connection(("127.0.0.1", port)) as wire:
        wire.sendall(
            f"GET /api/v1/live?watch={text} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Authorization: Bearer {token}\r\n\r\n".encode()
        )
        wire.settimeout(0.5)
        while not is_over.is_set():
            try:
                wire.recv(1 << 20)
            except TimeoutError:
                continue


def writes_beside_a_page(t):
    """Compares an app's commits a second while a page follows them with those without a page.

    A browser on the same cores takes its part of them. So there is also a measurement with the app
    on one core and the browser on another, and one of each commit's processor time in the app's
    process, where only the console can be expensive. The commits do not wait for a disk, because
    its own times would dominate the figures.
    """
    watch = [
        {"id": "a", "kind": "query", "collection": "rate", "limit": 50},
        {"id": "b", "kind": "feed"},
        {"id": "c", "kind": "collections"},
    ]
    names = [
        "without a console",
        "nobody looks",
        "a stream is read",
        "a page",
        "nobody looks, one core",
        "a page, a core each",
    ]
    rounds = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        bare, writer = Writer(t.demo, other, "--memory", "--alone"), Writer(t.demo, folder, "--memory")
        browsing = t.page.driver.service.process.pid

        def show():
            t.page.load(writer.url)
            t.page.go("#/data/rate")
            t.page.wait(lambda: t.page.has(".tr"), "rows are shown")

        def core(app, browser):
            pin([writer.process.pid], app)
            pin(family(browsing), browser)

        try:
            bare.rate(1), writer.rate(1)
            for _ in range(t.rounds * 2):
                t.page.driver.get("about:blank")
                rounds[names[0]].append(bare.rate())
                rounds[names[1]].append(writer.rate())
                is_over = threading.Event()
                thread = threading.Thread(target=follow, args=(writer.url, watch, is_over), daemon=True)
                thread.start()
                rounds[names[2]].append(writer.rate())
                is_over.set()
                thread.join()
                show()
                rounds[names[3]].append(writer.rate())
                if hasattr(os, "sched_setaffinity") and os.cpu_count() > 1:
                    core(0, 1)
                    rounds[names[5]].append(writer.rate())
                    t.page.driver.get("about:blank")
                    rounds[names[4]].append(writer.rate())
                    core(None, None)
        finally:
            bare.stop(), writer.stop()
    for name, found in rounds.items():
        if not found:
            continue
        base = rounds["nobody looks, one core" if "core" in name else "nobody looks"]
        shares = sorted(one[0] / other[0] for one, other in zip(found, base))
        print(
            f"Writes, {name}: {sorted(one[0] for one in found)[len(found) // 2]:.0f} commits/s, "
            f"{sorted(one[1] for one in found)[len(found) // 2]:.1f} us of processors each; "
            f"{shares[len(shares) // 2]:.2f} of those while nobody looks "
            f"(from {shares[0]:.2f} to {shares[-1]:.2f}; goal 0.95); {len(found)} rounds",
            flush=True,
        )


FIGURES = [
    a_write_until_it_is_shown,
    an_edit_until_the_app_hears_it,
    the_first_paint,
    writes_beside_a_page,
    a_hundred_thousand_documents,
]


class Bench:
    pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("demo")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    t = Bench()
    t.program, t.demo, t.rounds = options.program, options.demo, options.rounds
    with tempfile.TemporaryDirectory() as folder, serving.Served(t.program) as t.served:
        t.page = browser.Page(t.served.url, folder)
        t.page.api = client.API(t.served.url)
        try:
            wanted = [one for one in FIGURES if options.only in one.__name__.replace("_", " ")]
            failed = serving.run("figures", wanted, t)
        finally:
            t.page.driver.quit()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
