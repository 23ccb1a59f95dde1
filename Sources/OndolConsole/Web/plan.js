// How a query is answered, as a small tree, and what it costs, as bars.

import { button, h } from "./dom.js";
import { grouped } from "./values.js";

function way(access) {
  switch (access.way) {
    case "nothing": return ["Nothing can match"];
    case "scan": return ["Scan of the collection", "every document is read"];
    case "idRange": return ["Range of ids"];
    case "lookups": return [`${grouped(access.count)} lookups by id`];
    case "index": return [`Index ${access.name}`, `${grouped(access.ranges)} range${access.ranges === 1 ? "" : "s"}`];
    case "intersection": return ["Rows that stand in each of", null, access.names.map((name) => ({ way: "index", name, ranges: 1 }))];
    case "end": return ["One end of", null, [access.of]];
    case "union": return ["Each of", null, access.ways];
    default: return [access.way];
  }
}

function branch(access) {
  const [title, more, inner] = way(access);
  return h("li", null, h("strong", null, title), more && h("span", { class: "muted" }, ` · ${more}`),
    inner && h("ul", { class: "ways" }, inner.map(branch)));
}

export function planView(plan, create) {
  return h("div", { class: "panel" }, h("pre", null, plan.query), h("ul", { class: "ways" }, branch(plan.access)),
    h("p", null, plan.sorts ? "What is found is sorted afterwards." : "What is found is in order already."),
    plan.needsNoDocuments && h("p", null, "The index alone answers it: no document is read."),
    plan.isPlanCutShort && h("p", null, "The conditions combine in more ways than were looked at."),
    plan.unknownFields.map((field) => h("p", { class: "problem" }, `No document and no index has the field ${field}.`)),
    plan.buildingIndexes.map((name) => h("p", { class: "hint" }, `The index ${name} is being built and will serve it.`)),
    plan.suggestedIndex && h("p", { class: "hint" }, "An index would serve it: ", h("code", null, plan.suggestedIndex.join(", ")),
      button("Create it", () => create(plan.suggestedIndex), { kind: "small edit-only" })));
}

export function costView(plan) {
  const bars = [["Entries visited", plan.entriesVisited], ["Documents examined", plan.documentsExamined],
    ["Documents returned", plan.documentsReturned]];
  const most = Math.max(1, ...bars.map(([, amount]) => amount ?? 0));
  const waste = plan.documentsReturned ? plan.documentsExamined / plan.documentsReturned : plan.documentsExamined;
  return h("div", { class: "panel" }, bars.map(([title, amount]) => h("div", { class: "bar" }, h("span", null, title),
    h("meter", { min: "0", max: String(most), value: amount ?? 0, "aria-label": title }), h("b", null, grouped(amount ?? 0)))),
  h("p", null, `It took ${((plan.duration ?? 0) * 1_000).toFixed(2)} ms.`),
  h("p", { class: "muted" }, waste > 10 ? `For each document returned ${Math.round(waste)} were examined: an index would help.`
    : "Little is read that is not returned."));
}
