// Pictures of stored contents. Bytes come without a type of their own. The page shows them only if
// their first bytes are those of a known kind of picture, and only as an image.

import { ask } from "./api.js";
import { h, icon, replace } from "./dom.js";

const AT_ONCE = 4;
const KEPT = 200;
const LARGEST = 16 << 20;
const SIGNATURES = [
  ["image/png", [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]],
  ["image/jpeg", [0xff, 0xd8, 0xff]],
  ["image/gif", [0x47, 0x49, 0x46, 0x38]],
];

/** The kind of picture that bytes are; undefined for anything else, SVG among it. */
export function pictureType(bytes) {
  const text = String.fromCharCode(...bytes.subarray(0, 12));
  if (text.startsWith("RIFF") && text.endsWith("WEBP")) return "image/webp";
  if (/^ftyp(avif|avis)$/.test(text.slice(4))) return "image/avif";
  return SIGNATURES.find(([, start]) => start.every((byte, place) => bytes[place] === byte))?.[0];
}

const known = new Map();
const waiting = [];
let running = 0;

/** The address of a picture with this digest; undefined when it is none. */
function load(sha256) {
  if (!known.has(sha256)) {
    known.set(sha256, new Promise((resolve) => {
      waiting.push({ sha256, resolve });
      next();
    }));
    if (known.size > KEPT) {
      const [oldest, address] = known.entries().next().value;
      known.delete(oldest);
      address.then((one) => one && URL.revokeObjectURL(one));
    }
  }
  return known.get(sha256);
}

async function next() {
  if (running >= AT_ONCE || !waiting.length) return;
  const { sha256, resolve } = waiting.shift();
  running += 1;
  try {
    const answer = await ask("GET", `content/${sha256}`);
    // A content that is too large is not even read, because any bytes may claim to be a picture.
    if (answer.headers.get("Content-Length") > LARGEST) throw answer.body.cancel();
    const bytes = new Uint8Array(await answer.arrayBuffer());
    const type = pictureType(bytes);
    resolve(type ? URL.createObjectURL(new Blob([bytes], { type })) : undefined);
  } catch {
    resolve(undefined);
  }
  running -= 1;
  next();
}

/** A picture once it is in view, or a sheet of paper: also where there is no digest to ask for. */
export function pictureOf(sha256, label, className) {
  const holder = h("span", { class: `picture ${className}` }, icon("file"));
  if (!sha256) return holder;
  const observer = new IntersectionObserver(async ([entry]) => {
    if (!entry.isIntersecting) return;
    observer.disconnect();
    const address = await load(sha256);
    if (address) replace(holder, h("img", { src: address, alt: label }));
  });
  observer.observe(holder);
  return holder;
}
