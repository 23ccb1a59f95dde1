// How a query is answered, as a small tree, and what it costs, as bars.

import { h } from "./dom.js";
import { edit } from "./session.js";
import { grouped } from "./values.js";

function way(access) {
  switch (access.way) {
    case "nothing": return ["Nothing can match"];
    case "scan": return ["Scan of the collection", "every document is read"];
    case "idRange": return ["Range of ids"];
    case "lookups": return [`${grouped(access.count)} lookups by id`];
    case "index": return [`Index ${access.name}`,
      `${grouped(access.ranges)} range${access.ranges === 1 ? "" : "s"}`];
    case "intersection": return ["Rows that stand in each of", null,
      access.names.map((name) => ({ way: "index", name, ranges: 1 }))];
    case "end": return ["One end of", null, [access.of]];
    case "union": return ["Each of", null, access.ways];
    default: return [access.way];
  }
}

function branch(access) {
  const [title, more, inner] = way(access);
  return h("li", h("strong", title), more && h("span.muted", ` · ${more}`),
    inner && h("ul.ways", inner.map(branch)));
}

export function planView(plan, create) {
  return h("div.panel", h("pre", plan.query), h("ul.ways", branch(plan.access)),
    h("p", plan.sorts ? "The result is sorted afterwards." : "The result is in order already."),
    plan.needsNoDocuments && h("p", "The index alone answers it: no document is read."),
    plan.isPlanCutShort && h("p", "The conditions combine in more ways than the planner examined."),
    plan.unknownFields.map((field) => h("p.problem", `No document and no index has the field ${field}.`)),
    plan.buildingIndexes.map((name) => h("p.hint", `The index ${name} is being built and will serve it.`)),
    plan.suggestedIndex && h("p.hint", "An index would help: ", h("code", plan.suggestedIndex.join(", ")),
      edit("Create it", () => create(plan.suggestedIndex))));
}

export function costView(plan) {
  const bars = [["Entries visited", plan.entriesVisited], ["Documents examined", plan.documentsExamined],
    ["Documents returned", plan.documentsReturned]];
  const most = Math.max(1, ...bars.map(([, amount]) => amount ?? 0));
  const waste = plan.documentsReturned ? plan.documentsExamined / plan.documentsReturned
    : plan.documentsExamined;
  return h("div.panel", bars.map(([title, amount]) => h("div.bar", h("span", title),
    h("meter", { min: "0", max: String(most), value: amount ?? 0, label: title }),
      h("b", grouped(amount ?? 0)))),
  h("p", `It took ${((plan.duration ?? 0) * 1_000).toFixed(2)} ms.`),
  h("p.muted", waste > 10 ? `${Math.round(waste)} examined for each returned: an index would help.`
    : "The query reads little that it does not return."));
}
