// The shared state of the pages in one tab: the database's description, whether editing is open,
// and the last edits, for undo.

import { get, patch, post, put, remove } from "./api.js";
import { conflict, note } from "./dialogs.js";
import { button } from "./dom.js";
import { at, isSame, names } from "./values.js";

const UNDO_LIMIT = 10;
const events = new EventTarget();
const undone = [];

export const session = { database: null, isOpen: false };

export function onSession(action) {
  events.addEventListener("change", action);
  return () => events.removeEventListener("change", action);
}

const changed = () => events.dispatchEvent(new Event("change"));

export async function loadDatabase() {
  session.database = await get("database");
  changed();
}

export const mayWrite = () => session.database?.access === "edit";

/** Opens or closes the lock. It is closed whenever a page is loaded. */
export function setOpen(isOpen) {
  session.isOpen = isOpen && mayWrite();
  changed();
}

/** Whether an edit may begin; says what to do when not. */
export function canEdit() {
  if (session.isOpen) return true;
  note(mayWrite() ? "Editing is locked." : "This process only reads the database.", mayWrite()
    ? { action: { label: "Unlock", run: () => setOpen(true) } } : {});
  return false;
}

/** A button that is there while editing is open. */
export const edit = (label, run, { kind = "small", ...more } = {}) => (
  button(label, () => canEdit() && run(), { kind: `${kind} edit-only`, ...more }));

// MARK: undo

export const lastEdit = () => undone.at(-1);

function remember(edit) {
  undone.push(edit);
  if (undone.length > UNDO_LIMIT) undone.shift();
  changed();
}

/** Takes the last edit back, as an ordinary write under the version that the edit gave. */
export async function undo() {
  if (!undone.length || !canEdit()) return;
  const edit = undone.pop();
  changed();
  try {
    const version = (await edit.revert(edit.version)).document?.version ?? "0";
    // The document is as the previous edit left it, if no other commit came between the two.
    const before = undone.findLast((one) => one.path === edit.path);
    if (before?.version === edit.base) before.version = version;
    note(`Undone: ${edit.title}`);
  } catch (error) {
    note(error.status === 409 ? `Not undone: ${edit.path} has changed since.` : error.message, { bad: true });
  }
}

// MARK: writes of documents

/** What a patch does to fields, for the view of two versions. */
function patched(fields, change) {
  const copy = structuredClone(fields);
  const touch = (path, value) => {
    const steps = names(path);
    let node = copy;
    for (const name of steps.slice(0, -1)) {
      node = node[name] ??= {};
      if (Object.hasOwn(node, "$literal")) node = node.$literal;
    }
    if (value === undefined) delete node[steps.at(-1)];
    else node[steps.at(-1)] = value;
  };
  for (const [path, value] of Object.entries(change.set ?? {})) touch(path, value);
  for (const path of change.delete ?? []) touch(path, undefined);
  return copy;
}

/** Whether nobody else has touched the places that a change touches. */
function isApart(base, stored, change) {
  return [...Object.keys(change.set ?? {}), ...(change.delete ?? [])].every((path) => {
    const [left, right] = [at(base.fields, path), at(stored.fields, path)];
    return left === undefined || right === undefined ? left === right : isSame(left, right);
  });
}

/**
 * Writes under the version that was seen. When another commit came first, what does not touch the
 * same fields goes on; otherwise both versions are shown. Answers the document, or undefined when the
 * person gave way.
 */
async function guarded(seen, change, mine, write) {
  let version = seen?.version ?? "0";
  for (;;) {
    try {
      return await write(version);
    } catch (error) {
      if (error.status !== 409 || error.current === undefined) throw error;
      const stored = error.current;
      const goesOn = change && stored && isApart(seen, stored, change)
        || await conflict(seen.path, stored?.fields ?? null, mine(stored));
      if (!goesOn) return undefined;
      version = stored?.version ?? "0";
    }
  }
}

/** Changes some fields of a document and leaves the others. */
export async function patchDocument(seen, change, title) {
  const document = await guarded(seen, change, (stored) => patched((stored ?? seen).fields, change),
    async (version) => (
    version === "0"
      ? (await put("document", { path: seen.path }, { fields: patched(seen.fields, change) },
        version)).document
      : (await patch("document", { path: seen.path }, change, version)).document));
  if (!document) return undefined;
  const inverse = { set: {}, delete: [] };
  for (const path of [...Object.keys(change.set ?? {}), ...(change.delete ?? [])]) {
    const before = at(seen.fields, path);
    if (before === undefined) inverse.delete.push(path);
    else inverse.set[path] = before;
  }
  remember({ title, path: seen.path, base: seen.version, version: document.version,
    revert: (version) => patch("document", { path: seen.path }, inverse, version) });
  return document;
}

/** Makes a document's fields these and no others. */
export async function replaceDocument(seen, fields) {
  const document = await guarded(seen, null, () => fields, async (version) => (
    await put("document", { path: seen.path }, { fields }, version)).document);
  if (!document) return undefined;
  remember({ title: `${seen.id} replaced`, path: seen.path, base: seen.version, version: document.version,
    revert: (version) => put("document", { path: seen.path }, { fields: seen.fields }, version) });
  return document;
}

export async function createDocument(collection, id, fields) {
  const { document } = await post("document", { ...(id ? { id } : {}), fields }, { collection });
  remember({ title: `${document.id} created`, path: document.path, base: "0", version: document.version,
    revert: (version) => remove("document", { path: document.path }, version) });
  return document;
}

/** Deletes a document; one that had others below it cannot be brought back whole. */
export async function deleteDocument(seen, recursive) {
  const done = await guarded(seen, null, () => null, (version) => (
    remove("document", { path: seen.path, recursive }, version)));
  if (!done) return false;
  if (!recursive) {
    remember({ title: `${seen.id} deleted`, path: seen.path, base: seen.version, version: "0",
      revert: (version) => put("document", { path: seen.path }, { fields: seen.fields }, version) });
  }
  return true;
}
