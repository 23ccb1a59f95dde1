// The page's address: every view has one after the `#`, so that it can be kept, sent and returned
// to. Each step of a path is percent-encoded, so that ids may contain anything.

/** The page's name, the steps behind it, and what stands behind the question mark. */
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

/** The address of a page. A path is a text with slashes or a list of steps. */
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
