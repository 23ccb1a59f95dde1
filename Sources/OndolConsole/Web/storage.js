// Stored objects: folders, previews, one object with who holds its bytes, uploads by dropping, and the
// accounting of what nobody holds.

import { ask, get, patch, post, remove, save, upload } from "./api.js";
import { attempt, confirm, dialog, note } from "./dialogs.js";
import { button, empty, failure, h, icon, loading, replace } from "./dom.js";
import { Page } from "./page.js";
import { pictureOf } from "./pictures.js";
import { address, go, route } from "./route.js";
import { canEdit } from "./session.js";
import { counted, local, shortTime, size } from "./values.js";

const isPicture = (object) => /^image\//.test(object.contentType ?? "image/") && object.size < 16e6;
const nameOf = (path) => path.replace(/\/$/, "").split("/").pop();

class StoragePage extends Page {
  begin() {
    this.crumbs = h("nav", { class: "crumbs", "aria-label": "Folder" });
    this.place = h("div", { class: "fill" }, loading());
    const file = h("input", { type: "file", multiple: true, hidden: true, onchange: () => this.#upload(file.files) });
    replace(this, h("header", null, h("h1", null, "Storage"), this.crumbs, h("span", { class: "grow" }),
      button("Upload", () => canEdit() && file.click(), { sign: "up", kind: "primary edit-only" }), file,
      button("Accounting", () => go(address("storage", [], { tab: "accounting" })))), this.place);
    this.addEventListener("dragover", (event) => {
      event.preventDefault();
      this.classList.add("drop");
    });
    this.addEventListener("dragleave", () => this.classList.remove("drop"));
    this.addEventListener("drop", (event) => {
      event.preventDefault();
      this.classList.remove("drop");
      if (canEdit()) this.#upload(event.dataTransfer.files);
    });
    this.arrive();
  }

  async arrive() {
    const { steps, parameters } = route();
    const path = steps.join("/");
    if (parameters.get("tab") === "accounting") return this.#accounting();
    // An address that ends with a folder has `in`; an object's own has not, so that links are its path.
    const folder = parameters.has("in") ? (path ? `${path}/` : "") : path.replace(/[^/]*$/, "");
    this.object = parameters.has("in") ? null : path || null;
    if (folder !== this.folder) {
      this.folder = folder;
      this.listing = null;
      this.end?.();
      this.end = this.watch({ kind: "storage", prefix: folder }, (event, data) => {
        if (event === "problem") return replace(this.place, failure(data.error));
        this.listing = data;
        return this.#draw();
      });
    }
    const parts = folder.split("/").filter(Boolean);
    replace(this.crumbs, h("a", { href: address("storage") }, "/"), parts.map((part, place) => [place > 0 && "/",
      h("a", { href: address("storage", parts.slice(0, place + 1), { in: "1" }) }, part)]));
    return this.#draw();
  }

  #draw() {
    if (!this.listing) return;
    const { folders, objects, next } = this.listing;
    const chosen = objects.find((one) => one.path === this.object);
    const tiles = [...folders.map((path) => h("a", { class: "tile", href: address("storage", path, { in: "1" }) },
      h("span", { class: "picture" }, icon("storage")), h("span", null, `${nameOf(path)}/`))),
    ...objects.map((one) => h("a", { class: "tile", href: address("storage", one.path), title: one.path,
      "aria-current": one === chosen ? "true" : undefined }, this.#picture(one, ""),
    h("span", null, nameOf(one.path)), h("span", { class: "muted" }, size(one.size))))];
    const list = tiles.length ? h("div", { class: "grid" }, tiles) : empty("Nothing stored here",
      "Objects that the app puts show up at once. Unlock editing to drop files here.");
    const more = next && button("Show more", async () => {
      const page = await attempt(() => get("storage", { prefix: this.folder, page: next }));
      if (page) this.listing = { ...page, folders: [...folders, ...page.folders], objects: [...objects, ...page.objects] };
      this.#draw();
    });
    const panel = this.object && h("aside", { class: "card", "aria-label": "Object" }, chosen ? this.#panel(chosen)
      : empty("This object is gone", "It was deleted or moved since.", button("Close", () => this.#close())));
    replace(this.place, h("div", { class: `split ${this.object ? "" : "alone"}` }, h("div", null, list, more), panel));
  }

  /** Pictures are kept while a listing is drawn anew, so that nothing flickers. */
  #picture(object, className) {
    this.pictures ??= new Map();
    const key = `${className}${object.path}${object.sha256}`;
    if (!this.pictures.has(key)) this.pictures.set(key, isPicture(object)
      ? pictureOf(object.sha256, nameOf(object.path), className) : h("span", { class: `picture ${className}` }, icon("file")));
    return this.pictures.get(key);
  }

  #close() {
    go(address("storage", this.folder, { in: "1" }));
  }

  #panel(object) {
    const holders = h("dd", null, "…");
    this.#holders(object.sha256, holders);
    const custom = Object.entries(object.custom ?? {});
    const texts = ["cacheControl", "contentDisposition", "contentEncoding", "contentLanguage"].filter((name) => object[name]);
    const pair = (name, ...values) => [h("dt", null, name), h("dd", null, values)];
    return [h("div", { class: "row" }, h("h2", { class: "grow" }, nameOf(object.path)),
      button("Close", () => this.#close(), { sign: "close", bare: true, kind: "quiet" })),
    this.#picture(object, "preview"),
    h("dl", null, pair("Type", object.contentType ?? "not said"), pair("Size", size(object.size)),
      pair("SHA-256", h("code", null, object.sha256)), pair("Put", h("time", { title: local(object.created) }, shortTime(object.created))),
      object.updated !== object.created && pair("Changed", h("time", { title: local(object.updated) }, shortTime(object.updated))),
      texts.map((name) => pair(name, object[name])), custom.map(([name, value]) => pair(name, value)),
      h("dt", null, "Held by"), holders),
    h("p", { class: "row" }, button("Download", () => attempt(async () => {
      save(await (await ask("GET", `content/${object.sha256}`)).blob(), nameOf(object.path));
    }), { sign: "down", kind: "small" }),
    button("Metadata", () => this.#metadata(object), { kind: "small edit-only" }),
    button("Delete", () => this.#delete(object), { sign: "trash", kind: "small danger-quiet edit-only" }))];
  }

  async #holders(sha256, place) {
    const answer = await get("holders", { sha256 }).catch(() => null);
    if (!answer) return replace(place, "not known");
    return replace(place, answer.holders.slice(0, 50).map(({ kind, path }) => h("div", null, kind === "document"
      ? h("a", { href: address("data", path) }, path) : kind === "path" ? h("a", { href: address("storage", path) }, path)
        : `${path} (derived)`)));
  }

  async #metadata(object) {
    if (!canEdit()) return;
    const type = h("input", { id: "type", name: "contentType" });
    const custom = h("textarea", { id: "custom", class: "json short" });
    type.value = object.contentType ?? "";
    custom.value = JSON.stringify(object.custom ?? {}, null, 2);
    await dialog("Metadata", [h("label", { for: "type" }, "Type", type),
      h("label", { for: "custom" }, "Custom, as JSON with texts", custom)], { action: "Save", submit: () => (
      patch("object", { path: object.path }, { contentType: type.value || null, custom: JSON.parse(custom.value) }, object.generation)) });
  }

  async #delete(object) {
    if (canEdit()) await confirm("Delete the object?", `${object.path} goes. Documents that hold the same bytes keep them.`, "Delete", async () => {
      await remove("object", { path: object.path }, object.generation);
      this.#close();
    });
  }

  async #upload(files) {
    for (const file of files) {
      const path = this.folder + file.name;
      const bar = h("progress", { value: 0, max: 1, "aria-label": `Uploading ${file.name}` });
      const row = h("div", { class: "card" }, h("p", null, path), bar);
      this.insertBefore(row, this.place);
      await attempt(async () => {
        const before = this.listing?.objects.find((one) => one.path === path);
        await upload({ path, type: file.type }, file, before?.generation ?? "0", (share) => { bar.value = share; });
        note(`${file.name} is stored.`);
      });
      row.remove();
    }
  }

  async #accounting() {
    this.folder = undefined;
    this.end?.();
    replace(this.crumbs, h("a", { href: address("storage") }, "/"), " Accounting");
    replace(this.place, loading());
    try {
      const all = await get("storage/accounting");
      const pair = (name, value) => [h("dt", null, name), h("dd", null, value)];
      const rows = (list, name) => h("table", { class: "plain" }, h("tbody", null, list.map((one) => h("tr", null,
        h("td", null, h("code", null, name(one))), h("td", { class: "number" }, size(one.size ?? one.bytes))))));
      replace(this.place, h("div", { class: "tiles" }, h("section", { class: "card" }, h("h2", null, "Stored"), h("dl", null,
        pair("Contents", `${counted(all.contents, "content")}, ${size(all.bytes)}`), pair("In files", size(all.storedBytes)),
        pair("Held by", `${counted(all.paths, "path")}, ${counted(all.documents, "document")}, ${all.derived} derived`),
        pair("Without sharing", size(all.heldBytes)))),
      h("section", { class: "card" }, h("h2", null, "Held by nobody"), h("p", null, `A reclaim would free ${size(all.unheldBytes)} in `
        + `${counted(all.unheldContents, "content")}. Since opening ${size(all.reclaimedBytes)} came back.`),
      rows(all.unheld, (one) => one.sha256), button("Reclaim", () => canEdit() && attempt(async () => {
        await post("tasks", { kind: "reclaim" });
        go(address("health"));
      }), { kind: "small edit-only" })),
      h("section", { class: "card" }, h("h2", null, "Files"), rows(all.files, (one) => one.name))));
    } catch (error) {
      replace(this.place, failure(error));
    }
  }
}
customElements.define("ondol-storage", StoragePage);
