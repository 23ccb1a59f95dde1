// What a person would look for on a page: names for people who listen to it, contrast for people
// with poor sight, and nothing wider than the screen. Each audit returns its findings.

function isReady() {
  return !document.querySelector('main .loading')
    && (document.querySelector('main')?.innerText.length ?? 0) > 20
    && [...document.querySelectorAll('.picture')].every((one) => one.querySelector('img, svg'))
}

function nameless() {
  const wanted = 'a[href], button, input, select, textarea, summary, [role], img, svg[role], progress, meter';
  const passive = new Set(['rowgroup', 'row', 'gridcell', 'rowheader', 'group', 'note', 'status', 'alert',
    'tabpanel', 'option', 'listbox']);
  const name = (one) => (one.getAttribute('aria-label') ?? '') || (one.getAttribute('alt') ?? '')
    || (one.getAttribute('aria-labelledby') ?? '').split(' ').map((id) =>
      document.getElementById(id)?.textContent ?? '').join('')
    || [...(one.labels ?? [])].map((label) => label.textContent).join('') || one.textContent;
  const nameless = [...document.querySelectorAll(wanted)].filter((one) => one.checkVisibility()
    && one.type !== 'file'
    && !passive.has(one.getAttribute('role')) && !name(one).trim()).map((one) => one.outerHTML.slice(0, 160));
  const ids = [...document.querySelectorAll('[id]')].map((one) => one.id);
  const doubled = ids.filter((id, place) => ids.indexOf(id) !== place).map((id) => `id ${id} stands twice`);
  const headings = document.querySelector('h1, h2') ? [] : ['there is no heading'];
  return [...nameless, ...doubled, ...headings]
}

function unreadable() {
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
    for (let one = element; one; one = one.parentElement) {
      layers.push(rgba(getComputedStyle(one).backgroundColor));
    }
    return layers.reverse().reduce((under, layer) => over(layer, under), [255, 255, 255]);
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((one) => one / 255).map((one) =>
      (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility({ opacityProperty: true,
      visibilityProperty: true })) continue;
    if (element.closest(':disabled, [hidden], noscript, option, .flash, .pulse')) continue;
    const style = getComputedStyle(element);
    const under = ground(element);
    const [a, b] = [light(over(rgba(style.color), under)), light(under)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize);
    const needed = size >= 24 || size >= 18.66 && style.fontWeight >= 700 ? 3 : 4.5;
    const text = walker.currentNode.data.slice(0, 40);
    if (ratio < needed) found.push(`${ratio.toFixed(2)} ${element.className || element.localName}: ${text}`);
  }
  return [...new Set(found)]
}

function tooWide() {
  const found = [document.documentElement, document.querySelector('.page')].filter((one) =>
    one.scrollWidth > one.clientWidth)
    .map((one) => `${one.localName} is ${one.scrollWidth} wide in ${one.clientWidth}`);
  const scrolls = (one) => one && (['auto', 'scroll', 'hidden'].includes(getComputedStyle(one).overflowX)
    || scrolls(one.parentElement));
  for (const one of document.querySelectorAll('body *')) {
    if (one.checkVisibility() && one.getBoundingClientRect().right > innerWidth + 1
      && !scrolls(one.parentElement)) {
      found.push(`${one.localName}.${one.className} reaches ${one.getBoundingClientRect().right}`);
    }
  }
  return found
}
