// A table of documents. Only the visible rows are elements, so that a hundred thousand documents
// scroll like a hundred. The elements are kept and refilled, never created while scrolling.

import { h, replace, seen } from "./dom.js";
import { at, brief, kind, text } from "./values.js";

const ROW = 34;
const SPARE = 6;
const FLASH = 1_200;

export class Table extends HTMLElement {
  rows = [];
  /** Field paths; the id comes in front of them. */
  columns = [];
  selected = null;
  /** What is called with a document, near the end of the rows, and with a field to sort by. */
  onopen = () => {};
  onend = () => {};
  onsort = null;
  order = "";
  /** Whether rows are called by their paths, as those of a group are. */
  showsPaths = false;
  #pool = [];
  #flashes = new Map();
  #active = 0;
  #asked = 0;

  connectedCallback() {
    this.head = h("div.thead", { role: "row", "aria-rowindex": "1" });
    this.body = h("div.tbody", { role: "rowgroup" });
    this.scroller = h("div.table", {
      role: "grid", tabindex: "0", label: "Documents",
      onscroll: () => this.#ask(), onkeydown: (event) => this.#key(event),
    }, h("div", { role: "rowgroup", class: "headgroup" }, this.head), this.body);
    replace(this, this.scroller);
    this.observer = new ResizeObserver(() => this.#ask());
    this.observer.observe(this.scroller);
    this.setColumns(this.columns);
  }

  disconnectedCallback() {
    this.observer.disconnect();
    cancelAnimationFrame(this.#asked);
  }

  setColumns(columns) {
    this.columns = columns;
    if (!this.head) return;
    this.scroller.setAttribute("aria-colcount", columns.length + 1);
    this.scroller.style.setProperty("--columns", columns.length);
    const [sorted, way] = this.order.split(",")[0].trim().split(/\s+(?=desc$|asc$)/);
    replace(this.head, ["id", ...columns].map((field, place) => {
      const isSorted = place > 0 && field === sorted;
      const sort = isSorted ? (way === "desc" ? "descending" : "ascending") : "none";
      return h("div", { role: "columnheader", "aria-sort": sort, title: field }, place && this.onsort
        ? h("button", { onclick: () => this.onsort(field, isSorted && way !== "desc") },
          field, isSorted && (way === "desc" ? " ↓" : " ↑"))
        : field);
    }));
    this.#pool = [];
    this.body.replaceChildren();
    this.#ask();
  }

  /** Shows other rows; those whose paths are given flash. */
  setRows(rows, flashing = []) {
    this.rows = rows;
    const until = performance.now() + FLASH;
    for (const path of flashing) this.#flashes.set(path, until);
    this.#ask();
  }

  select(path) {
    this.selected = path;
    const place = this.rows.findIndex((row) => row.path === path);
    if (place >= 0) this.#active = place;
    this.#ask();
  }

  #ask() {
    if (!this.scroller) return;
    cancelAnimationFrame(this.#asked);
    this.#asked = requestAnimationFrame(() => this.render());
  }

  render() {
    const height = this.scroller.clientHeight;
    const first = Math.max(0, Math.floor((this.scroller.scrollTop - ROW) / ROW) - SPARE);
    const count = Math.min(this.rows.length - first, Math.ceil(height / ROW) + 2 * SPARE);
    this.body.style.height = `${this.rows.length * ROW}px`;
    this.scroller.setAttribute("aria-rowcount", this.rows.length + 1);
    while (this.#pool.length < count) this.#pool.push(this.#makeRow());
    const now = performance.now();
    this.#pool.forEach((row, offset) => {
      // Rows keep their place modulo the pool, so that scrolling by one row fills one.
      const place = first + (((offset - first) % this.#pool.length) + this.#pool.length) % this.#pool.length;
      const isShown = place < first + count && place < this.rows.length;
      row.element.hidden = !isShown;
      if (isShown) this.#fill(row, place, now);
    });
    if (this.rows.length && first + count > this.rows.length - 200) this.onend();
  }

  #makeRow() {
    const cells = ["", ...this.columns].map((_, place) => h("div", {
      role: place ? "gridcell" : "rowheader", "aria-colindex": place + 1,
    }));
    const element = h("div.tr", { role: "row" }, cells);
    const row = { element, cells, place: -1, document: null };
    element.addEventListener("click", () => {
      this.#active = row.place;
      this.onopen(row.document);
    });
    this.body.append(element);
    return row;
  }

  #fill(row, place, now) {
    const document = this.rows[place];
    if (row.place !== place) {
      row.place = place;
      row.element.style.transform = `translateY(${place * ROW}px)`;
      row.element.setAttribute("aria-rowindex", place + 2);
    }
    if (row.document !== document) {
      row.document = document;
      row.element.id = `row-${place}`;
      replace(row.cells[0], this.showsPaths ? document.path : document.id);
      this.columns.forEach((field, index) => {
        const value = at(document.fields, field);
        const cell = row.cells[index + 1];
        replace(cell, brief(value));
        cell.className = value === undefined ? "missing" : kind(value);
        cell.title = value === undefined ? "" : seen(text(value?.slice?.(0, 500) ?? value).slice(0, 500));
      });
    }
    row.element.setAttribute("aria-selected", document.path === this.selected);
    row.element.classList.toggle("active", place === this.#active);
    const until = this.#flashes.get(document.path);
    if (until !== undefined && until < now) this.#flashes.delete(document.path);
    const flashes = until > now;
    if (flashes && row.flash !== until) {
      row.flash = until;
      // The animation restarts for a second change within the first one's.
      row.element.classList.remove("flash");
      void row.element.offsetWidth;
    }
    row.element.classList.toggle("flash", flashes);
    if (place === this.#active) this.scroller.setAttribute("aria-activedescendant", row.element.id);
  }

  #key(event) {
    if (event.target !== this.scroller) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW) - 2);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity,
      End: Infinity };
    if (event.key === "Enter" && this.rows[this.#active]) this.onopen(this.rows[this.#active]);
    else if (Object.hasOwn(moves, event.key)) this.#move(moves[event.key]);
    else return;
    event.preventDefault();
  }

  #move(by) {
    this.#active = Math.min(Math.max(0, this.#active + by), this.rows.length - 1);
    const top = this.#active * ROW;
    const view = this.scroller;
    if (top < view.scrollTop) view.scrollTop = top;
    else view.scrollTop = Math.max(view.scrollTop, top + 2 * ROW - view.clientHeight);
    this.#ask();
  }
}
customElements.define("ondol-table", Table);
