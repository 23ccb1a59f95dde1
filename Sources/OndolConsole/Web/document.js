// One document: its fields, edited in place; its JSON; everything below it. It follows the
// document, and unsaved typing survives all changes in the meantime.

import { get } from "./api.js";
import { attempt, confirm, dialog, note } from "./dialogs.js";
import { button, choice, empty, failure, h, icon, label, loading, replace, tool } from "./dom.js";
import { EMPTY, fieldRows } from "./fields.js";
import { watch } from "./live.js";
import { address, go } from "./route.js";
import { canEdit, createDocument, deleteDocument, edit, patchDocument, replaceDocument } from "./session.js";
import { KINDS, counted, entries, grouped, kind, local, parse, pretty, shortTime, step } from "./values.js";

export class DocumentPane extends HTMLElement {
  #editing = new Map();
  #opened = new Map();
  #flash = null;

  /** Shows the document at a path; `back` is where closing leads. */
  show(path, back) {
    this.end?.();
    Object.assign(this, { path, back, document: undefined, seen: null, isJSON: false, isGone: false });
    this.#editing.clear();
    this.collections = [];
    this.className = "pane";
    replace(this, loading(6));
    this.end = watch({ kind: "document", path }, (event, data) => this.#arrived(event, data));
    this.#loadBelow();
  }

  disconnectedCallback() {
    this.end?.();
  }

  async #loadBelow() {
    const { path } = this;
    const answer = await get("collections", { below: path }).catch(() => null);
    if (answer && path === this.path) {
      this.collections = answer.collections;
      this.below && replace(this.below, this.#below());
    }
  }

  #arrived(event, data) {
    if (event === "problem") return replace(this, this.#close(), failure(data.error));
    const before = this.document;
    if (!data.document && before) {
      this.isGone = true;
      return this.#head();
    }
    this.isGone = false;
    this.document = data.document;
    if (!data.document) {
      return replace(this, h("div.panehead", this.#close()), empty("This document does not exist",
        `Nothing is stored at ${this.path}. It may have been deleted, or only documents below it exist.`),
      this.below = h("div", this.#below()));
    }
    this.#flash = before && before.version !== data.document.version ? before.fields : null;
    if (!before) return this.#render();
    if (this.isJSON && this.isJSONEdited) return this.#head();
    this.#head();
    return this.#editing.size ? this.#defer() : this.#body();
  }

  /** Fields are drawn anew when nobody types in one of them. */
  #defer() {
    this.isStale = true;
  }

  #render() {
    this.head = h("div.panehead");
    this.body = h("div.fields");
    this.below = h("div", this.#below());
    replace(this, this.head, this.body, this.below);
    this.#head();
    this.#body();
  }

  #close() {
    return h("a.button.bare.quiet", { href: this.back, label: "Close the document" }, icon("close"));
  }

  #head() {
    const { document, isGone } = this;
    replace(this.head, h("div.row",
      h("h2.path", { title: document.path }, document.id), h("span.grow"),
      tool("Copy the path", "copy", () => copy(document.path)), this.#close()),
    h("p.muted.facts", h("span", `version ${grouped(BigInt(document.version))}`),
      h("time", { datetime: document.updated, title: local(document.updated) },
        `updated ${shortTime(document.updated)}`),
      h("time", { datetime: document.created, title: local(document.created) },
        `created ${shortTime(document.created)}`)),
    isGone && h("div.banner", { role: "alert" }, icon("warn"),
      h("p", "Deleted by another commit. This is its last state."),
      button("Create again", () => this.#restore(), { kind: "small" })),
    h("div.row.tools",
      edit("Add field", () => this.#add(), { sign: "plus" }),
      edit("Duplicate", () => this.#duplicate(), { sign: "copy" }),
      edit("Delete", () => this.#delete(), { sign: "trash", kind: "small danger-quiet" }),
      h("span.grow"),
      button("JSON", () => {
        this.isJSON = !this.isJSON;
        this.isJSONEdited = false;
        this.#head();
        this.#body();
      }, { kind: "small", "aria-pressed": String(this.isJSON) })));
  }

  #body() {
    this.isStale = false;
    const { fields } = this.document;
    if (this.isJSON) return replace(this.body, this.#json());
    replace(this.body, Object.keys(fields).length
      ? fieldRows(fields, this.#actions(), { before: this.#flash })
      : empty("No fields", "This document is empty. Unlock editing to add a field."));
    this.#flash = null;
    return undefined;
  }

  #actions() {
    return {
      begin: (path) => {
        if (!canEdit()) return false;
        this.#editing.set(path, this.document);
        return true;
      },
      end: (path) => {
        this.#editing.delete(path);
        if (this.isStale && !this.#editing.size) setTimeout(() => this.#body());
      },
      save: async (path, value) => this.#write(path, { set: { [path]: value } },
        `${path} of ${this.document.id}`),
      remove: (path) => attempt(async () => {
        await this.#write(path, { delete: [path] }, `${path} of ${this.document.id} deleted`);
        this.#editing.delete(path);
      }),
      isOpen: (path, depth) => this.#opened.get(path) ?? depth === 0,
      setOpen: (path, isOpen) => this.#opened.set(path, isOpen),
    };
  }

  async #write(path, change, title) {
    const seen = this.#editing.get(path) ?? this.document;
    const document = await patchDocument(this.isGone ? { ...seen, version: "0" } : seen, change, title);
    if (!document) return false;
    this.#take(document);
    return true;
  }

  #take(document) {
    if (document.path !== this.path || BigInt(document.version) <= BigInt(this.document.version)) return;
    this.#flash = this.document.fields;
    this.document = document;
    this.isStale = true;
    this.isGone = false;
    this.#head();
  }

  #json() {
    const shown = pretty(this.document.fields, "", true);
    const seen = this.document;
    const area = h("textarea.json", {
      label: "The document as JSON", readonly: !document.body.classList.contains("editing"),
      oninput: () => {
        this.isJSONEdited = area.value !== shown;
        apply.disabled = !this.isJSONEdited;
      },
      onclick: () => area.readOnly && canEdit(),
    });
    area.value = shown;
    const problem = h("div.problem", { role: "alert" });
    const apply = button("Save", async () => {
      try {
        replace(problem);
        const fields = parse(area.value);
        if (kind(fields) === "array" || fields === null
          || typeof fields !== "object") throw new Error("A document is an object in braces.");
        const written = await replaceDocument(this.isGone ? { ...seen, version: "0" } : seen, fields);
        if (!written) return;
        this.isJSONEdited = false;
        this.#take(written);
        this.#body();
      } catch (error) {
        replace(problem, error.message);
      }
    }, { kind: "small primary edit-only", disabled: true });
    return [area, problem, h("div.row.tools", button("Copy", () => copy(area.value),
      { sign: "copy", kind: "small" }),
      h("span.grow"), apply)];
  }

  #below() {
    const rows = this.collections.map((one) => h("a.listrow", { href: address("data", one.path) },
      icon("data"), h("span.grow", one.id), h("span.muted", grouped(one.count))));
    return [h("h3", "Collections below"), rows.length ? rows : h("p.muted", "None."),
      edit("Start a collection here", () => startCollection(this.path), { sign: "plus" })];
  }

  async #add() {
    const name = h("input", { required: true });
    const kinds = choice(KINDS.filter((one) => one !== "blob"),
      { onchange: () => { area.value = shownValue(EMPTY[kinds.value]); } });
    const area = h("input");
    const shownValue = (one) => (kind(one) === "string" ? one : kind(one) === "timestamp"
      ? new Date().toISOString() : pretty(one).replace(/\s+/g, " "));
    await dialog("Add a field", [
      label("Name", name), label("Kind", kinds),
      label("Value", area),
    ], {
      action: "Add", submit: async () => {
        if (Object.hasOwn(this.document.fields, name.value)) throw new Error("It exists already.");
        const typed = readTyped(kinds.value, area.value);
        return this.#write(step(name.value), { set: { [step(name.value)]: typed } },
          `${name.value} of ${this.document.id} added`);
      },
    });
    if (this.isStale && !this.#editing.size) this.#body();
  }

  async #duplicate() {
    const id = h("input", { placeholder: "an automatic id" });
    const collection = this.path.split("/").slice(0, -1).join("/");
    const made = await dialog("Duplicate the document", label("Id of the copy", id), {
      action: "Duplicate", submit: () => createDocument(collection, id.value, this.document.fields),
    });
    if (made) go(address("data", made.path));
  }

  async #delete() {
    const hasBelow = this.collections.length > 0;
    const what = hasBelow ? `The document and everything below it goes: ${this.collections
      .map((one) => `${counted(one.count, "document")} in ${one.id}`).join(", ")}. This cannot be undone.`
      : "This deletes the document. Undo restores it.";
    await confirm("Delete the document?", what, "Delete", async () => {
      if (await deleteDocument(this.document, hasBelow)) go(this.back);
    }, this.document.id);
  }

  async #restore() {
    const collection = this.path.split("/").slice(0, -1).join("/");
    await attempt(() => createDocument(collection, this.document.id, this.document.fields));
  }
}
customElements.define("ondol-document", DocumentPane);

/** A value that was typed into one line for a kind. */
export function readTyped(what, input) {
  if (what === "string") return input;
  if (what === "timestamp") return { $date: input.trim() };
  if (what === "decimal" && /^-?\d/.test(input.trim())) return { $numberDecimal: input.trim() };
  const value = parse(input.trim() || "null");
  if (kind(value) !== what && !(what === "double" && kind(value) === "integer")) {
    throw new Error(`This is no ${what}: it is written as ${kind(value)}.`);
  }
  return what === "double" && kind(value) === "integer" ? { $numberDouble: `${value.$numberLong}.0` } : value;
}

export async function copy(text) {
  await attempt(() => navigator.clipboard.writeText(text));
  note("Copied.");
}

/** Asks for a collection's id and a first document, below a document or at the top. */
export async function startCollection(below) {
  const id = h("input", { required: true });
  const made = await newDocumentDialog("Start a collection", "Start",
    () => [below, id.value].filter(Boolean).join("/"),
    label("Id of the collection", id));
  if (made) go(address("data", made.path));
}

/** Asks for a document's id and its fields as JSON. */
export async function newDocumentDialog(title, action, collection, ...more) {
  const id = h("input", { placeholder: "an automatic id" });
  const fields = h("textarea.json.short");
  fields.value = "{\n  \n}";
  return dialog(title, [more, label("Id of the document", id),
    label("Fields, as JSON", fields)], {
    action, submit: () => {
      const read = parse(fields.value);
      if (read === null || typeof read !== "object"
        || Array.isArray(read)) throw new Error("A document is an object in braces.");
      return createDocument(collection(), id.value, Object.fromEntries(entries(read)));
    },
  });
}
