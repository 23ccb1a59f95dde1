// What lies over the page: questions, notes that go away, and the view of two versions.

import { button, failure, h, icon } from "./dom.js";
import { brief, entries, isSame, kind } from "./values.js";

/**
 * Shows a dialog with a form. `submit` gets the form's data; the dialog closes when it is done and
 * shows what it throws. Answers what `submit` gave, or undefined when it was closed.
 */
export function dialog(title, body, { action = "OK", danger = false, wide = false, submit = () => true } = {}) {
  return new Promise((resolve) => {
    const problem = h("div", { class: "problem" });
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
    }, h("h2", { id: "dialog-title" }, title), body, problem,
    h("footer", null, button("Cancel", () => element.close()), action && confirm));
    const element = h("dialog", { class: wide ? "wide" : "", "aria-labelledby": "dialog-title" }, form);
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
  const field = typed && h("input", { name: "typed", autocomplete: "off", spellcheck: "false", id: "typed" });
  return dialog(title, [
    h("p", null, text),
    typed && h("label", { for: "typed" }, "Type ", h("code", null, typed), " to confirm", field),
  ], {
    action, danger: true,
    submit: async () => {
      if (typed && field.value !== typed) throw new Error(`This is not “${typed}”.`);
      await run();
      return true;
    },
  });
}

/** Says something for a while, with an action perhaps. */
export function note(text, { bad = false, action } = {}) {
  let holder = document.querySelector(".notes");
  if (!holder) document.body.append(holder = h("div", { class: "notes", role: "status", "aria-live": "polite" }));
  const element = h("div", { class: `note ${bad ? "bad" : ""}` }, bad && icon("warn"), h("span", null, text),
    action && button(action.label, () => {
      element.remove();
      action.run();
    }, { kind: "small" }),
    button("Dismiss", () => element.remove(), { sign: "close", bare: true }));
  holder.append(element);
  while (holder.children.length > 4) holder.firstChild.remove();
  setTimeout(() => element.remove(), bad ? 10_000 : 5_000);
}

/** Runs something a person asked for, and says what went wrong. */
export async function attempt(run) {
  try {
    return await run();
  } catch (error) {
    if (error.name !== "AbortError") note([error.message, error.hint].filter(Boolean).join(" "), { bad: true });
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
  const cell = (fields, name) => (!fields ? h("td", { class: "muted" }, "no document")
    : Object.hasOwn(fields, name) ? h("td", null, h("code", { class: `value ${kind(fields[name])}` }, brief(fields[name])))
      : h("td", { class: "muted" }, "not there"));
  return dialog("Somebody else changed this first", [
    h("p", null, h("code", null, path), " is no longer as it was when you began. Which version is to stay?"),
    h("div", { class: "scroll" }, h("table", { class: "plain conflict" },
      h("thead", null, h("tr", null, ["Field", "Stored now", "Yours"].map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", null, different.map((name) => h("tr", null, h("th", { scope: "row" }, name),
        cell(stored, name), cell(mine, name)))))),
    h("p", { class: "muted" }, `${all.length - different.length} other fields are the same in both. `,
      "Cancel keeps what is stored."),
  ], { action: "Write mine", wide: true });
}

/** Fields with their changed ones, before and after. */
export function fieldTable(names, before, after) {
  const cell = (fields, name) => h("td", null, fields && Object.hasOwn(fields, name)
    ? h("code", { class: `value ${kind(fields[name])}` }, brief(fields[name])) : h("span", { class: "muted" }, "–"));
  const all = names.length ? names.map((name) => name.replace(/^`|`$/g, ""))
    : entries({ ...before, ...after }).map(([name]) => name);
  const top = [...new Set(all.map((name) => (Object.hasOwn({ ...before, ...after }, name)
    ? name : name.split(".")[0])))];
  return h("table", { class: "plain" },
    h("thead", null, h("tr", null, ["Field", "Before", "After"].map((one) => h("th", { scope: "col" }, one)))),
    h("tbody", null, top.map((name) => h("tr", null, h("th", { scope: "row" }, name),
      cell(before, name), cell(after, name)))));
}
