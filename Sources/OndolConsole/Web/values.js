// Values in the wire's form, canonical typed JSON, and in the form that people read and write. They
// are never unpacked: an integer stays `{"$numberLong": "7"}`, so none of its 64 bits is lost by
// rounding.

const MARKS = {
  $numberLong: "integer", $numberDouble: "double", $numberDecimal: "decimal", $date: "timestamp",
  $binary: "bytes", $blob: "blob",
  $reference: "reference", $geoPoint: "geoPoint", $vector: "vector", $literal: "map",
};

/** Names of kinds, as an editor offers them. */
export const KINDS = ["string", "integer", "double", "decimal", "boolean", "null", "timestamp", "array",
  "map", "reference",
  "geoPoint", "bytes", "vector", "blob"];

export function kind(value) {
  if (value === null) return "null";
  if (typeof value === "boolean") return "boolean";
  if (typeof value === "string") return "string";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return "double";
  const names = Object.keys(value);
  return names.length === 1 && Object.hasOwn(MARKS, names[0]) ? MARKS[names[0]] : "map";
}

/** What a value has inside its mark. */
export function content(value) {
  const what = kind(value);
  if (what === "map") return Object.hasOwn(value, "$literal") && Object.keys(value).length === 1
    ? value.$literal : value;
  return ["null", "boolean", "string", "array"].includes(what) || typeof value === "number"
    ? value : Object.values(value)[0];
}

/** A count inside a value, which may have its type beside it. */
export function count(value) {
  return Number(typeof value === "object" && value ? Object.values(value)[0] : value);
}

const bySpelling = (left, right) => (left < right ? -1 : left > right ? 1 : 0);

/** The fields of a map or a document, by name. */
export function entries(fields) {
  return Object.entries(fields).sort((left, right) => bySpelling(left[0], right[0]));
}

export function isSame(left, right) {
  return text(left) === text(right);
}

// MARK: paths of fields

/** A name as one step of a field path. */
export function step(name) {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !/^(and|or|not)$/i.test(name)
    ? name : `\`${name.replace(/[\\`]/g, "\\$&")}\``;
}

export function names(path) {
  return (path.match(/`(?:[^`\\]|\\.)*`|[^.`]+/g) ?? [])
    .map((part) => (part[0] === "`" ? part.slice(1, -1).replace(/\\(.)/g, "$1") : part));
}

/** The value at a field path; undefined where there is none. */
export function at(fields, path) {
  let value = fields;
  for (const name of names(path)) {
    if (value === undefined || value === null || typeof value !== "object") return undefined;
    const inner = value === fields ? fields : content(value);
    if (inner === null || typeof inner !== "object" || !Object.hasOwn(inner, name)) return undefined;
    value = inner[name];
  }
  return value;
}

// MARK: texts

/** A value as relaxed typed JSON in one line. */
export function text(value) {
  const what = kind(value);
  if (what === "integer") return String(content(value));
  if (what === "double") return doubleText(content(value));
  if (what === "array") return `[${value.map(text).join(",")}]`;
  if (what === "map") {
    const members = entries(content(value)).map(([name, one]) => `${JSON.stringify(name)}:${text(one)}`);
    const inner = `{${members.join(",")}}`;
    return Object.hasOwn(value, "$literal") ? `{"$literal":${inner}}` : inner;
  }
  return JSON.stringify(value);
}

function doubleText(content) {
  const written = String(content);
  if (!/^-?[\d.]+(e[+-]?\d+)?$/i.test(written)) return JSON.stringify({ $numberDouble: written });
  return /[.e]/i.test(written) ? written : `${written}.0`;
}

/** Relaxed typed JSON over several lines, for an editor. */
export function pretty(value, indent = "", isDocument = false) {
  const what = isDocument ? "map" : kind(value);
  const inner = what === "map" && !isDocument ? content(value) : value;
  const isNested = what === "array" || what === "map" && !Object.hasOwn(value, "$literal") || isDocument;
  const line = isDocument ? null : text(value);
  if (!isNested || line !== null && line.length + indent.length < 70) return line;
  const deeper = `${indent}  `;
  const rows = what === "array" ? inner.map((one) => pretty(one, deeper))
    : entries(inner).map(([name, one]) => `${JSON.stringify(name)}: ${pretty(one, deeper)}`);
  const [open, close] = what === "array" ? "[]" : "{}";
  return rows.length ? `${open}\n${deeper}${rows.join(`,\n${deeper}`)}\n${indent}${close}` : open + close;
}

/** Reads typed JSON, relaxed or canonical. Numbers get their type from how they are written. */
export function parse(source) {
  const typed = source.replace(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g, (token) => {
    if (token[0] === '"') return token;
    JSON.parse(token);
    return JSON.stringify(number(token));
  });
  return untypedInside(JSON.parse(typed));
}

function number(token) {
  if (/^-?\d+$/.test(token)) {
    return BigInt.asIntN(64, BigInt(token)) === BigInt(token)
      ? { $numberLong: token } : { $numberDecimal: token };
  }
  return digits(token) === digits(String(Number(token)))
    ? { $numberDouble: token } : { $numberDecimal: token };
}

/** The digits of a number from the first to the last that is not 0, and the place of the first. */
function digits(token) {
  const [, whole, fraction = "", exponent = "0"] =
    /^-?(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(token) ?? [];
  if (whole === undefined) return token;
  const significant = `${whole}${fraction}`.replace(/^0+/, "");
  const place = significant.length - fraction.length + Number(exponent);
  return significant ? `${significant.replace(/0+$/, "")}e${place}` : "0";
}

/** Coordinates and components of vectors are plain numbers. */
function untypedInside(value) {
  if (Array.isArray(value)) return value.map(untypedInside);
  if (value === null || typeof value !== "object") return value;
  const plain = (one) => (one !== null && typeof one === "object" && !Array.isArray(one)
    ? Number(Object.values(one)[0]) : one);
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name,
    ["$geoPoint", "$vector"].includes(name) && Array.isArray(one) ? one.map(plain) : untypedInside(one)]));
}

/** A value for people, in a cell: short, without quotes around texts. */
export function brief(value) {
  if (value === undefined) return "";
  const inner = content(value);
  switch (kind(value)) {
    case "string": return inner.length > 200 ? `${inner.slice(0, 200)}…` : inner;
    case "timestamp": return typeof inner === "string" ? inner : text(value);
    case "reference": return inner;
    case "geoPoint": return inner.join(", ");
    case "bytes": return `${bytesOf(inner.base64)} bytes`;
    case "blob": return `${inner.contentType ?? "content"}, ${size(count(inner.length))}`;
    case "vector": return `[${inner.slice(0, 4).join(", ")}${inner.length > 4 ? ", …" : ""}]`;
    case "array": return inner.length > 20 ? `${inner.length} elements` : `[${inner.map(brief).join(", ")}]`;
    case "map":
      return `{${entries(inner).slice(0, 8).map(([name, one]) => `${name}: ${brief(one)}`).join(", ")}}`;
    case "double": return /^-?\d/.test(inner) ? doubleText(inner) : String(inner);
    default: return String(inner);
  }
}

function bytesOf(base64) {
  return Math.floor(base64.length * 3 / 4) - (base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0);
}

/** Bytes for people. */
export function size(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let [amount, unit] = [bytes, 0];
  while (amount >= 999.5 && unit < units.length - 1) [amount, unit] = [amount / 1000, unit + 1];
  return `${unit && amount < 99.95 ? amount.toFixed(1) : Math.round(amount)} ${units[unit]}`;
}

export const grouped = (amount) => amount.toLocaleString("en");

/** "1 document", "2 documents". */
export const counted = (amount, noun) => `${grouped(amount)} ${noun}${amount === 1 ? "" : "s"}`;

/** A moment in this machine's time zone, for hovering. */
export function local(iso) {
  const date = new Date(iso);
  return Number.isNaN(date.getTime()) ? iso : date.toLocaleString();
}

/** A moment without what is the same in all of them. */
export const shortTime = (iso) => iso.replace("T", " ").replace(/(\.\d{3})\d+/, "$1").replace(/Z$/, "");
