"""Tells the stories of the console's pages in a real browser.

    python3 Tests/Browser/run.py --mock                    against the stand-in, without Swift
    python3 Tests/Browser/run.py --url URL                 against a console that runs; URL as it was printed
    python3 Tests/Browser/run.py … --shots DIR --only WORD

The stories write all their data themselves, below names that begin with `story`. Needs Debian's
chromium, chromium-driver and python3-selenium.
"""

import argparse
import tempfile
from pathlib import Path

import browser
import client
import mock
import stories_data
import stories_looks
import stories_pages
import telling
from mockvalues import double, integer, png

STOCK = [
    ("lamp", "라탄 조명", 39000, 2, "lighting"),
    ("chair", "원목 의자", 82000, 5, "seating"),
    ("vase", "도자기 화병", 11111, 8, "ceramics"),
    ("blanket", "모직 담요", 54000, 3, "textile"),
    ("cups", "찻잔 세트", 45000, 4, "kitchen"),
    ("cushion", "온돌 방석", 18000, 12, "textile"),
    ("desk", "Walnut desk", 240000, 1, "seating"),
    ("hook", "Brass hook", 9000, 40, "kitchen"),
]


def stock_up(api):
    """Writes the data that every story may rely on."""
    picture = api.store("story/lamp.png", png(160, 120, [190, 120, 60]), "image/png")
    for place, colour in enumerate([[90, 140, 200], [170, 90, 160], [80, 160, 110]]):
        api.store(f"story/picture-{place}.png", png(160, 120, colour), "image/png")
    blob = {
        "$blob": {
            "sha256": picture["sha256"],
            "length": integer(picture["size"]),
            "contentType": "image/png",
            "path": picture["path"],
        }
    }
    for name, title, price, stock, category in STOCK:
        api.put(
            f"story-items/{name}",
            {
                "name": title,
                "price": integer(price),
                "stock": integer(stock),
                "category": category,
                "size": {"width": double(30), "height": double(12.5)},
                "tags": ["new", "winter"],
                "photo": blob,
                "maker": {"$reference": "story-users/alice"},
                "added": {"$date": "2026-05-01T09:30:00.000001Z"},
            },
        )
    api.put("story-users/alice", {"email": "alice@example.com", "home": {"$geoPoint": [37.5, 127]}})
    api.put("story-users/alice/orders/first", {"total": integer(39000)})
    api.call(
        "PUT",
        "tree",
        {
            "value": {
                "cars": {f"car-{n}": {"speed": integer(40 + n)} for n in range(1, 4)},
                "status": "open",
                "speed": integer(7),
                "many": {f"n{n:03}": integer(n) for n in range(150)},
            }
        },
        path="story",
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--url")
    where.add_argument("--mock", action="store_true")
    parser.add_argument("--follower-url")
    parser.add_argument("--shots")
    parser.add_argument(
        "--rows", type=int, default=100_000, help="documents of the stand-in's large collection"
    )
    parser.add_argument("--only", default="")
    parser.add_argument("--main", action="store_true", help="the stories of data and pages alone")
    options = parser.parse_args()
    url, follower = options.url, options.follower_url
    if options.mock:
        url, follower = mock.serve(rows=options.rows).url, mock.serve(follower=True).url
    api = client.API(url)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        page = browser.Page(url, folder)
        page.api, page.folder, page.follower, page.shots = api, Path(folder), follower, options.shots
        page.say = lambda text: print(f"      {text}", flush=True)
        try:
            looks = [] if options.main else stories_looks.STORIES
            for story in stories_data.STORIES + stories_pages.STORIES + looks:
                if options.only not in story.__name__.replace("_", " "):
                    continue
                stock_up(api)
                page.expected = set()
                if not telling.tell(page, story, options.shots or folder):
                    failed += 1
                    page.problems()
                    page.size(1440, 900)
        finally:
            page.driver.quit()
    telling.end(failed)


if __name__ == "__main__":
    main()
