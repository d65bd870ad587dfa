// Keys that stand still: which, why, and the decision, without leaving the list.

import { html, useEffect, useState } from "../../vendor/preact-htm.js";
import { place, retryAll } from "../actions.js";
import { get, path, rowsOf } from "../api.js";
import { ask } from "../dialog.js";
import { useFetched } from "../fetched.js";
import { count, gist, some } from "../format.js";
import { Choice, categoryOptions } from "../forms.js";
import { HeadPanel } from "../head.js";
import { HandlerLink, categoryNames, groupNames } from "../links.js";
import { live } from "../live.js";
import { refine, to } from "../router.js";
import { useStore } from "../store.js";
import { Steps } from "../table.js";
import { Badge, Empty, Fetched, Page, Panel } from "../ui.js";

const ROWS = 50;
const KINDS_SHOWN_MAX = 6;

export function Halted({ query }) {
  const { category, group } = query;
  const [cursors, setCursors] = useState([null]);
  const cursor = cursors.at(-1);
  const { overview, halted } = useStore(live);
  const found = useFetched((signal) => rowsOf("/v1/halted", { category, group }, { cursor, rows_max: ROWS, signal }), [category, group, cursor]);
  // The host tells when what is halted has changed.
  useEffect(() => found.reload(), [halted]);
  const change = (fields) => {
    setCursors([null]);
    refine({ category, group, ...fields });
  };
  return html`<${Page} title="Halted" lead="Each of these keys stands on an event that could not be handled. Nothing is lost and nothing is skipped until you decide; all other keys go on.">
    <div class="filters bare">
      <${Choice} label="Category" name="category" value=${category} options=${categoryOptions(categoryNames(), category)} onChange=${(next) => change({ category: next })} />
      <${Choice} label="Handler" name="group" value=${group} options=${[["", "all handlers"], ...groupNames().map((one) => [one, one])]} onChange=${(next) => change({ group: next })} />
    </div>
    <${Fetched} of=${found}><${List} page=${found.data} total=${overview?.halted} filtered=${category || group} />
      <${Steps} page=${cursors.length - 1} hasNext=${found.data !== null && found.data.next !== null} onBack=${() => setCursors(cursors.slice(0, -1))} onNext=${() => setCursors([...cursors, found.data.next])} />
    <//>
  <//>`;
}

function List({ page, total, filtered }) {
  if (!page) return null;
  if (page.rows.length === 0) return html`<${Panel}><${Empty} title=${filtered ? "Nothing is halted there" : "Nothing is halted"} /><//>`;
  return html`
    <${Kinds} rows=${page.rows} is_all=${page.next === null} total=${total} />
    <ul class="cards">${page.rows.map((row) => html`<${Row} key=${`${row.group} ${row.category} ${row.key}`} row=${row} open=${page.rows.length === 1} />`)}</ul>`;
}

/** Which errors, how often: a hundred halted keys are often one fault. */
function Kinds({ rows, is_all, total }) {
  const kinds = new Map();
  for (const row of rows) {
    const text = gist(row.error, 100);
    const name = `${row.group} ${row.cause} ${text}`;
    const kind = kinds.get(name) ?? { group: row.group, cause: row.cause, text, rows: [] };
    kind.rows.push(row);
    kinds.set(name, kind);
  }
  if (rows.length < 2) return null;
  const sorted = [...kinds.values()].sort((a, b) => b.rows.length - a.rows.length);
  return html`<${Panel} title=${`${some(sorted.length, "kind")} of failure`} note=${is_all ? null : `of the ${count(rows.length)} on this page; ${count(total)} are halted in all`}>
    <ul class="kinds">${sorted.slice(0, KINDS_SHOWN_MAX).map((kind) => html`<li key=${`${kind.group} ${kind.cause} ${kind.text}`}>
      <strong class="kinds-number">${count(kind.rows.length)}</strong> <span>${kind.group}: ${kind.cause}</span> <span class="mono kinds-text">${kind.text}</span>
      ${kind.rows.length > 1 && html`<button type="button" class="small" onClick=${() => ask(retryAll(kind.rows))}>Retry all ${count(kind.rows.length)}…</button>`}
    </li>`)}</ul>
  <//>`;
}

function Row({ row, open: is_first_open }) {
  const [isOpen, setOpen] = useState(is_first_open);
  const name = `head-${row.group}-${row.category}-${row.key}`.replace(/[^A-Za-z0-9_-]/g, (c) => `_${c.codePointAt(0)}`);
  return html`<li class="card">
    <div class="card-head">
      <h2 class="card-title">
        <a class="mono key" href=${to(["key", row.category, row.key], { group: row.group })}>${place(row.category, row.key)}</a>
        <${Badge} kind="bad">${row.cause}<//>
        <span class="muted">at <span class="mono">${row.head}</span> after ${some(row.attempts, "failed try", "failed tries")}</span>
      </h2>
      <button type="button" aria-expanded=${String(isOpen)} aria-controls=${name} onClick=${() => setOpen(!isOpen)}>${isOpen ? "Close" : "Look and decide"}</button>
      <p class="card-text"><${HandlerLink} group=${row.group} /> <span class="mono">${row.handler_version}</span>: <span class="mono">${gist(row.error, 220)}</span></p>
    </div>
    <div id=${name}>${isOpen && html`<${OpenHead} row=${row} />`}</div>
  </li>`;
}

function OpenHead({ row: { category, key, group } }) {
  const head = useFetched(async (signal) => (await get(path`/v1/heads/${category}`, { key, group }, signal)).heads[0] ?? null, [category, key, group]);
  return html`<div class="card-body">
    ${head.at_ms !== null && head.data === null
      ? html`<p class="muted">Everything of it is settled now.</p>`
      : html`<${Fetched} of=${head}>${head.data && html`<${HeadPanel} head=${head.data} />`}<//>`}
  </div>`;
}
