"""How pages look and can be used: names, contrast, 360 pixels, the keyboard, pictures for review."""

from pathlib import Path

from selenium.webdriver.common.keys import Keys

AUDITS = (Path(__file__).parent / "audits.js").read_text()

VIEWS = {
    "data": "#/data/story-items",
    "document": "#/data/story-items/lamp",
    "tree": "#/tree/story",
    "storage": "#/storage/story?in=1",
    "object": "#/storage/story/lamp.png",
    "query": "#/query?from=collection%3Astory-items&where=price%20%3C%2050000",
    "plan": "#/query?from=collection%3Astory-items&where=price%20%3C%2050000&tab=plan",
    "cost": "#/query?from=collection%3Astory-items&where=price%20%3C%2050000&tab=cost",
    "code": "#/query?from=collection%3Astory-items&where=price%20%3C%2050000&order=price%20desc&tab=code",
    "indexes": "#/indexes",
    "changes": "#/changes",
    "statistics": "#/statistics",
    "health": "#/health",
}


def audit(t, name):
    return t.js(f"{AUDITS}; return {name}()")


def visit(t):
    for name, address in VIEWS.items():
        t.go(address)
        t.wait(lambda: audit(t, "isReady"), f"{name} is shown")
        yield name


def everything_has_a_name(t):
    t.load()
    t.unlock()
    for name in visit(t):
        found = audit(t, "nameless")
        assert not found, f"{name}: {found}"


def texts_can_be_read_light_and_dark(t):
    for dark in (False, True):
        t.size(1440, 900, dark)
        t.load()
        t.unlock()
        for name in visit(t):
            found = audit(t, "unreadable")
            assert not found, f"{name} {'dark' if dark else 'light'}: {found}"
    t.size(1440, 900)


def nothing_is_wider_than_a_phone(t):
    t.size(360, 740)
    t.load()
    t.unlock()
    for name in visit(t):
        found = audit(t, "tooWide")
        assert not found, f"{name}: {found}"
    t.size(1440, 900)


def the_keyboard_is_enough(t):
    t.load()
    t.go("#/data/story-items")
    t.wait(lambda: t.cell("lamp", "name"), "the table is there")
    t.js("document.activeElement.blur()")
    visited = []
    for _ in range(40):
        t.keys(Keys.TAB)
        focused = t.js( """const one = document.activeElement;
            return [one.getAttribute('aria-label') ?? one.innerText ?? '', one.localName,
              getComputedStyle(one).outlineStyle]"""
        )
        if focused[1] == "body":
            break
        assert focused[2] != "none", f"it cannot be seen that {focused} has the focus"
        visited.append(focused[0].strip())
    for name in [
        "Skip to the page",
        "Editing is locked. Unlock it",
        "Data",
        "Health",
        "Condition",
        "Documents",
    ]:
        assert name in visited, f"the tabulator does not reach {name}: {visited}"
    table = t.all("[role=grid]")[0]
    table.send_keys(Keys.HOME, Keys.ARROW_DOWN, Keys.ENTER)
    t.wait(lambda: t.js("return location.hash").count("/") == 3, "Enter opens the row")
    t.unlock()
    t.wait(lambda: t.value("price"), "the document is shown")
    t.js("document.querySelector('[data-field=\"price\"] .place .value').focus()")
    t.keys(Keys.ENTER)
    t.wait(lambda: t.all(".editor"), "Enter opens the editor")
    t.keys(Keys.ESCAPE)
    assert t.wait(
        lambda: t.js("return document.activeElement.className").startswith("value"), "the focus comes back"
    )
    t.click("Add field")
    t.keys(Keys.ESCAPE)
    t.wait(lambda: not t.all("dialog"), "Escape closes a dialog")


def the_page_is_light(t):
    """All files of the page as the console serves them, uncompressed.

    The sources in Web have a sixth more bytes: the console leaves out indentation, empty lines and comments on
    lines of their own.
    """
    t.load()
    for _ in visit(t):
        pass
    names = t.js("""return [...new Set(performance.getEntriesByType('resource').map((one) => one.name)
        .filter((name) => name.includes('/assets/')))]""")
    total = sum(
        t.js("""return (await (await fetch(arguments[0])).arrayBuffer()).byteLength""", name)
        for name in [t.api.base, *names]
    )
    foreign = t.js("""return performance.getEntriesByType('resource').map((one) => one.name)
        .filter((name) => !name.startsWith(location.origin) && !name.startsWith('blob:'))""")
    t.say(f"{len(names) + 1} files, {total} bytes")
    assert not foreign, f"requests to elsewhere: {foreign}"
    assert total <= 150_000, f"{total} bytes are more than 150 kB"


def pictures_of_all_pages(t):
    if not t.shots:
        return
    for look, width, height, dark in [
        ("light", 1440, 900, False),
        ("dark", 1440, 900, True),
        ("narrow", 360, 740, False),
        ("narrow-dark", 360, 740, True),
    ]:
        t.size(width, height, dark)
        t.load()
        if look == "dark":
            t.unlock()
        for name in visit(t):
            t.js(
                "return new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))"
            )
            t.shot(f"{t.shots}/{name}-{look}.png")
    t.size(1440, 900)


STORIES = [
    everything_has_a_name,
    texts_can_be_read_light_and_dark,
    nothing_is_wider_than_a_phone,
    the_keyboard_is_enough,
    the_page_is_light,
    pictures_of_all_pages,
]
