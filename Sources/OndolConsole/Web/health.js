// Checks and upkeep, one at a time: they run in the server, so a reloaded page sees them.

import { ask, post, remove, save } from "./api.js";
import { attempt, note } from "./dialogs.js";
import { button, choice, empty, failure, h, loading, replace } from "./dom.js";
import { Page } from "./page.js";
import { address } from "./route.js";
import { canEdit } from "./session.js";
import { counted, grouped, local, shortTime, size } from "./values.js";

class HealthPage extends Page {
  begin() {
    const depth = choice([["structure", "Quick: structure"], ["blocks", "Every byte"],
      ["full", "Full: the meaning of rows"]], { label: "How thorough" });
    const speed = choice([["", "No limit"], ["4000000", "4 MB/s"], ["16000000", "16 MB/s"],
      ["64000000", "64 MB/s"]], { label: "Speed limit" });
    this.index = choice([], { label: "Index" });
    const run = (task) => this.#start(task);
    const edit = (task) => canEdit() && run(task());
    const action = (title, text, control, act) =>
      h("section.card.action", h("h2", title), h("p.muted", text), control, act);
    this.place = h("div.log", loading(3));
    replace(this, h("header", h("h1", "Health")), h("div.actions",
      action("Verify", "Looks for damage and changes nothing.", depth,
        button("Verify", () => run({ kind: "verify", depth: depth.value }), { kind: "primary" })),
      action("Backup", "The current database, as a tar archive. Unpacked, it is a database.", null,
        button("Download backup.ondol.tar", () => this.#backup(), { sign: "down" })),
      action("Compact", "Merges files, so that deleted data takes no space.", speed,
        button("Compact", () => edit(() => ({ kind: "compact",
        ...(speed.value ? { bytesPerSecond: Number(speed.value) } : {}) })))),
      action("Reclaim", "Deletes contents without a holder.", null,
        button("Reclaim", () => edit(() => ({ kind: "reclaim" })))),
      action("Rebuild an index", "Builds it again from its documents.", this.index,
        button("Rebuild", () => edit(() => {
        const [group, collection, name] = JSON.parse(this.index.value);
        return { kind: "rebuildIndex", [group ? "group" : "collection"]: collection, name };
      })))), h("h2", "Tasks"), this.place);
    this.watch({ kind: "tasks" }, (event, data) => this.#draw(event, data));
    this.watch({ kind: "indexes" }, (event, data) => replace(this.index, (data.indexes ?? []).map((one) => (
      h("option", { value: JSON.stringify([one.group, one.collection, one.name]) },
        `${one.collection}: ${one.name}`)))));
  }

  #start(task) {
    return attempt(() => post("tasks", task));
  }

  #backup() {
    return attempt(async () => {
      note("The backup is on its way.");
      save(await (await ask("GET", "backup.tar")).blob(), "backup.ondol.tar");
    });
  }

  #draw(event, { tasks, error }) {
    if (event === "problem") return replace(this.place, failure(error));
    return replace(this.place, tasks.length ? tasks.map((one) => this.#task(one))
      : empty("No task yet", "Verify does not block anything."));
  }

  #task(task) {
    const { progress, findings, result } = task;
    const badge = { running: "warn", done: "good", failed: "bad", cancelled: "" }[task.state];
    const amount = (value) => (progress.unit === "bytes" ? size(value) : counted(value, "document"));
    return h("section.card.task", { label: task.title }, h("div.row", h("h3", task.title),
      h("span", { class: `badge ${badge}` }, task.state),
        h("time.muted", { title: local(task.started) }, shortTime(task.started)),
      h("span.grow"), task.state === "running" && button("Cancel",
        () => attempt(() => remove(`tasks/${task.id}`)), { kind: "small" })),
    task.state === "running" && progress && [h("progress",
      { value: progress.completed, max: progress.total || 1, label: task.title }),
      h("p.muted", `${amount(progress.completed)} of ${amount(progress.total)}`)],
    task.error && failure(task.error), result && h("p",
      Object.entries(result).map(([name, value]) => `${name}: ${value}`).join(", ")),
    findings && (findings.length ? [h("p", counted(findings.length, "finding")), findings.map(finding)]
      : h("p", "All is well.")));
  }
}
customElements.define("ondol-health", HealthPage);

function finding(one) {
  const document = one.collection && one.id && `${one.collection}/${one.id}`;
  const place = [one.file && (one.offset === undefined ? one.file
    : `${one.file} at byte ${grouped(one.offset)}`), one.storagePath].filter(Boolean).join(", ");
  return h("div.finding", h("span", { class: `badge ${one.severity === "error" ? "bad" : "warn"}` },
    one.severity),
    h("div", h("p", document && [h("a", { href: address("data", document) }, document), ": "],
      place && `${place}: `, one.message),
      one.hint && h("p.muted", `What helps: ${one.hint}.`)));
}
