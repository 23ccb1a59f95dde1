// Makes elements out of names, attributes and texts. All data of the database goes into text nodes
// and into attributes that cannot run anything. There is no way here to parse markup. Text for
// people has everything visible: controls and marks of direction appear as their numbers, so that
// no name looks like another one. Values that are edited, copied or sent stay unchanged.

const SVG = "http://www.w3.org/2000/svg";

/** Attributes that may hold texts from a database: none of them loads or runs anything. */
const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "open"]);

const HIDDEN = new RegExp(String.raw`[\0-\x1F\x7F-\x9F\xAD\u061C\u200B\u200E\u200F\u2028-\u202E\u2060-\u206F`
  + String.raw`\uFEFF\uFFF0-\uFFFB\u{1BCA0}-\u{1BCA3}\u{1D173}-\u{1D17A}\u{E0000}-\u{E00FF}\u{E01F0}-\u{E0FFF}]`,
"gu");

/**
 * A text as people see it: what could not be seen is its number, `\u{202e}`, as VisibleText.swift has
 * it. Of several lines the breaks and tabs stay.
 */
export const seen = (text, lines) => String(text).replace(HIDDEN, (one) =>
  (lines && /[\n\t]/.test(one) ? one : `\\u{${one.codePointAt().toString(16)}}`));

function set(element, name, value) {
  if (typeof value === "function" && name.startsWith("on")) {
    element.addEventListener(name.slice(2), value);
  } else if (name.startsWith("on") || name === "style" || name.startsWith("inner")) {
    throw new Error(`${name} is not set here`);
  } else if (PROPERTIES.has(name)) {
    element[name] = value;
  } else if (value !== undefined && value !== null && value !== false) {
    element.setAttribute(name === "label" ? "aria-label" : name, value === true ? ""
      : /^(label|title|alt)$/.test(name) ? seen(value) : value);
  }
}

/**
 * An element; its classes stand behind its name, `h("div.card", { title }, …)`, and attributes may be
 * left out; `label` is what screen readers say. Texts become text nodes, nothing becomes nothing.
 */
export function h(name, ...rest) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  const [first] = rest;
  const hasAttributes = first?.constructor === Object;
  // Before the children, whose line breaks depend on it.
  element.className = classes.join(" ") || first?.class || "";
  // Only a button that says so submits its form.
  if (tag === "button") element.type = tag;
  if (tag === "input" || tag === "textarea") {
    element.autocomplete = "off";
    element.spellcheck = false;
  }
  fill(element, hasAttributes ? rest.slice(1) : rest);
  // After the children: a select takes a value only when it has the option.
  if (hasAttributes) for (const [key, value] of Object.entries(first)) set(element, key, value);
  return element;
}

/** As `h`, in a picture. */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  fill(element, children);
  for (const [name, value] of Object.entries(attributes ?? {})) set(element, name, value);
  return element;
}

function fill(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : seen(child, element.matches("pre, .value")));
  }
}

/** Puts other children into an element. */
export function replace(element, ...children) {
  element.replaceChildren();
  fill(element, children);
  return element;
}

const ICONS = {
  data: "M3 5c0-3 10-3 10 0s-10 3-10 0v6c0 3 10 3 10 0V5M3 8c0 3 10 3 10 0",
  mark: "M2 13h12M4.5 10.5c-2-2.5 2-4 0-7M8 10.5c-2-2.5 2-4 0-7M11.5 10.5c-2-2.5 2-4 0-7",
  tree: "M3 2.5h4v3H3zM9 7h4v3H9zM9 11.5h4v2.5H9zM5 5.5v7.2h4M5 8.5h4",
  storage: "M2.5 4h4l1.3 1.6h5.7V13h-11z",
  query: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9Zm3.3-1.2L14 14",
  indexes: "M3 3.5h10M3 6.5h7M3 9.5h10M3 12.5h5",
  changes: "M8 3.2V8l3 1.8M14 8A6 6 0 1 1 8 2a6 6 0 0 1 5.2 3",
  statistics: "M2.5 13.5h11M4 11V8M7 11V4M10 11V6.5M13 11V3",
  health: "M2 8.5h3l1.5-4 3 7 1.5-3H14",
  locked: "M4 7.5h8v6H4zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5",
  open: "M4 7.5h8v6H4zM5.5 7.5V5a2.5 2.5 0 0 1 4.8-1",
  undo: "M5.5 3 2.5 6l3 3M3 6h6.5a3.5 3.5 0 0 1 0 7H6",
  plus: "M8 3v10M3 8h10",
  close: "M4 4l8 8M12 4l-8 8",
  trash: "M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.6 9h5.8l.6-9",
  copy: "M5.5 5.5h8v8h-8zM3 10.5h-.5v-8h8V3",
  right: "M6 3.5 10.5 8 6 12.5",
  back: "M10 3.5 5.5 8l4.5 4.5",
  file: "M4 2h5l3 3v9H4zM9 2v3h3",
  down: "M8 2.5v8M4.5 7 8 10.5 11.5 7M3 13.5h10",
  up: "M8 10.5v-8M4.5 6 8 2.5 11.5 6M3 13.5h10",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  play: "M5 3.5v9l7-4.5z",
  warn: "M8 2.5 14 13H2zM8 6.5v3M8 11.2v.3",
};

/** A small picture that says nothing to screen readers: what it is on has a name. */
export function icon(name) {
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" },
    svg("path", { d: ICONS[name] }));
}

/** The sign of the console: a floor, and warmth above it. */
export const mark = () => h("span.mark", icon("mark"));

/** A button; one that is `bare` shows its icon alone, and its label on hover. */
export function button(label, onclick, { sign, kind = "", bare = false, ...more } = {}) {
  return h("button", {
    class: `button ${kind}${bare ? " bare quiet" : ""}`, onclick,
    ...(bare ? { label, title: label } : {}), ...more,
  }, sign && icon(sign), !bare && h("span", label));
}

/** A small button that is only an icon. */
export const tool = (label, sign, onclick, more) => button(label, onclick, { sign, bare: true, ...more });

/** A control with its title above it. */
export const label = (title, control) => h("label", title, control);

/** A choice of texts, or of pairs of a value and a text. */
export function choice(options, attributes = {}) {
  return h("select", attributes, options.map((one) =>
    (Array.isArray(one) ? h("option", { value: one[0] }, one[1])
    : h("option", { value: one }, one))));
}

/** A table of texts and elements. */
export function table(heads, rows) {
  return h("table.plain", heads && h("thead", h("tr", heads.map((one) => h("th", { scope: "col" }, one)))),
    h("tbody", rows.map((cells) => h("tr", cells.map((one) => h("td", one))))));
}

/** Names and what they stand for. */
export const pairs = (...list) => h("dl", list.filter(Boolean).map(([name, value]) =>
  [h("dt", name), h("dd", value)]));

/** Says that there is nothing, and what to do about it. */
export function empty(title, text, ...actions) {
  return h("div.empty", h("h2", title), text && h("p", text),
    actions.length > 0 && h("div.row.centre", actions));
}

/** Says what went wrong. */
export function failure(error) {
  return h("div.failure", { role: "alert" }, icon("warn"),
    h("div", h("p", error.message), error.hint && h("p.muted", error.hint)));
}

/** Grey bars where something is about to be. */
export function loading(lines = 4) {
  return h("div.loading", { role: "status", label: "Loading" },
    Array.from({ length: lines }, () => h("i")));
}

/** Calls `action` when nobody has asked for it for some milliseconds. */
export function later(milliseconds, action) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), milliseconds);
  };
}
