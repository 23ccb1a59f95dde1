"""How pages look and can be used: names, contrast, 360 pixels, the keyboard, and pictures to be looked at."""

from selenium.webdriver.common.keys import Keys

VIEWS = {
    "data": "#/data/story-items", "document": "#/data/story-items/lamp", "tree": "#/tree/story",
    "storage": "#/storage/story?in=1", "object": "#/storage/story/lamp.png",
    "query": "#/query?from=collection%3Astory-items&where=price%20%3C%2050000",
    "plan": "#/query?from=collection%3Astory-items&where=price%20%3C%2050000&tab=plan",
    "cost": "#/query?from=collection%3Astory-items&where=price%20%3C%2050000&tab=cost",
    "code": "#/query?from=collection%3Astory-items&where=price%20%3C%2050000&order=price%20desc&tab=code",
    "indexes": "#/indexes", "changes": "#/changes", "statistics": "#/statistics", "health": "#/health",
}

READY = """return !document.querySelector('main .loading') && (document.querySelector('main')?.innerText.length ?? 0) > 20
  && [...document.querySelectorAll('.picture')].every((one) => one.querySelector('img, svg'))"""

NAMES = """
const wanted = 'a[href], button, input, select, textarea, summary, [role], img, svg[role], progress, meter';
const passive = new Set(['rowgroup', 'row', 'gridcell', 'rowheader', 'group', 'note', 'status', 'alert', 'tabpanel', 'option', 'listbox']);
const name = (one) => (one.getAttribute('aria-label') ?? '') || (one.getAttribute('alt') ?? '')
  || (one.getAttribute('aria-labelledby') ?? '').split(' ').map((id) => document.getElementById(id)?.textContent ?? '').join('')
  || [...(one.labels ?? [])].map((label) => label.textContent).join('') || one.textContent;
const nameless = [...document.querySelectorAll(wanted)].filter((one) => one.checkVisibility() && one.type !== 'file'
  && !passive.has(one.getAttribute('role')) && !name(one).trim()).map((one) => one.outerHTML.slice(0, 160));
const ids = [...document.querySelectorAll('[id]')].map((one) => one.id);
const doubled = ids.filter((id, place) => ids.indexOf(id) !== place).map((id) => `id ${id} stands twice`);
const headings = document.querySelector('h1, h2') ? [] : ['there is no heading'];
return [...nameless, ...doubled, ...headings]"""

CONTRAST = """
const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
const rgba = (colour) => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
};
const over = ([r, g, b, a], under) => [r, g, b].map((one, n) => one * a + under[n] * (1 - a));
const ground = (element) => {
  const layers = [];
  for (let one = element; one; one = one.parentElement) layers.push(rgba(getComputedStyle(one).backgroundColor));
  return layers.reverse().reduce((under, layer) => over(layer, under), [255, 255, 255]);
};
const light = (colour) => {
  const [r, g, b] = colour.map((one) => one / 255).map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
  if (element.closest(':disabled, [hidden], noscript, option, .flash, .pulse')) continue;
  const style = getComputedStyle(element);
  const under = ground(element);
  const [a, b] = [light(over(rgba(style.color), under)), light(under)].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  const size = parseFloat(style.fontSize);
  const needed = size >= 24 || size >= 18.66 && style.fontWeight >= 700 ? 3 : 4.5;
  if (ratio < needed) found.push(`${ratio.toFixed(2)} ${element.className || element.localName}: ${walker.currentNode.data.slice(0, 40)}`);
}
return [...new Set(found)]"""

WIDE = """
const found = [document.documentElement, document.querySelector('.page')].filter((one) => one.scrollWidth > one.clientWidth)
  .map((one) => `${one.localName} is ${one.scrollWidth} wide in ${one.clientWidth}`);
const scrolls = (one) => one && (['auto', 'scroll', 'hidden'].includes(getComputedStyle(one).overflowX) || scrolls(one.parentElement));
for (const one of document.querySelectorAll('body *')) {
  if (one.checkVisibility() && one.getBoundingClientRect().right > innerWidth + 1 && !scrolls(one.parentElement)) {
    found.push(`${one.localName}.${one.className} reaches ${Math.round(one.getBoundingClientRect().right)}`);
  }
}
return found"""


def visit(t):
    for name, address in VIEWS.items():
        t.go(address)
        t.wait(lambda: t.js(READY), f"{name} is shown")
        yield name


def everything_has_a_name(t):
    t.load()
    t.unlock()
    for name in visit(t):
        found = t.js(NAMES)
        assert not found, f"{name}: {found}"


def texts_can_be_read_light_and_dark(t):
    for dark in (False, True):
        t.size(1440, 900, dark)
        t.load()
        t.unlock()
        for name in visit(t):
            found = t.js(CONTRAST)
            assert not found, f"{name} {'dark' if dark else 'light'}: {found}"
    t.size(1440, 900)


def nothing_is_wider_than_a_phone(t):
    t.size(360, 740)
    t.load()
    t.unlock()
    for name in visit(t):
        found = t.js(WIDE)
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
        focused = t.js("""const one = document.activeElement;
            return [one.getAttribute('aria-label') ?? one.innerText ?? '', one.localName, getComputedStyle(one).outlineStyle]""")
        if focused[1] == "body":
            break
        assert focused[2] != "none", f"it cannot be seen that {focused} has the focus"
        visited.append(focused[0].strip())
    for name in ["Skip to the page", "Editing is locked. Unlock it", "Data", "Health", "Condition", "Documents"]:
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
    assert t.wait(lambda: t.js("return document.activeElement.className").startswith("value"), "the focus comes back")
    t.click("Add field")
    t.keys(Keys.ESCAPE)
    t.wait(lambda: not t.all("dialog"), "Escape closes a dialog")


def the_page_is_light(t):
    """All files of the page as they are served, which is what an app carries."""
    t.load()
    for _ in visit(t):
        pass
    names = t.js("""return performance.getEntriesByType('resource').map((one) => one.name)
        .filter((name) => name.includes('/assets/'))""")
    total = sum(t.js("""return (await (await fetch(arguments[0])).text()).length""", name) for name in [t.api.base, *names])
    foreign = t.js("""return performance.getEntriesByType('resource').map((one) => one.name)
        .filter((name) => !name.startsWith(location.origin) && !name.startsWith('blob:'))""")
    t.say(f"{len(names) + 1} files, {total} bytes")
    assert not foreign, f"requests to elsewhere: {foreign}"
    assert total <= 150_000, f"{total} bytes are more than 150 kB"


def pictures_of_all_pages(t):
    if not t.shots:
        return
    for look, width, height, dark in [("light", 1440, 900, False), ("dark", 1440, 900, True),
                                      ("narrow", 360, 740, False), ("narrow-dark", 360, 740, True)]:
        t.size(width, height, dark)
        t.load()
        if look == "dark":
            t.unlock()
        for name in visit(t):
            t.js("return new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
            t.shot(f"{t.shots}/{name}-{look}.png")
    t.size(1440, 900)


STORIES = [everything_has_a_name, texts_can_be_read_light_and_dark, nothing_is_wider_than_a_phone,
           the_keyboard_is_enough, the_page_is_light, pictures_of_all_pages]
