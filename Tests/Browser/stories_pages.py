"""Stories of the other pages: tree, storage, queries, indexes, changes, statistics, health, a follower."""

from pathlib import Path

from selenium.webdriver.common.keys import Keys

from mockvalues import integer, png


def the_tree_follows_and_is_edited(t):
    t.load()
    t.go("#/tree/story")
    t.see("status", ".outline")
    t.js("document.querySelector('[data-path=\"story/cars\"] .toggle').click()")
    t.see("car-1", ".outline")
    t.api.call("PUT", "tree", {"value": integer(99)}, path="story/speed")
    t.wait(lambda: t.text('[data-path="story/speed"] .place') == "99", "the app's value is shown")
    assert t.has(".pulse"), "the node pulses"
    t.unlock()
    t.js("document.querySelector('[data-path=\"story/speed\"] .place button').click()")
    t.keys(Keys.CONTROL, "a")
    t.keys("100", Keys.ENTER)
    t.wait(
        lambda: t.api.call("GET", "tree/value", path="story/speed")["value"] == integer(100), "it is written"
    )
    # Many children arrive a hundred at a time.
    t.js("document.querySelector('[data-path=\"story/many\"] .toggle').click()")
    t.click("Show 100 more")
    t.wait(lambda: len(t.all('[data-path^="story/many/"]')) == 150, "all children are shown")
    node = t.all('[data-path="story"]')[0]
    node.send_keys(Keys.ARROW_DOWN)
    assert t.js("return document.activeElement.dataset.path") == "story/cars", "arrows move"


def pictures_are_uploaded_shown_and_deleted(t):
    t.load()
    t.go("#/storage/story/lamp.png")
    t.wait(
        lambda: t.js("""const image = document.querySelector('.preview img');
        return image && image.naturalWidth"""),
        "the preview is shown",
    )
    t.see("story-items/lamp", "dl")
    t.unlock()
    file = t.folder / "new picture.png"
    file.write_bytes(png(40, 30, [200, 40, 90]))
    t.all('input[type="file"]')[0].send_keys(str(file))
    t.see("new picture.png", ".grid")
    t.js(
        "[...document.querySelectorAll('.tile')].find((one) => one.title === 'story/new picture.png').click()"
    )
    t.wait(
        lambda: t.js("return document.querySelector('.preview img')?.naturalWidth") == 40,
        "its preview is shown",
    )
    t.click("Delete", "aside button")
    t.click("Delete", "dialog button")
    t.wait(lambda: "new picture.png" not in t.text(".grid"), "it is gone")
    # A file that only claims to be a picture is shown as a sheet of paper.
    t.api.store("story/evil.png", b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "image/png")
    t.go("#/storage/story/evil.png")
    t.see("evil.png", "aside")
    t.see("story/evil.png", "dl")
    assert not t.all(".preview img")
    t.go("#/storage?tab=accounting")
    t.see("Without a holder")
    t.api.call(
        "DELETE",
        "object",
        None,
        t.api.call("GET", "object", path="story/evil.png")["object"]["generation"],
        path="story/evil.png",
    )


def a_query_has_rows_and_text_a_plan_and_code(t):
    t.expected |= {400}
    t.load()
    t.go(
        "#/query?from=collection%3Astory-items"
        "&where=price%20%3C%2030000%20and%20category%20%3D%20%22ceramics%22"
    )
    t.wait(lambda: t.cell("vase", "price"), "the result is shown")
    assert (
        t.named("Field of condition 2").get_attribute("value") == "category"
    ), "the text has filled the rows"
    t.api.patch("story-items/vase", price=integer(11111))
    t.wait(lambda: t.cell("vase", "price") == "11111", "the result follows")
    t.type("Value of condition 1", "20000").send_keys(Keys.TAB)
    t.wait(
        lambda: "price < 20000" in t.named("Condition").get_attribute("value"),
        "the rows have written the text",
    )
    t.click("Plan", "[role=tab]")
    t.see("Scan of the collection")
    t.click("Cost", "[role=tab]")
    t.see("Documents examined")
    t.click("Code", "[role=tab]")
    t.see('.whereField("price", isLessThan: 20000)')
    t.see("ondol query shop.ondol 'story-items'")
    t.go("#/query?from=collection%3Astory-items&aggregate=count%2C%20sum(price)&by=category")
    t.see("sum(price)", "table")
    t.see("ceramics", "table")
    t.go("#/query?from=collection%3Astory-items&where=nonsense")
    t.wait(lambda: t.text(".conditionbox .problem"), "a mistake is told")


def indexes_are_made_and_dropped(t):
    t.load()
    t.go("#/indexes")
    t.unlock()
    t.click("New index")
    t.wait(
        lambda: t.js( """const select = document.querySelector('dialog select');
            if (select) select.value = 'story-items';
            return select?.value === 'story-items'"""
        ),
        "the collection can be chosen",
    )
    t.type("Fields", "stock, -price")
    t.see("Serves stock", "dialog")
    t.click("Create")
    t.wait(
        lambda: any(
            one["name"] == "stock,-price" and one["state"] == "ready"
            for one in t.api.call("GET", "indexes")["indexes"]
        ),
        "the index is built",
    )
    t.wait(
        lambda: "stock,-price" in t.text("table") and "building" not in t.text("table"),
        "it is shown as ready",
    )
    t.click("Drop stock,-price")
    t.click("Drop")
    t.wait(lambda: "stock,-price" not in t.text("table"), "it is gone")


def changes_are_logged_as_they_happen(t):
    t.load()
    t.go("#/changes/story-items")
    t.wait(lambda: t.has(".log .change, .log .empty"), "the log is there")
    version = t.api.patch("story-items/vase", price=integer(22222))["document"]["version"]
    t.wait(lambda: t.has(f'.change:first-child[data-version="{version}"]'), "the commit is on top")
    t.js("document.querySelector('.change summary').click()")
    t.see("22222", ".change")
    t.see("Before", ".change")
    t.click("Pause")
    t.api.patch("story-items/vase", price=integer(11111))
    t.see("1 new", "header")
    t.click("Go on (1 new)")
    t.wait(lambda: len(t.all(".change")) >= 2, "the log goes on")


def statistics_are_drawn(t):
    t.load()
    t.go("#/statistics")
    t.see("Commits a second")
    t.wait(lambda: len(t.all(".chart path")) >= 8, "there are lines")


def health_finds_tells_and_survives_a_reload(t):
    t.expected |= {409}
    t.load()
    t.go("#/health")
    t.click("Verify")
    # Running, or already finished: the check of a small database ends before anyone can look.
    t.wait(lambda: t.has(".task"), "the task is there")
    t.driver.refresh()
    t.wait(lambda: t.has(".task"), "the task is there after a reload")
    t.wait(lambda: "running" not in t.text(".log"), "it ends", 60)
    assert "All is well" in t.text(".task") or "finding" in t.text(".task"), t.text(".task")
    t.click("Download backup.ondol.tar")
    t.wait(lambda: list(Path(t.folder).glob("backup*.tar")), "the backup is stored")


def a_follower_says_so_and_cannot_edit(t):
    if not t.follower:
        t.say("no follower to look at")
        return
    t.load(t.follower)
    t.see("open for writing, so this console only reads")
    t.see("Console.start(database, access: .edit)", ".banner")
    assert not t.named("Editing is locked. Unlock it").is_enabled(), "the lock cannot be opened"
    assert "read only" in t.text("header").lower()


STORIES = [
    the_tree_follows_and_is_edited,
    pictures_are_uploaded_shown_and_deleted,
    a_query_has_rows_and_text_a_plan_and_code,
    indexes_are_made_and_dropped,
    changes_are_logged_as_they_happen,
    statistics_are_drawn,
    health_finds_tells_and_survives_a_reload,
    a_follower_says_so_and_cannot_edit,
]
