// Queries: rows of conditions and the text, each of which updates the other; the result, its plan,
// its cost, and the same query in code.

import { post } from "./api.js";
import { COMPARISONS, code, orderParts } from "./code.js";
import { conditionBox } from "./condition.js";
import { button, choice, empty, failure, h, label, loading, replace, table, tool } from "./dom.js";
import { attempt, note } from "./dialogs.js";
import { Page } from "./page.js";
import { costView, planView } from "./plan.js";
import { Results, clean, columns } from "./results.js";
import { address, go, route } from "./route.js";
import { Table } from "./table.js";
import { brief, counted, names, parse, text } from "./values.js";

const OPERATORS = ["=", "!=", "<", "<=", ">", ">=", "in", "not in", "array-contains", "array-contains-any",
  "starts-with"];
const TABS = ["result", "plan", "cost", "code"];
const OPTIONS = [["order", "Order", "price desc, name"], ["limit", "Limit", "50"],
  ["select", "Fields", "name, price"],
  ["lookup", "Lookup", "userId in users as user"], ["aggregate", "Aggregates", "count, sum(total)"],
    ["by", "Group by", "category"]];

class QueryPage extends Page {
  begin() {
    this.source = h("select", { onchange: () => this.#ask() });
    this.terms = h("div.builder");
    this.inputs = Object.fromEntries(OPTIONS.map(([name, , hint]) =>
      [name, h("input", { id: `option-${name}`, placeholder: hint, onchange: () => this.#ask() })]));
    this.texts = h("select", { id: "option-texts", onchange: () => this.#compare() },
      ["", ...COMPARISONS].map((one) => h("option", { value: one }, one || "bytes")));
    this.isLive = h("input", { type: "checkbox", onchange: () => this.#ask() });
    this.box = h("div");
    this.tabs = h("div.tabs", { role: "tablist", label: "What to show" },
      TABS.map((tab) => h("button", {
      role: "tab", id: `tab-${tab}`, "aria-controls": "panel",
        onclick: () => this.#ask({ tab }), onkeydown: (event) => {
        const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (by) this.tabs.children[(TABS.indexOf(tab) + by + TABS.length) % TABS.length].focus();
      },
    }, tab[0].toUpperCase() + tab.slice(1))));
    this.place = h("div.resultplace", { id: "panel", role: "tabpanel" }, loading());
    this.status = h("span.muted", { role: "status" });
    replace(this, h("header", h("h1", "Query"), this.status),
      h("section.card.builder", { label: "The query" },
        h("div.options", label("In", this.source)), this.terms, this.box,
        h("details", h("summary", "Order, limit, fields, lookups, groups"),
          h("div.options", OPTIONS.map(([name, title]) =>
            h("label", { for: `option-${name}` }, title, this.inputs[name])),
            h("label", { for: "option-texts" }, "Texts by", this.texts))),
        h("label.check", this.isLive, "Follow changes")), this.tabs, this.place);
    this.watch({ kind: "collections" }, (event, data) => {
      this.collections = data.collections ?? [];
      this.#fillSources();
      if (!this.isBegun) this.arrive();
      this.isBegun = true;
    });
    this.until(() => this.results?.end());
  }

  #fillSources() {
    const { parameters } = route();
    const known = this.collections.map((one) => `collection:${one.path}`);
    const asked = parameters.get("from");
    const groups = this.collections.map((one) => `group:${one.id}`);
    const all = [...new Set([...known, ...groups, ...(asked ? [asked] : [])])];
    replace(this.source, all.map((one) => h("option", { value: one },
      one.replace("collection:", "").replace("group:", "all called "))));
    this.source.value = asked ?? known[0] ?? "";
  }

  /** The query that the address has. */
  #query() {
    const { parameters } = route();
    const value = (name) => parameters.get(name) ?? undefined;
    const [what, ...rest] = (value("from") ?? this.source.value).split(":");
    const lookups = (value("lookup") ?? "").split(",").map((one) =>
      /^\s*(.+?)\s+in\s+(.+?)\s+as\s+(\S+)\s*$/.exec(one)).filter(Boolean)
      .map(([, field, place, as]) => ({ field, in: place, as }));
    const aggregate = (value("aggregate") ?? "").split(",").map((one) =>
      /^\s*(\w+)(?:\((.+)\))?\s*$/.exec(one)).filter(Boolean)
      .map(([, op, field]) => clean({ op, field }));
    return clean({ [what]: rest.join(":"), where: value("where"), order: value("order"),
      limit: Number(value("limit")) || undefined,
      select: value("select"), lookups, aggregate, by: value("by") });
  }

  arrive() {
    const { parameters } = route();
    if (!this.collections) return;
    this.#fillSources();
    if (!this.source.value) return replace(this.place,
      empty("Nothing to query", "There are no collections yet."));
    for (const [name] of OPTIONS) this.inputs[name].value = parameters.get(name) ?? "";
    this.texts.value = orders(this.inputs.order.value)[0]?.comparison ?? "";
    this.texts.disabled = !this.inputs.order.value;
    this.isLive.checked = parameters.get("live") !== "no";
    this.query = this.#query();
    const tab = TABS.includes(parameters.get("tab")) ? parameters.get("tab") : "result";
    for (const one of this.tabs.children) {
      one.setAttribute("aria-selected", one.id === `tab-${tab}`);
      one.tabIndex = one.id === `tab-${tab}` ? 0 : -1;
    }
    if (this.box.dataset.where !== (this.query.where ?? "") || !this.condition) {
      this.box.dataset.where = this.query.where ?? "";
      this.condition = conditionBox({ value: this.query.where ?? "", run: (where) => this.#ask({ where }),
        fields: () => this.fields ?? [] });
      replace(this.box, this.condition);
    }
    return this.#show(tab);
  }

  /** Has the texts of each order compared as chosen. */
  #compare() {
    const comparison = this.texts.value;
    this.#ask({ order: orders(this.inputs.order.value).map(({ field, way }) =>
      [field, comparison, way].filter(Boolean).join(" ")).join(", ") });
  }

  /** Goes to the address of what the inputs say. */
  #ask(change = {}) {
    const { parameters } = route();
    const asked = { ...Object.fromEntries(parameters), from: this.source.value,
      ...Object.fromEntries(OPTIONS.map(([name]) => (
      [name, this.inputs[name].value.trim()]))), live: this.isLive.checked ? "" : "no", ...change };
    go(address("query", [], asked));
  }

  async #show(tab) {
    const turn = this.turn = {};
    this.results?.end();
    this.abort?.abort();
    this.abort = new AbortController();
    this.status.textContent = "";
    replace(this.place, loading(8));
    try {
      // The plan reads nothing, and shows how the condition was understood.
      const answer = await post("query", { ...this.query, explain: tab === "cost" ? "analyze" : "plan" }, {},
        this.abort.signal);
      if (turn !== this.turn) return;
      this.condition.clear();
      this.#drawTerms(answer.condition);
      if (tab === "plan") replace(this.place, planView(answer.plan, (fields) => this.#createIndex(fields)));
      else if (tab === "cost") replace(this.place, costView(answer.plan));
      else if (tab === "code") replace(this.place, code(this.query, answer.condition));
      else await this.#result(turn);
    } catch (error) {
      if (error.name === "AbortError" || turn !== this.turn) return;
      if (error.offset !== undefined) this.condition.fail(error);
      this.#drawTerms(undefined);
      replace(this.place, h("div.panel", failure(error)));
    }
  }

  async #result(turn) {
    const { query } = this;
    if (query.aggregate) return this.#groups(turn);
    const source = clean({ collection: query.collection, group: query.group });
    const table = new Table();
    const found = await columns(source, query, 6,
      this.abort.signal).catch(() => ({ columns: [], fields: [] }));
    if (turn !== this.turn) return undefined;
    this.fields = found.fields;
    const added = (query.lookups ?? []).map((one) => one.as);
    table.columns = [...(query.select ? query.select.split(",").map((one) => one.trim()) : found.columns),
      ...added].slice(0, 9);
    table.showsPaths = Boolean(query.group);
    table.onopen = (document) => go(address("data", document.path));
    const isPlain = !query.select && !query.lookups;
    this.results = new Results(query, {
      isLive: this.isLive.checked && isPlain,
      onrows: (rows, flashing) => {
        if (rows.length && this.place.firstChild !== table) replace(this.place, table);
        if (!rows.length) replace(this.place, empty("No document meets the query"));
        table.setRows(rows, flashing);
        const isPart = this.results?.last === false;
        this.status.textContent = (isPart ? "first " : "") + counted(rows.length, "document");
      },
      onfailure: (error) => replace(this.place, h("div.panel", failure(error))),
    });
    table.onend = () => this.results.more();
    return undefined;
  }

  async #groups(turn) {
    const { groups } = await post("query", this.query, {}, this.abort.signal);
    if (turn !== this.turn) return;
    const by = (this.query.by ?? "").split(",").map((one) => one.trim()).filter(Boolean);
    const heads = [...by, ...this.query.aggregate.map(({ op, field }) => (field ? `${op}(${field})` : op))];
    replace(this.place, h("div.scroll", table(heads, groups.map(({ key, values }) => (
      [...key, ...values].map((value) => h("code", brief(value))))))));
    this.status.textContent = counted(groups.length, "group");
  }

  /** Rows of conditions, where the text is one or several that must all be met. */
  #drawTerms(condition) {
    const terms = !condition ? [] : condition.and ?? [condition];
    if (terms.some((one) => one.and || one.or)) {
      return replace(this.terms, h("p.muted", "Alternatives are written in the text below."));
    }
    const rows = terms.map(({ field, op, value }) => ({ field, op, value: text(value) }));
    const write = () => this.#ask({ where: rows.map(({ field, op, value }) =>
      `${field} ${op} ${literal(value)}`).join(" and ") });
    replace(this.terms, rows.map((row, place) => {
      const input = (name, label) => {
        const element = h("input", { label: `${label} of condition ${place + 1}`,
          onchange: () => { row[name] = element.value; write(); } });
        element.value = row[name];
        return element;
      };
      const operator = choice(OPERATORS, { label: `Operator of condition ${place + 1}`,
        onchange: () => {
        row.op = operator.value;
        write();
      } });
      operator.value = row.op;
      return h("div.term", input("field", "Field"), operator, input("value", "Value"),
        tool(`Remove condition ${place + 1}`, "close", () => { rows.splice(place, 1); write(); }));
    }), h("div", button("Add condition", () => {
      const field = this.fields?.find((one) => !rows.some((row) => names(row.field)[0] === one.field))
        ?? { field: "field", kinds: {} };
      const isText = Object.keys(field.kinds)[0] === "string";
      rows.push({ field: field.field, op: isText ? "!=" : ">=", value: isText ? '""' : "0" });
      write();
    }, { sign: "plus", kind: "small" })));
    return undefined;
  }

  async #createIndex(fields) {
    const { collection, group } = this.query;
    if (await attempt(() => post("indexes", clean({ collection, group,
      fields })))) note(`The index on ${fields.join(", ")} is being built.`);
  }
}
customElements.define("ondol-query", QueryPage);

/** The orders that were typed, taken apart. */
function orders(typed) {
  return typed.split(",").map((one) => one.trim()).filter(Boolean).map(orderParts);
}

/** What was typed as a value: JSON as it is, anything else as a text. */
function literal(typed) {
  try {
    parse(typed.replace(/^'(.*)'$/, (_, inner) => JSON.stringify(inner)));
    return typed;
  } catch {
    return JSON.stringify(typed);
  }
}
