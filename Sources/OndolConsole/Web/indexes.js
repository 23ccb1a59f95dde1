// All indexes: their definitions, progress, size, and whether queries use them.

import { get, post, remove } from "./api.js";
import { confirm, dialog, note } from "./dialogs.js";
import { choice, empty, failure, h, label, loading, replace, table } from "./dom.js";
import { Page } from "./page.js";
import { edit } from "./session.js";
import { grouped, size } from "./values.js";

class IndexesPage extends Page {
  begin() {
    this.place = h("div", loading());
    this.head = h("header", h("h1", "Indexes"), h("span.grow"),
      edit("New index", () => this.#create(), { sign: "plus", kind: "primary" }));
    replace(this, this.head, this.place);
    this.watch({ kind: "indexes" }, (event, data) => replace(this.place, event === "problem"
      ? failure(data.error) : this.#all(data)));
  }

  #all({ indexes, timeToLive, links }) {
    return [indexes.length ? card(["Collection", "Index", "Kind", "State", "Rows", "Size", "Used", ""],
      indexes.map((one) => [
      one.group ? `all called ${one.collection}` : one.collection, h("code", one.name), h("span.badge",
        one.unique ? "unique" : one.elements ? "elements of arrays" : one.group ? "group" : "fields"),
          state(one),
      grouped(one.entries), size(one.bytes), one.uses ? `${grouped(one.uses)} times`
        : h("span.muted", "never"),
      edit(`Drop ${one.name}`, () => this.#drop(one), { sign: "trash", bare: true })]))
      : empty("No indexes", "Every query scans its collection. Its plan says which index would help."),
    timeToLive.length > 0 && [h("h2", "Time to live"),
      card(["Collection", "Field"], timeToLive.map((one) => [one.collection, one.field]))],
    links.length > 0 && [h("h2", "Links to storage"), card(["Collection", "Field", "Folder"],
      links.map((one) => [one.collection, one.field, one.folder || "/"]))]];
  }

  async #create() {
    const { collections } = await get("collections");
    const preview = h("p.hint");
    const update = () => {
      const list = fields.value.split(",").map((one) => one.trim()).filter(Boolean);
      const [first, ...rest] = list.map((one) => one.replace(/^-/, ""));
      replace(preview, !first ? "Name the fields that queries compare first; - means descending."
        : kind.value === "elements" ? `Serves array-contains and array-contains-any on ${first}.`
          : `Serves ${first} = …, ${rest.length ? `with ranges of ${rest.join(", ")} behind it`
            : "ranges of it and orders by it"}.`);
    };
    const collection = choice(collections.map((one) => one.path));
    const fields = h("input", { required: true, placeholder: "category, -price", oninput: update });
    const kind = choice([["fields", "Fields"], ["unique", "Unique: no two documents have the same values"],
      ["null", "Unique, and null is a value"],
      ["elements", "Elements of an array"], ["group", "All collections with this name"]], { onchange: update });
    const where = h("input", { placeholder: "active = true" });
    update();
    const done = await dialog("New index", [label("Collection", collection),
      label("Fields", fields), label("Kind", kind),
      label("Only documents that meet (optional)", where), preview],
        { action: "Create", submit: () => post("indexes", {
      [kind.value === "group" ? "group" : "collection"]: collection.value,
        fields: fields.value.split(",").map((one) => one.trim()).filter(Boolean),
      ...(["unique", "elements"].includes(kind.value) ? { [kind.value]: true } : {}),
      ...(kind.value === "null" ? { unique: true, nullsDistinct: false } : {}),
        ...(where.value.trim() ? { where: where.value.trim() } : {}),
    }) });
    if (done) note("The index is being built.");
  }

  async #drop(one) {
    await confirm("Drop the index?", `${one.name} was used ${grouped(one.uses)} times since opening. `
      + "Queries that it serves scan instead.", "Drop", () => remove("indexes", {
      [one.group ? "group" : "collection"]: one.collection, name: one.name }));
  }
}
customElements.define("ondol-indexes", IndexesPage);

function state({ state: what, progress }) {
  if (what === "ready") return h("span.badge.good", "ready");
  return [h("span.badge.warn", "building"), progress
    && h("progress", { value: progress.documents, max: progress.total || 1,
    label: "Documents added" })];
}

const card = (heads, rows) => h("div.card.wide-table", table(heads, rows));
