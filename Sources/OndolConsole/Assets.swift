// The console's pages, as Scripts/console-assets embeds what is in Web: not to be edited here. Text, not
// bytes, because array literals of this length take compilers minutes.
// swift-format-ignore-file

/// The files of the page by their names.
enum Assets {
  static let files: [String: String] = [
    "api.js": ##"""
const KEY = "ondol.token";
export class Failure extends Error {
constructor(status, body) {
super(body.message ?? `The server answered ${status}.`);
this.status = status;
Object.assign(this, { code: body.code, path: body.path, field: body.field, hint: body.hint,
offset: body.offset, current: body.current });
}
}
export function takeToken() {
const match = /^#token=([\w-]+)$/.exec(location.hash);
if (match) {
sessionStorage.setItem(KEY, match[1]);
history.replaceState(null, "", location.pathname);
}
return sessionStorage.getItem(KEY);
}
export function keepToken(token) {
sessionStorage.setItem(KEY, token);
}
const refusals = new EventTarget();
export function onRefused(action) {
refusals.addEventListener("refused", action);
}
export function query(parameters) {
const text = Object.entries(parameters)
.filter(([, value]) => value !== undefined && value !== null && value !== "")
.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
return text && `?${text}`;
}
export async function ask(method, route, { body, type, match, signal, parameters = {} } = {}) {
const headers = { Authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ""}` };
if (match !== undefined) headers["If-Match"] = `"${match}"`;
if (body !== undefined) headers["Content-Type"] = type ?? "application/json";
let response;
try {
response = await fetch(`/api/v1/${route}${query(parameters)}`, {
method, headers, signal, body: type || body === undefined ? body : JSON.stringify(body),
});
} catch (error) {
if (error.name === "AbortError") throw error;
throw new Failure(0, {
code: "unavailable", message: "The console's process does not answer.",
hint: "Start it again and open the address that it prints.",
});
}
if (response.ok) return response;
const failure = new Failure(response.status, await response.json().catch(() => ({})));
if (failure.status === 401) refusals.dispatchEvent(new Event("refused"));
throw failure;
}
async function json(method, route, options) {
return (await ask(method, route, options)).json();
}
export const get = (route, parameters, signal) => json("GET", route, { parameters, signal });
export const post = (route, body, parameters, signal) => json("POST", route, { body, parameters, signal });
export const put = (route, parameters, body, match, type) =>
json("PUT", route, { parameters, body, match, type });
export const patch = (route, parameters, body, match) => json("PATCH", route, { parameters, body, match });
export const remove = (route, parameters, match) => json("DELETE", route, { parameters, match });
export function upload(parameters, file, match, progress) {
return new Promise((resolve, reject) => {
const request = new XMLHttpRequest();
request.open("PUT", `/api/v1/object${query(parameters)}`);
request.setRequestHeader("Authorization", `Bearer ${sessionStorage.getItem(KEY) ?? ""}`);
request.setRequestHeader("If-Match", `"${match}"`);
request.setRequestHeader("Content-Type", "application/octet-stream");
request.responseType = "json";
request.upload.onprogress = (event) => progress(event.loaded / Math.max(1, event.total));
request.onload = () => request.status === 200
? resolve(request.response) : reject(new Failure(request.status, request.response ?? {}));
request.onerror = () => reject(new Failure(0, { message: "The upload broke off." }));
request.send(file);
});
}
export function save(blob, name) {
const link = document.createElement("a");
link.href = URL.createObjectURL(blob);
link.download = name;
link.click();
setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

"""##,
    "app.js": ##"""
import { keepToken, onRefused, takeToken } from "./api.js";
import { button, failure, h, icon, label, mark, replace, seen } from "./dom.js";
import * as live from "./live.js";
import { address, route } from "./route.js";
import { lastEdit, loadDatabase, mayWrite, onSession, session, setOpen, undo } from "./session.js";
import { grouped, local } from "./values.js";
import "./data.js";
import "./tree.js";
import "./storage.js";
import "./query.js";
import "./indexes.js";
import "./changes.js";
import "./statistics.js";
import "./health.js";
const PAGES = [["data", "Data"], ["tree", "Tree"], ["storage", "Storage"], ["query", "Query"],
["indexes", "Indexes"], ["changes", "Changes"], ["statistics", "Statistics"], ["health", "Health"]];
const parts = {
name: h("strong", "Ondol console"), path: h("span.path"), role: h("span.role"),
version: h("span.version"), dot: h("span.dot"), live: h("span"),
banner: h("div"), main: h("main", { id: "main", tabindex: "-1" }),
undo: button("Undo", undo, { sign: "undo", kind: "quiet", hidden: true }),
lock: button("Locked", () => setOpen(!session.isOpen), { sign: "locked", kind: "lock", disabled: true }),
};
class Console extends HTMLElement {
connectedCallback() {
const links = PAGES.map(([page, title]) => h("a", { href: address(page), "data-page": page },
icon(page), h("span", title)));
replace(this,
h("a.skip", { href: "#main", onclick: skip }, "Skip to the page"),
h("header.top",
h("div.who", mark(),
h("div.names", parts.name, parts.path)),
h("div.facts", parts.role, parts.version,
h("span.live", { role: "status" }, parts.dot, parts.live)),
h("div.row", parts.undo, parts.lock)),
h("nav.pages", { label: "Pages" }, links),
h("div.view", parts.banner, parts.main));
this.links = links;
}
show() {
const { page } = route();
const [name, title] = PAGES.find(([one]) => one === page) ?? PAGES[0];
for (const link of this.links) {
link.removeAttribute("aria-current");
if (link.dataset.page !== name) continue;
link.setAttribute("aria-current", "page");
link.scrollIntoView();
}
document.title = seen(`${title} · ${session.database.name}`);
const tag = `ondol-${name}`;
const shown = parts.main.firstElementChild;
if (shown?.localName === tag) shown.arrive?.();
else replace(parts.main, document.createElement(tag));
}
}
customElements.define("ondol-console", Console);
function skip(event) {
event.preventDefault();
parts.main.focus();
}
function renderSession() {
const { database, isOpen } = session;
if (!database) return;
replace(parts.name, database.name);
replace(parts.path, database.path);
parts.path.title = `${seen(database.path)}\nidentity ${database.identity}`;
parts.role.textContent = database.role === "writer" ? `writer, pid ${database.pid}`
: `follows pid ${database.holder?.pid ?? "?"}, read only`;
replace(parts.lock, icon(isOpen ? "open" : "locked"),
h("span", isOpen ? "Editing" : mayWrite() ? "Locked" : "Read only"));
parts.lock.setAttribute("aria-pressed", isOpen);
parts.lock.setAttribute("aria-label", isOpen ? "Editing is open. Lock it" : "Editing is locked. Unlock it");
parts.lock.disabled = !mayWrite();
const edit = lastEdit();
parts.undo.hidden = !edit;
parts.undo.title = edit ? seen(`Undo: ${edit.title}`) : "";
document.body.classList.toggle("editing", isOpen);
replace(parts.banner, database.role === "follower" && banner(database));
}
function banner(database) {
return h("div.banner", { role: "note" }, icon("warn"), h("p", null,
`Process ${database.holder?.pid ?? "of another app"} has this database open for writing, `,
"so this console only reads. To edit while the app runs, embed the console in it: ",
h("code", "let console = try await Console.start(database, access: .edit)"), " and ",
h("code", "print(console.url)"), "."));
}
function renderLive(state) {
parts.dot.className = `dot ${state}`;
parts.live.textContent = { live: "live", connecting: "connecting", paused: "paused" }[state];
}
function renderVersion({ version, time }) {
parts.version.textContent = `version ${grouped(BigInt(version))}`;
parts.version.title = `newest commit, ${local(time)}`;
}
function askForToken(reason) {
live.stop();
const field = h("input", { required: true });
replace(document.body, h("main.gate", h("form", {
onsubmit: (event) => {
event.preventDefault();
keepToken(field.value.trim().replace(/^.*#token=/, ""));
location.reload();
},
}, mark(), h("h1", "Ondol console"), h("p", reason),
label("Address or token", field),
h("button.button.primary", { type: "submit" }, "Open"))));
}
function keys(event) {
const isTyping = event.target.closest?.("input, textarea, select, dialog");
if ((event.metaKey || event.ctrlKey) && event.key === "z" && !isTyping) {
event.preventDefault();
undo();
}
}
async function begin() {
if (!takeToken()) {
return askForToken("Open the address that `ondol console` has printed: it ends with this start's token.");
}
onRefused(() => askForToken("This token is of an earlier start. Open the address that was printed last."));
const frame = document.createElement("ondol-console");
replace(document.body, frame);
try {
await loadDatabase();
} catch (error) {
if (error.status !== 401) {
replace(document.body, h("main.gate", failure(error),
button("Try again", () => location.reload(), { kind: "primary" })));
}
return undefined;
}
onSession(renderSession);
renderSession();
renderVersion({ version: session.database.version, time: session.database.opened });
live.onState(renderLive);
live.onVersion(renderVersion);
live.start();
addEventListener("hashchange", () => frame.show());
addEventListener("keydown", keys);
frame.show();
return undefined;
}
begin();

"""##,
    "base.css": ##"""
:root{
color-scheme:light dark;
--font: system-ui, -apple-system, "Segoe UI", "Noto Sans", "Noto Sans CJK KR", sans-serif;
--mono: ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", monospace;
--ground:#f6f6f4;
--surface:#ffffff;
--raised:#ffffff;
--sunken:#f1f1ee;
--line:#e3e2de;
--line-strong:#c9c7c1;
--text:#1f1e1b;
--muted:#66635b;
--accent:#a8431c;
--accent-text:#ffffff;
--accent-soft:#fbeee7;
--good:#24753f;
--bad:#b3261e;
--bad-soft:#fcedeb;
--warn:#7a5200;
--warn-soft:#fdf3da;
--flash:#ffe7a0;
--string:#2a6440;
--number:#1f5aa6;
--special:#7b3f98;
--shadow:0 1px 2px rgb(30 25 20 / 6%),0 8px 28px rgb(30 25 20 / 12%);
--radius:7px;
--edge:1px solid var(--line);
--gap:12px;
}
@media (prefers-color-scheme:dark){
:root{
--ground:#141413;
--surface:#1b1b1a;
--raised:#242422;
--sunken:#222220;
--line:#2f2e2c;
--line-strong:#4a4845;
--text:#ecebe7;
--muted:#a5a199;
--accent:#f0946a;
--accent-text:#1d120c;
--accent-soft:#38251c;
--good:#6cc48a;
--bad:#f28b82;
--bad-soft:#3a2120;
--warn:#e8bd5c;
--warn-soft:#362c15;
--flash:#5c4712;
--string:#8fd0a5;
--number:#8dbcf5;
--special:#d2a4e6;
--shadow:0 1px 2px rgb(0 0 0 / 40%),0 10px 32px rgb(0 0 0 / 50%);
}
}
*{box-sizing:border-box}
[hidden]{display:none !important}
html,body{height:100%;margin:0}
body{background:var(--ground);color:var(--text);font:14px/1.45 var(--font)}
h1,h2,h3,p,ul{margin:0;padding:0;font-weight:inherit;font-size:inherit}
h1{font-size:18px;font-weight:650}
h2{font-size:14px;font-weight:600}
h3{font-size:12px;font-weight:600;color:var(--muted)}
a{color:var(--accent);text-decoration:none}
a:hover{text-decoration:underline}
code,.value,.json,.condition,.tr,.suggestions li{font-family:var(--mono);font-size:12.5px}
:focus-visible{outline:2px solid var(--accent);outline-offset:1px;border-radius:4px}
.muted{color:var(--muted)}
.grow{flex:1;min-width:0}
.row{display:flex;align-items:center;gap:8px;flex-wrap:wrap}
.row.centre{justify-content:center}
.scroll{overflow:auto}
.icon{width:16px;height:16px;fill:none;stroke:currentColor;stroke-width:1.4;flex:none;
stroke-linecap:round;stroke-linejoin:round}
.skip{position:absolute;left:-999px;top:4px;background:var(--raised);padding:8px;z-index:9}
.skip:focus{left:4px}
ondol-console{display:grid;height:100%;grid-template:auto 1fr / 176px minmax(0,1fr);
grid-template-areas: "top top" "pages view"; }
.top{grid-area:top;display:flex;align-items:center;gap:16px;padding:8px 16px;
background:var(--surface);
border-bottom:var(--edge);min-height:54px}
.who{display:flex;gap:10px;align-items:center;flex:1;min-width:0}
.card > details > summary{cursor:pointer;color:var(--muted)}
.mark{display:grid;place-items:center;width:32px;height:32px;border-radius:8px;
background:var(--accent);
color:var(--accent-text);flex:none}
.names{display:grid;min-width:0;line-height:1.3}
.names strong,.names .path,.listrow .name,.tile span,.thead > *,.tr > *{
overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.names .path{color:var(--muted);font-size:12px}
.top .facts{display:flex;gap:16px;align-items:center;color:var(--muted);font-size:12.5px;
white-space:nowrap}
.version{font-variant-numeric:tabular-nums}
.live{display:flex;align-items:center;gap:6px}
.dot{width:8px;height:8px;border-radius:50%;background:var(--line-strong)}
.dot.live{background:var(--good)}
.dot.connecting{background:var(--warn);animation:pulse 1s infinite alternate}
.mark .icon{width:20px;height:20px}
nav.pages{grid-area:pages;padding:10px 8px;display:flex;flex-direction:column;gap:2px;
overflow:auto}
nav.pages a{display:flex;align-items:center;gap:10px;padding:7px 10px;border-radius:var(--radius);
color:var(--muted);font-weight:500}
nav.pages a:hover{background:var(--sunken);color:var(--text);text-decoration:none}
nav.pages a[aria-current]{background:var(--accent-soft);color:var(--accent)}
.view{grid-area:view;min-width:0;min-height:0;display:flex;flex-direction:column}
main{flex:1;min-height:0;outline:none}
main > .page{display:flex;flex-direction:column;height:100%;overflow:auto;
padding:4px 16px 24px 4px;gap:var(--gap)}
.page > header{display:flex;align-items:center;gap:10px;padding:12px 4px 0;
flex-wrap:wrap}
.page > header input{width:210px}
.card,.tile,.change{background:var(--surface);border:var(--edge);border-radius:10px}
.card{padding:16px}
.page h2{margin:4px 0}
.gate{display:grid;place-content:center;height:100%;padding:20px;gap:12px;justify-items:center}
.gate form{display:grid;gap:14px;max-width:380px}
.button{display:inline-flex;align-items:center;gap:6px;min-height:32px;padding:4px 12px;
font:inherit;
font-weight:500;color:var(--text);background:var(--raised);border:1px solid var(--line-strong);
border-radius:var(--radius);cursor:pointer;white-space:nowrap}
.button:hover{background:var(--sunken);text-decoration:none}
.button:disabled{opacity:.55;cursor:default}
.button.primary, .button[aria-pressed="true"].lock { background: var(--accent); border-color: var(--accent);
color:var(--accent-text)}
.button.primary:hover{filter:brightness(1.06)}
.button.danger{background:var(--bad);border-color:var(--bad);color:var(--surface)}
.button.danger-quiet{color:var(--bad)}
.button.small{min-height:28px;padding:2px 9px;font-size:13px}
.button.quiet{border-color:transparent;background:none}
.button.quiet:hover{background:var(--sunken)}
.button.bare{padding:4px 7px;min-width:30px;justify-content:center;color:var(--muted)}
.button.bare:hover{color:var(--text)}
.button[aria-pressed="true"]:not(.lock) { background: var(--accent-soft); color: var(--accent);
border-color:var(--accent)}
body:not(.editing) .edit-only{display:none}
input,select,textarea{font:inherit;color:var(--text);background:var(--surface);
border:1px solid var(--line-strong);
border-radius:var(--radius);padding:5px 9px;min-height:32px;width:100%}
input[type="checkbox"] { width: 16px; min-height: 16px; height: 16px;
accent-color:var(--accent);margin:0}
input::placeholder{color:var(--muted);opacity:1}
input[aria-invalid]{border-color:var(--bad)}
textarea{resize:vertical;line-height:1.5;font-family:var(--mono);font-size:12.5px}
label{display:grid;gap:4px;font-weight:500}
label.check{display:flex;gap:8px;align-items:center}
.problem{color:var(--bad);font-size:13px;overflow-wrap:anywhere}
.problem:empty{display:none}
.problem mark{background:var(--bad-soft);color:var(--bad);text-decoration:underline wavy;
white-space:pre}
.problem code{white-space:pre-wrap}
.empty{display:grid;gap:8px;place-content:center;justify-items:center;text-align:center;
padding:40px 20px;color:var(--muted);
flex:1}
.empty h2{color:var(--text)}
.empty p{max-width:44ch}
.failure{display:flex;gap:10px;padding:12px 14px;background:var(--bad-soft);color:var(--bad);
border-radius:var(--radius);
overflow-wrap:anywhere}
.failure .muted{color:inherit}
.loading{display:grid;gap:12px;padding:16px}
.loading i{height:12px;border-radius:6px;background:var(--sunken);
animation:pulse .9s infinite alternate}
.loading i:nth-child(even){width:70%}
.banner{display:flex;gap:10px;align-items:center;background:var(--warn-soft);color:var(--warn);
padding:9px 14px;border-radius:var(--radius);
margin:10px 16px 0 4px}
.pane .banner{margin:8px 0}
.hint{display:flex;gap:8px;align-items:center;flex-wrap:wrap;padding:6px 10px;
background:var(--accent-soft);border-radius:var(--radius);
margin:0 12px 8px;font-size:13px}
@keyframes pulse{to{opacity:.45}}
@keyframes flash{from{background-color:var(--flash)}}
.flash,.pulse > .line{animation:flash 1.2s ease-out}
@media (prefers-reduced-motion:reduce){*{animation-duration:.01s !important;
} .flash{animation-duration:1.2s !important}}
dialog{border:var(--edge);border-radius:12px;background:var(--raised);color:var(--text);
padding:20px;width:min(440px,calc(100vw - 24px));
box-shadow:var(--shadow);max-height:calc(100vh - 32px);overflow:auto}
dialog.wide{width:min(760px,calc(100vw - 24px))}
dialog::backdrop{background:rgb(20 18 15 / 38%)}
dialog form{display:grid;gap:14px}
dialog h2{font-size:16px}
dialog footer{display:flex;justify-content:flex-end;gap:8px}
.notes{position:fixed;right:16px;bottom:16px;display:grid;gap:8px;z-index:20;
max-width:min(420px,calc(100vw - 32px))}
.note{display:flex;gap:10px;align-items:center;padding:8px 8px 8px 14px;background:var(--raised);
border:var(--edge);
border-radius:9px;box-shadow:var(--shadow);overflow-wrap:anywhere}
.note > span{flex:1}
.note.bad{color:var(--bad);border-color:var(--bad)}
.value{white-space:pre-wrap;overflow-wrap:anywhere}
.string{color:var(--string)}
.integer,.double,.decimal{color:var(--number)}
.boolean,.null,.timestamp,.geoPoint{color:var(--special)}
.reference{color:var(--accent)}
.chip{display:inline-block;padding:0 7px;margin:1px 4px 1px 0;background:var(--sunken);
border-radius:5px;color:var(--string)}
.picture{display:inline-grid;place-items:center;background:var(--sunken);border-radius:6px;
overflow:hidden;color:var(--muted)}
.picture img{width:100%;height:100%;object-fit:cover;display:block}
.thumb{width:44px;height:34px;flex:none}
table.plain{border-collapse:collapse;width:100%;font-size:13px}
table.plain th{text-align:left;font-weight:500;color:var(--muted)}
table.plain th,table.plain td{padding:7px 10px;border-bottom:var(--edge);
vertical-align:top;overflow-wrap:anywhere}
table.plain tr:last-child > *{border-bottom:0}
.badge{display:inline-block;padding:0 7px;border-radius:9px;font-size:12px;
background:var(--sunken);color:var(--muted);white-space:nowrap}
.badge.good{color:var(--good)}
.badge.warn{background:var(--warn-soft);color:var(--warn)}
.badge.bad{background:var(--bad-soft);color:var(--bad)}
progress{width:100%;height:6px;appearance:none;border:0;border-radius:3px;overflow:hidden;
background:var(--sunken)}
progress::-webkit-progress-bar{background:var(--sunken)}
progress::-webkit-progress-value{background:var(--accent)}
.tabs{display:flex;gap:2px;border-bottom:var(--edge);overflow-x:auto;flex:none}
.tabs [role="tab"] { border: 0; background: none; font: inherit; font-weight: 500; padding: 8px 12px;
color:var(--muted);cursor:pointer;
border-bottom:2px solid transparent}
.tabs [aria-selected="true"] { color: var(--text); border-color: var(--accent); }
@media (max-width:760px){
ondol-console { grid-template: auto auto 1fr / minmax(0, 1fr); grid-template-areas: "top" "pages" "view"; }
nav.pages{flex-direction:row;padding:4px 8px;border-bottom:var(--edge);
background:var(--surface)}
nav.pages a{padding:6px 9px;gap:6px;font-size:13px}
.top{flex-wrap:wrap;gap:6px 10px;padding:8px 12px}
.top .facts{order:3;width:100%;gap:12px;font-size:12px;overflow:hidden}
main > .page{padding:0 10px 20px}
.page > header div:has(> input){flex:1 40%}
.page > header input{width:100%}
.banner{margin:8px 10px 0}
}
@media (min-width:761px){.only-narrow{display:none !important}}

"""##,
    "changes.js": ##"""
import { get } from "./api.js";
import { fieldTable } from "./dialogs.js";
import { button, empty, failure, h, icon, loading, replace } from "./dom.js";
import { Page } from "./page.js";
import { address, go, route } from "./route.js";
import { counted, grouped, local, names, shortTime } from "./values.js";
const KEPT = 500;
class ChangesPage extends Page {
begin() {
const field = (name, label, hint) => h("input", { label, placeholder: hint,
onchange: () => this.#ask() });
this.path = field("path", "Path", "Path: items/item-01");
this.since = field("since", "From token", "From token");
this.pause = button("Pause", () => this.#setPaused(!this.isPaused), { sign: "pause" });
this.log = h("div.log", { role: "log", label: "Commits", "aria-live": "off" }, loading());
this.source = h("p.hint", { hidden: true });
replace(this, h("header", h("h1", "Changes"), h("span.grow"), h("div", this.path),
h("div", this.since), this.pause), this.source, this.log);
this.arrive();
}
#ask() {
go(address("changes", this.path.value.trim().replace(/^\/+/, ""), { since: this.since.value.trim() }));
}
async arrive() {
const { steps, parameters } = route();
const path = steps.join("/");
const since = parameters.get("since") ?? "";
[this.path.value, this.since.value] = [path, since];
const turn = this.turn = {};
this.end?.();
try {
const answer = await get("changes", { path, since, limit: 100 }, this.signal);
if (turn !== this.turn) return;
this.changes = answer.changes;
this.source.hidden = answer.source === "log";
replace(this.source, icon("warn"), h("span",
"These are the commits this process has seen since it was opened. ",
"To keep them, open the database with ",
h("code", "options.changeRetention = .init(duration: .seconds(86_400))"), "."));
this.#draw();
this.end = this.watch({ kind: "feed", ...(path ? { path } : {}),
...(answer.token ? { since: answer.token } : {}) }, (event, data) => {
if (event !== "changes") return;
if (data.skipped) this.changes.push({ skipped: data.skipped });
this.changes.push(...data.changes);
this.changes.splice(0, this.changes.length - KEPT);
this.waiting = (this.waiting ?? 0) + data.changes.length;
if (this.isPaused) this.#setPaused(true);
else this.#draw(data.changes.length);
});
} catch (error) {
if (turn === this.turn && error.name !== "AbortError") replace(this.log, failure(error));
}
}
#setPaused(isPaused) {
if (!isPaused && this.isPaused) this.#draw();
this.isPaused = isPaused;
replace(this.pause, icon(isPaused ? "play" : "pause"),
h("span", isPaused ? `Go on${this.waiting ? ` (${this.waiting} new)` : ""}` : "Pause"));
this.pause.setAttribute("aria-pressed", isPaused);
}
#draw(fresh = 0) {
this.waiting = 0;
if (!this.changes.length) {
return replace(this.log, empty("No changes yet", "Every commit shows up here as it happens."));
}
const open = new Set([...this.log.querySelectorAll("[open]")].map((one) => one.dataset.version));
return replace(this.log, [...this.changes].reverse().map((change, place) =>
this.#change(change, place < fresh, open)));
}
#change(change, isFresh, open) {
if (change.skipped) {
return h("p.muted", `${counted(change.skipped, "commit")} came faster than they are shown here.`);
}
const [first, ...rest] = [...change.documents, ...change.objects];
const what = change.dropped ? `${change.dropped} dropped` : first
? `${first.path}${rest.length ? ` and ${counted(rest.length, "other")}` : ""}`
: "no document";
const badge = { added: "good", removed: "bad", modified: "" };
const details = h("details", { class: `change ${isFresh ? "flash" : ""}`, "data-version": change.version,
open: open.has(change.version) },
h("summary", h("time", { datetime: change.time, title: local(change.time) }, shortTime(change.time)),
h("span.muted", `version ${grouped(BigInt(change.version))}`),
first && h("span", { class: `badge ${badge[first.kind]}` }, first.kind),
h("strong", what), first?.fields?.length > 0 && first.kind === "modified"
&& h("span.muted", first.fields.join(", "))));
const fill = () => {
if (details.childElementCount > 1) return;
details.append(...[...change.documents.map((one) =>
[h("p.row", h("a", { href: address("data", one.path) }, one.path),
h("span", { class: `badge ${badge[one.kind]}` }, one.kind)),
h("div.scroll", fieldTable(topFields(one), one.before, one.after))]),
...change.objects.map((one) => [h("p.row", h("a", { href: address("storage", one.path) }, one.path),
h("span", { class: `badge ${badge[one.kind]}` }, one.kind)), h("span")]),
...(change.cut ? [[h("p.muted", "This commit changed more than is shown.")]] : []),
[h("p.muted", "Token: ", h("code", change.token))]].flat());
};
if (open.has(change.version)) fill();
details.addEventListener("toggle", fill);
return details;
}
}
customElements.define("ondol-changes", ChangesPage);
function topFields({ fields, before, after }) {
const all = Object.keys({ ...before, ...after }).sort();
const touched = new Set((fields ?? []).map((path) => names(path)[0]));
return touched.size ? all.filter((name) => touched.has(name)) : all;
}

"""##,
    "code.js": ##"""
import { copy } from "./document.js";
import { h, tool } from "./dom.js";
import { content, entries, kind } from "./values.js";
const string = (value) => JSON.stringify(value).replace(/\\u([0-9a-f]{4})/gi, "\\u{$1}").replace(/\\\//g, "/")
.replace(/\\[bf]/g, (one) => (one === "\\b" ? "\\u{8}" : "\\u{c}"));
const shell = (value) => `'${value.replace(/'/g, "'\\''")}'`;
const METHODS = {
"=": "isEqualTo", "!=": "isNotEqualTo", "<": "isLessThan", "<=": "isLessThanOrEqualTo",
">": "isGreaterThan",
">=": "isGreaterThanOrEqualTo", in: "in", "not in": "notIn", "array-contains": "arrayContains",
"array-contains-any": "arrayContainsAny", "starts-with": "hasPrefix",
};
function swift(value) {
const inner = content(value);
switch (kind(value)) {
case "null": return "Value.null";
case "integer": return inner;
case "double": return /^-?\d/.test(inner) ? inner
: { NaN: "Double.nan", Infinity: "Double.infinity" }[inner] ?? "-Double.infinity";
case "decimal": return `Decimal(string: ${string(inner)})`;
case "string": return string(inner);
case "array": return `[${inner.map(swift).join(", ")}]`;
case "map": {
const members = entries(inner).map(([name, one]) => `${string(name)}: ${swift(one)}`);
return `[${members.join(", ") || ":"}]`;
}
case "reference": return `database.document(${string(inner)})`;
case "timestamp": return `try Date(${string(inner)}, strategy: .iso8601)`;
case "geoPoint": return `try GeoPoint(latitude: ${inner[0]}, longitude: ${inner[1]})`;
case "vector": return `VectorValue([${inner.join(", ")}])`;
case "bytes": return `Data(base64Encoded: ${string(inner.base64)})`;
default: return String(inner);
}
}
function filter({ and, or, field, op, value }) {
if (and || or) return `.${and ? "and" : "or"}Filter([${(and ?? or).map(filter).join(", ")}])`;
const { field: name, comparison } = orderParts(field);
return `.whereField(${string(name)}, ${METHODS[op]}: ${swift(value)}${
comparison ? `, comparing: .${comparison}` : ""})`;
}
export const COMPARISONS = ["caseInsensitive", "folded", "natural"];
export function orderParts(order) {
const [, field, word, way] = /^(.*?)(?:\s*[\s~](caseInsensitive|folded|natural))?(?:\s+(asc|desc))?$/i
.exec(order.trim());
return { field, way: way?.toLowerCase(),
comparison: COMPARISONS.find((one) => one.toLowerCase() === word?.toLowerCase()) };
}
export function swiftCode(query, condition) {
const lines = [`let found = try await database.${query.group ? `collectionGroup(${string(query.group)})`
: `collection(${string(query.collection)})`}`];
const terms = !condition ? [] : condition.and ?? [condition];
for (const term of terms) {
lines.push(term.or || term.and ? `  .whereFilter(${filter(term)})` : `  ${filter(term)}`);
}
for (const order of (query.order ?? "").split(",").map((one) => one.trim()).filter(Boolean)) {
const { field, comparison, way } = orderParts(order);
lines.push(`  .order(by: ${string(field)}${comparison ? `, comparing: .${comparison}` : ""}${
way === "desc" ? ", descending: true" : ""})`);
}
if (query.limit) lines.push(`  .limit(to: ${query.limit})`);
const list = (fields) => (fields ?? "").split(",").map((one) => one.trim()).filter(Boolean).map(string);
if (query.select) lines.push(`  .select([${list(query.select).join(", ")}])`);
for (const { field, in: place, as } of query.lookups ?? []) {
lines.push(`  .lookup(${string(field)}, in: ${string(place)}, as: ${string(as)})`);
}
if (query.aggregate) {
const fields = query.aggregate.map(({ op, field }) => `.${op}(${field ? string(field) : ""})`).join(", ");
const by = list(query.by).join(", ");
lines.push(`  .aggregate([${fields}])`, ...(by ? [`  .group(by: [${by}])`] : []), "  .getAggregation()");
} else lines.push("  .getDocuments()");
return lines.join("\n");
}
export function shellCode(query) {
const option = (name, value) => (value ? ` --${name} ${shell(String(value))}` : "");
const place = shell(query.collection ?? query.group);
const rest = `${query.where ? ` ${shell(query.where)}` : ""}${query.group ? " --group" : ""}`;
if (query.aggregate) {
const names = { sum: "sum", average: "avg", minimum: "min", maximum: "max" };
const asked = query.aggregate.map(({ op, field }) => option(names[op], field)).join("");
return `ondol agg shop.ondol ${place}${rest}${asked}${option("group-by", query.by)}`;
}
const options = ["order", "limit", "select"].map((name) => option(name, query[name])).join("");
return `ondol query shop.ondol ${place}${rest}${options}`;
}
export function code(query, condition) {
const codes = [["Swift", swiftCode(query, condition)], ["Shell", shellCode(query)]];
return h("div.panel", codes.map(([title, source]) => [
h("div.row", h("h2", title), h("span.grow"),
tool(`Copy ${title}`, "copy", () => copy(source))), h("pre", source)]));
}

"""##,
    "condition.js": ##"""
import { h, later, replace } from "./dom.js";
const PAUSE = 600;
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
isEntered = true;
input.blur();
submit();
}
else if (event.key === "Escape" && !list.hidden) hide();
else return;
event.preventDefault();
}
const element = h("div.conditionbox", h("div.combo", input, list), problem);
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

"""##,
    "data.js": ##"""
import { post } from "./api.js";
import { attempt, confirm, note } from "./dialogs.js";
import { button, empty, failure, h, icon, loading, replace } from "./dom.js";
import { DocumentPane, newDocumentDialog, startCollection } from "./document.js";
import { Page } from "./page.js";
import { Results, columns } from "./results.js";
import { address, go, route } from "./route.js";
import { edit } from "./session.js";
import { Table } from "./table.js";
import { counted, grouped } from "./values.js";
import { conditionBox } from "./condition.js";
class DataPage extends Page {
begin() {
this.classList.add("data");
this.list = h("section.column.collections", { label: "Collections" }, loading(5));
this.middle = h("section.column.documents", { label: "Documents" });
this.right = h("section.column.document", { label: "Document" });
replace(this, this.list, this.middle, this.right);
this.watch({ kind: "collections" }, (event, data) => {
this.collections = data.collections ?? [];
this.#drawList();
const { page, steps } = route();
if (page === "data" && !steps.length && this.collections.length && innerWidth > 760) {
go(address("data", this.collections[0].path), { replace: true });
} else if (!this.collection) this.#drawNothing();
this.#drawCount();
});
this.arrive();
}
disconnectedCallback() {
super.disconnectedCallback();
this.results?.end();
}
arrive() {
const { steps, parameters } = route();
const isDocument = steps.length > 0 && steps.length % 2 === 0;
const collection = (isDocument ? steps.slice(0, -1) : steps).join("/");
const where = parameters.get("where") ?? "";
const order = parameters.get("order") ?? "";
const view = JSON.stringify([collection, where, order]);
this.dataset.depth = isDocument ? "document" : collection ? "documents" : "collections";
if (view !== this.view) {
Object.assign(this, { view, collection, where, order });
this.#drawList();
if (collection) this.#drawDocuments();
else this.#drawNothing();
}
this.table?.select(isDocument ? steps.join("/") : null);
this.#drawDocument(isDocument ? steps.join("/") : null);
}
#drawList() {
if (!this.collections) return;
const root = this.collection?.split("/")[0];
const links = this.collections.map((one) => h("a.listrow", {
href: address("data", one.path), "aria-current": one.id === root ? "true" : undefined,
}, h("span.grow.name", one.id),
h("span.muted.count", `${one.exact ? "" : "~"}${grouped(one.count)}`)));
replace(this.list, h("header", h("h2", "Collections"),
edit("Start a collection", () => startCollection(""), { sign: "plus", bare: true })),
links.length ? h("nav", { label: "Collections" }, links)
: empty("No documents yet", "What the app writes shows up here at once.",
edit("Start a collection", () => startCollection(""), { sign: "plus" })));
}
#drawNothing() {
this.results?.end();
this.table = null;
replace(this.middle, empty("Choose a collection", this.collections?.length
? "Its documents follow what the app writes."
: "There is nothing to choose from yet."));
}
async #drawDocuments() {
const { collection, view } = this;
this.results?.end();
this.isLoaded = false;
this.count = h("span.muted", { role: "status" });
this.hint = h("div");
const table = this.table = new Table();
table.order = this.order;
table.onopen = (document) => go(this.#address(document.path));
table.onsort = (field, isDescending) => this.#ask(this.where, `${field}${isDescending ? " desc" : ""}`);
const steps = collection.split("/");
const crumbs = steps.map((step, place) => [place > 0 && h("span.muted", "/"), place === steps.length - 1
? h("strong", { "aria-current": "page" }, step)
: h("a", { href: address("data", steps.slice(0, place + 1)) }, step)]);
this.problem = h("div");
this.place = h("div.fill", loading(10));
this.condition = conditionBox({
value: this.where, run: (where) => this.#ask(where, this.order), fields: () => this.fields ?? [],
});
replace(this.middle, h("header", null,
h("a.button.bare.quiet.only-narrow", { href: address("data"), label: "All collections" },
icon("back")),
h("nav.crumbs", { label: "Path" }, crumbs), this.count, h("span.grow"),
edit("Add document", () => this.#add(), { sign: "plus" }),
edit("Delete all that match", () => this.#deleteAll(), { sign: "trash", bare: true })),
h("div.filter", this.condition), this.problem, this.hint, this.place);
const query = { collection, where: this.where, order: this.order };
try {
const found = await columns({ collection }, query, innerWidth > 1500 ? 7 : 5, this.signal);
if (view !== this.view) return;
this.fields = found.fields;
table.columns = found.columns;
} catch (error) {
if (error.name === "AbortError" || view !== this.view) return;
replace(this.problem, failure(error));
}
this.results = new Results(query, {
onrows: (rows, flashing) => this.#show(rows, flashing),
onfailure: (error) => {
replace(this.place);
this.condition.fail(error);
if (error.offset === undefined) replace(this.problem, failure(error));
},
});
table.onend = () => this.results.more();
this.#suggest(query, view);
}
#show(rows, flashing) {
if (rows.length && this.place.firstChild !== this.table) replace(this.place, this.table);
if (!rows.length) {
const others = this.collections?.filter((one) => one.count).slice(0, 4).map((one) => one.id).join(", ");
replace(this.place, this.where ? empty("No document meets the condition",
`${this.collection} has other documents. Fields are compared with their kind: 1 is not "1".`,
button("Show all", () => this.#ask("", this.order)))
: empty("No documents here", others
? `There are documents in ${others}.`
: "What the app writes shows up here at once."));
}
const isFirst = !this.isLoaded;
this.isLoaded = true;
if (!isFirst && rows.length === flashing.length && !this.table.columns.length) this.#drawDocuments();
this.table.setRows(rows, flashing);
const { steps } = route();
if (isFirst && steps.length % 2 === 0) this.table.select(steps.join("/"));
this.#drawCount();
}
#drawCount() {
if (!this.isLoaded || !this.results) return;
const { rows, last } = this.results;
const all = !this.where && this.collections?.find((one) => one.path === this.collection);
const loaded = grouped(rows.length);
this.count.textContent = last ? counted(rows.length, "document")
: all ? `${loaded} of ${all.exact ? "" : "about "}${grouped(all.count)}` : `first ${loaded}`;
}
async #suggest(query, view) {
if (!query.where && !query.order) return;
const answer = await post("query", { ...query, where: query.where || undefined,
order: query.order || undefined, explain: "plan" }, {},
this.signal).catch(() => null);
const { suggestedIndex, unknownFields } = answer?.plan ?? {};
if (view !== this.view || !suggestedIndex && !unknownFields?.length) return;
replace(this.hint, unknownFields?.length > 0 && h("p.hint",
`No document has the field ${unknownFields.join(", ")}.`),
suggestedIndex && h("p.hint", "An index would help: ", h("code", suggestedIndex.join(", ")), " ",
edit("Create it", () => this.#createIndex(suggestedIndex))));
}
async #createIndex(fields) {
const { steps } = route();
const collection = (steps.length % 2 ? steps : steps.slice(0, -1)).join("/");
if (await attempt(() => post("indexes", { collection, fields }))) {
replace(this.hint);
note(`The index on ${fields.join(", ")} is being built.`);
}
}
#address(path) {
return address("data", path, { where: this.where, order: this.order });
}
#ask(where, order) {
go(address("data", this.collection, { where, order }));
}
async #add() {
const made = await newDocumentDialog(`Add a document to ${this.collection}`, "Add",
() => this.collection);
if (made) go(this.#address(made.path));
}
async #deleteAll() {
const query = { collection: this.collection, ...(this.where ? { where: this.where } : {}) };
const found = await attempt(() => post("delete", { ...query, dryRun: true }));
if (!found) return;
await confirm(`Delete ${counted(found.count, "document")}?`, `All documents of ${this.collection} go${
this.where ? ` that meet ${this.where}` : ""}. This cannot be undone.`, "Delete", async () => {
let [deleted, answer] = [0, { last: false }];
while (answer.last === false) {
answer = await post("delete", { ...query, dryRun: false });
deleted += answer.count;
}
note(`${counted(deleted, "document")} deleted.`);
}, this.collection);
}
#drawDocument(path) {
if (path === this.shown) return;
this.shown = path;
if (!path) {
replace(this.right, empty("No document chosen", "Choose one to see its fields."));
return;
}
const pane = new DocumentPane();
replace(this.right, pane);
pane.show(path, this.#address(this.collection));
}
}
customElements.define("ondol-data", DataPage);

"""##,
    "dialogs.js": ##"""
import { button, failure, h, icon, label, seen, table, tool } from "./dom.js";
import { brief, isSame, kind } from "./values.js";
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
export async function attempt(run) {
try {
return await run();
} catch (error) {
if (error.name !== "AbortError") note([error.message, error.hint].filter(Boolean).join(" "),
{ bad: true });
return undefined;
}
}
export function conflict(path, stored, mine) {
const all = [...new Set([...Object.keys(stored ?? {}), ...Object.keys(mine ?? {})])].sort();
const different = all.filter((name) => !stored || !mine || !Object.hasOwn(stored, name)
|| !Object.hasOwn(mine, name) || !isSame(stored[name], mine[name]));
return dialog("Somebody else changed this first", [
h("p", h("code", path), " is no longer as it was when you began. Which version is to stay?"),
h("div.scroll", fieldTable(different, stored, mine, ["Field", "Stored now", "Yours"])),
h("p.muted", `${all.length - different.length} other fields are the same in both. `,
"Cancel keeps what is stored."),
], { action: "Write mine", wide: true });
}
export function fieldTable(names, before, after, heads = ["Field", "Before", "After"]) {
const cell = (fields, name) => (!fields ? h("span.muted", "no document") : Object.hasOwn(fields, name)
? h("code", { class: `value ${kind(fields[name])}` }, brief(fields[name]))
: h("span.muted", "not there"));
return table(heads, names.map((name) => [h("strong", name), cell(before, name), cell(after, name)]));
}

"""##,
    "document.js": ##"""
import { get } from "./api.js";
import { attempt, confirm, dialog, note } from "./dialogs.js";
import { button, choice, empty, failure, h, icon, label, loading, replace, tool } from "./dom.js";
import { EMPTY, fieldRows } from "./fields.js";
import { watch } from "./live.js";
import { address, go } from "./route.js";
import { canEdit, createDocument, deleteDocument, edit, patchDocument, replaceDocument } from "./session.js";
import { KINDS, counted, entries, grouped, kind, local, parse, pretty, shortTime, step } from "./values.js";
export class DocumentPane extends HTMLElement {
#editing = new Map();
#opened = new Map();
#flash = null;
show(path, back) {
this.end?.();
Object.assign(this, { path, back, document: undefined, seen: null, isJSON: false, isGone: false });
this.#editing.clear();
this.collections = [];
this.className = "pane";
replace(this, loading(6));
this.end = watch({ kind: "document", path }, (event, data) => this.#arrived(event, data));
this.#loadBelow();
}
disconnectedCallback() {
this.end?.();
}
async #loadBelow() {
const { path } = this;
const answer = await get("collections", { below: path }).catch(() => null);
if (answer && path === this.path) {
this.collections = answer.collections;
this.below && replace(this.below, this.#below());
}
}
#arrived(event, data) {
if (event === "problem") return replace(this, this.#close(), failure(data.error));
const before = this.document;
if (!data.document && before) {
this.isGone = true;
return this.#head();
}
this.isGone = false;
this.document = data.document;
if (!data.document) {
return replace(this, h("div.panehead", this.#close()), empty("There is no such document",
`Nothing is stored at ${this.path}. It may have been deleted, or only documents below it exist.`),
this.below = h("div", this.#below()));
}
this.#flash = before && before.version !== data.document.version ? before.fields : null;
if (!before) return this.#render();
if (this.isJSON && this.isJSONEdited) return this.#head();
this.#head();
return this.#editing.size ? this.#defer() : this.#body();
}
#defer() {
this.isStale = true;
}
#render() {
this.head = h("div.panehead");
this.body = h("div.fields");
this.below = h("div", this.#below());
replace(this, this.head, this.body, this.below);
this.#head();
this.#body();
}
#close() {
return h("a.button.bare.quiet", { href: this.back, label: "Close the document" }, icon("close"));
}
#head() {
const { document, isGone } = this;
replace(this.head, h("div.row",
h("h2.path", { title: document.path }, document.id), h("span.grow"),
tool("Copy the path", "copy", () => copy(document.path)), this.#close()),
h("p.muted.facts", h("span", `version ${grouped(BigInt(document.version))}`),
h("time", { datetime: document.updated, title: local(document.updated) },
`updated ${shortTime(document.updated)}`),
h("time", { datetime: document.created, title: local(document.created) },
`created ${shortTime(document.created)}`)),
isGone && h("div.banner", { role: "alert" }, icon("warn"),
h("p", "Deleted by another commit. What you see here is how it was last."),
button("Create again", () => this.#restore(), { kind: "small" })),
h("div.row.tools",
edit("Add field", () => this.#add(), { sign: "plus" }),
edit("Duplicate", () => this.#duplicate(), { sign: "copy" }),
edit("Delete", () => this.#delete(), { sign: "trash", kind: "small danger-quiet" }),
h("span.grow"),
button("JSON", () => {
this.isJSON = !this.isJSON;
this.isJSONEdited = false;
this.#head();
this.#body();
}, { kind: "small", "aria-pressed": String(this.isJSON) })));
}
#body() {
this.isStale = false;
const { fields } = this.document;
if (this.isJSON) return replace(this.body, this.#json());
replace(this.body, Object.keys(fields).length
? fieldRows(fields, this.#actions(), { before: this.#flash })
: empty("No fields", "This document is empty. Unlock editing to add a field."));
this.#flash = null;
return undefined;
}
#actions() {
return {
begin: (path) => {
if (!canEdit()) return false;
this.#editing.set(path, this.document);
return true;
},
end: (path) => {
this.#editing.delete(path);
if (this.isStale && !this.#editing.size) setTimeout(() => this.#body());
},
save: async (path, value) => this.#write(path, { set: { [path]: value } },
`${path} of ${this.document.id}`),
remove: (path) => attempt(async () => {
await this.#write(path, { delete: [path] }, `${path} of ${this.document.id} deleted`);
this.#editing.delete(path);
}),
isOpen: (path, depth) => this.#opened.get(path) ?? depth === 0,
setOpen: (path, isOpen) => this.#opened.set(path, isOpen),
};
}
async #write(path, change, title) {
const seen = this.#editing.get(path) ?? this.document;
const document = await patchDocument(this.isGone ? { ...seen, version: "0" } : seen, change, title);
if (!document) return false;
this.#take(document);
return true;
}
#take(document) {
if (document.path !== this.path || BigInt(document.version) <= BigInt(this.document.version)) return;
this.#flash = this.document.fields;
this.document = document;
this.isStale = true;
this.isGone = false;
this.#head();
}
#json() {
const shown = pretty(this.document.fields, "", true);
const seen = this.document;
const area = h("textarea.json", {
label: "The document as JSON", readonly: !document.body.classList.contains("editing"),
oninput: () => {
this.isJSONEdited = area.value !== shown;
apply.disabled = !this.isJSONEdited;
},
onclick: () => area.readOnly && canEdit(),
});
area.value = shown;
const problem = h("div.problem", { role: "alert" });
const apply = button("Save", async () => {
try {
replace(problem);
const fields = parse(area.value);
if (kind(fields) === "array" || fields === null
|| typeof fields !== "object") throw new Error("A document is an object in braces.");
const written = await replaceDocument(this.isGone ? { ...seen, version: "0" } : seen, fields);
if (!written) return;
this.isJSONEdited = false;
this.#take(written);
this.#body();
} catch (error) {
replace(problem, error.message);
}
}, { kind: "small primary edit-only", disabled: true });
return [area, problem, h("div.row.tools", button("Copy", () => copy(area.value),
{ sign: "copy", kind: "small" }),
h("span.grow"), apply)];
}
#below() {
const rows = this.collections.map((one) => h("a.listrow", { href: address("data", one.path) },
icon("data"), h("span.grow", one.id), h("span.muted", grouped(one.count))));
return [h("h3", "Collections below"), rows.length ? rows : h("p.muted", "None."),
edit("Start a collection here", () => startCollection(this.path), { sign: "plus" })];
}
async #add() {
const name = h("input", { required: true });
const kinds = choice(KINDS.filter((one) => one !== "blob"),
{ onchange: () => { area.value = shownValue(EMPTY[kinds.value]); } });
const area = h("input");
const shownValue = (one) => (kind(one) === "string" ? one : kind(one) === "timestamp"
? new Date().toISOString() : pretty(one).replace(/\s+/g, " "));
await dialog("Add a field", [
label("Name", name), label("Kind", kinds),
label("Value", area),
], {
action: "Add", submit: async () => {
if (Object.hasOwn(this.document.fields, name.value)) throw new Error("It is there already.");
const typed = readTyped(kinds.value, area.value);
return this.#write(step(name.value), { set: { [step(name.value)]: typed } },
`${name.value} of ${this.document.id} added`);
},
});
if (this.isStale && !this.#editing.size) this.#body();
}
async #duplicate() {
const id = h("input", { placeholder: "an id of its own" });
const collection = this.path.split("/").slice(0, -1).join("/");
const made = await dialog("Duplicate the document", label("Id of the copy", id), {
action: "Duplicate", submit: () => createDocument(collection, id.value, this.document.fields),
});
if (made) go(address("data", made.path));
}
async #delete() {
const hasBelow = this.collections.length > 0;
const what = hasBelow ? `The document and everything below it goes: ${this.collections
.map((one) => `${counted(one.count, "document")} in ${one.id}`).join(", ")}. This cannot be undone.`
: "The document goes. Undo brings it back.";
await confirm("Delete the document?", what, "Delete", async () => {
if (await deleteDocument(this.document, hasBelow)) go(this.back);
}, this.document.id);
}
async #restore() {
const collection = this.path.split("/").slice(0, -1).join("/");
await attempt(() => createDocument(collection, this.document.id, this.document.fields));
}
}
customElements.define("ondol-document", DocumentPane);
export function readTyped(what, input) {
if (what === "string") return input;
if (what === "timestamp") return { $date: input.trim() };
if (what === "decimal" && /^-?\d/.test(input.trim())) return { $numberDecimal: input.trim() };
const value = parse(input.trim() || "null");
if (kind(value) !== what && !(what === "double" && kind(value) === "integer")) {
throw new Error(`This is no ${what}: it is written as ${kind(value)}.`);
}
return what === "double" && kind(value) === "integer" ? { $numberDouble: `${value.$numberLong}.0` } : value;
}
export async function copy(text) {
await attempt(() => navigator.clipboard.writeText(text));
note("Copied.");
}
export async function startCollection(below) {
const id = h("input", { required: true });
const made = await newDocumentDialog("Start a collection", "Start",
() => [below, id.value].filter(Boolean).join("/"),
label("Id of the collection", id));
if (made) go(address("data", made.path));
}
export async function newDocumentDialog(title, action, collection, ...more) {
const id = h("input", { placeholder: "an id of its own" });
const fields = h("textarea.json.short");
fields.value = "{\n  \n}";
return dialog(title, [more, label("Id of the document", id),
label("Fields, as JSON", fields)], {
action, submit: () => {
const read = parse(fields.value);
if (read === null || typeof read !== "object"
|| Array.isArray(read)) throw new Error("A document is an object in braces.");
return createDocument(collection(), id.value, Object.fromEntries(entries(read)));
},
});
}

"""##,
    "dom.js": ##"""
const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "open"]);
const HIDDEN = new RegExp(String.raw`[\0-\x1F\x7F-\x9F\xAD\u061C\u200B\u200E\u200F\u2028-\u202E\u2060-\u206F`
+ String.raw`\uFEFF\uFFF0-\uFFFB\u{1BCA0}-\u{1BCA3}\u{1D173}-\u{1D17A}\u{E0000}-\u{E00FF}\u{E01F0}-\u{E0FFF}]`,
"gu");
export const seen = (text, lines) => String(text).replace(HIDDEN, (one) =>
(lines && /[\n\t]/.test(one) ? one : `\\u{${one.codePointAt().toString(16)}}`));
function set(element, name, value) {
if (typeof value === "function" && name.startsWith("on")) {
element.addEventListener(name.slice(2), value);
} else if (name.startsWith("on") || name === "style" || name.startsWith("inner")) {
throw new Error(`${name} is not set here`);
} else if (PROPERTIES.has(name)) {
element[name] = value;
} else if (value !== undefined && value !== null && value !== false) {
element.setAttribute(name === "label" ? "aria-label" : name, value === true ? ""
: /^(label|title|alt)$/.test(name) ? seen(value) : value);
}
}
export function h(name, ...rest) {
const [tag, ...classes] = name.split(".");
const element = document.createElement(tag);
const [first] = rest;
const hasAttributes = first?.constructor === Object;
element.className = classes.join(" ") || first?.class || "";
if (tag === "button") element.type = tag;
if (tag === "input" || tag === "textarea") {
element.autocomplete = "off";
element.spellcheck = false;
}
fill(element, hasAttributes ? rest.slice(1) : rest);
if (hasAttributes) for (const [key, value] of Object.entries(first)) set(element, key, value);
return element;
}
export function svg(tag, attributes, ...children) {
const element = document.createElementNS(SVG, tag);
fill(element, children);
for (const [name, value] of Object.entries(attributes ?? {})) set(element, name, value);
return element;
}
function fill(element, children) {
for (const child of children.flat(Infinity)) {
if (child === null || child === undefined || child === false) continue;
element.append(child instanceof Node ? child : seen(child, element.matches("pre, .value")));
}
}
export function replace(element, ...children) {
element.replaceChildren();
fill(element, children);
return element;
}
const ICONS = {
data: "M3 5c0-3 10-3 10 0s-10 3-10 0v6c0 3 10 3 10 0V5M3 8c0 3 10 3 10 0",
mark: "M2 13h12M4.5 10.5c-2-2.5 2-4 0-7M8 10.5c-2-2.5 2-4 0-7M11.5 10.5c-2-2.5 2-4 0-7",
tree: "M3 2.5h4v3H3zM9 7h4v3H9zM9 11.5h4v2.5H9zM5 5.5v7.2h4M5 8.5h4",
storage: "M2.5 4h4l1.3 1.6h5.7V13h-11z",
query: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9Zm3.3-1.2L14 14",
indexes: "M3 3.5h10M3 6.5h7M3 9.5h10M3 12.5h5",
changes: "M8 3.2V8l3 1.8M14 8A6 6 0 1 1 8 2a6 6 0 0 1 5.2 3",
statistics: "M2.5 13.5h11M4 11V8M7 11V4M10 11V6.5M13 11V3",
health: "M2 8.5h3l1.5-4 3 7 1.5-3H14",
locked: "M4 7.5h8v6H4zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5",
open: "M4 7.5h8v6H4zM5.5 7.5V5a2.5 2.5 0 0 1 4.8-1",
undo: "M5.5 3 2.5 6l3 3M3 6h6.5a3.5 3.5 0 0 1 0 7H6",
plus: "M8 3v10M3 8h10",
close: "M4 4l8 8M12 4l-8 8",
trash: "M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.6 9h5.8l.6-9",
copy: "M5.5 5.5h8v8h-8zM3 10.5h-.5v-8h8V3",
right: "M6 3.5 10.5 8 6 12.5",
back: "M10 3.5 5.5 8l4.5 4.5",
file: "M4 2h5l3 3v9H4zM9 2v3h3",
down: "M8 2.5v8M4.5 7 8 10.5 11.5 7M3 13.5h10",
up: "M8 10.5v-8M4.5 6 8 2.5 11.5 6M3 13.5h10",
pause: "M5.5 3.5v9M10.5 3.5v9",
play: "M5 3.5v9l7-4.5z",
warn: "M8 2.5 14 13H2zM8 6.5v3M8 11.2v.3",
};
export function icon(name) {
return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" },
svg("path", { d: ICONS[name] }));
}
export const mark = () => h("span.mark", icon("mark"));
export function button(label, onclick, { sign, kind = "", bare = false, ...more } = {}) {
return h("button", {
class: `button ${kind}${bare ? " bare quiet" : ""}`, onclick,
...(bare ? { label, title: label } : {}), ...more,
}, sign && icon(sign), !bare && h("span", label));
}
export const tool = (label, sign, onclick, more) => button(label, onclick, { sign, bare: true, ...more });
export const label = (title, control) => h("label", title, control);
export function choice(options, attributes = {}) {
return h("select", attributes, options.map((one) =>
(Array.isArray(one) ? h("option", { value: one[0] }, one[1])
: h("option", { value: one }, one))));
}
export function table(heads, rows) {
return h("table.plain", heads && h("thead", h("tr", heads.map((one) => h("th", { scope: "col" }, one)))),
h("tbody", rows.map((cells) => h("tr", cells.map((one) => h("td", one))))));
}
export const pairs = (...list) => h("dl", list.filter(Boolean).map(([name, value]) =>
[h("dt", name), h("dd", value)]));
export function empty(title, text, ...actions) {
return h("div.empty", h("h2", title), text && h("p", text),
actions.length > 0 && h("div.row.centre", actions));
}
export function failure(error) {
return h("div.failure", { role: "alert" }, icon("warn"),
h("div", h("p", error.message), error.hint && h("p.muted", error.hint)));
}
export function loading(lines = 4) {
return h("div.loading", { role: "status", label: "Loading" },
Array.from({ length: lines }, () => h("i")));
}
export function later(milliseconds, action) {
let timer;
return (...given) => {
clearTimeout(timer);
timer = setTimeout(() => action(...given), milliseconds);
};
}

"""##,
    "fields.js": ##"""
import { button, choice, h, icon, replace, tool } from "./dom.js";
import { pictureOf } from "./pictures.js";
import { address } from "./route.js";
import { KINDS, brief, content, entries, isSame, kind, local, parse, pretty, step,
text } from "./values.js";
export const EMPTY = {
string: "", integer: { $numberLong: "0" }, double: { $numberDouble: "0.0" },
decimal: { $numberDecimal: "0" }, boolean: false, null: null,
array: [], map: {}, reference: { $reference: "" }, geoPoint: { $geoPoint: [0, 0] },
vector: { $vector: [0] },
bytes: { $binary: { base64: "", subType: "00" } }, timestamp: { $date: "" }, blob: { $blob: {} },
};
const FORMS = {
string: { show: content, read: (input) => input, isLong: true },
integer: {
show: content, mode: "numeric",
read: (input) => {
const trimmed = input.trim();
if (!/^-?\d+$/.test(trimmed) || BigInt.asIntN(64, BigInt(trimmed)) !== BigInt(trimmed)) {
throw new Error("An integer has digits only and fits 64 bits.");
}
return { $numberLong: String(BigInt(trimmed)) };
},
},
double: {
show: content, mode: "decimal",
read: (input) => {
const trimmed = input.trim();
if (!/^(NaN|-?Infinity|[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?)$/i.test(trimmed)) {
throw new Error("A double is a number, NaN, Infinity or -Infinity.");
}
return { $numberDouble: trimmed.replace(/^\+/, "").replace(/^(-?)\./, "$10.").replace(/\.(?=e|$)/i,
".0") };
},
},
decimal: {
show: content, mode: "decimal",
read: (input) => {
const trimmed = input.trim();
if (!/^[-+]?\d+(\.\d+)?(e[-+]?\d+)?$/i.test(trimmed)) {
throw new Error("A decimal is a number of up to 38 digits: 0.10.");
}
return { $numberDecimal: trimmed.replace(/^\+/, "") };
},
},
timestamp: {
show: (value) => content(value) || new Date().toISOString(),
read: (input) => {
const trimmed = input.trim();
if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[-+]\d\d:\d\d)$/.test(trimmed)) {
throw new Error("A timestamp looks like 2026-05-01T09:30:00.25Z.");
}
return { $date: trimmed };
},
},
reference: { show: content, read: (input) => ({ $reference: input.trim().replace(/^\/+/, "") }) },
geoPoint: {
show: (value) => content(value).join(", "),
read: (input) => {
const numbers = input.split(",").map(Number);
if (numbers.length !== 2 || !(Math.abs(numbers[0]) <= 90) || !(Math.abs(numbers[1]) <= 180)) {
throw new Error("A geo point is a latitude and a longitude: 37.5, 127.");
}
return { $geoPoint: numbers };
},
},
bytes: {
show: (value) => content(value).base64,
read: (input) => {
const base64 = input.replace(/\s/g, "");
if (base64.length % 4 || !/^[A-Za-z0-9+/]*={0,2}$/.test(base64)) {
throw new Error("Bytes are written in Base64.");
}
return { $binary: { base64, subType: "00" } };
},
isLong: true,
},
};
const JSON_FORM = { show: (value) => pretty(value), read: (input) => parse(input), isLong: true };
function control(what, value, label) {
if (what === "null") return { element: h("span.muted", "null"), read: () => null };
if (what === "boolean") {
const element = choice(["true", "false"], { label });
element.value = String(value);
return { element, read: () => element.value === "true" };
}
const form = FORMS[what] ?? JSON_FORM;
const shown = form.show(value);
const isLong = form === JSON_FORM || form.isLong && (shown.length > 40 || shown.includes("\n"));
const element = h(isLong ? "textarea" : "input", {
label, inputmode: form.mode,
rows: isLong ? Math.min(12, shown.split("\n").length + 1) : undefined,
});
element.value = shown;
const read = () => {
const read = form.read(element.value);
if (form === JSON_FORM && kind(read) !== what) throw new Error(`This is no ${what}, but ${kind(read)}.`);
return read;
};
return { element, read };
}
export function editor(value, label, { save, cancel, saveLabel = "Save" }) {
let current = control(kind(value), value, label);
const holder = h("div.control", current.element);
const problem = h("div.problem", { role: "alert" });
const kinds = choice(KINDS, {
label: `Kind of ${label}`, onchange: () => {
current = control(kinds.value, convert(value, kinds.value), label);
replace(holder, current.element);
current.element.focus?.();
},
});
kinds.value = kind(value);
const submit = async () => {
try {
replace(problem);
await save(current.read());
} catch (error) {
replace(problem, error.message);
}
};
const element = h("form.editor", {
onsubmit: (event) => {
event.preventDefault();
submit();
},
onkeydown: (event) => {
const isMany = event.target.localName === "textarea" && !(event.metaKey || event.ctrlKey);
if (event.key === "Escape") {
event.stopPropagation();
cancel();
} else if (event.key === "Enter" && !isMany && event.target.localName !== "button") {
event.preventDefault();
submit();
}
},
}, holder, h("div.row", kinds, h("span.grow"), button("Cancel", cancel, { kind: "small" }),
h("button.button.small.primary", { type: "submit" }, saveLabel)), problem);
element.focusFirst = () => {
current.element.focus?.();
current.element.select?.();
};
return element;
}
function convert(value, what) {
const written = typeof content(value) === "string" ? content(value) : text(value);
if (what === kind(value)) return value;
if (what === "string") return written;
if (what === "integer" && /^-?\d+(\.0)?$/.test(written)) return { $numberLong: written.replace(/\.0$/,
"") };
if (what === "double" && /^-?\d+(\.\d+)?$/.test(written)) return { $numberDouble: written };
if (what === "decimal" && /^-?\d+(\.\d+)?(e[-+]?\d+)?$/i.test(written)) {
return { $numberDecimal: written };
}
if (what === "reference" && kind(value) === "string") return { $reference: value };
return EMPTY[what];
}
export function fieldRows(fields, actions, { before = null, path = "", depth = 0 } = {}) {
return entries(fields).map(([name, value]) => fieldRow(name, value, actions, {
path: path ? `${path}.${step(name)}` : step(name), depth,
flashes: before !== null && !(Object.hasOwn(before, name) && isSame(before[name], value)),
before: before && Object.hasOwn(before, name) && kind(before[name]) === "map" ? content(before[name])
: null,
}));
}
function fieldRow(name, value, actions, { path, depth, flashes, before }) {
const what = kind(value);
const isNested = what === "map" || what === "array";
const shown = h("button", {
class: `value ${what}`, title: what === "timestamp" ? local(content(value)) : "Edit",
label: `${path}: ${brief(value)}. Edit`,
onclick: () => {
if (actions.begin(path)) edit();
},
}, what === "string" && value === "" ? h("span.muted", "empty text") : chips(value));
const place = h("div.place", shown, extras(value));
const edit = () => {
const form = editor(value, path, {
save: async (next) => {
if (isSame(next, value) || await actions.save(path, next, value) !== false) close();
},
cancel: () => close(),
});
const close = () => {
replace(place, shown, extras(value));
actions.end(path);
shown.focus();
};
replace(place, form);
form.focusFirst();
};
const open = actions.isOpen(path, depth);
const inner = isNested && h("div.inner", { role: "group", hidden: !open }, open && children());
function children() {
return what === "map" ? fieldRows(content(value), actions, { before, path, depth: depth + 1 })
: value.slice(0, 200).map((one, index) => h("div.field.element",
h("div.line", h("span.name.muted", index),
h("span", { class: `value ${kind(one)}` }, brief(one)), extras(one))));
}
const toggle = isNested && h("button.toggle", {
"aria-expanded": String(open), label: `Show what is in ${path}`,
onclick: () => {
inner.hidden = !inner.hidden;
actions.setOpen(path, !inner.hidden);
if (!inner.hidden) replace(inner, children());
toggle.setAttribute("aria-expanded", !inner.hidden);
},
}, icon("right"));
return h("div", { class: `field ${flashes ? "flash" : ""}`, "data-field": path },
h("div.line", toggle || h("span.toggle"),
h("span.name", { title: path }, name), h("span.kind", what), place,
tool(`Delete the field ${path}`, "close", () => actions.begin(path) && actions.remove(path),
{ kind: "edit-only tool" })),
inner);
}
function chips(value) {
if (kind(value) === "array" && value.length && value.length < 12
&& value.every((one) => typeof one === "string" && one.length < 30)) {
return value.map((one) => h("span.chip", one));
}
return kind(value) === "map" ? `${Object.keys(content(value)).length} fields` : brief(value) || "[]";
}
function extras(value) {
const inner = content(value);
switch (kind(value)) {
case "reference": return h("a.goto", { href: address("data", inner), label: `Open ${inner}` },
icon("right"));
case "blob": return [pictureOf(inner.key ? null : inner.sha256, inner.contentType ?? "content", "thumb"),
inner.path && h("a.goto", {
href: address("storage", inner.path), label: `Open ${inner.path}`,
}, icon("right"))];
default: return null;
}
}

"""##,
    "health.js": ##"""
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
["full", "Full: what rows mean"]], { label: "How thorough" });
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
action("Backup", "The database as it is now, as a tar archive. Unpacked it is a database.", null,
button("Download backup.ondol.tar", () => this.#backup(), { sign: "down" })),
action("Compact", "Merges files, so that what was deleted takes no space.", speed,
button("Compact", () => edit(() => ({ kind: "compact",
...(speed.value ? { bytesPerSecond: Number(speed.value) } : {}) })))),
action("Reclaim", "Gives up contents that nobody holds any more.", null,
button("Reclaim", () => edit(() => ({ kind: "reclaim" })))),
action("Rebuild an index", "Builds it anew from its documents.", this.index,
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
: empty("No task yet", "Verify keeps nobody out."));
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

"""##,
    "index.html": ##"""
<!DOCTYPE html>
<!-- The only document there is. -->
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Ondol console</title>
<link rel="stylesheet" href="/assets/base.css">
<link rel="stylesheet" href="/assets/pages.css">
<script type="module" src="/assets/app.js"></script>
</head>
<body>
<main class="gate"><h1>Ondol console</h1></main>
</body>
</html>

"""##,
    "indexes.js": ##"""
import { get, post, remove } from "./api.js";
import { confirm, dialog, note } from "./dialogs.js";
import { choice, empty, failure, h, label, loading, replace, table } from "./dom.js";
import { Page } from "./page.js";
import { edit } from "./session.js";
import { grouped, size } from "./values.js";
class IndexesPage extends Page {
begin() {
this.place = h("div", loading());
this.head = h("header", h("h1", "Indexes"), h("span.grow"),
edit("New index", () => this.#create(), { sign: "plus", kind: "primary" }));
replace(this, this.head, this.place);
this.watch({ kind: "indexes" }, (event, data) => replace(this.place, event === "problem"
? failure(data.error) : this.#all(data)));
}
#all({ indexes, timeToLive, links }) {
return [indexes.length ? card(["Collection", "Index", "Kind", "State", "Rows", "Size", "Used", ""],
indexes.map((one) => [
one.group ? `all called ${one.collection}` : one.collection, h("code", one.name), h("span.badge",
one.unique ? "unique" : one.elements ? "elements of arrays" : one.group ? "group" : "fields"),
state(one),
grouped(one.entries), size(one.bytes), one.uses ? `${grouped(one.uses)} times`
: h("span.muted", "never"),
edit(`Drop ${one.name}`, () => this.#drop(one), { sign: "trash", bare: true })]))
: empty("No indexes", "Every query scans its collection. A query's plan says what would help."),
timeToLive.length > 0 && [h("h2", "Time to live"),
card(["Collection", "Field"], timeToLive.map((one) => [one.collection, one.field]))],
links.length > 0 && [h("h2", "Links to storage"), card(["Collection", "Field", "Folder"],
links.map((one) => [one.collection, one.field, one.folder || "/"]))]];
}
async #create() {
const { collections } = await get("collections");
const preview = h("p.hint");
const update = () => {
const list = fields.value.split(",").map((one) => one.trim()).filter(Boolean);
const [first, ...rest] = list.map((one) => one.replace(/^-/, ""));
replace(preview, !first ? "Name the fields that queries compare first; - means descending."
: kind.value === "elements" ? `Serves array-contains and array-contains-any on ${first}.`
: `Serves ${first} = …, ${rest.length ? `with ranges of ${rest.join(", ")} behind it`
: "ranges of it and orders by it"}.`);
};
const collection = choice(collections.map((one) => one.path));
const fields = h("input", { required: true, placeholder: "category, -price", oninput: update });
const kind = choice([["fields", "Fields"], ["unique", "Unique: no two documents agree"],
["null", "Unique, null being a value"],
["elements", "Elements of an array"], ["group", "All collections called so"]], { onchange: update });
const where = h("input", { placeholder: "active = true" });
update();
const done = await dialog("New index", [label("Collection", collection),
label("Fields", fields), label("Kind", kind),
label("Only documents that meet (optional)", where), preview],
{ action: "Create", submit: () => post("indexes", {
[kind.value === "group" ? "group" : "collection"]: collection.value,
fields: fields.value.split(",").map((one) => one.trim()).filter(Boolean),
...(["unique", "elements"].includes(kind.value) ? { [kind.value]: true } : {}),
...(kind.value === "null" ? { unique: true, nullsDistinct: false } : {}),
...(where.value.trim() ? { where: where.value.trim() } : {}),
}) });
if (done) note("The index is being built.");
}
async #drop(one) {
await confirm("Drop the index?", `${one.name} was used ${grouped(one.uses)} times since opening. `
+ "Queries that it serves scan instead.", "Drop", () => remove("indexes", {
[one.group ? "group" : "collection"]: one.collection, name: one.name }));
}
}
customElements.define("ondol-indexes", IndexesPage);
function state({ state: what, progress }) {
if (what === "ready") return h("span.badge.good", "ready");
return [h("span.badge.warn", "building"), progress
&& h("progress", { value: progress.documents, max: progress.total || 1,
label: "Documents added" })];
}
const card = (heads, rows) => h("div.card.wide-table", table(heads, rows));

"""##,
    "live.js": ##"""
import { ask } from "./api.js";
const watchers = new Map();
const listeners = new EventTarget();
let [stream, timer, attempts, last, used] = [null, 0, 0, undefined, 0];
export function onState(action) {
listeners.addEventListener("state", (event) => action(event.detail));
}
export function onVersion(action) {
listeners.addEventListener("version", (event) => action(event.detail));
}
const tell = (type, detail) => listeners.dispatchEvent(new CustomEvent(type, { detail }));
export function watch(what, action) {
const id = `w${++used}`;
watchers.set(id, { what, action, isKnown: false });
reopenSoon();
return () => {
if (watchers.delete(id)) reopenSoon();
};
}
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

"""##,
    "page.js": ##"""
import { watch } from "./live.js";
import { onSession } from "./session.js";
export class Page extends HTMLElement {
#ends = [];
#abort = new AbortController();
connectedCallback() {
this.classList.add("page");
this.begin?.();
}
disconnectedCallback() {
for (const end of this.#ends) end();
this.#ends = [];
this.#abort.abort();
}
get signal() {
return this.#abort.signal;
}
until(end) {
this.#ends.push(end);
return end;
}
watch(what, action) {
return this.until(watch(what, action));
}
onSession(action) {
this.until(onSession(action));
}
}

"""##,
    "pages.css": ##"""
main > .data{display:grid;grid-template-columns:208px minmax(0,1fr) minmax(320px,400px);gap:0;
padding:12px 16px 16px 4px;overflow:hidden}
.column{display:flex;flex-direction:column;min-height:0;min-width:0;background:var(--surface);
border:var(--edge);overflow:auto}
.column:first-child{border-radius:10px 0 0 10px}
.column:last-child{border-radius:0 10px 10px 0}
.column + .column{border-left:0}
.column > header{display:flex;align-items:center;gap:8px;padding:10px 12px;min-height:50px;
flex-wrap:wrap}
.collections nav{display:grid;padding:0 6px 8px;gap:1px}
.listrow{display:flex;align-items:center;gap:8px;padding:6px 8px;border-radius:var(--radius);
color:var(--text);width:100%}
.listrow:hover{background:var(--sunken);text-decoration:none}
.listrow[aria-current]{background:var(--accent-soft);color:var(--accent)}
.count{font-variant-numeric:tabular-nums;font-size:12.5px}
.crumbs{display:flex;gap:6px;min-width:0;flex-wrap:wrap;overflow-wrap:anywhere}
.documents{overflow:hidden}
.filter{padding:0 12px 10px}
.filter + div > .failure{margin:0 12px 10px}
.combo{position:relative}
.conditionbox{display:grid;gap:4px}
.suggestions{position:absolute;z-index:5;left:0;top:100%;margin-top:4px;min-width:260px;
max-width:100%;background:var(--raised);
border:var(--edge);border-radius:9px;box-shadow:var(--shadow);padding:4px;
list-style:none}
.suggestions li{display:flex;justify-content:space-between;gap:16px;padding:5px 9px;
border-radius:5px;cursor:pointer}
.suggestions li:hover, .suggestions [aria-selected="true"] { background: var(--accent-soft); }
.fill{flex:1;min-height:0;display:flex;flex-direction:column}
ondol-table{flex:1;min-height:0;display:block;border-top:var(--edge);position:relative}
.table{position:absolute;inset:0;overflow:auto;font-size:13px;contain:strict}
.table:focus-visible{outline-offset:-2px;border-radius:0}
.headgroup{position:sticky;top:0;z-index:2}
.thead,.tr{display:grid;grid-template-columns:minmax(120px,1.1fr) repeat(var(--columns,0),
minmax(104px,1fr));height:34px}
.thead{background:var(--sunken);border-bottom:var(--edge);color:var(--muted);
font-weight:500}
.thead > *,.tr > *{padding:0 10px;line-height:33px}
.thead button{all:unset;cursor:pointer;display:block;width:100%;overflow:hidden;
text-overflow:ellipsis}
.thead button:focus-visible{outline:2px solid var(--accent);outline-offset:-2px}
.tbody{position:relative}
.thead,.tr,.tbody{min-width:calc(130px + var(--columns,0) * 104px)}
.tr{position:absolute;left:0;right:0;top:0;border-bottom:var(--edge);cursor:pointer;
contain:strict}
.tr > :first-child{color:var(--text);font-weight:500}
.tr:hover{background:var(--sunken)}
.tr[aria-selected="true"] { background: var(--accent-soft); }
.table:focus-visible .tr.active{box-shadow:inset 0 0 0 2px var(--accent)}
.pane{display:flex;flex-direction:column;padding:10px 14px 20px;gap:12px}
.panehead{display:grid;gap:6px}
.panehead h2{font-family:var(--mono);overflow-wrap:anywhere;font-size:14px}
.panehead > .row{flex-wrap:nowrap}
.panehead > .tools{flex-wrap:wrap}
.facts{display:flex;gap:2px 12px;flex-wrap:wrap;font-size:12px}
.pane h3{margin:4px 0}
.fields{display:grid;border-top:var(--edge)}
.field{border-bottom:var(--edge);border-radius:2px}
.inner .field:last-child{border-bottom:0}
.line{display:flex;align-items:flex-start;gap:6px;padding:5px 0;min-height:36px}
.field > .line{display:grid;grid-template-columns:22px 30% minmax(0,1fr) auto;gap:0 6px}
.field > .line > .toggle{grid-area:1 / 1}
.line > .name{grid-area:1 / 2;font:500 13px/1.4 var(--font);overflow-wrap:anywhere;
padding-top:4px}
.line > .kind{font-size:11px;line-height:1.3;color:var(--muted);grid-area:2 / 2}
.field > .line > .place{grid-area:1 / 3 / 3 / 4}
.line > .tool{grid-area:1 / 4}
.place{flex:1;min-width:0;display:flex;gap:8px;align-items:flex-start}
.place .value{flex:1;background:none;border:1px solid transparent;border-radius:5px;
padding:2px 5px;text-align:left;max-height:150px;overflow:auto;min-height:26px}
body.editing .place .value{cursor:text}
body.editing .place .value:hover{border-color:var(--line-strong);background:var(--sunken)}
.toggle{width:22px;height:26px;flex:none;border:0;background:none;color:var(--muted);
padding:5px 3px}
button.toggle{cursor:pointer}
.toggle .icon{transition:transform .12s}
.toggle[aria-expanded="true"] .icon { transform: rotate(90deg); }
.inner{padding-left:18px;border-left:var(--edge);margin:0 0 4px 10px}
.element .line{min-height:28px}
.field.element > .line{display:flex}
.toggle:disabled{visibility:hidden}
.goto{padding:4px}
.editor{flex:1;display:grid;gap:6px;min-width:0}
.editor .row select{width:auto;min-height:28px;padding:1px 6px}
.json{min-height:300px;width:100%;white-space:pre}
.json.short{min-height:130px}
.outline{padding:6px;overflow:auto}
.node > .line{align-items:center;padding:1px 0;min-height:30px;border-radius:5px}
.node > .line:hover{background:var(--sunken)}
.node .name{width:auto;min-width:0;padding:0;font-family:var(--mono);font-size:13px}
.node .nodetools{opacity:0;display:flex}
.node > .line:hover .nodetools,.node > .line:focus-within .nodetools{opacity:1}
.node .place{align-items:center}
.node .place .value{flex:none;max-width:100%}
.node > .children{padding-left:20px}
.split{display:grid;grid-template-columns:minmax(0,1fr) 320px;gap:var(--gap);flex:1;min-height:0;
}
.split > *{overflow:auto;min-height:0}
.split.alone{grid-template-columns:minmax(0,1fr)}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(136px,1fr));gap:12px}
.tile{display:grid;gap:6px;padding:8px;color:var(--text);min-width:0;align-content:start}
.tile:hover{border-color:var(--line-strong);text-decoration:none}
.tile[aria-current]{border-color:var(--accent);box-shadow:0 0 0 1px var(--accent)}
.tile .picture{height:92px}
.tile .picture > .icon{width:30px;height:30px}
.tile span{font-size:12.5px}
.preview{width:100%;height:190px;margin-bottom:12px}
.preview img{object-fit:contain}
.drop{outline:2px dashed var(--accent);outline-offset:-6px}
dl{display:grid;grid-template-columns:auto minmax(0,1fr);gap:5px 14px;margin:0;font-size:13px}
dt{color:var(--muted)}
dd{margin:0;overflow-wrap:anywhere}
.builder{display:grid;gap:8px}
.term{display:grid;grid-template-columns:1.2fr 1fr 1.6fr auto;gap:6px}
.options{display:grid;grid-template-columns:repeat(auto-fill,minmax(180px,1fr));gap:10px;
align-items:end}
.resultplace{flex:1;min-height:320px;display:flex;flex-direction:column;background:var(--surface);
border:var(--edge);border-radius:10px;overflow:hidden}
.panel{padding:16px;overflow:auto;display:grid;gap:14px;align-content:start;flex:1}
.ways{list-style:none;display:grid;gap:6px}
.ways .ways{margin:6px 0 0 18px;padding-left:12px;border-left:2px solid var(--line)}
pre{margin:0;padding:14px;background:var(--sunken);border-radius:var(--radius);overflow:auto;
font:12.5px/1.55 var(--mono)}
.bar{display:grid;grid-template-columns:170px minmax(0,1fr) 90px;gap:12px;align-items:center;
font-size:13px}
.bar meter{width:100%;height:12px}
.bar meter::-webkit-meter-bar{height:8px;border:0;border-radius:4px;background:var(--sunken)}
.bar meter::-webkit-meter-optimum-value{background:var(--accent);border-radius:4px}
.bar b{text-align:right;font-weight:600;font-variant-numeric:tabular-nums}
.log{display:grid;gap:8px}
.change > summary{cursor:pointer;display:flex;gap:6px 12px;flex-wrap:wrap;align-items:baseline}
.change{padding:9px 14px}
.change[open] > summary{padding-bottom:9px;border-bottom:var(--edge);margin-bottom:6px}
.change time{font-variant-numeric:tabular-nums;color:var(--muted);font-size:12.5px}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(236px,1fr));gap:var(--gap)}
.stat{display:flex;flex-direction:column;gap:4px;padding:14px}
.stat .chart{margin-top:auto}
.stat td{padding:4px 0 !important}
.stat b{font-size:20px;font-weight:620;font-variant-numeric:tabular-nums}
.chart{width:100%;height:52px;display:block;overflow:visible}
.chart path{fill:none;stroke:var(--accent);stroke-width:1.5;vector-effect:non-scaling-stroke;
stroke-linejoin:round}
.chart path.area{fill:var(--accent-soft);stroke:none}
.chart path.second{stroke:var(--special)}
.legend{display:flex;gap:12px;font-size:12px;color:var(--muted)}
.legend i{display:inline-block;width:8px;height:8px;border-radius:2px;background:var(--accent);
margin-right:5px}
.legend i.second{background:var(--special)}
.actions{display:grid;grid-template-columns:repeat(auto-fill,minmax(250px,1fr));gap:var(--gap)}
.action{display:flex;flex-direction:column;gap:10px;align-items:flex-start}
.action .button{margin-top:auto}
.task{display:grid;gap:8px}
.finding{display:flex;gap:10px;align-items:baseline;padding:8px 0;
border-top:var(--edge);overflow-wrap:anywhere}
@media (max-width:1100px){
main > .data{grid-template-columns:170px minmax(0,1fr) minmax(280px,340px)}
.data[data-depth="documents"] > .document { display: none; }
main > .data[data-depth="documents"] { grid-template-columns: 170px minmax(0, 1fr); }
.split{grid-template-columns:minmax(0,1fr) 280px}
}
@media (max-width:760px){
main > .data, main > .data[data-depth="documents"] { grid-template-columns: minmax(0, 1fr); padding: 0; }
.data > .column{border:0;border-radius:0;display:none}
.data[data-depth="collections"] > .collections, .data[data-depth="documents"] > .documents,
.data[data-depth="document"] > .document { display: flex; }
.split{grid-template-columns:minmax(0,1fr);overflow:auto;flex:none}
.split > aside{order:-1}
.term{grid-template-columns:minmax(0,1fr) minmax(0,1fr) auto}
.term > :nth-child(3){grid-column:1 / 3;grid-row:2}
.bar{grid-template-columns:minmax(0,1fr) auto}
.bar meter{grid-column:1 / 3;grid-row:2}
.thead,.tr{grid-template-columns:120px repeat(var(--columns,0),110px)}
.wide-table{overflow-x:auto}
.wide-table table{min-width:620px}
}

"""##,
    "pictures.js": ##"""
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
export function pictureType(bytes) {
const text = String.fromCharCode(...bytes.subarray(0, 12));
if (text.startsWith("RIFF") && text.endsWith("WEBP")) return "image/webp";
if (/^ftyp(avif|avis)$/.test(text.slice(4))) return "image/avif";
return SIGNATURES.find(([, start]) => start.every((byte, place) => bytes[place] === byte))?.[0];
}
const known = new Map();
const waiting = [];
let running = 0;
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

"""##,
    "plan.js": ##"""
import { h } from "./dom.js";
import { edit } from "./session.js";
import { grouped } from "./values.js";
function way(access) {
switch (access.way) {
case "nothing": return ["Nothing can match"];
case "scan": return ["Scan of the collection", "every document is read"];
case "idRange": return ["Range of ids"];
case "lookups": return [`${grouped(access.count)} lookups by id`];
case "index": return [`Index ${access.name}`,
`${grouped(access.ranges)} range${access.ranges === 1 ? "" : "s"}`];
case "intersection": return ["Rows that stand in each of", null,
access.names.map((name) => ({ way: "index", name, ranges: 1 }))];
case "end": return ["One end of", null, [access.of]];
case "union": return ["Each of", null, access.ways];
default: return [access.way];
}
}
function branch(access) {
const [title, more, inner] = way(access);
return h("li", h("strong", title), more && h("span.muted", ` · ${more}`),
inner && h("ul.ways", inner.map(branch)));
}
export function planView(plan, create) {
return h("div.panel", h("pre", plan.query), h("ul.ways", branch(plan.access)),
h("p", plan.sorts ? "What is found is sorted afterwards." : "What is found is in order already."),
plan.needsNoDocuments && h("p", "The index alone answers it: no document is read."),
plan.isPlanCutShort && h("p", "The conditions combine in more ways than were looked at."),
plan.unknownFields.map((field) => h("p.problem", `No document and no index has the field ${field}.`)),
plan.buildingIndexes.map((name) => h("p.hint", `The index ${name} is being built and will serve it.`)),
plan.suggestedIndex && h("p.hint", "An index would serve it: ", h("code", plan.suggestedIndex.join(", ")),
edit("Create it", () => create(plan.suggestedIndex))));
}
export function costView(plan) {
const bars = [["Entries visited", plan.entriesVisited], ["Documents examined", plan.documentsExamined],
["Documents returned", plan.documentsReturned]];
const most = Math.max(1, ...bars.map(([, amount]) => amount ?? 0));
const waste = plan.documentsReturned ? plan.documentsExamined / plan.documentsReturned
: plan.documentsExamined;
return h("div.panel", bars.map(([title, amount]) => h("div.bar", h("span", title),
h("meter", { min: "0", max: String(most), value: amount ?? 0, label: title }),
h("b", grouped(amount ?? 0)))),
h("p", `It took ${((plan.duration ?? 0) * 1_000).toFixed(2)} ms.`),
h("p.muted", waste > 10 ? `${Math.round(waste)} examined for each returned: an index would help.`
: "Little is read that is not returned."));
}

"""##,
    "query.js": ##"""
import { post } from "./api.js";
import { COMPARISONS, code, orderParts } from "./code.js";
import { conditionBox } from "./condition.js";
import { button, choice, empty, failure, h, label, loading, replace, table, tool } from "./dom.js";
import { attempt, note } from "./dialogs.js";
import { Page } from "./page.js";
import { costView, planView } from "./plan.js";
import { Results, clean, columns } from "./results.js";
import { address, go, route } from "./route.js";
import { Table } from "./table.js";
import { brief, counted, names, parse, text } from "./values.js";
const OPERATORS = ["=", "!=", "<", "<=", ">", ">=", "in", "not in", "array-contains", "array-contains-any",
"starts-with"];
const TABS = ["result", "plan", "cost", "code"];
const OPTIONS = [["order", "Order", "price desc, name"], ["limit", "Limit", "50"],
["select", "Fields", "name, price"],
["lookup", "Lookup", "userId in users as user"], ["aggregate", "Aggregates", "count, sum(total)"],
["by", "Group by", "category"]];
class QueryPage extends Page {
begin() {
this.source = h("select", { onchange: () => this.#ask() });
this.terms = h("div.builder");
this.inputs = Object.fromEntries(OPTIONS.map(([name, , hint]) =>
[name, h("input", { id: `option-${name}`, placeholder: hint, onchange: () => this.#ask() })]));
this.texts = h("select", { id: "option-texts", onchange: () => this.#compare() },
["", ...COMPARISONS].map((one) => h("option", { value: one }, one || "bytes")));
this.isLive = h("input", { type: "checkbox", onchange: () => this.#ask() });
this.box = h("div");
this.tabs = h("div.tabs", { role: "tablist", label: "What to show" },
TABS.map((tab) => h("button", {
role: "tab", id: `tab-${tab}`, "aria-controls": "panel",
onclick: () => this.#ask({ tab }), onkeydown: (event) => {
const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
if (by) this.tabs.children[(TABS.indexOf(tab) + by + TABS.length) % TABS.length].focus();
},
}, tab[0].toUpperCase() + tab.slice(1))));
this.place = h("div.resultplace", { id: "panel", role: "tabpanel" }, loading());
this.status = h("span.muted", { role: "status" });
replace(this, h("header", h("h1", "Query"), this.status),
h("section.card.builder", { label: "The query" },
h("div.options", label("In", this.source)), this.terms, this.box,
h("details", h("summary", "Order, limit, fields, lookups, groups"),
h("div.options", OPTIONS.map(([name, title]) =>
h("label", { for: `option-${name}` }, title, this.inputs[name])),
h("label", { for: "option-texts" }, "Texts by", this.texts))),
h("label.check", this.isLive, "Follow changes")), this.tabs, this.place);
this.watch({ kind: "collections" }, (event, data) => {
this.collections = data.collections ?? [];
this.#fillSources();
if (!this.isBegun) this.arrive();
this.isBegun = true;
});
this.until(() => this.results?.end());
}
#fillSources() {
const { parameters } = route();
const known = this.collections.map((one) => `collection:${one.path}`);
const asked = parameters.get("from");
const groups = this.collections.map((one) => `group:${one.id}`);
const all = [...new Set([...known, ...groups, ...(asked ? [asked] : [])])];
replace(this.source, all.map((one) => h("option", { value: one },
one.replace("collection:", "").replace("group:", "all called "))));
this.source.value = asked ?? known[0] ?? "";
}
#query() {
const { parameters } = route();
const value = (name) => parameters.get(name) ?? undefined;
const [what, ...rest] = (value("from") ?? this.source.value).split(":");
const lookups = (value("lookup") ?? "").split(",").map((one) =>
/^\s*(.+?)\s+in\s+(.+?)\s+as\s+(\S+)\s*$/.exec(one)).filter(Boolean)
.map(([, field, place, as]) => ({ field, in: place, as }));
const aggregate = (value("aggregate") ?? "").split(",").map((one) =>
/^\s*(\w+)(?:\((.+)\))?\s*$/.exec(one)).filter(Boolean)
.map(([, op, field]) => clean({ op, field }));
return clean({ [what]: rest.join(":"), where: value("where"), order: value("order"),
limit: Number(value("limit")) || undefined,
select: value("select"), lookups, aggregate, by: value("by") });
}
arrive() {
const { parameters } = route();
if (!this.collections) return;
this.#fillSources();
if (!this.source.value) return replace(this.place,
empty("Nothing to query", "There are no collections yet."));
for (const [name] of OPTIONS) this.inputs[name].value = parameters.get(name) ?? "";
this.texts.value = orders(this.inputs.order.value)[0]?.comparison ?? "";
this.texts.disabled = !this.inputs.order.value;
this.isLive.checked = parameters.get("live") !== "no";
this.query = this.#query();
const tab = TABS.includes(parameters.get("tab")) ? parameters.get("tab") : "result";
for (const one of this.tabs.children) {
one.setAttribute("aria-selected", one.id === `tab-${tab}`);
one.tabIndex = one.id === `tab-${tab}` ? 0 : -1;
}
if (this.box.dataset.where !== (this.query.where ?? "") || !this.condition) {
this.box.dataset.where = this.query.where ?? "";
this.condition = conditionBox({ value: this.query.where ?? "", run: (where) => this.#ask({ where }),
fields: () => this.fields ?? [] });
replace(this.box, this.condition);
}
return this.#show(tab);
}
#compare() {
const comparison = this.texts.value;
this.#ask({ order: orders(this.inputs.order.value).map(({ field, way }) =>
[field, comparison, way].filter(Boolean).join(" ")).join(", ") });
}
#ask(change = {}) {
const { parameters } = route();
const asked = { ...Object.fromEntries(parameters), from: this.source.value,
...Object.fromEntries(OPTIONS.map(([name]) => (
[name, this.inputs[name].value.trim()]))), live: this.isLive.checked ? "" : "no", ...change };
go(address("query", [], asked));
}
async #show(tab) {
const turn = this.turn = {};
this.results?.end();
this.abort?.abort();
this.abort = new AbortController();
this.status.textContent = "";
replace(this.place, loading(8));
try {
const answer = await post("query", { ...this.query, explain: tab === "cost" ? "analyze" : "plan" }, {},
this.abort.signal);
if (turn !== this.turn) return;
this.condition.clear();
this.#drawTerms(answer.condition);
if (tab === "plan") replace(this.place, planView(answer.plan, (fields) => this.#createIndex(fields)));
else if (tab === "cost") replace(this.place, costView(answer.plan));
else if (tab === "code") replace(this.place, code(this.query, answer.condition));
else await this.#result(turn);
} catch (error) {
if (error.name === "AbortError" || turn !== this.turn) return;
if (error.offset !== undefined) this.condition.fail(error);
this.#drawTerms(undefined);
replace(this.place, h("div.panel", failure(error)));
}
}
async #result(turn) {
const { query } = this;
if (query.aggregate) return this.#groups(turn);
const source = clean({ collection: query.collection, group: query.group });
const table = new Table();
const found = await columns(source, query, 6,
this.abort.signal).catch(() => ({ columns: [], fields: [] }));
if (turn !== this.turn) return undefined;
this.fields = found.fields;
const added = (query.lookups ?? []).map((one) => one.as);
table.columns = [...(query.select ? query.select.split(",").map((one) => one.trim()) : found.columns),
...added].slice(0, 9);
table.showsPaths = Boolean(query.group);
table.onopen = (document) => go(address("data", document.path));
const isPlain = !query.select && !query.lookups;
this.results = new Results(query, {
isLive: this.isLive.checked && isPlain,
onrows: (rows, flashing) => {
if (rows.length && this.place.firstChild !== table) replace(this.place, table);
if (!rows.length) replace(this.place, empty("No document meets the query"));
table.setRows(rows, flashing);
const isPart = this.results?.last === false;
this.status.textContent = (isPart ? "first " : "") + counted(rows.length, "document");
},
onfailure: (error) => replace(this.place, h("div.panel", failure(error))),
});
table.onend = () => this.results.more();
return undefined;
}
async #groups(turn) {
const { groups } = await post("query", this.query, {}, this.abort.signal);
if (turn !== this.turn) return;
const by = (this.query.by ?? "").split(",").map((one) => one.trim()).filter(Boolean);
const heads = [...by, ...this.query.aggregate.map(({ op, field }) => (field ? `${op}(${field})` : op))];
replace(this.place, h("div.scroll", table(heads, groups.map(({ key, values }) => (
[...key, ...values].map((value) => h("code", brief(value))))))));
this.status.textContent = counted(groups.length, "group");
}
#drawTerms(condition) {
const terms = !condition ? [] : condition.and ?? [condition];
if (terms.some((one) => one.and || one.or)) {
return replace(this.terms, h("p.muted", "Alternatives are written in the text below."));
}
const rows = terms.map(({ field, op, value }) => ({ field, op, value: text(value) }));
const write = () => this.#ask({ where: rows.map(({ field, op, value }) =>
`${field} ${op} ${literal(value)}`).join(" and ") });
replace(this.terms, rows.map((row, place) => {
const input = (name, label) => {
const element = h("input", { label: `${label} of condition ${place + 1}`,
onchange: () => { row[name] = element.value; write(); } });
element.value = row[name];
return element;
};
const operator = choice(OPERATORS, { label: `Operator of condition ${place + 1}`,
onchange: () => {
row.op = operator.value;
write();
} });
operator.value = row.op;
return h("div.term", input("field", "Field"), operator, input("value", "Value"),
tool(`Remove condition ${place + 1}`, "close", () => { rows.splice(place, 1); write(); }));
}), h("div", button("Add condition", () => {
const field = this.fields?.find((one) => !rows.some((row) => names(row.field)[0] === one.field))
?? { field: "field", kinds: {} };
const isText = Object.keys(field.kinds)[0] === "string";
rows.push({ field: field.field, op: isText ? "!=" : ">=", value: isText ? '""' : "0" });
write();
}, { sign: "plus", kind: "small" })));
return undefined;
}
async #createIndex(fields) {
const { collection, group } = this.query;
if (await attempt(() => post("indexes", clean({ collection, group,
fields })))) note(`The index on ${fields.join(", ")} is being built.`);
}
}
customElements.define("ondol-query", QueryPage);
function orders(typed) {
return typed.split(",").map((one) => one.trim()).filter(Boolean).map(orderParts);
}
function literal(typed) {
try {
parse(typed.replace(/^'(.*)'$/, (_, inner) => JSON.stringify(inner)));
return typed;
} catch {
return JSON.stringify(typed);
}
}

"""##,
    "results.js": ##"""
import { get, post } from "./api.js";
import { watch } from "./live.js";
const WATCHED = 500;
const PAGE = 500;
export class Results {
#live = [];
#tail = [];
#cursor;
#isReading = false;
#end;
last = false;
constructor(query, { onrows, onfailure, isLive = true }) {
this.query = query;
this.onrows = onrows;
this.onfailure = onfailure;
if (isLive) this.#watch();
else this.#once();
}
get rows() {
if (!this.#tail.length) return this.#live;
const known = new Set(this.#live.map((document) => document.path));
return [...this.#live, ...this.#tail.filter((document) => !known.has(document.path))];
}
end() {
this.#end?.();
this.isOver = true;
}
#watch() {
const { collection, group, where, order } = this.query;
const what = { kind: "query", collection, group, where, order, limit: this.query.limit ?? WATCHED };
this.#end = watch(clean(what), (event, data) => {
if (event === "problem") return this.onfailure(data.error);
if (event === "state") this.#live = data.documents;
const flashing = event === "changes" ? this.#apply(data.changes) : [];
if (!this.#tail.length) {
this.last = Boolean(data.last) || this.query.limit !== undefined;
this.#cursor = data.cursor;
}
return this.onrows(this.rows, flashing);
});
}
async #once() {
try {
const answer = await post("query", clean({ ...this.query, limit: this.query.limit ?? PAGE }));
this.#take(answer);
} catch (error) {
if (!this.isOver) this.onfailure(error);
}
}
#take(answer) {
if (this.isOver) return;
this.#tail.push(...answer.documents);
this.#cursor = answer.cursor;
this.last = answer.last || this.query.limit !== undefined;
this.condition = answer.condition;
this.onrows(this.rows, []);
}
#apply(changes) {
const flashing = [];
const pushed = [];
for (const change of changes) {
if (change.oldIndex !== undefined && change.oldIndex !== null) {
const wasLast = change.oldIndex === this.#live.length - 1;
const [gone] = this.#live.splice(change.oldIndex, 1);
if (change.type === "removed" && wasLast && this.#tail.length) pushed.push(gone);
}
if (change.type === "removed") continue;
this.#live.splice(change.newIndex, 0, change.document);
flashing.push(change.document.path);
}
if (pushed.length && flashing.length && this.#live.length === WATCHED) this.#tail.unshift(...pushed);
return flashing;
}
async more() {
if (this.#isReading || this.last || !this.#cursor || this.isOver) return;
this.#isReading = true;
try {
this.#take(await post("query", clean({ ...this.query, limit: PAGE, after: this.#cursor })));
} catch (error) {
if (!this.isOver) this.onfailure(error);
} finally {
this.#isReading = false;
}
}
}
export function clean(query) {
return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined && value !== ""
&& value !== null && !(Array.isArray(value) && !value.length)));
}
export function mentioned(query, known) {
const text = `${query.where ?? ""} ${query.order ?? ""}`;
return known.filter((field) => (field.startsWith("`") ? text.includes(field)
: new RegExp(`(^|[^\\w.\`'"])${field.replace(/[.$]/g, "\\$&")}($|[^\\w.])`).test(text)));
}
const few = { map: 1, array: 1, vector: 1, bytes: 1, blob: 1 };
export async function columns(source, query, most, signal) {
const { fields } = await get("schema", source, signal);
const rank = (entry) => entry.share - (few[Object.keys(entry.kinds)[0]] ? 0.5 : 0);
const sorted = [...fields].sort((left, right) => rank(right) - rank(left)).map((entry) => entry.field);
const asked = mentioned(query, fields.map((entry) => entry.field));
return { columns: [...new Set([...asked, ...sorted])].slice(0, most), fields };
}

"""##,
    "route.js": ##"""
export function route() {
const [path, search = ""] = location.hash.replace(/^#\/?/, "").split("?");
const [page = "", ...steps] = path.split("/");
return { page: page || "data", steps: steps.filter(Boolean).map(decode),
parameters: new URLSearchParams(search) };
}
function decode(step) {
try {
return decodeURIComponent(step);
} catch {
return step;
}
}
export function address(page, path = [], parameters = {}) {
const steps = (typeof path === "string" ? path.split("/") : path).filter((step) => step !== "");
const search = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value)).toString();
return `#/${[page, ...steps.map(encodeURIComponent)].join("/")}${search && `?${search}`}`;
}
export function go(target, { replace = false } = {}) {
if (target === location.hash) return;
if (!replace) {
location.hash = target;
return;
}
history.replaceState(null, "", target);
dispatchEvent(new HashChangeEvent("hashchange"));
}

"""##,
    "session.js": ##"""
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
export function setOpen(isOpen) {
session.isOpen = isOpen && mayWrite();
changed();
}
export function canEdit() {
if (session.isOpen) return true;
note(mayWrite() ? "Editing is locked." : "This process only reads the database.", mayWrite()
? { action: { label: "Unlock", run: () => setOpen(true) } } : {});
return false;
}
export const edit = (label, run, { kind = "small", ...more } = {}) => (
button(label, () => canEdit() && run(), { kind: `${kind} edit-only`, ...more }));
export const lastEdit = () => undone.at(-1);
function remember(edit) {
undone.push(edit);
if (undone.length > UNDO_LIMIT) undone.shift();
changed();
}
export async function undo() {
if (!undone.length || !canEdit()) return;
const edit = undone.pop();
changed();
try {
const version = (await edit.revert(edit.version)).document?.version ?? "0";
const before = undone.findLast((one) => one.path === edit.path);
if (before?.version === edit.base) before.version = version;
note(`Undone: ${edit.title}`);
} catch (error) {
note(error.status === 409 ? `Not undone: ${edit.path} has changed since.` : error.message, { bad: true });
}
}
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
function isApart(base, stored, change) {
return [...Object.keys(change.set ?? {}), ...(change.delete ?? [])].every((path) => {
const [left, right] = [at(base.fields, path), at(stored.fields, path)];
return left === undefined || right === undefined ? left === right : isSame(left, right);
});
}
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

"""##,
    "statistics.js": ##"""
import { get } from "./api.js";
import { failure, h, loading, replace, svg, table } from "./dom.js";
import { Page } from "./page.js";
import { counted, grouped, shortTime, size } from "./values.js";
const KEPT = 60;
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
`${now.oldestReadOwners.join(", ") || "nobody by name"}, keeps ${
size(now.pinnedBytes)}`));
if (now.damage.length) this.place.prepend(h("section.failure",
h("div", now.damage.map((one) => h("p", one)))));
}
}
customElements.define("ondol-statistics", StatisticsPage);

"""##,
    "storage.js": ##"""
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
"Objects that the app puts show up at once. Unlock editing to drop files here.");
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
h("section.card", h("h2", "Held by nobody"), h("p", `A reclaim would free ${size(all.unheldBytes)} in `
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

"""##,
    "table.js": ##"""
import { h, replace, seen } from "./dom.js";
import { at, brief, kind, text } from "./values.js";
const ROW = 34;
const SPARE = 6;
const FLASH = 1_200;
export class Table extends HTMLElement {
rows = [];
columns = [];
selected = null;
onopen = () => {};
onend = () => {};
onsort = null;
order = "";
showsPaths = false;
#pool = [];
#flashes = new Map();
#active = 0;
#asked = 0;
connectedCallback() {
this.head = h("div.thead", { role: "row", "aria-rowindex": "1" });
this.body = h("div.tbody", { role: "rowgroup" });
this.scroller = h("div.table", {
role: "grid", tabindex: "0", label: "Documents",
onscroll: () => this.#ask(), onkeydown: (event) => this.#key(event),
}, h("div", { role: "rowgroup", class: "headgroup" }, this.head), this.body);
replace(this, this.scroller);
this.observer = new ResizeObserver(() => this.#ask());
this.observer.observe(this.scroller);
this.setColumns(this.columns);
}
disconnectedCallback() {
this.observer.disconnect();
cancelAnimationFrame(this.#asked);
}
setColumns(columns) {
this.columns = columns;
if (!this.head) return;
this.scroller.setAttribute("aria-colcount", columns.length + 1);
this.scroller.style.setProperty("--columns", columns.length);
const [sorted, way] = this.order.split(",")[0].trim().split(/\s+(?=desc$|asc$)/);
replace(this.head, ["id", ...columns].map((field, place) => {
const isSorted = place > 0 && field === sorted;
const sort = isSorted ? (way === "desc" ? "descending" : "ascending") : "none";
return h("div", { role: "columnheader", "aria-sort": sort, title: field }, place && this.onsort
? h("button", { onclick: () => this.onsort(field, isSorted && way !== "desc") },
field, isSorted && (way === "desc" ? " ↓" : " ↑"))
: field);
}));
this.#pool = [];
this.body.replaceChildren();
this.#ask();
}
setRows(rows, flashing = []) {
this.rows = rows;
const until = performance.now() + FLASH;
for (const path of flashing) this.#flashes.set(path, until);
this.#ask();
}
select(path) {
this.selected = path;
const place = this.rows.findIndex((row) => row.path === path);
if (place >= 0) this.#active = place;
this.#ask();
}
#ask() {
if (!this.scroller) return;
cancelAnimationFrame(this.#asked);
this.#asked = requestAnimationFrame(() => this.render());
}
render() {
const height = this.scroller.clientHeight;
const first = Math.max(0, Math.floor((this.scroller.scrollTop - ROW) / ROW) - SPARE);
const count = Math.min(this.rows.length - first, Math.ceil(height / ROW) + 2 * SPARE);
this.body.style.height = `${this.rows.length * ROW}px`;
this.scroller.setAttribute("aria-rowcount", this.rows.length + 1);
while (this.#pool.length < count) this.#pool.push(this.#makeRow());
const now = performance.now();
this.#pool.forEach((row, offset) => {
const place = first + (((offset - first) % this.#pool.length) + this.#pool.length) % this.#pool.length;
const isShown = place < first + count && place < this.rows.length;
row.element.hidden = !isShown;
if (isShown) this.#fill(row, place, now);
});
if (this.rows.length && first + count > this.rows.length - 200) this.onend();
}
#makeRow() {
const cells = ["", ...this.columns].map((_, place) => h("div", {
role: place ? "gridcell" : "rowheader", "aria-colindex": place + 1,
}));
const element = h("div.tr", { role: "row" }, cells);
const row = { element, cells, place: -1, document: null };
element.addEventListener("click", () => {
this.#active = row.place;
this.onopen(row.document);
});
this.body.append(element);
return row;
}
#fill(row, place, now) {
const document = this.rows[place];
if (row.place !== place) {
row.place = place;
row.element.style.transform = `translateY(${place * ROW}px)`;
row.element.setAttribute("aria-rowindex", place + 2);
}
if (row.document !== document) {
row.document = document;
row.element.id = `row-${place}`;
replace(row.cells[0], this.showsPaths ? document.path : document.id);
this.columns.forEach((field, index) => {
const value = at(document.fields, field);
const cell = row.cells[index + 1];
replace(cell, brief(value));
cell.className = value === undefined ? "missing" : kind(value);
cell.title = value === undefined ? "" : seen(text(value?.slice?.(0, 500) ?? value).slice(0, 500));
});
}
row.element.setAttribute("aria-selected", document.path === this.selected);
row.element.classList.toggle("active", place === this.#active);
const until = this.#flashes.get(document.path);
if (until !== undefined && until < now) this.#flashes.delete(document.path);
const flashes = until > now;
if (flashes && row.flash !== until) {
row.flash = until;
row.element.classList.remove("flash");
void row.element.offsetWidth;
}
row.element.classList.toggle("flash", flashes);
if (place === this.#active) this.scroller.setAttribute("aria-activedescendant", row.element.id);
}
#key(event) {
if (event.target !== this.scroller) return;
const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW) - 2);
const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity,
End: Infinity };
if (event.key === "Enter" && this.rows[this.#active]) this.onopen(this.rows[this.#active]);
else if (Object.hasOwn(moves, event.key)) this.#move(moves[event.key]);
else return;
event.preventDefault();
}
#move(by) {
this.#active = Math.min(Math.max(0, this.#active + by), this.rows.length - 1);
const top = this.#active * ROW;
const view = this.scroller;
if (top < view.scrollTop) view.scrollTop = top;
else view.scrollTop = Math.max(view.scrollTop, top + 2 * ROW - view.clientHeight);
this.#ask();
}
}
customElements.define("ondol-table", Table);

"""##,
    "tree.js": ##"""
import { get, patch, put, remove, save } from "./api.js";
import { attempt, confirm, conflict, dialog, note } from "./dialogs.js";
import { button, choice, empty, failure, h, icon, label, loading, replace, tool } from "./dom.js";
import { editor } from "./fields.js";
import { watch } from "./live.js";
import { Page } from "./page.js";
import { address, route } from "./route.js";
import { canEdit, edit as editTool } from "./session.js";
import { brief, content, counted, entries, isSame, kind, parse, pretty } from "./values.js";
const STEP = 100;
const WATCHED = 12;
const join = (path, key) => (path ? `${path}/${key}` : key);
class TreePage extends Page {
#open = [];
begin() {
this.place = h("div.card.outline");
replace(this, h("header", h("h1", "Tree"), this.crumbs = h("nav.crumbs", { label: "Path" })),
this.place);
this.until(() => this.#open.forEach((node) => node.end?.()));
this.arrive();
}
arrive() {
const path = route().steps.join("/");
if (path === this.path) return;
this.path = path;
this.#open.splice(0).forEach((node) => node.end?.());
const steps = path.split("/").filter(Boolean);
replace(this.crumbs, h("a", { href: address("tree") }, "/"), steps.map((step, place) => [place > 0 && "/",
h("a", { href: address("tree", steps.slice(0, place + 1)) }, step)]));
const root = this.#node(null, { key: steps.at(-1) ?? "/", children: 1 }, path);
replace(this.place, h("div", { role: "tree", label: "Nodes", onkeydown: keys }, root.element));
root.open();
root.element.querySelector("[tabindex]")?.setAttribute("tabindex", "0");
}
#node(parent, shape, path) {
const node = { parent, shape, path, children: new Map(), limit: STEP };
const place = h("div.place");
const inner = h("div.children", { role: "group", hidden: true });
const toggle = h("button.toggle", { tabindex: "-1", label: `Open ${shape.key}`,
onclick: () => (node.isOpen ? node.close() : node.open()) }, icon("right"));
const change = (label, sign, run) => (
editTool(`${label} ${shape.key}`, run, { sign, bare: true, tabindex: "-1" }));
const tools = h("span.nodetools", change("Add a child to", "plus", () => this.#add(node)),
change("Import into", "up", () => this.#import(node)),
change("Delete", "trash", () => this.#delete(node)),
tool(`Export ${shape.key}`, "down", () => this.#export(node), { tabindex: "-1" }));
node.element = h("div.node", { role: "treeitem", tabindex: "-1", label: shape.key,
"data-path": path },
h("div.line", toggle, h("span.name", shape.key), place, h("span.grow"), tools), inner);
node.fill = (next) => {
node.shape = next;
const isLeaf = next.value !== undefined && next.value !== null || !next.children;
toggle.disabled = isLeaf;
if (isLeaf) {
node.element.removeAttribute("aria-expanded");
node.close();
} else node.element.setAttribute("aria-expanded", !!node.isOpen);
if (!node.isEditing) replace(place, isLeaf ? this.#leaf(node, place) : h("span.muted",
next.key === "/" ? "" : `${next.uncounted ? "more than " : ""}${
counted(next.children, "child").replace("childs", "children")}`));
if (next.priority !== undefined && next.priority !== null) place.append(h("span.badge",
`priority ${brief(next.priority)}`));
};
node.open = () => {
if (node.isOpen) return;
node.isOpen = true;
inner.hidden = false;
toggle.setAttribute("aria-expanded", "true");
node.element.setAttribute("aria-expanded", "true");
replace(inner, loading(2));
this.#open.push(node);
if (this.#open.length > WATCHED) this.#open.shift().end?.();
node.follow();
};
node.close = () => {
if (!node.isOpen) return;
node.isOpen = false;
inner.hidden = true;
toggle.setAttribute("aria-expanded", "false");
node.element.setAttribute("aria-expanded", "false");
node.end?.();
for (const child of node.children.values()) child.close();
node.children.clear();
this.#open = this.#open.filter((one) => one !== node);
};
node.follow = () => {
node.end?.();
node.end = watch({ kind: "tree", path, limit: node.limit }, (event, data) => (event === "problem"
? replace(inner, failure(data.error)) : this.#arrived(node, inner, data)));
};
node.fill(shape);
return node;
}
#arrived(node, inner, data) {
const isFirst = !node.isLoaded;
node.isLoaded = true;
if (node.parent === null) {
node.fill({ ...data.node, key: node.shape.key,
children: data.node.children ?? (data.exists ? undefined : 1) });
if (!data.exists) return replace(inner, empty("Nothing here",
"The tree has no value at this place. What the app sets shows up at once."));
}
const kept = new Map();
for (const shape of data.children) {
const child = node.children.get(shape.key) ?? this.#node(node, shape, join(node.path, shape.key));
const isNew = !node.children.has(shape.key);
const isOther = isNew || JSON.stringify(child.shape) !== JSON.stringify(shape);
if (isOther && !isNew) child.fill(shape);
if (isOther && !isFirst) pulse(child);
kept.set(shape.key, child);
}
for (const [key, child] of node.children) if (!kept.has(key)) child.close();
if (!isFirst && kept.size < node.children.size) pulse(node);
node.children = kept;
const focused = inner.contains(document.activeElement) ? document.activeElement : null;
replace(inner, [...kept.values()].map((child) => child.element),
data.more && button(`Show ${STEP} more`, () => {
node.limit += STEP;
node.follow();
}, { kind: "small" }));
focused?.focus();
return undefined;
}
#leaf(node, place) {
const value = node.shape.value ?? null;
const shown = h("button", { class: `value ${kind(value)}`, tabindex: "-1",
label: `${node.path}: ${brief(value)}. Edit`, onclick: () => canEdit() && edit() },
value === "" ? h("span.muted", "empty text") : brief(value));
const close = () => {
node.isEditing = false;
node.fill(node.shape);
node.element.focus();
};
const edit = () => {
node.isEditing = true;
const form = editor(value, node.path, { cancel: close, save: async (next) => {
if (!isSame(next, value) && await write(node.path, next, value)) node.shape = { key: node.shape.key,
value: next };
close();
} });
replace(place, form);
form.focusFirst();
};
return shown;
}
async #add(node) {
const key = h("input", { required: true });
const value = h("input", { placeholder: '"a text", 7, 7.5, true or {"a": 1}' });
await dialog(`Add a child to ${node.path || "/"}`, [label("Key", key),
label("Value, as JSON", value)], {
action: "Add", submit: () => put("tree", { path: join(node.path, key.value) },
{ value: parse(value.value), expected: null }),
});
node.open();
}
async #delete(node) {
await confirm("Delete the node?", `${node.path || "All of it"} goes with everything below it, for good.`,
"Delete", () => remove("tree", { path: node.path }), node.shape.children ? node.shape.key : undefined);
}
#export(node) {
return attempt(async () => {
const { value } = await get("tree/value", { path: node.path });
save(new Blob([pretty(value)], { type: "application/json" }),
`${node.path.replace(/\W+/g, "-") || "tree"}.json`);
});
}
async #import(node) {
const file = h("input", { type: "file", onchange: async () => {
area.value = await file.files[0]?.text() ?? "";
} });
const area = h("textarea.json.short");
const way = choice([["merge", "Merge: other children stay"],
["replace", "Replace: everything below goes"]]);
const done = await dialog(`Import into ${node.path || "/"}`, [label("File", file),
label("or JSON", area), label("How", way)], {
action: "Import", wide: true, submit: async () => {
const value = parse(area.value);
if (way.value === "replace") return put("tree", { path: node.path }, { value });
if (kind(value) !== "map") throw new Error("Only an object can be merged into a node.");
return patch("tree", { path: node.path }, { values: Object.fromEntries(entries(content(value))) });
},
});
if (done) note("Imported.");
}
}
customElements.define("ondol-tree", TreePage);
async function write(path, value, seen) {
let expected = seen;
for (;;) {
try {
return await put("tree", { path }, { value, expected });
} catch (error) {
if (error.status !== 409 || error.current === undefined) throw error;
const stored = error.current?.value ?? null;
if (!await conflict(path, { value: stored }, { value })) return undefined;
expected = stored;
}
}
}
function pulse(node) {
for (let one = node; one; one = one.parent) {
one.element.classList.remove("pulse");
void one.element.offsetWidth;
one.element.classList.add("pulse");
setTimeout(() => one.element.classList.remove("pulse"), 1_300);
}
}
function keys(event) {
const item = event.target.closest("[role=treeitem]");
if (!item || event.target.closest("form")) return;
const all = [...event.currentTarget.querySelectorAll("[role=treeitem]")].filter((one) => one.offsetParent);
const place = all.indexOf(item);
const toggle = item.querySelector(".toggle");
const isOpen = item.getAttribute("aria-expanded") === "true";
const focus = (one) => {
if (!one) return;
all.forEach((other) => other.setAttribute("tabindex", other === one ? "0" : "-1"));
one.focus();
};
if (event.key === "ArrowDown") focus(all[place + 1]);
else if (event.key === "ArrowUp") focus(all[place - 1]);
else if (event.key === "ArrowRight") (isOpen ? focus(all[place + 1]) : !toggle.disabled && toggle.click());
else if (event.key === "ArrowLeft") (isOpen ? toggle.click()
: focus(item.parentElement.closest("[role=treeitem]")));
else if (event.key === "Enter" && event.target === item) item.querySelector(".place button")?.click();
else if (event.key === "Delete" && event.target === item) {
item.querySelector("[aria-label^=Delete]")?.click();
} else return;
event.preventDefault();
}

"""##,
    "values.js": ##"""
const MARKS = {
$numberLong: "integer", $numberDouble: "double", $numberDecimal: "decimal", $date: "timestamp",
$binary: "bytes", $blob: "blob",
$reference: "reference", $geoPoint: "geoPoint", $vector: "vector", $literal: "map",
};
export const KINDS = ["string", "integer", "double", "decimal", "boolean", "null", "timestamp", "array",
"map", "reference",
"geoPoint", "bytes", "vector", "blob"];
export function kind(value) {
if (value === null) return "null";
if (typeof value === "boolean") return "boolean";
if (typeof value === "string") return "string";
if (Array.isArray(value)) return "array";
if (typeof value === "number") return "double";
const names = Object.keys(value);
return names.length === 1 && Object.hasOwn(MARKS, names[0]) ? MARKS[names[0]] : "map";
}
export function content(value) {
const what = kind(value);
if (what === "map") return Object.hasOwn(value, "$literal") && Object.keys(value).length === 1
? value.$literal : value;
return ["null", "boolean", "string", "array"].includes(what) || typeof value === "number"
? value : Object.values(value)[0];
}
export function count(value) {
return Number(typeof value === "object" && value ? Object.values(value)[0] : value);
}
const bySpelling = (left, right) => (left < right ? -1 : left > right ? 1 : 0);
export function entries(fields) {
return Object.entries(fields).sort((left, right) => bySpelling(left[0], right[0]));
}
export function isSame(left, right) {
return text(left) === text(right);
}
export function step(name) {
return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !/^(and|or|not)$/i.test(name)
? name : `\`${name.replace(/[\\`]/g, "\\$&")}\``;
}
export function names(path) {
return (path.match(/`(?:[^`\\]|\\.)*`|[^.`]+/g) ?? [])
.map((part) => (part[0] === "`" ? part.slice(1, -1).replace(/\\(.)/g, "$1") : part));
}
export function at(fields, path) {
let value = fields;
for (const name of names(path)) {
if (value === undefined || value === null || typeof value !== "object") return undefined;
const inner = value === fields ? fields : content(value);
if (inner === null || typeof inner !== "object" || !Object.hasOwn(inner, name)) return undefined;
value = inner[name];
}
return value;
}
export function text(value) {
const what = kind(value);
if (what === "integer") return String(content(value));
if (what === "double") return doubleText(content(value));
if (what === "array") return `[${value.map(text).join(",")}]`;
if (what === "map") {
const members = entries(content(value)).map(([name, one]) => `${JSON.stringify(name)}:${text(one)}`);
const inner = `{${members.join(",")}}`;
return Object.hasOwn(value, "$literal") ? `{"$literal":${inner}}` : inner;
}
return JSON.stringify(value);
}
function doubleText(content) {
const written = String(content);
if (!/^-?[\d.]+(e[+-]?\d+)?$/i.test(written)) return JSON.stringify({ $numberDouble: written });
return /[.e]/i.test(written) ? written : `${written}.0`;
}
export function pretty(value, indent = "", isDocument = false) {
const what = isDocument ? "map" : kind(value);
const inner = what === "map" && !isDocument ? content(value) : value;
const isNested = what === "array" || what === "map" && !Object.hasOwn(value, "$literal") || isDocument;
const line = isDocument ? null : text(value);
if (!isNested || line !== null && line.length + indent.length < 70) return line;
const deeper = `${indent}  `;
const rows = what === "array" ? inner.map((one) => pretty(one, deeper))
: entries(inner).map(([name, one]) => `${JSON.stringify(name)}: ${pretty(one, deeper)}`);
const [open, close] = what === "array" ? "[]" : "{}";
return rows.length ? `${open}\n${deeper}${rows.join(`,\n${deeper}`)}\n${indent}${close}` : open + close;
}
export function parse(source) {
const typed = source.replace(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g, (token) => {
if (token[0] === '"') return token;
JSON.parse(token);
return JSON.stringify(number(token));
});
return untypedInside(JSON.parse(typed));
}
function number(token) {
if (/^-?\d+$/.test(token)) {
return BigInt.asIntN(64, BigInt(token)) === BigInt(token)
? { $numberLong: token } : { $numberDecimal: token };
}
return digits(token) === digits(String(Number(token)))
? { $numberDouble: token } : { $numberDecimal: token };
}
function digits(token) {
const [, whole, fraction = "", exponent = "0"] =
/^-?(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(token) ?? [];
if (whole === undefined) return token;
const significant = `${whole}${fraction}`.replace(/^0+/, "");
const place = significant.length - fraction.length + Number(exponent);
return significant ? `${significant.replace(/0+$/, "")}e${place}` : "0";
}
function untypedInside(value) {
if (Array.isArray(value)) return value.map(untypedInside);
if (value === null || typeof value !== "object") return value;
const plain = (one) => (one !== null && typeof one === "object" && !Array.isArray(one)
? Number(Object.values(one)[0]) : one);
return Object.fromEntries(Object.entries(value).map(([name, one]) => [name,
["$geoPoint", "$vector"].includes(name) && Array.isArray(one) ? one.map(plain) : untypedInside(one)]));
}
export function brief(value) {
if (value === undefined) return "";
const inner = content(value);
switch (kind(value)) {
case "string": return inner.length > 200 ? `${inner.slice(0, 200)}…` : inner;
case "timestamp": return typeof inner === "string" ? inner : text(value);
case "reference": return inner;
case "geoPoint": return inner.join(", ");
case "bytes": return `${bytesOf(inner.base64)} bytes`;
case "blob": return `${inner.contentType ?? "content"}, ${size(count(inner.length))}`;
case "vector": return `[${inner.slice(0, 4).join(", ")}${inner.length > 4 ? ", …" : ""}]`;
case "array": return inner.length > 20 ? `${inner.length} elements` : `[${inner.map(brief).join(", ")}]`;
case "map":
return `{${entries(inner).slice(0, 8).map(([name, one]) => `${name}: ${brief(one)}`).join(", ")}}`;
case "double": return /^-?\d/.test(inner) ? doubleText(inner) : String(inner);
default: return String(inner);
}
}
function bytesOf(base64) {
return Math.floor(base64.length * 3 / 4) - (base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0);
}
export function size(bytes) {
const units = ["B", "kB", "MB", "GB", "TB"];
let [amount, unit] = [bytes, 0];
while (amount >= 999.5 && unit < units.length - 1) [amount, unit] = [amount / 1000, unit + 1];
return `${unit && amount < 99.95 ? amount.toFixed(1) : Math.round(amount)} ${units[unit]}`;
}
export const grouped = (amount) => amount.toLocaleString("en");
export const counted = (amount, noun) => `${grouped(amount)} ${noun}${amount === 1 ? "" : "s"}`;
export function local(iso) {
const date = new Date(iso);
return Number.isNaN(date.getTime()) ? iso : date.toLocaleString();
}
export const shortTime = (iso) => iso.replace("T", " ").replace(/(\.\d{3})\d+/, "$1").replace(/Z$/, "");

"""##,
  ]
}
