// The page of documents: collections, the documents of one of them, and one document.

import { post } from "./api.js";
import { attempt, confirm, note } from "./dialogs.js";
import { button, empty, failure, h, icon, loading, replace } from "./dom.js";
import { DocumentPane, newDocumentDialog, startCollection } from "./document.js";
import { Page } from "./page.js";
import { Results, columns } from "./results.js";
import { address, go, route } from "./route.js";
import { edit } from "./session.js";
import { Table } from "./table.js";
import { counted, grouped } from "./values.js";
import { conditionBox } from "./condition.js";

class DataPage extends Page {
  begin() {
    this.classList.add("data");
    this.list = h("section.column.collections", { label: "Collections" }, loading(5));
    this.middle = h("section.column.documents", { label: "Documents" });
    this.right = h("section.column.document", { label: "Document" });
    replace(this, this.list, this.middle, this.right);
    this.watch({ kind: "collections" }, (event, data) => {
      this.collections = data.collections ?? [];
      this.#drawList();
      // The user may be on the way to another page, whose address must stay.
      const { page, steps } = route();
      if (page === "data" && !steps.length && this.collections.length && innerWidth > 760) {
        go(address("data", this.collections[0].path), { replace: true });
      } else if (!this.collection) this.#drawNothing();
      this.#drawCount();
    });
    this.arrive();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this.results?.end();
  }

  /** Shows where the address is now, and leaves alone what is shown already. */
  arrive() {
    const { steps, parameters } = route();
    const isDocument = steps.length > 0 && steps.length % 2 === 0;
    const collection = (isDocument ? steps.slice(0, -1) : steps).join("/");
    const where = parameters.get("where") ?? "";
    const order = parameters.get("order") ?? "";
    const view = JSON.stringify([collection, where, order]);
    this.dataset.depth = isDocument ? "document" : collection ? "documents" : "collections";
    if (view !== this.view) {
      Object.assign(this, { view, collection, where, order });
      this.#drawList();
      if (collection) this.#drawDocuments();
      else this.#drawNothing();
    }
    this.table?.select(isDocument ? steps.join("/") : null);
    this.#drawDocument(isDocument ? steps.join("/") : null);
  }

  #drawList() {
    if (!this.collections) return;
    const root = this.collection?.split("/")[0];
    const links = this.collections.map((one) => h("a.listrow", {
      href: address("data", one.path), "aria-current": one.id === root ? "true" : undefined,
    }, h("span.grow.name", one.id),
    h("span.muted.count", `${one.exact ? "" : "~"}${grouped(one.count)}`)));
    replace(this.list, h("header", h("h2", "Collections"),
      edit("Start a collection", () => startCollection(""), { sign: "plus", bare: true })),
      links.length ? h("nav", { label: "Collections" }, links)
      : empty("No documents yet", "The app's documents appear here at once.",
        edit("Start a collection", () => startCollection(""), { sign: "plus" })));
  }

  #drawNothing() {
    this.results?.end();
    this.table = null;
    replace(this.middle, empty("Choose a collection", this.collections?.length
      ? "Its documents follow the app's writes."
        : "There is nothing to choose yet."));
  }

  async #drawDocuments() {
    const { collection, view } = this;
    this.results?.end();
    this.isLoaded = false;
    this.count = h("span.muted", { role: "status" });
    this.hint = h("div");
    const table = this.table = new Table();
    table.order = this.order;
    table.onopen = (document) => go(this.#address(document.path));
    table.onsort = (field, isDescending) => this.#ask(this.where, `${field}${isDescending ? " desc" : ""}`);
    const steps = collection.split("/");
    const crumbs = steps.map((step, place) => [place > 0 && h("span.muted", "/"), place === steps.length - 1
      ? h("strong", { "aria-current": "page" }, step)
        : h("a", { href: address("data", steps.slice(0, place + 1)) }, step)]);
    this.problem = h("div");
    this.place = h("div.fill", loading(10));
    this.condition = conditionBox({
      value: this.where, run: (where) => this.#ask(where, this.order), fields: () => this.fields ?? [],
    });
    replace(this.middle, h("header", null,
      h("a.button.bare.quiet.only-narrow", { href: address("data"), label: "All collections" },
        icon("back")),
      h("nav.crumbs", { label: "Path" }, crumbs), this.count, h("span.grow"),
      edit("Add document", () => this.#add(), { sign: "plus" }),
      edit("Delete all that match", () => this.#deleteAll(), { sign: "trash", bare: true })),
    h("div.filter", this.condition), this.problem, this.hint, this.place);
    const query = { collection, where: this.where, order: this.order };
    try {
      const found = await columns({ collection }, query, innerWidth > 1500 ? 7 : 5, this.signal);
      if (view !== this.view) return;
      this.fields = found.fields;
      table.columns = found.columns;
    } catch (error) {
      if (error.name === "AbortError" || view !== this.view) return;
      replace(this.problem, failure(error));
    }
    this.results = new Results(query, {
      onrows: (rows, flashing) => this.#show(rows, flashing),
      onfailure: (error) => {
        replace(this.place);
        this.condition.fail(error);
        if (error.offset === undefined) replace(this.problem, failure(error));
      },
    });
    table.onend = () => this.results.more();
    this.#suggest(query, view);
  }

  #show(rows, flashing) {
    if (rows.length && this.place.firstChild !== this.table) replace(this.place, this.table);
    if (!rows.length) {
      const others = this.collections?.filter((one) => one.count).slice(0, 4).map((one) => one.id).join(", ");
      replace(this.place, this.where ? empty("No document meets the condition",
        `${this.collection} has other documents. Fields are compared with their kind: 1 is not "1".`,
        button("Show all", () => this.#ask("", this.order)))
        : empty("No documents here", others
          ? `There are documents in ${others}.`
          : "The app's documents appear here at once."));
    }
    const isFirst = !this.isLoaded;
    this.isLoaded = true;
    // A collection that was empty has no columns yet.
    if (!isFirst && rows.length === flashing.length && !this.table.columns.length) this.#drawDocuments();
    this.table.setRows(rows, flashing);
    const { steps } = route();
    if (isFirst && steps.length % 2 === 0) this.table.select(steps.join("/"));
    this.#drawCount();
  }

  #drawCount() {
    if (!this.isLoaded || !this.results) return;
    const { rows, last } = this.results;
    const all = !this.where && this.collections?.find((one) => one.path === this.collection);
    const loaded = grouped(rows.length);
    this.count.textContent = last ? counted(rows.length, "document")
      : all ? `${loaded} of ${all.exact ? "" : "about "}${grouped(all.count)}` : `first ${loaded}`;
  }

  /** Offers an index that would help, where the plan knows one. */
  async #suggest(query, view) {
    if (!query.where && !query.order) return;
    const answer = await post("query", { ...query, where: query.where || undefined,
      order: query.order || undefined, explain: "plan" }, {},
      this.signal).catch(() => null);
    const { suggestedIndex, unknownFields } = answer?.plan ?? {};
    if (view !== this.view || !suggestedIndex && !unknownFields?.length) return;
    replace(this.hint, unknownFields?.length > 0 && h("p.hint",
      `No document has the field ${unknownFields.join(", ")}.`),
      suggestedIndex && h("p.hint", "An index would help: ", h("code", suggestedIndex.join(", ")), " ",
        edit("Create it", () => this.#createIndex(suggestedIndex))));
  }

  async #createIndex(fields) {
    const { steps } = route();
    const collection = (steps.length % 2 ? steps : steps.slice(0, -1)).join("/");
    if (await attempt(() => post("indexes", { collection, fields }))) {
      replace(this.hint);
      note(`The index on ${fields.join(", ")} is being built.`);
    }
  }

  #address(path) {
    return address("data", path, { where: this.where, order: this.order });
  }

  #ask(where, order) {
    go(address("data", this.collection, { where, order }));
  }

  async #add() {
    const made = await newDocumentDialog(`Add a document to ${this.collection}`, "Add",
      () => this.collection);
    if (made) go(this.#address(made.path));
  }

  async #deleteAll() {
    const query = { collection: this.collection, ...(this.where ? { where: this.where } : {}) };
    const found = await attempt(() => post("delete", { ...query, dryRun: true }));
    if (!found) return;
    await confirm(`Delete ${counted(found.count, "document")}?`, `All documents of ${this.collection} go${
      this.where ? ` that meet ${this.where}` : ""}. This cannot be undone.`, "Delete", async () => {
      let [deleted, answer] = [0, { last: false }];
      while (answer.last === false) {
        answer = await post("delete", { ...query, dryRun: false });
        deleted += answer.count;
      }
      note(`${counted(deleted, "document")} deleted.`);
    }, this.collection);
  }

  #drawDocument(path) {
    if (path === this.shown) return;
    this.shown = path;
    if (!path) {
      replace(this.right, empty("No document selected", "Select one to see its fields."));
      return;
    }
    const pane = new DocumentPane();
    replace(this.right, pane);
    pane.show(path, this.#address(this.collection));
  }
}
customElements.define("ondol-data", DataPage);
