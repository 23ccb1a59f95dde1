// Editors, one for each kind of value, and the rows of a document's fields that open them in place.

import { button, choice, h, icon, replace, tool } from "./dom.js";
import { pictureOf } from "./pictures.js";
import { address } from "./route.js";
import { KINDS, brief, content, entries, isSame, kind, local, parse, pretty, step,
  text } from "./values.js";

/** What a value of each kind is at first. */
export const EMPTY = {
  string: "", integer: { $numberLong: "0" }, double: { $numberDouble: "0.0" },
  decimal: { $numberDecimal: "0" }, boolean: false, null: null,
  array: [], map: {}, reference: { $reference: "" }, geoPoint: { $geoPoint: [0, 0] },
    vector: { $vector: [0] },
  bytes: { $binary: { base64: "", subType: "00" } }, timestamp: { $date: "" }, blob: { $blob: {} },
};

/** How each kind is written in an input: what it shows, and what a text comes to. */
const FORMS = {
  string: { show: content, read: (input) => input, isLong: true },
  integer: {
    show: content, mode: "numeric",
    read: (input) => {
      const trimmed = input.trim();
      if (!/^-?\d+$/.test(trimmed) || BigInt.asIntN(64, BigInt(trimmed)) !== BigInt(trimmed)) {
        throw new Error("An integer has only digits and fits in 64 bits.");
      }
      return { $numberLong: String(BigInt(trimmed)) };
    },
  },
  double: {
    show: content, mode: "decimal",
    read: (input) => {
      const trimmed = input.trim();
      if (!/^(NaN|-?Infinity|[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?)$/i.test(trimmed)) {
        throw new Error("A double is a number, NaN, Infinity or -Infinity.");
      }
      return { $numberDouble: trimmed.replace(/^\+/, "").replace(/^(-?)\./, "$10.").replace(/\.(?=e|$)/i,
        ".0") };
    },
  },
  decimal: {
    show: content, mode: "decimal",
    read: (input) => {
      const trimmed = input.trim();
      if (!/^[-+]?\d+(\.\d+)?(e[-+]?\d+)?$/i.test(trimmed)) {
        throw new Error("A decimal is a number of up to 38 digits: 0.10.");
      }
      return { $numberDecimal: trimmed.replace(/^\+/, "") };
    },
  },
  timestamp: {
    show: (value) => content(value) || new Date().toISOString(),
    read: (input) => {
      const trimmed = input.trim();
      if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[-+]\d\d:\d\d)$/.test(trimmed)) {
        throw new Error("A timestamp looks like 2026-05-01T09:30:00.25Z.");
      }
      return { $date: trimmed };
    },
  },
  reference: { show: content, read: (input) => ({ $reference: input.trim().replace(/^\/+/, "") }) },
  geoPoint: {
    show: (value) => content(value).join(", "),
    read: (input) => {
      const numbers = input.split(",").map(Number);
      if (numbers.length !== 2 || !(Math.abs(numbers[0]) <= 90) || !(Math.abs(numbers[1]) <= 180)) {
        throw new Error("A geo point is a latitude and a longitude: 37.5, 127.");
      }
      return { $geoPoint: numbers };
    },
  },
  bytes: {
    show: (value) => content(value).base64,
    read: (input) => {
      const base64 = input.replace(/\s/g, "");
      if (base64.length % 4 || !/^[A-Za-z0-9+/]*={0,2}$/.test(base64)) {
        throw new Error("Bytes are written in Base64.");
      }
      return { $binary: { base64, subType: "00" } };
    },
    isLong: true,
  },
};
const JSON_FORM = { show: (value) => pretty(value), read: (input) => parse(input), isLong: true };

/** A control for a value of some kind; `read` gives the value or throws. */
function control(what, value, label) {
  if (what === "null") return { element: h("span.muted", "null"), read: () => null };
  if (what === "boolean") {
    const element = choice(["true", "false"], { label });
    element.value = String(value);
    return { element, read: () => element.value === "true" };
  }
  const form = FORMS[what] ?? JSON_FORM;
  const shown = form.show(value);
  const isLong = form === JSON_FORM || form.isLong && (shown.length > 40 || shown.includes("\n"));
  const element = h(isLong ? "textarea" : "input", {
    label, inputmode: form.mode,
    rows: isLong ? Math.min(12, shown.split("\n").length + 1) : undefined,
  });
  element.value = shown;
  const read = () => {
    const read = form.read(element.value);
    if (form === JSON_FORM && kind(read) !== what) throw new Error(`This is no ${what}, but ${kind(read)}.`);
    return read;
  };
  return { element, read };
}

/**
 * An editor of one value, with a choice of its kind. `save` gets the value, and keeps the editor
 * open when it throws or answers false.
 */
export function editor(value, label, { save, cancel, saveLabel = "Save" }) {
  let current = control(kind(value), value, label);
  const holder = h("div.control", current.element);
  const problem = h("div.problem", { role: "alert" });
  const kinds = choice(KINDS, {
    label: `Kind of ${label}`, onchange: () => {
      current = control(kinds.value, convert(value, kinds.value), label);
      replace(holder, current.element);
      current.element.focus?.();
    },
  });
  kinds.value = kind(value);
  const submit = async () => {
    try {
      replace(problem);
      await save(current.read());
    } catch (error) {
      replace(problem, error.message);
    }
  };
  const element = h("form.editor", {
    onsubmit: (event) => {
      event.preventDefault();
      submit();
    },
    onkeydown: (event) => {
      const isMany = event.target.localName === "textarea" && !(event.metaKey || event.ctrlKey);
      if (event.key === "Escape") {
        event.stopPropagation();
        cancel();
      } else if (event.key === "Enter" && !isMany && event.target.localName !== "button") {
        event.preventDefault();
        submit();
      }
    },
  }, holder, h("div.row", kinds, h("span.grow"), button("Cancel", cancel, { kind: "small" }),
    h("button.button.small.primary", { type: "submit" }, saveLabel)), problem);
  element.focusFirst = () => {
    current.element.focus?.();
    current.element.select?.();
  };
  return element;
}

/** What a value may become as another kind, where that says itself. */
function convert(value, what) {
  const written = typeof content(value) === "string" ? content(value) : text(value);
  if (what === kind(value)) return value;
  if (what === "string") return written;
  if (what === "integer" && /^-?\d+(\.0)?$/.test(written)) return { $numberLong: written.replace(/\.0$/,
    "") };
  if (what === "double" && /^-?\d+(\.\d+)?$/.test(written)) return { $numberDouble: written };
  if (what === "decimal" && /^-?\d+(\.\d+)?(e[-+]?\d+)?$/i.test(written)) {
    return { $numberDecimal: written };
  }
  if (what === "reference" && kind(value) === "string") return { $reference: value };
  return EMPTY[what];
}

/** The rows of fields. `actions` has `begin(path)`, whether an edit may begin, `save` and `remove`. */
export function fieldRows(fields, actions, { before = null, path = "", depth = 0 } = {}) {
  return entries(fields).map(([name, value]) => fieldRow(name, value, actions, {
    path: path ? `${path}.${step(name)}` : step(name), depth,
    flashes: before !== null && !(Object.hasOwn(before, name) && isSame(before[name], value)),
    before: before && Object.hasOwn(before, name) && kind(before[name]) === "map" ? content(before[name])
      : null,
  }));
}

function fieldRow(name, value, actions, { path, depth, flashes, before }) {
  const what = kind(value);
  const isNested = what === "map" || what === "array";
  const shown = h("button", {
    class: `value ${what}`, title: what === "timestamp" ? local(content(value)) : "Edit",
    label: `${path}: ${brief(value)}. Edit`,
    onclick: () => {
      if (actions.begin(path)) edit();
    },
  }, what === "string" && value === "" ? h("span.muted", "empty text") : chips(value));
  const place = h("div.place", shown, extras(value));
  const edit = () => {
    const form = editor(value, path, {
      save: async (next) => {
        if (isSame(next, value) || await actions.save(path, next, value) !== false) close();
      },
      cancel: () => close(),
    });
    const close = () => {
      replace(place, shown, extras(value));
      actions.end(path);
      shown.focus();
    };
    replace(place, form);
    form.focusFirst();
  };
  const open = actions.isOpen(path, depth);
  const inner = isNested && h("div.inner", { role: "group", hidden: !open }, open && children());
  function children() {
    return what === "map" ? fieldRows(content(value), actions, { before, path, depth: depth + 1 })
      : value.slice(0, 200).map((one, index) => h("div.field.element",
        h("div.line", h("span.name.muted", index),
          h("span", { class: `value ${kind(one)}` }, brief(one)), extras(one))));
  }
  const toggle = isNested && h("button.toggle", {
    "aria-expanded": String(open), label: `Show what is in ${path}`,
    onclick: () => {
      inner.hidden = !inner.hidden;
      actions.setOpen(path, !inner.hidden);
      if (!inner.hidden) replace(inner, children());
      toggle.setAttribute("aria-expanded", !inner.hidden);
    },
  }, icon("right"));
  return h("div", { class: `field ${flashes ? "flash" : ""}`, "data-field": path },
    h("div.line", toggle || h("span.toggle"),
      h("span.name", { title: path }, name), h("span.kind", what), place,
      tool(`Delete the field ${path}`, "close", () => actions.begin(path) && actions.remove(path),
        { kind: "edit-only tool" })),
    inner);
}

/** An array of few short values as chips, anything else as its short text. */
function chips(value) {
  if (kind(value) === "array" && value.length && value.length < 12
    && value.every((one) => typeof one === "string" && one.length < 30)) {
    return value.map((one) => h("span.chip", one));
  }
  return kind(value) === "map" ? `${Object.keys(content(value)).length} fields` : brief(value) || "[]";
}

/** What stands beside a value: a picture, a link. */
function extras(value) {
  const inner = content(value);
  switch (kind(value)) {
    case "reference": return h("a.goto", { href: address("data", inner), label: `Open ${inner}` },
      icon("right"));
    // The stored bytes of one with a key are unreadable.
    case "blob": return [pictureOf(inner.key ? null : inner.sha256, inner.contentType ?? "content", "thumb"),
      inner.path && h("a.goto", {
      href: address("storage", inner.path), label: `Open ${inner.path}`,
    }, icon("right"))];
    default: return null;
  }
}
