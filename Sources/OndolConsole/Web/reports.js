// The page of reports: a pipeline as `ondol pipe` takes it, its rows as a table, how it is carried out,
// and bars for groups with one number. The address keeps the pipeline.

import { get, onRefused, post, takeToken } from "./api.js";
import { button, choice, empty, failure, h, icon, label, loading, mark, replace, seen, svg, table } from "./dom.js";
import { address, go, route } from "./route.js";
import { brief, content, counted, kind } from "./values.js";

// What each button adds: a stage to be changed.
const STAGES = [["where", "where price > 10"], ["aggregate", "aggregate n = count() by kind"],
  ["sort", "sort n desc"], ["limit", "limit 20"], ["select", "select name, total = price * 2"],
  ["add", "add total = price * 2"], ["distinct", "distinct kind"], ["unnest", "unnest tags as tag"],
  ["lookup", "lookup in customers where id = customer as found"],
  ["window", "window place = rank() by kind sort price desc"], ["sample", "sample 100"]];
const BARS = 50;

const main = h("main", { id: "main", tabindex: "-1" });
let asked = 0;

class ReportsPage extends HTMLElement {
  async connectedCallback() {
    this.className = "page";
    this.field = h("textarea", { label: "Pipeline", onkeydown: (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.run();
    } });
    this.collections = choice([["", "Collection…"]], { onchange: () => this.begin() });
    this.answer = h("div");
    replace(this, h("header", h("h1", "Reports")),
      h("section.card.report",
        h("div.row.stages", label("From", this.collections), STAGES.map(([name, text]) =>
          button(name, () => this.add(text), { kind: "quiet", title: `Add | ${text}` }))),
        label("Pipeline", this.field),
        h("div.row", button("Run", () => this.run(), { sign: "play", kind: "primary" }),
          button("Measure", () => this.run("analyze"), { title: "Run, and count the rows of each stage" }),
          button("Explain", () => this.run("plan"), { kind: "quiet", title: "Without running it" }))),
      this.answer);
    this.arrive();
    try {
      const { collections } = await get("collections");
      for (const one of collections) this.collections.append(h("option", { value: one.path }, one.path));
    } catch (error) {
      replace(this.answer, failure(error));
    }
  }

  /** Shows the pipeline of the address. */
  arrive() {
    const text = route().parameters.get("pipeline") ?? "";
    if (text === this.field.value) return;
    this.field.value = text;
    if (text) this.run();
  }

  /** Begins with a collection; what comes after the first stage stays. */
  begin() {
    const path = this.collections.value;
    if (!path) return;
    const name = /^[\p{L}\p{N}_$/]+$/u.test(path) ? path : `\`${path.replace(/[`\\]/g, "\\$&")}\``;
    const rest = this.field.value.indexOf("|");
    this.field.value = name + (rest < 0 ? "" : ` ${this.field.value.slice(rest)}`);
    this.field.focus();
  }

  add(text) {
    this.field.value = `${this.field.value.trimEnd()}\n| ${text}`;
    this.field.focus();
    this.field.setSelectionRange(this.field.value.length - text.length, this.field.value.length);
  }

  async run(explain) {
    const pipeline = this.field.value.trim();
    if (!pipeline) {
      replace(this.answer, empty("Nothing to run", "Choose a collection, and add stages to it."));
      return;
    }
    asked += 1;
    const own = asked;
    go(address("reports", [], { pipeline }), { replace: true });
    replace(this.answer, loading());
    try {
      const found = await post("report", explain ? { pipeline, explain } : { pipeline });
      if (own === asked) this.show(found);
    } catch (error) {
      if (own !== asked) return;
      replace(this.answer, failure(error));
      if (error.offset !== undefined) this.point(pipeline, error.offset);
    }
  }

  /** Puts the cursor where the mistake is; offsets count bytes. */
  point(pipeline, offset) {
    const before = new TextDecoder().decode(new TextEncoder().encode(pipeline).slice(0, offset)).length;
    this.field.focus();
    this.field.setSelectionRange(before, pipeline.length);
  }

  show(found) {
    const hasPaths = found.rows?.some((one) => one.path);
    replace(this.answer,
      found.chart && found.rows.length > 0 && bars(found),
      found.rows && h("h2", found.more ? `The first ${counted(found.rows.length, "row")}`
        : counted(found.rows.length, "row")),
      found.rows?.length > 0 && h("section.card.wide-table", table([...(hasPaths ? ["Document"] : []),
        ...found.columns], found.rows.map((one) => [...(hasPaths ? [h("code", one.path ?? "")] : []),
        ...found.columns.map((name) => h("span.value", brief(one.fields[name])))]))),
      h("h2", "How it is carried out"),
      h("section.card", h("pre", found.explanation.join("\n")), h("p.muted", found.follows
        ? "A listener to this pipeline follows the changes of documents."
        : "A listener to this pipeline runs it again when a change concerns it.")));
  }
}
customElements.define("ondol-reports", ReportsPage);

/** The number of a value; undefined for anything else. */
function number(value) {
  if (!["integer", "double"].includes(kind(value))) return undefined;
  const found = Number(content(value));
  return Number.isFinite(found) ? found : undefined;
}

/** A bar for each group, as long as its number. */
function bars({ rows, chart }) {
  const shown = rows.map((one) => [brief(one.fields[chart.label] ?? null), number(one.fields[chart.value])])
    .filter(([, value]) => value !== undefined).slice(0, BARS);
  if (!shown.length) return undefined;
  const most = Math.max(...shown.map(([, value]) => Math.abs(value))) || 1;
  const short = (text) => (text.length > 24 ? `${text.slice(0, 23)}…` : text);
  const summary = `${chart.value} by ${chart.label}`;
  return h("section.card", h("h2", summary), svg("svg", { class: "bars", role: "img", label: summary,
    viewBox: `0 0 640 ${shown.length * 22}` }, shown.map(([name, value], place) => [
    svg("text", { x: 0, y: place * 22 + 15 }, short(name)),
    svg("rect", { x: 180, y: place * 22 + 3, height: 16, rx: 2, width: Math.max(1, 360 * Math.abs(value) / most),
      ...(value < 0 ? { class: "negative" } : {}) }),
    svg("text", { x: 186 + Math.max(1, 360 * Math.abs(value) / most), y: place * 22 + 15 },
      Number.isInteger(value) ? String(value) : value.toPrecision(6))])));
}

function refuse(reason) {
  replace(document.body, h("main.gate", mark(), h("h1", "Ondol console"), h("p", reason),
    h("a.button.primary", { href: "/" }, "Open the console")));
}

async function begin() {
  if (!takeToken()) return refuse("Open the console first, with the address that `ondol` has printed.");
  onRefused(() => refuse("This token is of an earlier start."));
  try {
    const { name } = await get("database");
    document.title = seen(`Reports · ${name}`);
    replace(document.body, h("div.frame",
      h("header.top", h("div.who", mark(), h("div.names", h("strong", name), h("span.path", "its reports"))),
        h("div.row", h("a", { href: "/" }, icon("back"), h("span", "Console")))),
      h("div.view", main)));
  } catch (error) {
    if (error.status !== 401) replace(document.body, h("main.gate", failure(error)));
    return undefined;
  }
  const page = document.createElement("ondol-reports");
  replace(main, page);
  addEventListener("hashchange", () => page.arrive());
  return undefined;
}

begin();
