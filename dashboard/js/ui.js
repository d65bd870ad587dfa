// Small parts that every page uses. Text from elsewhere is always a text node.

import { html, useEffect, useState } from "../vendor/preact-htm.js";
import { ApiError } from "./api.js";
import { ago, clock, utc } from "./format.js";
import { live, now } from "./live.js";
import { useStore } from "./store.js";

/** The time, every second. */
export function useNow() {
  const [at_ms, setAt] = useState(now());
  useEffect(() => {
    const timer = setInterval(() => setAt(now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return at_ms;
}

/** `3 min ago`, and the time in UTC beside it or in its title. */
export function Time({ at, both = false }) {
  const now_ms = useNow();
  if (!at) return html`<span class="muted">unknown</span>`;
  const ms = typeof at === "number" ? at : Date.parse(at);
  if (Number.isNaN(ms)) return html`<span>${at}</span>`;
  const text = ago(ms, now_ms);
  const absolute = utc(ms);
  return html`<time datetime=${new Date(ms).toISOString()} title=${absolute} class="time"
    >${text}${both && html` <span class="muted nowrap">${absolute}</span>`}</time
  >`;
}

const SIGNS = { bad: "✕", warn: "▲", ok: "●", idle: "○", info: "ℹ" };

/** A state in words, with a sign: never by colour alone. */
export function Badge({ kind = "idle", children }) {
  return html`<span class=${`badge ${kind}`}><span class="sign" aria-hidden="true">${SIGNS[kind]}</span>${children}</span>`;
}

export function Page({ title, lead, actions, children, crumbs }) {
  return html`<div class="page">
    ${crumbs && html`<nav class="crumbs" aria-label="Path">${crumbs}</nav>`}
    <header class="page-head">
      <h1 tabindex="-1">${title}</h1>
      ${actions && html`<div class="page-actions">${actions}</div>`}
    </header>
    ${lead && html`<p class="lead">${lead}</p>`} ${children}
  </div>`;
}

export function Panel({ title, note, actions, children, id }) {
  return html`<section class="panel" id=${id} aria-label=${typeof title === "string" ? title : undefined}>
    ${title &&
    html`<header class="panel-head">
      <h2>${title}</h2>
      ${note && html`<p class="muted">${note}</p>`} ${actions && html`<div class="panel-actions">${actions}</div>`}
    </header>`}
    ${children}
  </section>`;
}

/** Nothing is there, and that is all right; or what to do. */
export function Empty({ title, children }) {
  return html`<div class="empty"><p class="empty-title">${title}</p>${children}</div>`;
}

/** Names and values. */
export function Facts({ rows }) {
  const shown = rows.filter((row) => row && row[1] !== null && row[1] !== undefined);
  return html`<dl class="facts">
    ${shown.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}

/** What of a request can be told: an error, a wait, or how old the data is. */
export function Fetched({ of, children }) {
  const { status } = useStore(live);
  const { data, error, at_ms } = of;
  if (data === null && error) return html`<${Failure} error=${error} retry=${of.reload} />`;
  if (data === null) return html`<p class="waiting" role="status">Loading…</p>`;
  const is_old = error || status === "lost" || status === "denied";
  return html`<div class=${is_old ? "fetched old" : "fetched"}>
    ${is_old &&
    html`<p class="old-note">
      <${Badge} kind="warn">As of ${clock(at_ms)}<//> not renewed since${error && html`: ${error.message}`}
    </p>`}
    ${children}
  </div>`;
}

const ROLE_HINT = "Give another token with “Token” at the foot of the navigation.";

export function Failure({ error, retry }) {
  const is_forbidden = error.status === 403 || error.kind === "forbidden";
  const title = is_forbidden ? "Your token does not allow this" : error instanceof ApiError ? "That did not work" : "Something broke here";
  return html`<div class="failure" role="alert">
    <p class="failure-title"><${Badge} kind="bad">${title}<//></p>
    <p class="failure-text">${error.message}</p>
    ${is_forbidden && html`<p class="muted">${ROLE_HINT}</p>`}
    ${retry && html`<button type="button" onClick=${retry}>Try again</button>`}
  </div>`;
}

/** A link to a key, or what stands for none. */
export function Mono({ children, title }) {
  return html`<span class="mono" title=${title}>${children}</span>`;
}

export function CopyButton({ text, label = "Copy" }) {
  const [said, setSaid] = useState(null);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid("Copied");
    } catch {
      setSaid("Not allowed: select it by hand");
    }
    setTimeout(() => setSaid(null), 2_500);
  };
  return html`<button type="button" class="quiet" onClick=${copy}>${said ?? label}</button>`;
}
