// The result of a query, page by page. The stream keeps its first part up to date. After the
// watched part come the documents that were read while scrolling.

import { get, post } from "./api.js";
import { watch } from "./live.js";

const WATCHED = 500;
const PAGE = 500;

export class Results {
  #live = [];
  #tail = [];
  #cursor;
  #isReading = false;
  #end;
  last = false;

  /** `onrows` gets all rows and the paths of those that changed; `onfailure` what went wrong. */
  constructor(query, { onrows, onfailure, isLive = true }) {
    this.query = query;
    this.onrows = onrows;
    this.onfailure = onfailure;
    if (isLive) this.#watch();
    else this.#once();
  }

  get rows() {
    if (!this.#tail.length) return this.#live;
    const known = new Set(this.#live.map((document) => document.path));
    return [...this.#live, ...this.#tail.filter((document) => !known.has(document.path))];
  }

  end() {
    this.#end?.();
    this.isOver = true;
  }

  #watch() {
    const { collection, group, where, order } = this.query;
    const what = { kind: "query", collection, group, where, order, limit: this.query.limit ?? WATCHED };
    this.#end = watch(clean(what), (event, data) => {
      if (event === "problem") return this.onfailure(data.error);
      if (event === "state") this.#live = data.documents;
      const flashing = event === "changes" ? this.#apply(data.changes) : [];
      if (!this.#tail.length) {
        this.last = Boolean(data.last) || this.query.limit !== undefined;
        this.#cursor = data.cursor;
      }
      return this.onrows(this.rows, flashing);
    });
  }

  async #once() {
    try {
      const answer = await post("query", clean({ ...this.query, limit: this.query.limit ?? PAGE }));
      this.#take(answer);
    } catch (error) {
      if (!this.isOver) this.onfailure(error);
    }
  }

  #take(answer) {
    if (this.isOver) return;
    this.#tail.push(...answer.documents);
    this.#cursor = answer.cursor;
    this.last = answer.last || this.query.limit !== undefined;
    this.condition = answer.condition;
    this.onrows(this.rows, []);
  }

  /** Changes apply one after the other; answers the paths of those that came or changed. */
  #apply(changes) {
    const flashing = [];
    const pushed = [];
    for (const change of changes) {
      if (change.oldIndex !== undefined && change.oldIndex !== null) {
        const wasLast = change.oldIndex === this.#live.length - 1;
        const [gone] = this.#live.splice(change.oldIndex, 1);
        if (change.type === "removed" && wasLast && this.#tail.length) pushed.push(gone);
      }
      if (change.type === "removed") continue;
      this.#live.splice(change.newIndex, 0, change.document);
      flashing.push(change.document.path);
    }
    // A document that left at the end when another arrived was pushed out of the watched part.
    if (pushed.length && flashing.length && this.#live.length === WATCHED) this.#tail.unshift(...pushed);
    return flashing;
  }

  /** Reads what comes behind, when there is anything. */
  async more() {
    if (this.#isReading || this.last || !this.#cursor || this.isOver) return;
    this.#isReading = true;
    try {
      this.#take(await post("query", clean({ ...this.query, limit: PAGE, after: this.#cursor })));
    } catch (error) {
      if (!this.isOver) this.onfailure(error);
    } finally {
      this.#isReading = false;
    }
  }
}

export function clean(query) {
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined && value !== ""
    && value !== null && !(Array.isArray(value) && !value.length)));
}

/** Fields that a condition or an order names, as far as a glance at the text tells. */
export function mentioned(query, known) {
  const text = `${query.where ?? ""} ${query.order ?? ""}`;
  return known.filter((field) => (field.startsWith("`") ? text.includes(field)
    : new RegExp(`(^|[^\\w.\`'"])${field.replace(/[.$]/g, "\\$&")}($|[^\\w.])`).test(text)));
}

const few = { map: 1, array: 1, vector: 1, bytes: 1, blob: 1 };

/** The fields worth a column: those asked for, then the most frequent, short ones first. */
export async function columns(source, query, most, signal) {
  const { fields } = await get("schema", source, signal);
  const rank = (entry) => entry.share - (few[Object.keys(entry.kinds)[0]] ? 0.5 : 0);
  const sorted = [...fields].sort((left, right) => rank(right) - rank(left)).map((entry) => entry.field);
  const asked = mentioned(query, fields.map((entry) => entry.field));
  return { columns: [...new Set([...asked, ...sorted])].slice(0, most), fields };
}
