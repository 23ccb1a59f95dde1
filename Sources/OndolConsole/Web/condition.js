// The box for a condition: runs on Enter or after a pause, offers the known fields, and marks the
// place of a mistake.

import { h, later, replace } from "./dom.js";

const PAUSE = 600;

/** The place in a text that so many bytes of UTF-8 come before. */
export function placeOf(text, bytes) {
  const decoded = new TextDecoder().decode(new TextEncoder().encode(text).subarray(0, bytes));
  return decoded.length;
}

export function conditionBox({ value, run, fields, label = "Condition",
  hint = "price < 50000 and category = 'textile'" }) {
  const problem = h("p.problem", { role: "alert", id: `problem-${label}` });
  const list = h("ul.suggestions", { role: "listbox", id: `suggestions-${label}`, hidden: true });
  let [ran, chosen, isEntered] = [value, -1, false];
  const input = h("input.condition", {
    placeholder: `Condition: ${hint}`, label,
    role: "combobox", "aria-expanded": "false", "aria-controls": list.id, "aria-describedby": problem.id,
    oninput: () => {
      suggest();
      pausing();
    },
    onkeydown: key, onblur: () => setTimeout(hide, 150),
  });
  input.value = value;
  const submit = () => {
    hide();
    if (input.value.trim() === ran.trim()) return;
    ran = input.value;
    run(input.value.trim());
  };
  // A text that ends within a word or a quote is not finished, and waits for Enter.
  const pausing = later(PAUSE, () => {
    if (list.hidden && (!input.value.trim() || /(['"\])\d]|true|false|null)\s*$/.test(input.value))) submit();
  });

  function wordBefore() {
    return /(?:^|[\s(])([\p{L}_][\p{L}\p{N}_.]*)$/u.exec(input.value.slice(0, input.selectionStart))?.[1]
      ?? "";
  }

  function suggest() {
    const word = wordBefore().toLowerCase();
    const found = word ? fields().filter(({ field }) => field.toLowerCase().includes(word)
      && field !== word).slice(0, 8) : [];
    chosen = -1;
    list.hidden = !found.length;
    input.setAttribute("aria-expanded", !list.hidden);
    replace(list, found.map(({ field, kinds }, place) => h("li", {
      role: "option", id: `${list.id}-${place}`, "aria-selected": "false",
      onmousedown: (event) => {
        event.preventDefault();
        take(field);
      },
    }, h("span", field), h("span.muted", Object.keys(kinds).join(", ")))));
  }

  function hide() {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function take(field) {
    const place = input.selectionStart;
    const start = place - wordBefore().length;
    input.setRangeText(`${field} `, start, place, "end");
    hide();
    input.focus();
  }

  function choose(by) {
    const options = [...list.children];
    chosen = (chosen + by + options.length) % options.length;
    options.forEach((option, place) => option.setAttribute("aria-selected", place === chosen));
    input.setAttribute("aria-activedescendant", options[chosen].id);
  }

  function key(event) {
    if (!list.hidden && ["ArrowDown", "ArrowUp"].includes(event.key)) choose(event.key === "ArrowDown" ? 1
      : -1);
    else if (!list.hidden && chosen >= 0 && ["Enter",
      "Tab"].includes(event.key)) list.children[chosen].dispatchEvent(new Event("mousedown"));
    else if (event.key === "Enter") {
      // The page's own keys work again; a mistake returns to the field.
      isEntered = true;
      input.blur();
      submit();
    }
    else if (event.key === "Escape" && !list.hidden) hide();
    else return;
    event.preventDefault();
  }

  const element = h("div.conditionbox", h("div.combo", input, list), problem);
  /** Shows what is wrong, and where. */
  element.fail = (error) => {
    input.setAttribute("aria-invalid", "true");
    if (isEntered) input.focus();
    isEntered = false;
    const place = error.offset === undefined ? undefined : placeOf(ran, error.offset);
    replace(problem, error.message, place !== undefined && place < ran.length
      && [": ", h("code", ran.slice(0, place)),
      h("mark", ran.slice(place, place + 12) || " ")]);
  };
  element.input = input;
  element.clear = () => {
    isEntered = false;
    input.removeAttribute("aria-invalid");
    replace(problem);
  };
  return element;
}
