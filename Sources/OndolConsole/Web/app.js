// The frame: the name of the database, whether the page is live, the lock, and the pages. It begins
// by removing the token from the address.

import { keepToken, onRefused, takeToken } from "./api.js";
import { button, failure, h, icon, label, mark, replace, seen } from "./dom.js";
import * as live from "./live.js";
import { address, route } from "./route.js";
import { lastEdit, loadDatabase, mayWrite, onSession, session, setOpen, undo } from "./session.js";
import { grouped, local } from "./values.js";
import "./data.js";
import "./tree.js";
import "./storage.js";
import "./query.js";
import "./indexes.js";
import "./changes.js";
import "./statistics.js";
import "./health.js";

const PAGES = [["data", "Data"], ["tree", "Tree"], ["storage", "Storage"], ["query", "Query"],
  ["indexes", "Indexes"], ["changes", "Changes"], ["statistics", "Statistics"], ["health", "Health"]];

const parts = {
  name: h("strong", "Ondol console"), path: h("span.path"), role: h("span.role"),
  version: h("span.version"), dot: h("span.dot"), live: h("span"),
  banner: h("div"), main: h("main", { id: "main", tabindex: "-1" }),
  undo: button("Undo", undo, { sign: "undo", kind: "quiet", hidden: true }),
  lock: button("Locked", () => setOpen(!session.isOpen), { sign: "locked", kind: "lock", disabled: true }),
};

class Console extends HTMLElement {
  connectedCallback() {
    const links = PAGES.map(([page, title]) => h("a", { href: address(page), "data-page": page },
      icon(page), h("span", title)));
    replace(this,
      h("a.skip", { href: "#main", onclick: skip }, "Skip to the page"),
      h("header.top",
        h("div.who", mark(),
          h("div.names", parts.name, parts.path)),
        h("div.facts", parts.role, parts.version,
          h("span.live", { role: "status" }, parts.dot, parts.live)),
        h("div.row", parts.undo, parts.lock)),
      h("nav.pages", { label: "Pages" }, links, h("a", { href: "/reports" }, "Reports")),
      h("div.view", parts.banner, parts.main));
    this.links = links;
  }

  /** Shows the page of the address; one that is there already is only told where it is now. */
  show() {
    const { page } = route();
    const [name, title] = PAGES.find(([one]) => one === page) ?? PAGES[0];
    for (const link of this.links) {
      link.removeAttribute("aria-current");
      if (link.dataset.page !== name) continue;
      link.setAttribute("aria-current", "page");
      link.scrollIntoView();
    }
    document.title = seen(`${title} · ${session.database.name}`);
    const tag = `ondol-${name}`;
    const shown = parts.main.firstElementChild;
    if (shown?.localName === tag) shown.arrive?.();
    else replace(parts.main, document.createElement(tag));
  }
}
customElements.define("ondol-console", Console);

function skip(event) {
  event.preventDefault();
  parts.main.focus();
}

function renderSession() {
  const { database, isOpen } = session;
  if (!database) return;
  replace(parts.name, database.name);
  replace(parts.path, database.path);
  parts.path.title = `${seen(database.path)}\nidentity ${database.identity}`;
  parts.role.textContent = database.role === "writer" ? `writer, pid ${database.pid}`
    : `follows pid ${database.holder?.pid ?? "?"}, read only`;
  replace(parts.lock, icon(isOpen ? "open" : "locked"),
    h("span", isOpen ? "Editing" : mayWrite() ? "Locked" : "Read only"));
  parts.lock.setAttribute("aria-pressed", isOpen);
  parts.lock.setAttribute("aria-label", isOpen ? "Editing is open. Lock it" : "Editing is locked. Unlock it");
  parts.lock.disabled = !mayWrite();
  const edit = lastEdit();
  parts.undo.hidden = !edit;
  parts.undo.title = edit ? seen(`Undo: ${edit.title}`) : "";
  document.body.classList.toggle("editing", isOpen);
  replace(parts.banner, database.role === "follower" && banner(database));
}

function banner(database) {
  return h("div.banner", { role: "note" }, icon("warn"), h("p", null,
    `Process ${database.holder?.pid ?? "of another app"} has this database open for writing, `,
    "so this console only reads. To edit while the app runs, embed the console in it: ",
    h("code", "let console = try await Console.start(database, access: .edit)"), " and ",
    h("code", "print(console.url)"), "."));
}

function renderLive(state) {
  parts.dot.className = `dot ${state}`;
  parts.live.textContent = { live: "live", connecting: "connecting", paused: "paused" }[state];
}

function renderVersion({ version, time }) {
  parts.version.textContent = `version ${grouped(BigInt(version))}`;
  parts.version.title = `newest commit, ${local(time)}`;
}

/** Asks for the token where there is none, or the one there is counts no more. */
function askForToken(reason) {
  live.stop();
  const field = h("input", { required: true });
  replace(document.body, h("main.gate", h("form", {
    onsubmit: (event) => {
      event.preventDefault();
      keepToken(field.value.trim().replace(/^.*#token=/, ""));
      location.reload();
    },
  }, mark(), h("h1", "Ondol console"), h("p", reason),
  label("Address or token", field),
  h("button.button.primary", { type: "submit" }, "Open"))));
}

function keys(event) {
  const isTyping = event.target.closest?.("input, textarea, select, dialog");
  if ((event.metaKey || event.ctrlKey) && event.key === "z" && !isTyping) {
    event.preventDefault();
    undo();
  }
}

async function begin() {
  if (!takeToken()) return askForToken("Open the address that `ondol` has printed.");
  onRefused(() => askForToken("This token is of an earlier start. Open the newest address."));
  // The page shows something before it knows anything.
  const frame = document.createElement("ondol-console");
  replace(document.body, frame);
  try {
    await loadDatabase();
  } catch (error) {
    if (error.status !== 401)
      replace(document.body, h("main.gate", failure(error),
        button("Try again", () => location.reload(), { kind: "primary" })));
    return;
  }
  for (const [href, n] of session.database.pages) frame.querySelector("nav").append(h("a", { href }, n));
  onSession(renderSession);
  renderSession();
  renderVersion({ version: session.database.version, time: session.database.opened });
  live.onState(renderLive);
  live.onVersion(renderVersion);
  live.start();
  addEventListener("hashchange", () => frame.show());
  addEventListener("keydown", keys);
  frame.show();
}

begin();
