// Where in the dashboard one is: `#/key/order/7?group=billing`. Every part is taken as it is, so `..` and `/` can be keys.

import { Store } from "./store.js";

/** `{parts, query}`. */
export const route = new Store(parse(location.hash));

addEventListener("hashchange", () => route.set(parse(location.hash)));

export function parse(hash) {
  const text = hash.replace(/^#\/?/, "");
  const mark = text.indexOf("?");
  const path = mark < 0 ? text : text.slice(0, mark);
  const query = Object.fromEntries(new URLSearchParams(mark < 0 ? "" : text.slice(mark + 1)));
  return { parts: path === "" ? [] : path.split("/").map(decoded), query };
}

/** A link; parts of the query that are empty are left out. */
export function to(parts, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(given).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

export function go(parts, query) {
  location.hash = to(parts, query);
}

/** The same page with another query, without a step in the history. */
export function refine(query) {
  history.replaceState(null, "", to(route.value.parts, query));
  route.set(parse(location.hash));
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
