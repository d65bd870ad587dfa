// One key: every handler's position in it, its head, what waits, and pausing.

import { html } from "../../vendor/preact-htm.js";
import { pause, place, resume } from "../actions.js";
import { get, path, rowsOf } from "../api.js";
import { ask } from "../dialog.js";
import { useFetched } from "../fetched.js";
import { count } from "../format.js";
import { HeadPanel } from "../head.js";
import { HandlerLink } from "../links.js";
import { to } from "../router.js";
import { Table } from "../table.js";
import { Badge, Empty, Failure, Fetched, Page, Panel } from "../ui.js";
import { rowState } from "./keys.js";
import { Record } from "./record.js";


export function KeyPage({ parts: [category = "", key = ""], query }) {
  const rows = useFetched((signal) => positions({ category, key }, signal), [category, key]);
  const heads = useFetched(async (signal) => (await get(path`/v1/heads/${category}`, { key }, signal)).heads, [category, key]);
  const paused = useFetched(async (signal) => (await get("/v1/paused", {}, signal)).paused, []);
  const crumbs = html`<a href="#/keys">Keys</a> / <a href=${to(["keys"], { category })}>${category}</a>`;
  const title = html`<span class="mono key">${place(category, key)}</span>`;
  const own = paused.data?.find((one) => one.category === category && one.key === key) ?? null;
  const actions = html`${paused.data && html`<button type="button" onClick=${() => ask(own ? resume(category, key) : pause(category, key))}>${own ? "Resume" : "Pause"} this key…</button>`}<a class="button" href=${to(["tail"], { category, key })}>Tail</a><a class="button" href=${to(["dead-letters"], { category, key })}>Dead letters</a>`;
  return html`<${Page} title=${title} crumbs=${crumbs} actions=${actions}>
    <${Pauses} paused=${paused} category=${category} own=${own} />
    <${Panel} title="Handlers" note="Where each handler is in this key"><${Fetched} of=${rows}><${Positions} rows=${rows.data} /><//><//>
    <${Heads} of=${heads} first=${query.group} />
    <${Record} category=${category} keyText=${key} groups=${groupsOf(rows.data, heads.data)} />
  <//>`;
}

function groupsOf(rows, heads) {
  return [...new Set([...(rows ?? []), ...(heads ?? [])].map(({ group }) => group))].sort();
}

/** The key's partitions, those of process managers that read the category too. */
async function positions(query, signal) {
  return (await rowsOf("/v1/partitions", query, { signal })).rows;
}

function Pauses({ paused, category, own }) {
  if (paused.data === null) return paused.error ? html`<${Failure} error=${paused.error} />` : null;
  const whole = paused.data.find((one) => one.category === category && one.key === null);
  if (!own && !whole) return null;
  return html`<div class="pauses">
    ${own && html`<p><${Badge} kind="warn">This key is paused<//> by ${own.who}: ${own.reason}</p>`}
    ${whole && html`<p><${Badge} kind="warn">All of ${category} is paused<//> by ${whole.who}: ${whole.reason} <a href="#/paused">Paused</a></p>`}
  </div>`;
}

function Positions({ rows }) {
  if (rows.length === 0) return html`<${Empty} title="No handler has a position here">The key has no events, or stayed empty and was forgotten. Its state stays, and its next event makes it anew.<//>`;
  const columns = [
    { name: "handler", label: "Handler", cell: (row) => html`<${HandlerLink} group=${row.group} />${row.category === null && html` <span class="muted">process manager</span>`}` },
    { name: "state", label: "State", cell: rowState },
    { name: "waiting", label: "Waiting", number: true, cell: (row) => count(row.waiting) },
    { name: "settled", label: "Settled", number: true, cell: (row) => html`<span class="mono">${row.settled ?? "–"}</span>` },
    { name: "last", label: "Last", number: true, cell: (row) => html`<span class="mono">${row.last ?? "–"}</span>` },
    { name: "attempts", label: "Failed tries", number: true, cell: (row) => count(row.attempts) },
    { name: "owner", label: "Owner", cell: (row) => html`<span class="mono">${row.owner ?? "nobody"}</span>${row.owner && !row.owned ? html` <span class="muted">(last)</span>` : null}` },
    { name: "generation", label: "Generation", number: true, cell: (row) => count(row.generation) },
  ];
  return html`<${Table} caption="Handlers of the key" rows=${rows} rowName=${(row) => row.group} columns=${columns} />
    ${rows.map((row) => row.versions?.length > 0 && html`<${Versions} key=${row.group} of=${row} />`)}`;
}

function Versions({ of: { group, versions } }) {
  return html`<div class="versions"><span class="muted">Handled by, of ${group}:</span>
    ${versions.map(({ version, since }) => html`<span key=${`${version} ${since}`} class="chip"><span class="mono">${version}</span> <span class="muted">from <span class="mono">${since}</span> on</span></span>`)}
  </div>`;
}

function Heads({ of, first }) {
  const heads = [...(of.data ?? [])].sort((a, b) => Number(b.group === first) - Number(a.group === first));
  return html`<${Fetched} of=${of}>
    ${heads.length === 0 && html`<${Panel} title="Head"><${Empty} title="Everything here is settled" /><//>`}
    ${heads.map((head) => html`<${Panel} key=${head.group} title=${`Head of ${head.group}`}><${HeadPanel} head=${head} /><//>`)}
  <//>`;
}
