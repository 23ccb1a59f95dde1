// The realtime tree as one outline. Children come when a node is opened, a hundred at a time. Each
// open node is watched, and a change pulses up to the nodes above it.

import { get, patch, put, remove, save } from "./api.js";
import { attempt, confirm, conflict, dialog, note } from "./dialogs.js";
import { button, choice, empty, failure, h, icon, label, loading, replace, tool } from "./dom.js";
import { editor } from "./fields.js";
import { watch } from "./live.js";
import { Page } from "./page.js";
import { address, route } from "./route.js";
import { canEdit, edit as editTool } from "./session.js";
import { brief, content, counted, entries, isSame, kind, parse, pretty } from "./values.js";

const STEP = 100;
/** Streams have room for sixteen watches; the nodes opened last are live. */
const WATCHED = 12;

const join = (path, key) => (path ? `${path}/${key}` : key);

class TreePage extends Page {
  #open = [];

  begin() {
    this.place = h("div.card.outline");
    replace(this, h("header", h("h1", "Tree"), this.crumbs = h("nav.crumbs", { label: "Path" })),
      this.place);
    this.until(() => this.#open.forEach((node) => node.end?.()));
    this.arrive();
  }

  arrive() {
    const path = route().steps.join("/");
    if (path === this.path) return;
    this.path = path;
    this.#open.splice(0).forEach((node) => node.end?.());
    const steps = path.split("/").filter(Boolean);
    replace(this.crumbs, h("a", { href: address("tree") }, "/"), steps.map((step, place) => [place > 0 && "/",
      h("a", { href: address("tree", steps.slice(0, place + 1)) }, step)]));
    const root = this.#node(null, { key: steps.at(-1) ?? "/", children: 1 }, path);
    replace(this.place, h("div", { role: "tree", label: "Nodes", onkeydown: keys }, root.element));
    root.open();
    root.element.querySelector("[tabindex]")?.setAttribute("tabindex", "0");
  }

  #node(parent, shape, path) {
    const node = { parent, shape, path, children: new Map(), limit: STEP };
    const place = h("div.place");
    const inner = h("div.children", { role: "group", hidden: true });
    const toggle = h("button.toggle", { tabindex: "-1", label: `Open ${shape.key}`,
      onclick: () => (node.isOpen ? node.close() : node.open()) }, icon("right"));
    const change = (label, sign, run) => (
      editTool(`${label} ${shape.key}`, run, { sign, bare: true, tabindex: "-1" }));
    const tools = h("span.nodetools", change("Add a child to", "plus", () => this.#add(node)),
      change("Import into", "up", () => this.#import(node)),
        change("Delete", "trash", () => this.#delete(node)),
      tool(`Export ${shape.key}`, "down", () => this.#export(node), { tabindex: "-1" }));
    node.element = h("div.node", { role: "treeitem", tabindex: "-1", label: shape.key,
      "data-path": path },
      h("div.line", toggle, h("span.name", shape.key), place, h("span.grow"), tools), inner);
    node.fill = (next) => {
      node.shape = next;
      const isLeaf = next.value !== undefined && next.value !== null || !next.children;
      toggle.disabled = isLeaf;
      if (isLeaf) {
        node.element.removeAttribute("aria-expanded");
        node.close();
      } else node.element.setAttribute("aria-expanded", !!node.isOpen);
      if (!node.isEditing) replace(place, isLeaf ? this.#leaf(node, place) : h("span.muted",
        next.key === "/" ? "" : `${next.uncounted ? "more than " : ""}${
          counted(next.children, "child").replace("childs", "children")}`));
      if (next.priority !== undefined && next.priority !== null) place.append(h("span.badge",
        `priority ${brief(next.priority)}`));
    };
    node.open = () => {
      if (node.isOpen) return;
      node.isOpen = true;
      inner.hidden = false;
      toggle.setAttribute("aria-expanded", "true");
      node.element.setAttribute("aria-expanded", "true");
      replace(inner, loading(2));
      this.#open.push(node);
      if (this.#open.length > WATCHED) this.#open.shift().end?.();
      node.follow();
    };
    node.close = () => {
      if (!node.isOpen) return;
      node.isOpen = false;
      inner.hidden = true;
      toggle.setAttribute("aria-expanded", "false");
      node.element.setAttribute("aria-expanded", "false");
      node.end?.();
      for (const child of node.children.values()) child.close();
      node.children.clear();
      this.#open = this.#open.filter((one) => one !== node);
    };
    node.follow = () => {
      node.end?.();
      node.end = watch({ kind: "tree", path, limit: node.limit }, (event, data) => (event === "problem"
        ? replace(inner, failure(data.error)) : this.#arrived(node, inner, data)));
    };
    node.fill(shape);
    return node;
  }

  #arrived(node, inner, data) {
    const isFirst = !node.isLoaded;
    node.isLoaded = true;
    if (node.parent === null) {
      node.fill({ ...data.node, key: node.shape.key,
        children: data.node.children ?? (data.exists ? undefined : 1) });
      if (!data.exists) return replace(inner, empty("Nothing here",
        "The tree has no value at this place. Values that the app sets appear at once."));
    }
    const kept = new Map();
    for (const shape of data.children) {
      const child = node.children.get(shape.key) ?? this.#node(node, shape, join(node.path, shape.key));
      const isNew = !node.children.has(shape.key);
      const isOther = isNew || JSON.stringify(child.shape) !== JSON.stringify(shape);
      if (isOther && !isNew) child.fill(shape);
      if (isOther && !isFirst) pulse(child);
      kept.set(shape.key, child);
    }
    for (const [key, child] of node.children) if (!kept.has(key)) child.close();
    if (!isFirst && kept.size < node.children.size) pulse(node);
    node.children = kept;
    const focused = inner.contains(document.activeElement) ? document.activeElement : null;
    replace(inner, [...kept.values()].map((child) => child.element),
      data.more && button(`Show ${STEP} more`, () => {
      node.limit += STEP;
      node.follow();
    }, { kind: "small" }));
    focused?.focus();
    return undefined;
  }

  #leaf(node, place) {
    const value = node.shape.value ?? null;
    const shown = h("button", { class: `value ${kind(value)}`, tabindex: "-1",
      label: `${node.path}: ${brief(value)}. Edit`, onclick: () => canEdit() && edit() },
    value === "" ? h("span.muted", "empty text") : brief(value));
    const close = () => {
      node.isEditing = false;
      node.fill(node.shape);
      node.element.focus();
    };
    const edit = () => {
      node.isEditing = true;
      const form = editor(value, node.path, { cancel: close, save: async (next) => {
        if (!isSame(next, value) && await write(node.path, next, value)) node.shape = { key: node.shape.key,
          value: next };
        close();
      } });
      replace(place, form);
      form.focusFirst();
    };
    return shown;
  }

  async #add(node) {
    const key = h("input", { required: true });
    const value = h("input", { placeholder: '"a text", 7, 7.5, true or {"a": 1}' });
    await dialog(`Add a child to ${node.path || "/"}`, [label("Key", key),
      label("Value, as JSON", value)], {
      action: "Add", submit: () => put("tree", { path: join(node.path, key.value) },
        { value: parse(value.value), expected: null }),
    });
    node.open();
  }

  async #delete(node) {
    await confirm("Delete the node?", `${node.path || "All of it"} goes with everything below it, for good.`,
      "Delete", () => remove("tree", { path: node.path }), node.shape.children ? node.shape.key : undefined);
  }

  #export(node) {
    return attempt(async () => {
      const { value } = await get("tree/value", { path: node.path });
      save(new Blob([pretty(value)], { type: "application/json" }),
        `${node.path.replace(/\W+/g, "-") || "tree"}.json`);
    });
  }

  async #import(node) {
    const file = h("input", { type: "file", onchange: async () => {
      area.value = await file.files[0]?.text() ?? "";
    } });
    const area = h("textarea.json.short");
    const way = choice([["merge", "Merge: other children stay"],
      ["replace", "Replace: everything below is deleted"]]);
    const done = await dialog(`Import into ${node.path || "/"}`, [label("File", file),
      label("or JSON", area), label("How", way)], {
      action: "Import", wide: true, submit: async () => {
        const value = parse(area.value);
        if (way.value === "replace") return put("tree", { path: node.path }, { value });
        if (kind(value) !== "map") throw new Error("Only an object can be merged into a node.");
        return patch("tree", { path: node.path }, { values: Object.fromEntries(entries(content(value))) });
      },
    });
    if (done) note("Imported.");
  }
}
customElements.define("ondol-tree", TreePage);

/** Sets a leaf while it is what was seen; shows both where it is not. */
async function write(path, value, seen) {
  let expected = seen;
  for (;;) {
    try {
      return await put("tree", { path }, { value, expected });
    } catch (error) {
      if (error.status !== 409 || error.current === undefined) throw error;
      const stored = error.current?.value ?? null;
      if (!await conflict(path, { value: stored }, { value })) return undefined;
      expected = stored;
    }
  }
}

function pulse(node) {
  for (let one = node; one; one = one.parent) {
    one.element.classList.remove("pulse");
    void one.element.offsetWidth;
    one.element.classList.add("pulse");
    setTimeout(() => one.element.classList.remove("pulse"), 1_300);
  }
}

/** Moves through the outline as in any tree of a desktop. */
function keys(event) {
  const item = event.target.closest("[role=treeitem]");
  if (!item || event.target.closest("form")) return;
  const all = [...event.currentTarget.querySelectorAll("[role=treeitem]")].filter((one) => one.offsetParent);
  const place = all.indexOf(item);
  const toggle = item.querySelector(".toggle");
  const isOpen = item.getAttribute("aria-expanded") === "true";
  const focus = (one) => {
    if (!one) return;
    all.forEach((other) => other.setAttribute("tabindex", other === one ? "0" : "-1"));
    one.focus();
  };
  if (event.key === "ArrowDown") focus(all[place + 1]);
  else if (event.key === "ArrowUp") focus(all[place - 1]);
  else if (event.key === "ArrowRight") (isOpen ? focus(all[place + 1]) : !toggle.disabled && toggle.click());
  else if (event.key === "ArrowLeft") (isOpen ? toggle.click()
    : focus(item.parentElement.closest("[role=treeitem]")));
  else if (event.key === "Enter" && event.target === item) item.querySelector(".place button")?.click();
  else if (event.key === "Delete" && event.target === item) {
    item.querySelector("[aria-label^=Delete]")?.click();
  } else return;
  event.preventDefault();
}
