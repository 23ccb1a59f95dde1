// The database's activity, once a second: numbers, and the last minute of each as a line.

import { get } from "./api.js";
import { failure, h, loading, replace, svg, table } from "./dom.js";
import { Page } from "./page.js";
import { counted, grouped, shortTime, size } from "./values.js";

const KEPT = 60;

/** A minute as a line: the newest second at the right, the scale from nothing to the most. */
export function chart(series, label) {
  const most = Math.max(1e-12, ...series.flat().filter(Number.isFinite));
  const x = (place, values) => 100 * (place + KEPT - values.length) / (KEPT - 1);
  const line = (values) => values.map((value, place) => (Number.isFinite(value)
    ? `${x(place, values).toFixed(2)},${(38 - 36 * value / most).toFixed(2)}` : "")).filter(Boolean);
  const points = line(series[0]);
  return svg("svg", { class: "chart", viewBox: "0 0 100 40", preserveAspectRatio: "none", role: "img",
    label },
    points.length > 1 && svg("path", { class: "area",
      d: `M${points[0].split(",")[0]},40L${points.join("L")}L${points.at(-1).split(",")[0]},40Z` }),
    series.map((values, place) => {
      const steps = line(values);
      return steps.length > 1 && svg("path", { class: place ? "second" : "", d: `M${steps.join("L")}` });
    }));
}

/** The seconds that a share of the commits between two samples stayed below; at most twice too many. */
export function quantile(before, after, share) {
  const counts = after.map((count, place) => count - (before[place] ?? 0));
  const all = counts.reduce((sum, count) => sum + count, 0);
  let seen = 0;
  const place = counts.findIndex((count) => (seen += count) >= all * share && seen > 0);
  return all > 0 && place >= 0 ? 2 ** (place + 1) / 1e9 : NaN;
}

const duration = (seconds) => (!Number.isFinite(seconds) ? "–" : seconds < 1e-3
  ? `${(seconds * 1e6).toFixed(0)} µs`
  : seconds < 1 ? `${(seconds * 1e3).toFixed(seconds < 0.01 ? 1 : 0)} ms` : `${seconds.toFixed(1)} s`);
const rate = (bytes) => `${size(bytes)}/s`;

class StatisticsPage extends Page {
  async begin() {
    this.place = h("div.tiles", loading());
    replace(this, h("header", h("h1", "Statistics"), this.time = h("span.muted")), this.place);
    this.samples = [];
    try {
      this.samples = (await get("statistics", {}, this.signal)).samples;
    } catch (error) {
      if (error.name === "AbortError") return;
      replace(this.place, failure(error));
    }
    this.#draw();
    this.watch({ kind: "statistics" }, (event, data) => {
      if (event !== "state" || data.time === this.samples.at(-1)?.time) return;
      this.samples = [...this.samples, data].slice(-KEPT);
      this.#draw();
    });
  }

  #draw() {
    const { samples } = this;
    const now = samples.at(-1);
    if (!now) return;
    this.time.textContent = `as of ${shortTime(now.time)}`;
    const steps = samples.slice(1).map((sample, place) => [samples[place], sample]);
    const seconds = ([before, after]) => Math.max(0.2,
      (Date.parse(after.time) - Date.parse(before.time)) / 1000);
    const rates = (name) => steps.map((step) => (step[1][name] - step[0][name]) / seconds(step));
    const values = (name) => samples.map((sample) => sample[name]);
    const latency = (share) => steps.map(([before, after]) =>
      quantile(before.commitLatency, after.commitLatency, share));
    const last = (list) => list.at(-1) ?? NaN;
    const newest = (list) => list.findLast(Number.isFinite) ?? NaN;
    const loads = rates("blockLoads");
    const tile = (title, value, series, more, names) =>
      h("section.card.stat", { label: title }, h("h3", title),
      h("b", value), series && chart(series, `${title}, the last minute`),
        names && h("p.legend", names.map((name, place) => (
        h("span", h("i", { class: place ? "second" : "" }), name)))), more && h("div.muted", more));
    const [p50, p99, commits] = [latency(0.5), latency(0.99), rates("commits")];
    const [read, written] = [rates("compactionBytesRead"), rates("compactionBytesWritten")];
    replace(this.place,
      tile("Commits a second", grouped(Math.round(last(commits) || 0)), [commits],
        `${grouped(now.commits)} since opening`),
      tile("Commit latency", `${duration(newest(p99))}`, [p99, p50], null,
        ["p99", `p50 ${duration(newest(p50))}`]),
      tile("Blocks read a second", grouped(Math.round(last(loads) || 0)), [loads],
        `${size(now.cachedBytes)} cached, ${grouped(now.blockEvictions)} evictions`),
      tile("Memory of the process", size(now.processBytes), [values("processBytes")],
        `${size(now.memoryBytes)} of rows not yet in files`),
      tile("Files", size(now.files.reduce((sum, one) => sum + one.bytes, 0)), null, table(null,
        now.files.map((one) => [one.kind, one.count, size(one.bytes)]))),
      tile("Compaction", rate(last(written) || 0), [written, read],
        `${size(now.reclaimableBytes)} could be reclaimed, ${counted(now.runs, "run")}`,
        ["written", "read"]),
      tile("Delayed commits", grouped(now.delayedCommits), [rates("delayedCommits")],
        `waited ${duration(now.delay)} in all`),
      tile("Listeners", grouped(now.listeners), [values("listeners")],
        `${grouped(now.pendingChanges)} changes not yet asked for`),
      tile("Oldest reader", duration(now.oldestReadAge), [values("oldestReadAge")],
        `${now.oldestReadOwners.join(", ") || "an unnamed reader"}, keeps ${
        size(now.pinnedBytes)}`));
    if (now.damage.length) this.place.prepend(h("section.failure",
      h("div", now.damage.map((one) => h("p", one)))));
  }
}
customElements.define("ondol-statistics", StatisticsPage);
