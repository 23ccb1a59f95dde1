// Calls the server: the token, requests, and the messages of their failures. The token comes in the
// fragment, which no server and no log sees, and stays in this tab's session.

const KEY = "ondol.token";

/** What the server said against a request. */
export class Failure extends Error {
  constructor(status, body) {
    super(body.message ?? `The server answered ${status}.`);
    this.status = status;
    Object.assign(this, { code: body.code, path: body.path, field: body.field, hint: body.hint,
      offset: body.offset, current: body.current });
  }
}

/** Takes the token out of the address, before anything else can read it. */
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

/** Has `action` called when the server takes the token no more. */
export function onRefused(action) {
  refusals.addEventListener("refused", action);
}

export function query(parameters) {
  const text = Object.entries(parameters)
    .filter(([, value]) => value !== undefined && value !== null && value !== "")
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
  return text && `?${text}`;
}

/** Asks, and answers the response; throws what the server said against it. */
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

/** Sends bytes and tells how far it is, which `fetch` cannot. */
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
    request.onerror = () => reject(new Failure(0, { message: "The upload was interrupted." }));
    request.send(file);
  });
}

/** Gives bytes to the browser to keep as a file. */
export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
