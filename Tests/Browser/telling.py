"""How stories are told, and two that every page with an address of its own has."""

import sys
import time
import traceback

import browser


def tell(page, story, pictures):
    """Tells a story, and says whether it is true. A false one leaves a picture in the folder `pictures`, if any."""
    title = story.__name__.replace("_", " ")
    start = time.monotonic()
    try:
        story(page)
        problems = page.problems()
        assert not problems, f"the browser's console says: {problems}"
        print(f"ok    {title} ({time.monotonic() - start:.1f} s)", flush=True)
        return True
    except Exception:
        print(f"FAIL  {title}\n{traceback.format_exc(limit=-3).partition('Stacktrace:')[0]}", flush=True)
        if pictures:
            page.shot(f"{pictures}/failed-{story.__name__}.png")
        return False


def tell_all(stories, address, folder, pictures, **more):
    """Tells stories in a browser that begins at the address, and says how many were false.

    What they need beside the page is the page's, by its name. Downloads go into the folder.
    """
    page = browser.Page(address, folder)
    try:
        page.shots = pictures
        page.say = lambda text: print(f"      {text}", flush=True)
        for name, thing in more.items():
            setattr(page, name, thing)
        return sum(not tell(page, story, pictures) for story in stories)
    finally:
        page.driver.quit()


def end(failed):
    """Says how many stories were false, and ends the program."""
    print(f"{failed} failed" if failed else "all stories are true")
    sys.exit(1 if failed else 0)


def is_light(t, most):
    """Expects the page to have downloaded at most so many bytes."""
    names = t.js("""return [...new Set(performance.getEntriesByType('resource').map((one) => one.name)
        .filter((name) => name.includes('/assets/')))]""")
    total = sum(t.js("return (await (await fetch(arguments[0])).arrayBuffer()).byteLength", name) for name in names)
    t.say(f"{len(names)} files, {total} bytes")
    assert total <= most, f"{total} bytes"


def fits_a_phone(t, name):
    """Expects what is shown to be no wider than a phone. Its pictures, if any are wanted, have the name."""
    if t.shots:
        t.shot(f"{t.shots}/{name}.png")
    t.size(360, 740)
    wide = t.js("return document.documentElement.scrollWidth")
    assert wide <= 360, f"{name} is {wide} pixels wide"
    if t.shots:
        t.shot(f"{t.shots}/{name}-narrow.png")
    t.size(1440, 900)


def no_token_no_view(t):
    t.js("sessionStorage.clear()")
    t.driver.refresh()
    t.see("Open the console first")
