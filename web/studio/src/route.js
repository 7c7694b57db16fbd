// Where we are, in the address: a page, what it shows, and the moment. A link to it can be kept and sent.
import { signal } from "@preact/signals";

const PAGES = ["queue", "sequence", "source", "model", "export"];

function read() {
  const [page, ...rest] = location.pathname.slice(1).split("/");
  let name = null;
  try { name = rest.length ? decodeURIComponent(rest.join("/")) : null; } catch { /* a broken link shows the page without a name */ }
  return { page: PAGES.includes(page) ? page : "queue", name, query: new URLSearchParams(location.search) };
}

if (!PAGES.includes(location.pathname.split("/")[1])) note("/queue");
export const route = signal(read());
addEventListener("popstate", () => { route.value = read(); });

export const pathOf = (page, name, query = {}) => {
  const words = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "")).toString();
  return `/${page}${name === null || name === undefined ? "" : `/${encodeURIComponent(name)}`}${words ? `?${words}` : ""}`;
};

export function go(path) {
  history.pushState(null, "", path);
  route.value = read();
  scrollTo(0, 0);
}

// The same place with another moment: no step in the history, so that "back" leaves the sequence.
export function note(path) { history.replaceState(null, "", path); }

// Links of the page itself do not load it anew.
export function follow(event) {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || link.target || link.download) return;
  if (link.origin !== location.origin || !PAGES.includes(link.pathname.split("/")[1])) return;
  event.preventDefault();
  go(link.pathname + link.search);
}
