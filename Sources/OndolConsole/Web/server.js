// The page of the server that runs beside the console: who is connected and what they listen to, calls
// a second, refusals, accounts, and rules with an editor that checks as one types. The page asks for
// all numbers once a second and computes rates itself. It shows nothing of documents.

import { get, onRefused, put, post, takeToken } from "./api.js";
import { attempt, confirm, note } from "./dialogs.js";
import { button, empty, failure, h, icon, label, later, loading, mark, replace, seen, table } from "./dom.js";
import { address, route } from "./route.js";
import { chart } from "./statistics.js";
import { counted, grouped, shortTime, size } from "./values.js";

const PAGES = [["calls", "Calls", "statistics"], ["rules", "Rules", "locked"], ["accounts", "Accounts", "data"]];
const KINDS = [["firestore", "Firestore"], ["database", "Realtime Database"], ["storage", "Storage"]];
const KEPT = 60;

const parts = { main: h("main", { id: "main", tabindex: "-1" }), dot: h("span.dot.connecting"),
  live: h("span", "connecting") };
const state = { samples: [], access: "read", timer: 0 };

const sum = (list, of) => list.reduce((all, one) => all + of(one), 0);
const ended = (method) => sum(Object.values(method.ended), (count) => count);
const seconds = (value) => (value < 60 ? `${value.toFixed(0)} s` : value < 7200 ? `${(value / 60).toFixed(0)} min`
  : `${(value / 3600).toFixed(0)} h`);

/** The differences between samples that follow each other, a second. */
function rates(of) {
  return state.samples.slice(1).map((after, place) => {
    const before = state.samples[place];
    return (of(after) - of(before)) / Math.max(0.2, (after.at - before.at) / 1000);
  });
}

async function ask() {
  try {
    const sample = await get("server");
    state.samples = [...state.samples, { ...sample, at: Number(sample.time) / 1000 }].slice(-KEPT);
    setLive("live");
    parts.page?.draw?.();
  } catch (error) {
    if (error.status === 401) return;
    setLive("connecting");
  }
  state.timer = setTimeout(ask, 1000);
}

function setLive(name) {
  parts.dot.className = `dot ${name}`;
  parts.live.textContent = name;
}

// MARK: Calls

class CallsPage extends HTMLElement {
  connectedCallback() {
    this.className = "page";
    replace(this, h("header", h("h1", "Calls")), this.tiles = h("div.tiles", loading()),
      h("h2", "Connected"), this.open = h("section.card.wide-table"),
      h("h2", "Refused and changed lately"), this.events = h("section.card.wide-table"),
      h("h2", "By method"), this.methods = h("section.card.wide-table"));
    this.draw();
  }

  draw() {
    const now = state.samples.at(-1);
    if (!now) return;
    const all = (of) => (sample) => sum(sample.methods, of);
    const perSecond = rates(all(ended));
    const [received, sent] = [rates(all((one) => one.received)), rates(all((one) => one.sent))];
    const tile = (title, value, series, more) => h("section.card.stat", { label: title }, h("h3", title),
      h("b", value), series && chart(series, `${title}, the last minute`), more && h("div.muted", more));
    const last = (list) => list.at(-1) || 0;
    const denials = now.events.filter((one) => one.kind !== "sign-in" && !one.kind.endsWith("-change"));
    replace(this.tiles,
      tile("Calls a second", grouped(Math.round(last(perSecond))), [perSecond],
        `${grouped(all(ended)(now))} since the start`),
      tile("Open calls", grouped(now.openCalls), [state.samples.map((one) => one.openCalls)]),
      tile("Listeners", grouped(now.listeners), [state.samples.map((one) => one.listeners)]),
      tile("Bytes a second", `${size(Math.round(last(sent)))} sent`, [sent, received],
        `${size(Math.round(last(received)))} received`),
      tile("Refusals", grouped(denials.length), null, "of the last 200 events"));
    replace(this.open, now.calls.length ? [table(["Call", "Caller", "Address", "For", "Listens to", "Bytes"],
      now.calls.map((one) => [one.method, one.caller, one.address ?? "", seconds(one.seconds),
        h("div.listeners", one.listeners.map((name) => h("code", name)), one.listenerCount > one.listeners.length
          && `${one.listenerCount - one.listeners.length} more`),
        `${size(one.received)} in, ${size(one.sent)} out`])),
    now.openCalls > now.calls.length && h("p.muted", `${now.openCalls - now.calls.length} more`)]
      : h("p.muted", "Nobody is connected."));
    replace(this.events, now.events.length ? table(["Time", "What", "Call", "Caller", "Address", "Reason"],
      now.events.map((one) => [shortTime(one.time), h("span", { class: `badge ${BADGES[one.kind] ?? ""}` },
        one.kind), one.call, one.account ?? one.caller, one.address ?? "", one.reason ?? ""]))
      : h("p.muted", "Nothing yet."));
    replace(this.methods, table(["Method", "Open", "Ended", "Statuses", "Mean time"],
      [...now.methods].sort((a, b) => ended(b) - ended(a)).map((one) => [one.method, grouped(one.open),
        grouped(ended(one)), Object.entries(one.ended).map(([name, count]) => `${name}: ${count}`).join(", "),
        ended(one) ? `${(1000 * one.seconds / ended(one)).toFixed(1)} ms` : "–"])));
  }
}
const BADGES = { denial: "bad", "failed-sign-in": "bad", "refused-token": "bad", limit: "warn", "sign-in": "good" };
customElements.define("ondol-calls", CallsPage);

// MARK: Rules

class RulesPage extends HTMLElement {
  async connectedCallback() {
    this.className = "page";
    this.kind = KINDS.find(([kind]) => kind === route().steps[0])?.[0] ?? "firestore";
    const title = h("h1", "Rules");
    const tabs = h("div.tabs", { role: "tablist" }, KINDS.map(([kind, name]) => h("a", { role: "tab",
      href: address("rules", kind), "aria-selected": String(kind === this.kind) }, name)));
    this.body = h("section.card.rules", loading());
    replace(this, h("header", title, this.status = h("span.muted")), tabs, this.body);
    try {
      const found = await get("server/rules");
      this.status.textContent = found.number ? `deployment ${found.number} is in force` : "none are deployed";
      this.stored = found[this.kind] ?? "";
      this.show();
    } catch (error) {
      replace(this.body, failure(error));
    }
  }

  show() {
    this.field = h("textarea", { oninput: later(250, () => this.check()) });
    this.field.value = this.stored;
    this.field.addEventListener("keydown", (event) => {
      // Two spaces instead of leaving the field; Escape leaves it.
      if (event.key === "Escape") this.deploy.focus();
      if (event.key !== "Tab" || event.shiftKey) return;
      event.preventDefault();
      document.execCommand("insertText", false, "  ");
    });
    this.verdict = h("div.verdict", { role: "status" });
    this.deploy = button("Put in force", () => this.put(), { kind: "primary", disabled: true });
    replace(this.body, label("The file", this.field), this.verdict, h("div.row", this.deploy,
      button("Back to what is in force", () => {
        this.field.value = this.stored;
        return this.check();
      }), state.access !== "edit" && h("span.muted", "This console only reads.")));
    return this.check();
  }

  /** Asks what is wrong with the text. An answer for a text that has changed since is dropped. */
  async check() {
    const text = this.field.value;
    let problem = null;
    try {
      problem = text.trim() ? await post("server/rules/check", { kind: this.kind, text }) : "1:1: the file is empty";
    } catch (error) {
      replace(this.verdict, failure(error));
      return;
    }
    if (text !== this.field.value) return;
    this.field.toggleAttribute("aria-invalid", Boolean(problem));
    const [, line, column, message] = /^(\d+):(\d+): ([^]*)$/.exec(problem ?? "") ?? [];
    replace(this.verdict, !problem ? h("span.badge.good", "The rules are whole.") : line
      ? h("div.problem", button(`Line ${line}, column ${column}`, () => this.goTo(Number(line), Number(column)),
        { kind: "small" }), " ", message) : h("div.problem", problem));
    this.deploy.disabled = Boolean(problem) || text === this.stored || state.access !== "edit";
  }

  goTo(line, column) {
    const lines = this.field.value.split("\n");
    const before = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    // Columns are counted in characters, and positions of a field in UTF-16.
    const place = before + [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
    this.field.focus();
    this.field.setSelectionRange(place, place + 1);
  }

  put() {
    const text = this.field.value;
    return confirm("Put these rules in force?", "They decide about every call from now on.", "Put in force",
      async () => {
        const { number } = await put("server/rules", {}, { kind: this.kind, text });
        this.stored = text;
        this.status.textContent = `deployment ${number} is in force`;
        note(`Deployment ${number} is in force.`);
        await this.check();
      });
  }
}
customElements.define("ondol-rules", RulesPage);

// MARK: Accounts

class AccountsPage extends HTMLElement {
  async connectedCallback() {
    this.className = "page";
    this.rows = [];
    replace(this, h("header", h("h1", "Accounts"), this.count = h("span.muted")),
      this.body = h("section.card.wide-table", loading()));
    await this.more();
  }

  async more() {
    try {
      const after = this.rows.at(-1)?.localId;
      const { users, count } = await get("server/accounts", { after });
      this.rows.push(...users);
      this.isWhole = users.length === 0 || this.rows.length >= count;
      this.count.textContent = counted(count, "account");
      this.draw();
    } catch (error) {
      replace(this.body, failure(error));
    }
  }

  draw() {
    const time = (text) => (text ? shortTime(new Date(Number(text)).toISOString()) : "–");
    if (!this.rows.length) {
      replace(this.body, empty("No accounts", "People appear here when they sign up."));
      return;
    }
    replace(this.body, table(["Address", "Uid", "Ways to sign in", "", "Created", "Last sign-in"],
      this.rows.map((one) => [[one.email ?? h("span.muted", one.displayName ?? "no address"), " ",
        one.emailVerified && h("span.badge.good", "verified")], h("code", one.localId),
      one.providerUserInfo.map((way) => way.providerId).join(", ") || "–",
      [one.disabled && h("span.badge.bad", "disabled"), one.customAttributes && h("code", one.customAttributes)],
      time(one.createdAt), time(one.lastLoginAt)])),
    !this.isWhole && button("More", () => attempt(() => this.more())));
  }
}
customElements.define("ondol-accounts", AccountsPage);

// MARK: The frame

function show() {
  const [page, title] = PAGES.find(([one]) => one === route().page) ?? PAGES[0];
  for (const link of document.querySelectorAll("nav.pages a[data-page]")) {
    if (link.dataset.page === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = seen(`${title} · server of ${state.name}`);
  parts.page = document.createElement(`ondol-${page}`);
  replace(parts.main, parts.page);
}

function refuse(reason) {
  clearTimeout(state.timer);
  replace(document.body, h("main.gate", mark(), h("h1", "Ondol console"), h("p", reason),
    h("a.button.primary", { href: "/" }, "Open the console")));
}

async function begin() {
  if (!takeToken()) return refuse("Open the console first, with the address that `ondol serve` has printed.");
  onRefused(() => refuse("This token is of an earlier start."));
  try {
    const database = await get("database");
    Object.assign(state, { access: database.access, name: database.name });
  } catch (error) {
    if (error.status !== 401) replace(document.body, h("main.gate", failure(error)));
    return undefined;
  }
  // The frame of the console, without its element: that would bring all of its pages.
  const frame = h("div.frame",
    h("a.skip", { href: "#main", onclick: (event) => {
      event.preventDefault();
      parts.main.focus();
    } }, "Skip to the page"),
    h("header.top", h("div.who", mark(), h("div.names", h("strong", state.name), h("span.path", "its server"))),
      h("div.facts", h("span.live", { role: "status" }, parts.dot, parts.live))),
    h("nav.pages", { label: "Pages" }, PAGES.map(([page, title, sign]) => h("a", { href: address(page),
      "data-page": page }, icon(sign), h("span", title))),
    h("a", { href: "/" }, icon("back"), h("span", "Console"))),
    h("div.view", parts.main));
  replace(document.body, frame);
  addEventListener("hashchange", show);
  show();
  return ask();
}

begin();
