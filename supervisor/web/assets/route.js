// The address bar: which page is shown, and its filters.
import { signal, h } from "./vendor-ui.js";

const base = "/ui/";

/** @typedef {{page: string, query: Record<string, string>, hash: string}} Route */

/** @returns {Route} */
function read() {
  const page = location.pathname.slice(base.length).replace(/\/+$/, "") || "board";
  const hash = location.hash.startsWith("#code=") ? "" : location.hash.slice(1); // a code is for the sign-in only
  return { page, query: Object.fromEntries(new URLSearchParams(location.search)), hash };
}

export const route = signal(read());

/** Returns the address of a page. @param {string} page @param {Record<string, string|undefined>} [query] @param {string} [hash] */
export function address(page, query = {}, hash = "") {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) words.set(name, value);
  const text = words.toString();
  return base + page + (text && "?" + text) + (hash && "#" + encodeURIComponent(hash));
}

/** Shows another page. @param {string} to an address */
export function go(to) {
  if (to !== location.pathname + location.search + location.hash) history.pushState(null, "", to);
  route.value = read();
  window.scrollTo(0, 0);
}

/** Changes the filters of the page in place. @param {Record<string, string|undefined>} query */
export function refine(query) {
  const { page, query: old, hash } = route.value;
  history.replaceState(null, "", address(page, { ...old, ...query }, hash));
  route.value = read();
}

addEventListener("popstate", () => (route.value = read()));
addEventListener("hashchange", () => (route.value = read())); // main.js takes a code that comes with it

/** A link within the view. @param {any} props */
export function Link({ to, onClick, ...rest }) {
  const follow = (/** @type {MouseEvent} */ e) => {
    onClick?.(e);
    if (e.defaultPrevented || e.button || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    e.preventDefault();
    go(to);
  };
  return h("a", { href: to, onClick: follow, ...rest });
}

/** @param {string} id */
export const taskAddress = (id) => address("task", { id });
/** @param {string} name */
export const agentAddress = (name) => address("agent", { name });
