"""Another site's page in a real browser: it must read and change nothing of a console with a secret.

    python3 Tests/Browser/hostile.py PROGRAM

The page is on another port of this machine, under a name of its own that resolves here, and also on
the console's own port, as if that name had resolved elsewhere before. It even knows the token.
Needs what run.py needs.
"""

import argparse
import http.server
import sys
import tempfile
import threading
import urllib.error
from pathlib import Path

import browser
import client
import serving

ATTACKS = (Path(__file__).parent / "hostile.js").read_text()


class Site(http.server.BaseHTTPRequestHandler):
    """A site with only empty pages; the test puts the attacks into them."""

    def do_GET(self):
        body = b"<!doctype html><title>Kittens</title>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def attack(page, served, where, target):
    """Runs all attacks of a page at an address on a console; returns what it learned."""
    page.driver.get(where)
    script = f"const [base, token, done] = arguments; (async () => {{ {ATTACKS} }})().then(done, (error) => done(String(error)))"
    page.driver.set_script_timeout(120)
    found = page.driver.execute_async_script(script, target, served.token)
    for handle in page.driver.window_handles[1:]:
        page.driver.switch_to.window(handle)
        page.driver.close()
    page.driver.switch_to.window(page.driver.window_handles[0])
    return found


def harmless(found, where):
    assert isinstance(found, dict) and len(found) > 20, f"{where}: {found}"
    for name, text in found.items():
        for word in [serving.SECRET, "secrets", "shop.ondol", '"version"', "swift", "customElements"]:
            assert word not in str(text), f"{where}: {name} came to know {text}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    program = parser.parse_args().program
    site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    other = site.server_address[1]
    with serving.Served(program) as served, tempfile.TemporaryDirectory() as folder:
        api = client.API(served.url)

        def state():
            read = [("GET", "database"), ("GET", "collections"), ("GET", "storage"), ("GET", "tree")]
            return [api.call(*one) for one in read], api.document("secrets/one")

        before = state()
        page = browser.Page(served.url, folder, "--host-resolver-rules=MAP evil.test 127.0.0.1")
        # The response's own policy would prevent this, so it is not tried here.
        page.driver.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})
        places = [f"http://{name}:{other}/" for name in ["127.0.0.1", "localhost", "evil.test"]]

        def unharmed(where):
            assert served.is_running, where
            try:
                after = state()
            except urllib.error.HTTPError as error:
                raise AssertionError(f"{where}: the console's owner hears {error}") from error
            assert after == before, f"{where}: {after} and not {before}"

        def a_page_elsewhere_gets_nothing():
            for where in places:
                for target in [f"http://127.0.0.1:{served.port}/", f"http://localhost:{served.port}/"]:
                    harmless(attack(page, served, where, target), f"{where} at {target}")
                    unharmed(where)

        def a_name_that_leads_here_gets_nothing():
            where = f"http://evil.test:{served.port}/"
            for target in [where, f"http://127.0.0.1:{served.port}/"]:
                harmless(attack(page, served, where, target), f"{where} at {target}")
                unharmed(where)

        def the_attacks_are_attacks():
            """On the console's own page the attacks do harm, and they would elsewhere without the
            console's protection."""
            found = attack(page, served, f"{served.base}favicon.ico-none", served.base)
            assert serving.SECRET in found["ask"] and '"version"' in found["readWithToken"] + found["worker"], found
            assert api.document("secrets/one") is None, "destroying did not"

        try:
            stories = [a_page_elsewhere_gets_nothing, a_name_that_leads_here_gets_nothing, the_attacks_are_attacks]
            failed = serving.run("hostile page", stories)
        finally:
            page.driver.quit()
            site.shutdown()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
