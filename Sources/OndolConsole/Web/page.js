// The base of every page: an element that receives its address, and removes its watches when it
// goes.

import { watch } from "./live.js";
import { onSession } from "./session.js";

export class Page extends HTMLElement {
  #ends = [];
  #abort = new AbortController();

  connectedCallback() {
    this.classList.add("page");
    this.begin?.();
  }

  disconnectedCallback() {
    for (const end of this.#ends) end();
    this.#ends = [];
    this.#abort.abort();
  }

  /** For requests that nobody wants to hear the answer of once the page is gone. */
  get signal() {
    return this.#abort.signal;
  }

  /** Has `end` called when the page goes; answers it. */
  until(end) {
    this.#ends.push(end);
    return end;
  }

  /** Watches as long as the page is there. */
  watch(what, action) {
    return this.until(watch(what, action));
  }

  /** Has `action` called when the lock or the database is another. */
  onSession(action) {
    this.until(onSession(action));
  }
}
