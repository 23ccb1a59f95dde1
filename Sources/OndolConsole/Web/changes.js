// The feed of changes as a log: the newest on top, what each commit did to which field.

import { get } from "./api.js";
import { fieldTable } from "./dialogs.js";
import { button, empty, failure, h, icon, loading, replace } from "./dom.js";
import { Page } from "./page.js";
import { address, go, route } from "./route.js";
import { counted, grouped, local, names, shortTime } from "./values.js";

const KEPT = 500;

class ChangesPage extends Page {
  begin() {
    const field = (name, label, hint) => h("input", { label, placeholder: hint,
      onchange: () => this.#ask() });
    this.path = field("path", "Path", "Path: items/item-01");
    this.since = field("since", "From token", "From token");
    this.pause = button("Pause", () => this.#setPaused(!this.isPaused), { sign: "pause" });
    this.log = h("div.log", { role: "log", label: "Commits", "aria-live": "off" }, loading());
    this.source = h("p.hint", { hidden: true });
    replace(this, h("header", h("h1", "Changes"), h("span.grow"), h("div", this.path),
      h("div", this.since), this.pause), this.source, this.log);
    this.arrive();
  }

  #ask() {
    go(address("changes", this.path.value.trim().replace(/^\/+/, ""), { since: this.since.value.trim() }));
  }

  async arrive() {
    const { steps, parameters } = route();
    const path = steps.join("/");
    const since = parameters.get("since") ?? "";
    [this.path.value, this.since.value] = [path, since];
    const turn = this.turn = {};
    this.end?.();
    try {
      const answer = await get("changes", { path, since, limit: 100 }, this.signal);
      if (turn !== this.turn) return;
      this.changes = answer.changes;
      this.source.hidden = answer.source === "log";
      replace(this.source, icon("warn"), h("span",
        "These are the commits that this process has seen since it opened the database. ",
        "To keep them, open the database with ",
        h("code", "options.changeRetention = .init(duration: .seconds(86_400))"), "."));
      this.#draw();
      this.end = this.watch({ kind: "feed", ...(path ? { path } : {}),
        ...(answer.token ? { since: answer.token } : {}) }, (event, data) => {
        if (event !== "changes") return;
        if (data.skipped) this.changes.push({ skipped: data.skipped });
        this.changes.push(...data.changes);
        this.changes.splice(0, this.changes.length - KEPT);
        this.waiting = (this.waiting ?? 0) + data.changes.length;
        if (this.isPaused) this.#setPaused(true);
        else this.#draw(data.changes.length);
      });
    } catch (error) {
      if (turn === this.turn && error.name !== "AbortError") replace(this.log, failure(error));
    }
  }

  #setPaused(isPaused) {
    if (!isPaused && this.isPaused) this.#draw();
    this.isPaused = isPaused;
    replace(this.pause, icon(isPaused ? "play" : "pause"),
      h("span", isPaused ? `Go on${this.waiting ? ` (${this.waiting} new)` : ""}` : "Pause"));
    this.pause.setAttribute("aria-pressed", isPaused);
  }

  #draw(fresh = 0) {
    this.waiting = 0;
    if (!this.changes.length) {
      return replace(this.log, empty("No changes yet", "Every commit appears here as it happens."));
    }
    const open = new Set([...this.log.querySelectorAll("[open]")].map((one) => one.dataset.version));
    return replace(this.log, [...this.changes].reverse().map((change, place) =>
      this.#change(change, place < fresh, open)));
  }

  #change(change, isFresh, open) {
    if (change.skipped) {
      return h("p.muted", `${counted(change.skipped, "commit")} came faster than they are shown here.`);
    }
    const [first, ...rest] = [...change.documents, ...change.objects];
    const what = change.dropped ? `${change.dropped} dropped` : first
      ? `${first.path}${rest.length ? ` and ${counted(rest.length, "other")}` : ""}`
      : "no document";
    const badge = { added: "good", removed: "bad", modified: "" };
    const details = h("details", { class: `change ${isFresh ? "flash" : ""}`, "data-version": change.version,
      open: open.has(change.version) },
      h("summary", h("time", { datetime: change.time, title: local(change.time) }, shortTime(change.time)),
        h("span.muted", `version ${grouped(BigInt(change.version))}`),
          first && h("span", { class: `badge ${badge[first.kind]}` }, first.kind),
        h("strong", what), first?.fields?.length > 0 && first.kind === "modified"
          && h("span.muted", first.fields.join(", "))));
    const fill = () => {
      if (details.childElementCount > 1) return;
      details.append(...[...change.documents.map((one) =>
        [h("p.row", h("a", { href: address("data", one.path) }, one.path),
        h("span", { class: `badge ${badge[one.kind]}` }, one.kind)),
          h("div.scroll", fieldTable(topFields(one), one.before, one.after))]),
      ...change.objects.map((one) => [h("p.row", h("a", { href: address("storage", one.path) }, one.path),
        h("span", { class: `badge ${badge[one.kind]}` }, one.kind)), h("span")]),
      ...(change.cut ? [[h("p.muted", "This commit changed more than is shown.")]] : []),
      [h("p.muted", "Token: ", h("code", change.token))]].flat());
    };
    if (open.has(change.version)) fill();
    details.addEventListener("toggle", fill);
    return details;
  }
}
customElements.define("ondol-changes", ChangesPage);

/** The fields at the top of the document that a commit touched: all of one that came or went. */
function topFields({ fields, before, after }) {
  const all = Object.keys({ ...before, ...after }).sort();
  const touched = new Set((fields ?? []).map((path) => names(path)[0]));
  return touched.size ? all.filter((name) => touched.has(name)) : all;
}
