"""The tools of the stories: a browser, and a page with functions for a person's actions."""

import time
from pathlib import Path

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

DEADLINE = 15


class Page:
    """One browser, with functions for a person's actions in it."""

    def __init__(self, url, downloads, *more):
        options = webdriver.ChromeOptions()
        for argument in [
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--force-prefers-reduced-motion=0",
            "--window-size=1440,900",
            *more,
        ]:
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        self.url, self.expected = url, set()
        self.size(1440, 900)

    def size(self, width, height, dark=False):
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]},
        )

    def load(self, url=None):
        """Opens the page again, with its token."""
        self.driver.get("about:blank")
        self.driver.get(url or self.url)
        self.wait(lambda: self.has(".dot.live"), "the stream is live")

    def go(self, address):
        self.driver.execute_script("location.hash = arguments[0]", address)

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    # MARK: looking

    def all(self, css):
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def has(self, css):
        return bool(
            self.js( """return [...document.querySelectorAll(arguments[0])].some(
            (one) => one.checkVisibility())""",
                css,
            )
        )

    def text(self, css="body"):
        return self.js(
            "return [...document.querySelectorAll(arguments[0])].map((one) => one.innerText).join('\\n')", css
        )

    def cell(self, identity, field):
        """A document's cell in the table."""
        return self.js( """
            const table = document.querySelector('ondol-table');
            if (!table) return null;
            const column = ['id', ...table.columns].indexOf(arguments[1]);
            const row = [...table.querySelectorAll('.tr')].find((one) => !one.hidden
              && one.firstChild.textContent === arguments[0]);
            return row ? row.children[column]?.textContent : null""",
            identity,
            field,
        )

    def value(self, field):
        """A field's value in the open document."""
        return self.js( """return document.querySelector(`[data-field="${arguments[0]}"] .place`)?.innerText""", field
        )

    def wait(self, condition, what, seconds=DEADLINE):
        """Waits for a condition; on failure, names it."""
        end = time.monotonic() + seconds
        while True:
            try:
                found = condition()
            except StaleElementReferenceException:
                found = None
            if found:
                return found
            if time.monotonic() > end:
                raise AssertionError(f"waited in vain until {what}; the page says:\n{self.text()[:1500]}")
            time.sleep(0.02)

    def see(self, text, css="body"):
        return self.wait(lambda: text in self.text(css), f"“{text}” is seen in {css}")

    # MARK: doing

    def named(self, name, css="button, a, input, select, textarea"):
        """The visible control with this name."""
        return self.wait(
            lambda: self.js( """
            const [name, css] = arguments;
            const label = (one) => (one.getAttribute('aria-label') ?? (one.labels?.length
              ? [...one.labels[0].childNodes].filter((n) => n.nodeType === 3).map((n) => n.data).join('')
              : one.innerText)).trim();
            const all = [...document.querySelectorAll(css)].filter((one) => one.checkVisibility());
            const inside = all.filter((one) => one.closest('dialog'));
            return (inside.length ? inside : all).find((one) => label(one) === name)""",
                name,
                css,
            ),
            f"there is “{name}”",
        )

    def click(self, name, css="button, a, input, select, textarea"):
        # The page may redraw an element before the click; a person would click again.
        self.wait(lambda: self.named(name, css).click() or True, f"“{name}” is clicked")

    def type(self, name, text, enter=False):
        field = self.named(name)
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(text)
        if enter:
            field.send_keys(Keys.ENTER)
        return field

    def keys(self, *keys):
        self.driver.switch_to.active_element.send_keys(*keys)

    def unlock(self):
        if not self.has("body.editing"):
            self.click("Editing is locked. Unlock it")

    def edit(self, field, text, save=True):
        """Edits a field of the open document in place."""
        self.wait(lambda: self.value(field) is not None, f"the field {field} is shown")
        self.js("""document.querySelector(`[data-field="${arguments[0]}"] .place > .value`).click()""", field)
        control = self.wait(lambda: self.all(f'[data-field="{field}"] .control > *'), "the editor is open")[0]
        control.send_keys(Keys.CONTROL, "a")
        control.send_keys(text)
        if save:
            control.send_keys(Keys.ENTER)

    def problems(self):
        """The complaints in the browser's console about the page, except for expected answers."""
        found = []
        for entry in self.driver.get_log("browser"):
            message = entry["message"]
            if any(f"status of {status} " in message for status in self.expected):
                continue
            if entry["level"] in ("SEVERE", "WARNING"):
                found.append(message)
        return found

    def shot(self, path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(path))
