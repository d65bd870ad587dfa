// Keys: found by their text and state, a page at a time. The host searches; a page may come back short or empty and still have a
// next one, so this goes on until a page is full, within a limit, and tells how far it is.

import { html, useEffect, useState } from "../../vendor/preact-htm.js";
import { rowsOf } from "../api.js";
import { useFetched } from "../fetched.js";
import { count, some } from "../format.js";
import { Choice, SearchField, categoryOptions } from "../forms.js";
import { HandlerLink, KeyLink, categoryNames, groupNames } from "../links.js";
import { live } from "../live.js";
import { refine } from "../router.js";
import { useStore } from "../store.js";
import { Steps, Table } from "../table.js";
import { Badge, Empty, Fetched, Page, Panel } from "../ui.js";

/** A page is full with this many; the last answer may bring some more. */
const ROWS = 50;
const LIMIT = 100;
const STATUSES = [["", "any state"], ["waiting", "waiting"], ["owned", "owned"], ["halted", "halted"], ["paused", "paused"]];

export function Keys({ query }) {
  const { category, group, status, key, prefix } = query;
  const wanted = { category, group, status, key, prefix };
  const name = JSON.stringify(wanted);
  // The cursors of the pages so far: the last is the one that is shown.
  const [trail, setTrail] = useState({ name, cursors: [null] });
  const cursors = trail.name === name ? trail.cursors : [null];
  const cursor = cursors.at(-1);
  useEffect(() => setTrail({ name, cursors: [null] }), [name]);
  const [looked, setLooked] = useState(0);
  const found = useFetched((signal) => search(wanted, cursor, signal, setLooked), [wanted, cursor]);
  useStore(live);
  const change = (fields) => refine({ ...wanted, ...fields });
  // Before there is any text, the address cannot say how it will be meant.
  const [wantsExact, setWantsExact] = useState(key !== undefined);
  const isExact = prefix === undefined && (key !== undefined || wantsExact);
  const setExact = (exact) => {
    setWantsExact(exact);
    setText(text, exact);
  };
  const text = (key ?? prefix ?? "").trim();
  const setText = (next, exact = isExact) => change(exact ? { key: next || undefined, prefix: undefined } : { prefix: next || undefined, key: undefined });
  return html`<${Page} title="Keys">
    <${Panel}>
      <form class="filters" role="search" aria-label="Filter keys" onSubmit=${(event) => event.preventDefault()}>
        <${SearchField} label=${isExact ? "Key is" : "Key begins with"} name="key" value=${text} placeholder="client-7" onChange=${setText} isPageSearch=${true} />
        <label class="check"><input type="checkbox" name="exact" checked=${isExact} onChange=${(event) => setExact(event.target.checked)} /> exactly</label>
        <${Choice} label="Category" name="category" value=${category} options=${categoryOptions(categoryNames(), category)} onChange=${(next) => change({ category: next })} />
        <${Choice} label="Handler" name="group" value=${group} options=${[["", "all handlers"], ...groupNames().map((one) => [one, one])]} onChange=${(next) => change({ group: next })} />
        <${Choice} label="State" name="status" value=${status} options=${STATUSES} onChange=${(next) => change({ status: next })} />
      </form>
      ${found.data === null && looked > 1 && html`<p class="waiting" role="status">Searching: ${some(looked, "part")} looked through…</p>`}
      <${Fetched} of=${found}><${Found} page=${found.data} number=${cursors.length - 1}
        back=${() => setTrail({ name, cursors: cursors.slice(0, -1) })} next=${(to) => setTrail({ name, cursors: [...cursors, to] })} /><//>
    <//>
  <//>`;
}

/** A full page, or what was found within the limit of requests. */
async function search(wanted, cursor, signal, tell) {
  const { rows, next } = await rowsOf("/v1/partitions", { ...wanted, limit: LIMIT }, { cursor, rows_max: ROWS, signal, tell });
  return { rows, next, is_whole: next === null || rows.length > 0 };
}

function Found({ page, number, back, next }) {
  const steps = html`<${Steps} page=${number} hasNext=${page.next !== null} onBack=${back} onNext=${() => next(page.next)} />`;
  if (page.rows.length === 0) {
    const more = page.next === null ? "Keys that stay empty are forgotten; their state stays." : "Nothing so far; the search is not at its end: go on with Next.";
    return html`<${Empty} title="No such key"><p>${more}</p><//>${steps}`;
  }
  return html`<${Table} caption="Keys" rows=${page.rows} rowName=${(row) => `${row.group} ${row.category} ${row.key}`} columns=${COLUMNS} />
    <p class="muted inset">${some(page.rows.length, "row")}${page.next === null && number === 0 ? ", all there are" : ""}</p>${steps}`;
}

export function rowState(row) {
  if (row.halted) return html`<${Badge} kind="bad">halted: ${row.halted.cause}<//>`;
  if (row.paused) return html`<${Badge} kind="warn">paused<//>`;
  if (row.attempts > 0) return html`<${Badge} kind="warn">retrying<//>`;
  if (row.owned) return html`<${Badge} kind="ok">owned<//>`;
  if (row.waiting > 0) return html`<${Badge} kind="info">waiting<//>`;
  return html`<${Badge} kind="idle">idle<//>`;
}

const COLUMNS = [
  { name: "key", label: "Key", wide: true, cell: (row) => html`<${KeyLink} category=${row.category} keyText=${row.key} group=${row.group} />` },
  { name: "handler", label: "Handler", cell: (row) => html`<${HandlerLink} group=${row.group} />` },
  { name: "state", label: "State", cell: rowState },
  { name: "waiting", label: "Waiting", number: true, cell: (row) => count(row.waiting) },
  { name: "settled", label: "Settled", number: true, cell: (row) => html`<span class="mono">${row.settled ?? "–"}</span>` },
  { name: "last", label: "Last", number: true, cell: (row) => html`<span class="mono">${row.last ?? "–"}</span>` },
  { name: "attempts", label: "Failed tries", number: true, cell: (row) => count(row.attempts) },
  { name: "owner", label: "Owner", cell: (row) => html`<span class=${row.owned ? "mono" : "mono muted"} title=${row.owned ? "owns it now" : "owned it last"}>${row.owner ?? "nobody"}</span>` },
  { name: "generation", label: "Generation", number: true, cell: (row) => count(row.generation) },
];
