// The page's one stream of events. Every view that can change declares what it watches. The page
// reopens the stream when that changes, when it broke, and when the page becomes visible again, and
// the stream continues after the last reported commit.

import { ask } from "./api.js";

const watchers = new Map();
const listeners = new EventTarget();
let [stream, timer, attempts, last, used] = [null, 0, 0, undefined, 0];

/** Calls `action` with "live", "connecting" or "paused", and with versions as they come. */
export function onState(action) {
  listeners.addEventListener("state", (event) => action(event.detail));
}

export function onVersion(action) {
  listeners.addEventListener("version", (event) => action(event.detail));
}

const tell = (type, detail) => listeners.dispatchEvent(new CustomEvent(type, { detail }));

/**
 * Watches until the answer is called. `action` gets the name of an event and its data: "state" with
 * all there is, "changes", or "problem".
 */
export function watch(what, action) {
  const id = `w${++used}`;
  watchers.set(id, { what, action, isKnown: false });
  reopenSoon();
  return () => {
    if (watchers.delete(id)) reopenSoon();
  };
}

/** Begins, and pauses while nobody looks. */
export function start() {
  document.addEventListener("visibilitychange", () => (document.hidden ? pause() : open()));
  open();
}

function pause() {
  clearTimeout(timer);
  stream?.abort();
  stream = null;
  tell("state", "paused");
}

export function stop() {
  pause();
  watchers.clear();
}

function reopenSoon() {
  clearTimeout(timer);
  timer = setTimeout(open, 20);
}

function watches() {
  return [...watchers].map(([id, { what, isKnown }]) => {
    const since = what.kind === "query" && isKnown || what.kind === "feed" && isKnown ? last : what.since;
    return { ...what, id, ...(since ? { since } : {}) };
  });
}

function base64url(text) {
  const bytes = new TextEncoder().encode(text);
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))
    .replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

async function open() {
  clearTimeout(timer);
  if (document.hidden) return;
  stream?.abort();
  const mine = stream = new AbortController();
  tell("state", "connecting");
  try {
    const parameters = { watch: base64url(JSON.stringify(watches())) };
    const response = await ask("GET", "live", { parameters, signal: mine.signal });
    attempts = 0;
    tell("state", "live");
    await read(response.body.getReader(), mine);
  } catch (error) {
    if (error.name === "AbortError" || error.status === 401) return;
  }
  if (mine !== stream) return;
  tell("state", "connecting");
  attempts += 1;
  timer = setTimeout(open, Math.min(5_000, 250 * 2 ** attempts));
}

async function read(reader, mine) {
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done || mine !== stream) return;
    // A large event comes in many pieces, and is searched once.
    const from = rest.length - 1;
    rest += decoder.decode(value, { stream: true });
    if (rest.indexOf("\n\n", from) < 0) continue;
    const blocks = rest.split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) deliver(block);
  }
}

function deliver(block) {
  const fields = {};
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).trimStart();
  }
  if (!fields.data) return;
  const data = JSON.parse(fields.data);
  if (fields.id) last = fields.id;
  if (fields.event === "version") return tell("version", data);
  const watcher = watchers.get(data.watch);
  if (!watcher) return;
  watcher.isKnown = true;
  watcher.action(fields.event, data);
}
