"""The stories of the page of reports, in a real browser beside `ondol console`.

    python3 Tests/Browser/reports.py PROGRAM [--shots DIR]

PROGRAM is an `ondol` with the trait Console. Needs what run.py needs.
"""

import argparse
import json
import re
import signal
import subprocess
import tempfile

from selenium.webdriver.common.keys import Keys

import telling

# A name that would run, one that would turn the text around, and one for the pipeline's quotes.
HOSTILE = ["<img src=x onerror=alert(1)>", "a\u202egnp.exe", "it's \"so\""]


def begin(program, folder):
    """A shop with books, and its console."""
    database = f"{folder}/shop.ondol"
    genres = ["novel", "craft", "novel", "travel", "novel", "craft", *HOSTILE]
    lines = [
        json.dumps({"id": f"b{number}", "genre": genre, "price": number + 1, "tags": ["a", "b"][: number % 3]})
        for number, genre in enumerate(genres)
    ]
    subprocess.run(
        [program, "import", database, "-", "--into", "books", "--id-field", "id", "--quiet"],
        input="\n".join(lines), text=True, check=True,
    )
    process = subprocess.Popen(
        [program, "console", database], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    address = process.stdout.readline().strip()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#token=\S+", address), address
    return process, address


def write(t, pipeline):
    field = t.named("Pipeline")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(pipeline)
    return field


def rows(t):
    return t.js("""return [...document.querySelectorAll('table.plain tbody tr')].map((row) =>
        [...row.children].map((one) => one.textContent))""")


def the_console_leads_to_its_reports(t):
    t.load()
    t.click("Reports", "nav.pages a")
    t.see("its reports")
    t.wait(lambda: t.has("textarea"), "there is a place for a pipeline")


def a_report_is_built_from_a_collection_and_stages(t):
    choice = t.named("From")
    t.wait(lambda: "books" in choice.text, "the collections are listed")
    t.js("arguments[0].value = 'books'; arguments[0].dispatchEvent(new Event('change'))", choice)
    t.click("aggregate")
    t.click("sort")
    field = t.named("Pipeline")
    text = t.js("return arguments[0].value", field)
    assert text == "books\n| aggregate n = count() by kind\n| sort n desc", text
    write(t, "books | aggregate n = count() by genre | sort n desc")
    t.click("Run")
    t.wait(lambda: rows(t)[:2] == [["novel", "3"], ["craft", "2"]], f"the groups are sorted: {rows(t)}")
    t.see("6 rows")
    t.see("A listener to this pipeline follows the changes of documents.")


def groups_with_one_number_have_bars(t):
    found = t.js("""return [...document.querySelectorAll('.bars rect')].map((one) => Number(one.getAttribute('width')))""")
    assert len(found) == 6 and found[0] == 360 and found == sorted(found, reverse=True), found
    assert t.js("return document.querySelector('.bars').getAttribute('aria-label')") == "n by genre"
    write(t, "books | aggregate n = count(), sum = sum(price) by genre").send_keys(Keys.CONTROL, Keys.ENTER)
    t.see("sum")
    t.wait(lambda: not t.has(".bars"), "two numbers have no bars")


def what_a_database_holds_runs_nothing(t):
    write(t, "books | aggregate n = sum(price) by genre | where n > 6").send_keys(Keys.CONTROL, Keys.ENTER)
    t.wait(lambda: any(HOSTILE[0] in row for row in rows(t)), "the name is a text")
    assert not t.js("return document.querySelectorAll('main img').length")
    assert "\u202e" not in t.text() and "\\u{202e}gnp.exe" in t.text(), "marks of direction are numbers"


def mistakes_have_their_place(t):
    t.expected = {"400"}
    field = write(t, "books | where price > 3 | limits 3")
    t.click("Run")
    t.see("\"limits\" is no stage", "[role=alert]")
    chosen = t.js("return arguments[0].value.slice(arguments[0].selectionStart)", field)
    assert chosen.startswith("limits"), chosen
    write(t, "books | where nothing(price)")
    t.click("Run")
    t.see("stage 2, where: there is no function", "[role=alert]")


def a_report_is_explained_and_measured(t):
    write(t, "books | unnest tags as tag | aggregate n = count() by tag")
    t.click("Explain")
    t.see("Tree:")
    assert not t.has("table.plain"), "nothing was run"
    t.see("runs it again when a change concerns it")
    t.click("Measure")
    t.see("aggregate: 2 rows")
    t.wait(lambda: len(rows(t)) == 2, "the rows are there as well")


def the_address_keeps_the_report(t):
    write(t, "books | where price <= 2 | select price")
    t.click("Run")
    t.wait(lambda: rows(t) == [["books/b0", "1"], ["books/b1", "2"]], f"two books: {rows(t)}")
    t.driver.refresh()
    t.wait(lambda: rows(t) == [["books/b0", "1"], ["books/b1", "2"]], "it is there again")


def the_page_is_light_and_fits_a_phone(t):
    telling.is_light(t, 60_000)
    telling.fits_a_phone(t, "reports")


STORIES = [
    the_console_leads_to_its_reports, a_report_is_built_from_a_collection_and_stages,
    groups_with_one_number_have_bars, what_a_database_holds_runs_nothing, mistakes_have_their_place,
    a_report_is_explained_and_measured, the_address_keeps_the_report,
    the_page_is_light_and_fits_a_phone, telling.no_token_no_view,
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--shots")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        process, address = begin(options.program, folder)
        try:
            failed = telling.tell_all(STORIES, address, folder, options.shots)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)
    telling.end(failed)


if __name__ == "__main__":
    main()
