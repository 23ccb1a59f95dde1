"""Takes the guide's pictures of the console: light ones, and dark ones beside them.

    python3 Tests/Browser/pictures.py PROGRAM DIRECTORY

Needs what run.py needs, and Pillow, which makes the files small. The data is a shop's, the same each time.
"""

import argparse
import io
import tempfile
import time
from pathlib import Path

from PIL import Image

import browser
import client
import serving
from mockvalues import double, integer, png

LARGEST = 60_000
SIZE = (1360, 760)
ITEMS = [
    ("lamp", "라탄 조명", 39000, 2, "lighting", [200, 140, 80]),
    ("chair", "원목 의자", 82000, 5, "seating", [150, 110, 80]),
    ("vase", "도자기 화병", 27500, 8, "ceramics", [210, 210, 205]),
    ("blanket", "모직 담요", 54000, 3, "textile", [150, 70, 80]),
    ("cups", "찻잔 세트", 45000, 4, "kitchen", [90, 130, 150]),
    ("cushion", "온돌 방석", 18000, 12, "textile", [90, 120, 90]),
    ("desk", "Walnut desk", 240000, 1, "seating", [110, 80, 60]),
    ("hook", "Brass hook", 9000, 40, "kitchen", [205, 170, 90]),
    ("mirror", "Round mirror", 61000, 6, "bath", [170, 185, 195]),
    ("basket", "Willow basket", 23000, 9, "kitchen", [185, 150, 100]),
]


def stock(api):
    api.delete("secrets/one")
    for name, title, price, count, category, colour in ITEMS:
        picture = api.store(f"images/{name}.png", png(320, 240, colour), "image/png")
        api.put(
            f"items/{name}",
            {
                "name": title,
                "price": integer(price),
                "stock": integer(count),
                "category": category,
                "size": {"width": double(30), "height": double(12.5)},
                "tags": ["new", "winter"],
                "maker": {"$reference": "users/minji"},
                "photo": {
                    "$blob": {
                        "sha256": picture["sha256"],
                        "length": integer(picture["size"]),
                        "contentType": "image/png",
                        "path": picture["path"],
                    }
                },
            },
        )
    for name in ["minji", "hajun", "seoyeon"]:
        api.put(f"users/{name}", {"email": f"{name}@example.com", "home": {"$geoPoint": [37.5, 127]}})
    for number in range(40):
        name, _, price, *_ = ITEMS[number * 7 % len(ITEMS)]
        api.put(
            f"orders/{number + 1:04}",
            {
                "item": {"$reference": f"items/{name}"},
                "price": integer(price),
                "state": ["new", "packed", "sent"][number % 3],
            },
        )
    for place in range(3):
        api.call("PUT", "tree", {"value": {"speed": integer(40 + place), "name": "EV6"}}, path=f"cars/car-{place}")
    task = api.call("POST", "indexes", {"collection": "items", "fields": ["price"]})["task"]
    while any(one["id"] == task["id"] and one["state"] == "running" for one in api.call("GET", "tasks")["tasks"]):
        time.sleep(0.05)
    # The last commits, which the page of changes shows.
    api.patch("items/lamp", price=integer(36000), stock=integer(3))
    api.patch("orders/0004", state="packed")
    api.patch("items/vase", tags=["new", "white"])


def on_the_data_page(page):
    page.go("#/data/items/lamp")
    page.wait(lambda: page.value("price") and page.cell("vase", "name"), "the lamp is shown")
    page.wait(lambda: page.js("return document.querySelector('.thumb img')?.naturalWidth"), "its photo is shown")
    page.unlock()


def on_the_query_page(page):
    page.go("#/query?from=collection%3Aitems&where=price%20%3C%2050000%20and%20category%20%3D%20%22kitchen%22&tab=cost")
    page.see("Documents examined")


def on_the_changes_page(page):
    page.go("#/changes")
    page.wait(lambda: len(page.all(".change")) > 5, "the log is there")
    page.js("document.querySelectorAll('.change')[2].querySelector('summary').click()")
    page.see("Before", ".change")


PICTURES = {"data": on_the_data_page, "query": on_the_query_page, "changes": on_the_changes_page}


def small(data):
    """A picture as a PNG file with as many colours as fit."""
    picture = Image.open(io.BytesIO(data)).convert("RGB")
    for colours in [256, 128, 64, 32, 16]:
        made = io.BytesIO()
        picture.quantize(colours, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(
            made, "PNG", optimize=True
        )
        if len(made.getvalue()) <= LARGEST:
            return made.getvalue()
    raise AssertionError("the picture does not become small")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("directory", type=Path)
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    with serving.Served(options.program) as served, tempfile.TemporaryDirectory() as folder:
        stock(client.API(served.url))
        page = browser.Page(served.url, folder)
        try:
            for dark in [False, True]:
                for name, show in PICTURES.items():
                    page.size(*SIZE, dark)
                    page.load()
                    show(page)
                    page.js("document.querySelector('.names .path').textContent = '~/Library/shop.ondol'")
                    # So that nothing has the focus, and changes no longer flash.
                    page.js("document.activeElement.blur()")
                    page.wait(lambda: not page.js("return document.getAnimations().length"), "nothing moves")
                    data = small(page.driver.get_screenshot_as_png())
                    path = options.directory / f"console-{name}{'~dark' if dark else ''}.png"
                    path.write_bytes(data)
                    print(f"{path.name}: {len(data)} bytes", flush=True)
        finally:
            page.driver.quit()


if __name__ == "__main__":
    main()
