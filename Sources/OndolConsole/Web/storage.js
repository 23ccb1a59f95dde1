// Stored objects: folders, previews, one object with its content's holders, uploads by dropping,
// and the space of contents without a holder.

import { ask, get, patch, post, remove, save, upload } from "./api.js";
import { attempt, confirm, dialog, note } from "./dialogs.js";
import { button, empty, failure, h, icon, label, loading, pairs, replace, table, tool } from "./dom.js";
import { Page } from "./page.js";
import { pictureOf } from "./pictures.js";
import { address, go, route } from "./route.js";
import { canEdit, edit } from "./session.js";
import { counted, local, shortTime, size } from "./values.js";

const isPicture = (object) => /^image\//.test(object.contentType ?? "image/") && object.size < 16e6;
const nameOf = (path) => path.replace(/\/$/, "").split("/").pop();

class StoragePage extends Page {
  begin() {
    this.crumbs = h("nav.crumbs", { label: "Folder" });
    this.place = h("div.fill", loading());
    const file = h("input", { type: "file", multiple: true, hidden: true,
      onchange: () => this.#upload(file.files) });
    replace(this, h("header", h("h1", "Storage"), this.crumbs, h("span.grow"),
      edit("Upload", () => file.click(), { sign: "up", kind: "primary" }), file,
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
    // An address that ends with a folder has `in`. An object's own has not, so that links are its
    // path.
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
    replace(this.crumbs, h("a", { href: address("storage") }, "/"),
      parts.map((part, place) => [place > 0 && "/",
      h("a", { href: address("storage", parts.slice(0, place + 1), { in: "1" }) }, part)]));
    return this.#draw();
  }

  #draw() {
    if (!this.listing) return;
    const { folders, objects, next } = this.listing;
    const chosen = objects.find((one) => one.path === this.object);
    const tiles = [...folders.map((path) => h("a.tile", { href: address("storage", path, { in: "1" }) },
      h("span.picture", icon("storage")), h("span", `${nameOf(path)}/`))),
    ...objects.map((one) => h("a.tile", { href: address("storage", one.path), title: one.path,
      "aria-current": one === chosen ? "true" : undefined }, this.#picture(one, ""),
    h("span", nameOf(one.path)), h("span.muted", size(one.size))))];
    const list = tiles.length ? h("div.grid", tiles) : empty("Nothing stored here",
      "Objects that the app puts appear at once. Unlock editing to drop files here.");
    const more = next && button("Show more", async () => {
      const page = await attempt(() => get("storage", { prefix: this.folder, page: next }));
      if (page) this.listing = { ...page, folders: [...folders, ...page.folders],
        objects: [...objects, ...page.objects] };
      this.#draw();
    });
    const panel = this.object && h("aside.card", { label: "Object" }, chosen ? this.#panel(chosen)
      : empty("This object is gone", "It was deleted.", button("Close", () => this.#close())));
    replace(this.place, h("div", { class: `split ${this.object ? "" : "alone"}` }, h("div", list, more),
      panel));
  }

  /** Pictures are kept while a listing is drawn anew, so that nothing flickers. */
  #picture(object, className) {
    this.pictures ??= new Map();
    const key = `${className}${object.path}${object.sha256}`;
    if (!this.pictures.has(key)) this.pictures.set(key, isPicture(object)
      ? pictureOf(object.sha256, nameOf(object.path), className)
        : h("span", { class: `picture ${className}` }, icon("file")));
    return this.pictures.get(key);
  }

  #close() {
    go(address("storage", this.folder, { in: "1" }));
  }

  #panel(object) {
    const holders = h("div", "…");
    this.#holders(object.sha256, holders);
    const custom = Object.entries(object.custom ?? {});
    const texts = ["cacheControl", "contentDisposition", "contentEncoding",
      "contentLanguage"].filter((name) => object[name]);
    return [h("div.row", h("h2.grow", nameOf(object.path)),
      tool("Close", "close", () => this.#close())),
    this.#picture(object, "preview"),
    pairs(["Type", object.contentType ?? "not said"], ["Size", size(object.size)],
      ["SHA-256", h("code", object.sha256)],
      ["Put", h("time", { title: local(object.created) }, shortTime(object.created))],
      object.updated !== object.created && ["Changed",
        h("time", { title: local(object.updated) }, shortTime(object.updated))],
      ...texts.map((name) => [name, object[name]]), ...custom, ["Held by", holders]),
    h("p.row", button("Download", () => attempt(async () => {
      save(await (await ask("GET", `content/${object.sha256}`)).blob(), nameOf(object.path));
    }), { sign: "down", kind: "small" }),
    edit("Metadata", () => this.#metadata(object)),
    edit("Delete", () => this.#delete(object), { sign: "trash", kind: "small danger-quiet" }))];
  }

  async #holders(sha256, place) {
    const answer = await get("holders", { sha256 }).catch(() => null);
    if (!answer) return replace(place, "not known");
    return replace(place, answer.holders.slice(0, 50).map(({ kind, path }) => h("div", kind === "document"
      ? h("a", { href: address("data", path) }, path) : kind === "path"
        ? h("a", { href: address("storage", path) }, path)
        : `${path} (derived)`)));
  }

  async #metadata(object) {
    const type = h("input");
    const custom = h("textarea.json.short");
    type.value = object.contentType ?? "";
    custom.value = JSON.stringify(object.custom ?? {}, null, 2);
    await dialog("Metadata", [label("Type", type),
      label("Custom, as JSON with texts", custom)], { action: "Save", submit: () => (
      patch("object", { path: object.path }, { contentType: type.value || null,
        custom: JSON.parse(custom.value) }, object.generation)) });
  }

  async #delete(object) {
    await confirm("Delete the object?", `${object.path} goes. Documents that hold the same bytes keep them.`,
      "Delete", async () => {
      await remove("object", { path: object.path }, object.generation);
      this.#close();
    });
  }

  async #upload(files) {
    for (const file of files) {
      const path = this.folder + file.name;
      const bar = h("progress", { value: 0, max: 1, label: `Uploading ${file.name}` });
      const row = h("div.card", h("p", path), bar);
      this.insertBefore(row, this.place);
      await attempt(async () => {
        const before = this.listing?.objects.find((one) => one.path === path);
        await upload({ path, type: file.type }, file, before?.generation ?? "0",
          (share) => { bar.value = share; });
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
      const rows = (list, name) => table(null, list.map((one) =>
        [h("code", name(one)), size(one.size ?? one.bytes)]));
      const holders = [counted(all.paths, "path"), counted(all.documents, "document"),
        `${all.derived} derived`].join(", ");
      replace(this.place, h("div.tiles", h("section.card", h("h2", "Stored"), pairs(
        ["Contents", `${counted(all.contents, "content")}, ${size(all.bytes)}`],
        ["In files", size(all.storedBytes)], ["Held by", holders], ["Without sharing", size(all.heldBytes)])),
      h("section.card", h("h2", "Without a holder"), h("p", `A reclaim would free ${size(all.unheldBytes)} in `
        + `${counted(all.unheldContents, "content")}. Since opening ${size(all.reclaimedBytes)} came back.`),
      rows(all.unheld, (one) => one.sha256), edit("Reclaim", () => attempt(async () => {
        await post("tasks", { kind: "reclaim" });
        go(address("health"));
      }))),
      h("section.card", h("h2", "Files"), rows(all.files, (one) => one.name))));
    } catch (error) {
      replace(this.place, failure(error));
    }
  }
}
customElements.define("ondol-storage", StoragePage);
