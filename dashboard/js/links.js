// Links to keys and handlers, and what is known of categories from the overview.

import { html } from "../vendor/preact-htm.js";
import { place } from "./actions.js";
import { live } from "./live.js";
import { to } from "./router.js";

/** A process manager's partition has no category of its own: any that it reads names it. */
export function categoryOf(group) {
  const categories = live.value.overview?.categories ?? [];
  return categories.find(({ groups }) => groups.some((one) => one.group === group))?.category ?? null;
}

export function categoryNames() {
  return (live.value.overview?.categories ?? []).map(({ category }) => category);
}

export function groupNames() {
  const groups = (live.value.overview?.categories ?? []).flatMap((one) => one.groups.map(({ group }) => group));
  return [...new Set(groups)].sort();
}

export function KeyLink({ category, correlates, keyText, group }) {
  const known = category ?? categoryOf(group);
  const text = correlates || !category ? keyText : place(category, keyText);
  if (!known) return html`<span class="mono key">${text}</span>`;
  return html`<a class="mono key" href=${to(["key", known, keyText], group && { group })}>${text}</a>`;
}

export function HandlerLink({ group }) {
  return html`<a href=${to(["handler", group])}>${group}</a>`;
}
