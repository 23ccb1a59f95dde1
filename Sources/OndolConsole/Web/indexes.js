// All indexes: what they are, how far, how large and whether anybody uses them.

import { post, remove } from "./api.js";
import { confirm, dialog, note } from "./dialogs.js";
import { button, empty, failure, h, loading, replace } from "./dom.js";
import { Page } from "./page.js";
import { canEdit } from "./session.js";
import { grouped, size } from "./values.js";

class IndexesPage extends Page {
  begin() {
    this.place = h("div", null, loading());
    this.head = h("header", null, h("h1", null, "Indexes"), h("span", { class: "grow" }),
      button("New index", () => this.#create(), { sign: "plus", kind: "primary edit-only" }));
    replace(this, this.head, this.place);
    this.watch({ kind: "indexes" }, (event, data) => replace(this.place, event === "problem"
      ? failure(data.error) : this.#all(data)));
    this.watch({ kind: "collections" }, (event, data) => { this.collections = data.collections ?? []; });
  }

  #all({ indexes, timeToLive, links }) {
    return [indexes.length ? table(["Collection", "Index", "Kind", "State", "Rows", "Size", "Used", ""], indexes.map((one) => [
      one.group ? `all called ${one.collection}` : one.collection, h("code", null, one.name), h("span", { class: "badge" },
        one.unique ? "unique" : one.elements ? "elements of arrays" : one.group ? "group" : "fields"), state(one),
      grouped(one.entries), size(one.bytes), one.uses ? `${grouped(one.uses)} times` : h("span", { class: "muted" }, "never"),
      button(`Drop ${one.name}`, () => this.#drop(one), { sign: "trash", bare: true, kind: "quiet edit-only" })]))
      : empty("No indexes", "Every query scans its collection. The Query page's plan says which index would help."),
    timeToLive.length > 0 && [h("h2", null, "Time to live"), table(["Collection", "Field"], timeToLive.map((one) => [one.collection, one.field]))],
    links.length > 0 && [h("h2", null, "Links to storage"), table(["Collection", "Field", "Folder"],
      links.map((one) => [one.collection, one.field, one.folder || "/"]))]];
  }

  async #create() {
    if (!canEdit()) return;
    const preview = h("p", { class: "hint" });
    const update = () => {
      const list = fields.value.split(",").map((one) => one.trim()).filter(Boolean);
      const [first, ...rest] = list.map((one) => one.replace(/^-/, ""));
      preview.textContent = !first ? "Name the fields that queries compare first; - means descending."
        : kind.value === "elements" ? `Serves array-contains and array-contains-any on ${first}.`
          : `Serves ${first} = …${rest.length ? `, with ranges of and orders by ${rest.join(", ")} behind it` : ", ranges of it and orders by it"}.`;
    };
    const collection = h("select", { id: "collection" }, (this.collections ?? []).map((one) => h("option", { value: one.path }, one.path)));
    const fields = h("input", { id: "fields", required: true, placeholder: "category, -price", oninput: update, autocomplete: "off" });
    const kind = h("select", { id: "kind", onchange: update }, [["fields", "Fields"], ["unique", "Unique: no two documents agree"],
      ["elements", "Elements of an array"], ["group", "All collections called so"]].map(([value, title]) => h("option", { value }, title)));
    const where = h("input", { id: "where", placeholder: "active = true", autocomplete: "off" });
    update();
    const done = await dialog("New index", [h("label", { for: "collection" }, "Collection", collection),
      h("label", { for: "fields" }, "Fields", fields), h("label", { for: "kind" }, "Kind", kind),
      h("label", { for: "where" }, "Only documents that meet (optional)", where), preview], { action: "Create", submit: () => post("indexes", {
      [kind.value === "group" ? "group" : "collection"]: collection.value, fields: fields.value.split(",").map((one) => one.trim()).filter(Boolean),
      ...(["unique", "elements"].includes(kind.value) ? { [kind.value]: true } : {}), ...(where.value.trim() ? { where: where.value.trim() } : {}),
    }) });
    if (done) note("The index is being built.");
  }

  async #drop(one) {
    if (!canEdit()) return;
    await confirm("Drop the index?", `${one.name} of ${one.collection} was used ${grouped(one.uses)} times since opening. `
      + "Queries that it serves scan instead.", "Drop", () => remove("indexes", {
      [one.group ? "group" : "collection"]: one.collection, name: one.name }));
  }
}
customElements.define("ondol-indexes", IndexesPage);

function state({ state: what, progress }) {
  if (what === "ready") return h("span", { class: "badge good" }, "ready");
  return [h("span", { class: "badge warn" }, "building"), progress && h("progress", { value: progress.documents, max: progress.total || 1,
    "aria-label": "Documents added" })];
}

function table(heads, rows) {
  return h("div", { class: "card wide-table" }, h("table", { class: "plain" },
    h("thead", null, h("tr", null, heads.map((one) => h("th", { scope: "col" }, one)))),
    h("tbody", null, rows.map((cells) => h("tr", null, cells.map((one) => h("td", null, one)))))));
}
