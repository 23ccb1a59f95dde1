// The page of synchronisation: whether the server answers, what is followed, which commits wait, and
// what the server has refused, to put again or to forget. The page asks once a second.

import { get, onRefused, post, takeToken } from "./api.js";
import { attempt, confirm, note } from "./dialogs.js";
import { button, failure, h, icon, mark, replace, seen, table } from "./dom.js";
import { counted, grouped, shortTime } from "./values.js";

const parts = { main: h("main", { id: "main", tabindex: "-1" }), dot: h("span.dot.connecting"),
  live: h("span", "connecting") };
const state = { access: "read", timer: 0, shown: "" };

class SyncPage extends HTMLElement {
  connectedCallback() {
    this.className = "page";
    replace(this, h("header", h("h1", "Sync"), this.status = h("span.muted", { role: "status" })),
      this.problem = h("div"), h("h2", "Follows"), this.follows = h("section.card.wide-table"),
      h("h2", "Waiting writes"), this.waiting = h("section.card.wide-table"),
      h("h2", "Refused"), this.refused = h("section.card.wide-table"));
  }

  draw(now) {
    this.status.textContent = `${now.isOnline ? "online" : "offline"}, ${counted(now.waitingCount, "waiting write")}`;
    replace(this.problem, now.problem && h("div.problem", now.problem));
    replace(this.follows, now.follows.length ? table(["Collection", "Documents", "As of", ""],
      now.follows.map((one) => [h("code", one.collection), grouped(one.documentCount),
        one.readTime ? shortTime(one.readTime) : "–", one.problem ? h("span.badge.bad", one.problem)
          : h(`span.badge${one.isComplete ? ".good" : ""}`, one.isComplete ? "complete" : "loading")]))
      : h("p.muted", "Nothing is followed."));
    replace(this.waiting, now.waiting.length ? [table(["Made", "Documents", ""],
      now.waiting.map((one) => [shortTime(one.time), paths(one.paths),
        one.isAnswered && h("span.badge.good", "the server has it")])),
    now.waitingCount > now.waiting.length && h("p.muted", `${grouped(now.waitingCount - now.waiting.length)} more`)]
      : h("p.muted", "The server has all writes."));
    replace(this.refused, now.rejections.length ? table(["Made", "Documents", "Reason", ""],
      now.rejections.map((one) => [shortTime(one.time), paths(one.paths), one.reason,
        state.access === "edit" && h("div.actions",
          button("Put again", () => attempt(() => act("retry", one.id, "It was put again.")), { kind: "small" }), " ",
          button("Forget", () => confirm("Forget this refusal?", "What the commit said is lost.", "Forget",
            () => act("dismiss", one.id, "It is forgotten.")), { kind: "small" }))]))
      : h("p.muted", "The server has refused nothing."));
  }
}
customElements.define("ondol-sync", SyncPage);

const paths = (list) => h("div.listeners", list.map((path) => h("code", path)));

async function act(what, id, done) {
  await post(`sync/${what}`, { id });
  note(done);
  await look();
}

/** Draws only what has changed, so that a button stays under the pointer. */
async function look() {
  const now = await get("sync");
  const text = JSON.stringify(now);
  if (text !== state.shown) parts.page.draw(now);
  state.shown = text;
}

async function ask() {
  try {
    await look();
    parts.dot.className = "dot live";
    parts.live.textContent = "live";
  } catch (error) {
    if (error.status === 401) return;
    parts.dot.className = "dot connecting";
    parts.live.textContent = "connecting";
  }
  state.timer = setTimeout(ask, 1000);
}

function refuse(reason) {
  clearTimeout(state.timer);
  replace(document.body, h("main.gate", mark(), h("h1", "Ondol console"), h("p", reason),
    h("a.button.primary", { href: "/" }, "Open the console")));
}

async function begin() {
  if (!takeToken()) return refuse("Open the console first, with the address that was printed.");
  onRefused(() => refuse("This token is of an earlier start."));
  let name = "";
  try {
    const database = await get("database");
    state.access = database.access;
    name = database.name;
  } catch (error) {
    if (error.status !== 401) replace(document.body, h("main.gate", failure(error)));
    return undefined;
  }
  document.title = seen(`Sync · ${name}`);
  parts.page = document.createElement("ondol-sync");
  replace(document.body, h("div.frame",
    h("header.top", h("div.who", mark(), h("div.names", h("strong", name), h("span.path", "its synchronisation"))),
      h("div.facts", h("span.live", { role: "status" }, parts.dot, parts.live))),
    h("nav.pages", { label: "Pages" }, h("a", { href: "/" }, icon("back"), h("span", "Console"))),
    h("div.view", parts.main)));
  replace(parts.main, parts.page);
  return ask();
}

begin();
