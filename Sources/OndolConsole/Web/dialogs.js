// Everything above the page: questions, temporary notes, and the view of two versions.

import { button, failure, h, icon, label, seen, table, tool } from "./dom.js";
import { brief, isSame, kind } from "./values.js";

/**
 * Shows a dialog with a form. `submit` gets the form's data; the dialog closes when it is done and
 * shows what it throws. Answers what `submit` gave, or undefined when it was closed.
 */
export function dialog(title, body, { action = "OK", danger = false, wide = false,
  submit = () => true } = {}) {
  return new Promise((resolve) => {
    const problem = h("div.problem");
    const confirm = h("button", { class: `button ${danger ? "danger" : "primary"}`, type: "submit" }, action);
    const form = h("form", {
      method: "dialog",
      onsubmit: async (event) => {
        event.preventDefault();
        confirm.disabled = true;
        try {
          const answer = await submit(new FormData(form), form);
          resolve(answer);
          element.close();
        } catch (error) {
          problem.replaceChildren(failure(error));
        } finally {
          confirm.disabled = false;
        }
      },
    }, h("h2", title), body, problem,
    h("footer", button("Cancel", () => element.close()), action && confirm));
    const element = h("dialog", { class: wide ? "wide" : "", label: title }, form);
    element.addEventListener("close", () => {
      element.remove();
      resolve(undefined);
    });
    document.body.append(element);
    element.showModal();
  });
}

/** Asks before something is gone; with `typed`, that text must be typed first. */
export function confirm(title, text, action, run, typed) {
  const field = typed && h("input");
  return dialog(title, [
    h("p", text),
    typed && label(["Type ", h("code", typed), " to confirm"], field),
  ], {
    action, danger: true,
    submit: async () => {
      if (typed && ![typed, seen(typed)].includes(field.value)) throw new Error(`This is not “${typed}”.`);
      await run();
      return true;
    },
  });
}

/** Says something for a while, with an action perhaps. */
export function note(text, { bad = false, action } = {}) {
  let holder = document.querySelector(".notes");
  if (!holder) document.body.append(holder = h("div.notes", { role: "status", "aria-live": "polite" }));
  const element = h("div", { class: `note ${bad ? "bad" : ""}` }, bad && icon("warn"), h("span", text),
    action && button(action.label, () => {
      element.remove();
      action.run();
    }, { kind: "small" }),
    tool("Dismiss", "close", () => element.remove()));
  holder.append(element);
  while (holder.children.length > 4) holder.firstChild.remove();
  setTimeout(() => element.remove(), bad ? 10_000 : 5_000);
}

/** Runs something a person asked for, and says what went wrong. */
export async function attempt(run) {
  try {
    return await run();
  } catch (error) {
    if (error.name !== "AbortError") note([error.message, error.hint].filter(Boolean).join(" "),
      { bad: true });
    return undefined;
  }
}

/**
 * Shows what is stored beside what was to be written, since another commit came first. Answers true
 * when the person's own version is to win.
 */
export function conflict(path, stored, mine) {
  const all = [...new Set([...Object.keys(stored ?? {}), ...Object.keys(mine ?? {})])].sort();
  const different = all.filter((name) => !stored || !mine || !Object.hasOwn(stored, name)
    || !Object.hasOwn(mine, name) || !isSame(stored[name], mine[name]));
  return dialog("Another commit changed this first", [
    h("p", h("code", path), " has changed since you began. Which version do you want to keep?"),
    h("div.scroll", fieldTable(different, stored, mine, ["Field", "Stored now", "Yours"])),
    h("p.muted", `${all.length - different.length} other fields are the same in both. `,
      "Cancel keeps the stored version."),
  ], { action: "Write mine", wide: true });
}

/** Fields, as one state of a document has them and as another has; null is no document. */
export function fieldTable(names, before, after, heads = ["Field", "Before", "After"]) {
  const cell = (fields, name) => (!fields ? h("span.muted", "no document") : Object.hasOwn(fields, name)
    ? h("code", { class: `value ${kind(fields[name])}` }, brief(fields[name]))
      : h("span.muted", "not there"));
  return table(heads, names.map((name) => [h("strong", name), cell(before, name), cell(after, name)]));
}
