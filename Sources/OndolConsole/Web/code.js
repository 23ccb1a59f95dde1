// The query as Swift and as a line for the shell, for copying into an app or a terminal.

import { copy } from "./document.js";
import { h, tool } from "./dom.js";
import { content, entries, kind } from "./values.js";

const string = (value) => JSON.stringify(value).replace(/\\u([0-9a-f]{4})/gi, "\\u{$1}").replace(/\\\//g, "/")
  .replace(/\\[bf]/g, (one) => (one === "\\b" ? "\\u{8}" : "\\u{c}"));
const shell = (value) => `'${value.replace(/'/g, "'\\''")}'`;

const METHODS = {
  "=": "isEqualTo", "!=": "isNotEqualTo", "<": "isLessThan", "<=": "isLessThanOrEqualTo",
    ">": "isGreaterThan",
  ">=": "isGreaterThanOrEqualTo", in: "in", "not in": "notIn", "array-contains": "arrayContains",
  "array-contains-any": "arrayContainsAny", "starts-with": "hasPrefix",
};

/** A value as Swift writes it. */
function swift(value) {
  const inner = content(value);
  switch (kind(value)) {
    case "null": return "Value.null";
    case "integer": return inner;
    case "double": return /^-?\d/.test(inner) ? inner
      : { NaN: "Double.nan", Infinity: "Double.infinity" }[inner] ?? "-Double.infinity";
    case "decimal": return `Decimal(string: ${string(inner)})`;
    case "string": return string(inner);
    case "array": return `[${inner.map(swift).join(", ")}]`;
    case "map": {
      const members = entries(inner).map(([name, one]) => `${string(name)}: ${swift(one)}`);
      return `[${members.join(", ") || ":"}]`;
    }
    case "reference": return `database.document(${string(inner)})`;
    case "timestamp": return `try Date(${string(inner)}, strategy: .iso8601)`;
    case "geoPoint": return `try GeoPoint(latitude: ${inner[0]}, longitude: ${inner[1]})`;
    case "vector": return `VectorValue([${inner.join(", ")}])`;
    case "bytes": return `Data(base64Encoded: ${string(inner.base64)})`;
    default: return String(inner);
  }
}

function filter({ and, or, field, op, value }) {
  if (and || or) return `.${and ? "and" : "or"}Filter([${(and ?? or).map(filter).join(", ")}])`;
  const { field: name, comparison } = orderParts(field);
  return `.whereField(${string(name)}, ${METHODS[op]}: ${swift(value)}${
    comparison ? `, comparing: .${comparison}` : ""})`;
}

/** How texts may be compared, as an order says it. */
export const COMPARISONS = ["caseInsensitive", "folded", "natural"];

/** An order taken apart: its field, how texts are compared and its direction, where it says so. */
export function orderParts(order) {
  const [, field, word, way] = /^(.*?)(?:\s*[\s~](caseInsensitive|folded|natural))?(?:\s+(asc|desc))?$/i
    .exec(order.trim());
  return { field, way: way?.toLowerCase(),
    comparison: COMPARISONS.find((one) => one.toLowerCase() === word?.toLowerCase()) };
}

export function swiftCode(query, condition) {
  const lines = [`let found = try await database.${query.group ? `collectionGroup(${string(query.group)})`
    : `collection(${string(query.collection)})`}`];
  const terms = !condition ? [] : condition.and ?? [condition];
  for (const term of terms) {
    lines.push(term.or || term.and ? `  .whereFilter(${filter(term)})` : `  ${filter(term)}`);
  }
  for (const order of (query.order ?? "").split(",").map((one) => one.trim()).filter(Boolean)) {
    const { field, comparison, way } = orderParts(order);
    lines.push(`  .order(by: ${string(field)}${comparison ? `, comparing: .${comparison}` : ""}${
      way === "desc" ? ", descending: true" : ""})`);
  }
  if (query.limit) lines.push(`  .limit(to: ${query.limit})`);
  const list = (fields) => (fields ?? "").split(",").map((one) => one.trim()).filter(Boolean).map(string);
  if (query.select) lines.push(`  .select([${list(query.select).join(", ")}])`);
  for (const { field, in: place, as } of query.lookups ?? []) {
    lines.push(`  .lookup(${string(field)}, in: ${string(place)}, as: ${string(as)})`);
  }
  if (query.aggregate) {
    const fields = query.aggregate.map(({ op, field }) => `.${op}(${field ? string(field) : ""})`).join(", ");
    const by = list(query.by).join(", ");
    lines.push(`  .aggregate([${fields}])`, ...(by ? [`  .group(by: [${by}])`] : []), "  .getAggregation()");
  } else lines.push("  .getDocuments()");
  return lines.join("\n");
}

export function shellCode(query) {
  const option = (name, value) => (value ? ` --${name} ${shell(String(value))}` : "");
  const place = shell(query.collection ?? query.group);
  const rest = `${query.where ? ` ${shell(query.where)}` : ""}${query.group ? " --group" : ""}`;
  if (query.aggregate) {
    const names = { sum: "sum", average: "avg", minimum: "min", maximum: "max" };
    const asked = query.aggregate.map(({ op, field }) => option(names[op], field)).join("");
    return `ondol agg shop.ondol ${place}${rest}${asked}${option("group-by", query.by)}`;
  }
  const options = ["order", "limit", "select"].map((name) => option(name, query[name])).join("");
  return `ondol query shop.ondol ${place}${rest}${options}`;
}

export function code(query, condition) {
  const codes = [["Swift", swiftCode(query, condition)], ["Shell", shellCode(query)]];
  return h("div.panel", codes.map(([title, source]) => [
    h("div.row", h("h2", title), h("span.grow"),
      tool(`Copy ${title}`, "copy", () => copy(source))), h("pre", source)]));
}
