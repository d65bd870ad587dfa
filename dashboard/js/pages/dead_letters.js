// Events that were set aside: the list, and one of them.

import { html, useState } from "../../vendor/preact-htm.js";
import { place, purge, redrive } from "../actions.js";
import { get, path, rowsOf } from "../api.js";
import { ask } from "../dialog.js";
import { useFetched } from "../fetched.js";
import { gist } from "../format.js";
import { Choice, SearchField, categoryOptions } from "../forms.js";
import { HandlerLink, KeyLink, categoryNames } from "../links.js";
import { live } from "../live.js";
import { refine, to } from "../router.js";
import { useStore } from "../store.js";
import { Steps, Table } from "../table.js";
import { ErrorText, EventParts } from "../payload.js";
import { Empty, Facts, Fetched, Page, Panel, Time } from "../ui.js";

const ROWS = 50;

export function DeadLetters({ query }) {
  const { category, key } = query;
  useStore(live);
  const [cursors, setCursors] = useState([null]);
  const cursor = cursors.at(-1);
  const found = useFetched((signal) => rowsOf("/v1/dead-letters", { category, key: category ? key : undefined }, { cursor, rows_max: ROWS, signal }), [category, key, cursor]);
  const change = (fields) => {
    setCursors([null]);
    refine({ category, key, ...fields });
  };
  return html`<${Page} title="Dead letters" lead="Events that were set aside: by somebody, or by the host in a category without keys. They are kept until they are redriven or purged.">
    <${Panel}>
      <form class="filters" role="search" aria-label="Filter dead letters" onSubmit=${(event) => event.preventDefault()}>
        <${Choice} label="Category" name="category" value=${category} options=${categoryOptions(categoryNames(), category)} onChange=${(next) => change({ category: next, key: next ? key : undefined })} />
        ${category && html`<${SearchField} label="Key is" name="key" value=${key} placeholder="client-7" onChange=${(next) => change({ key: next })} isPageSearch=${true} />`}
      </form>
      <${Fetched} of=${found}><${List} page=${found.data} />
        <${Steps} page=${cursors.length - 1} hasNext=${found.data !== null && found.data.next !== null} onBack=${() => setCursors(cursors.slice(0, -1))} onNext=${() => setCursors([...cursors, found.data.next])} />
      <//>
    <//>
  <//>`;
}

function link({ category, key, id }) {
  return to(["dead-letter", category, id], { key });
}

function List({ page }) {
  if (!page) return null;
  if (page.rows.length === 0) return html`<${Empty} title="No event is set aside there" />`;
  return html`<${Table} caption="Dead letters" rows=${page.rows} rowName=${({ category, key, id }) => `${category} ${key} ${id}`} columns=${COLUMNS} />`;
}

const COLUMNS = [
  { name: "id", label: "Id", cell: (letter) => html`<a class="mono" href=${link(letter)}>${letter.id}</a>` },
  { name: "key", label: "Key", cell: ({ category, key, group }) => (key === null ? html`<span class="mono">${category}</span>` : html`<${KeyLink} category=${category} keyText=${key} group=${group} />`) },
  { name: "handler", label: "Handler", cell: ({ group }) => html`<${HandlerLink} group=${group} />` },
  { name: "event", label: "Event", cell: ({ event }) => html`<span class="mono">${event.type || "unreadable"}</span>` },
  { name: "at", label: "Set aside", cell: ({ at }) => html`<span class="nowrap"><${Time} at=${at} /></span>` },
  { name: "who", label: "Who", cell: ({ who }) => html`<span class="nowrap">${who}</span>` },
  { name: "reason", label: "Reason", cell: ({ reason }) => reason },
  { name: "error", label: "Error", wide: true, cell: ({ error }) => html`<span class="mono small-text">${gist(error, 90)}</span>` },
];

export function DeadLetter({ parts: [category = "", id = ""], query }) {
  const key = query.key ?? null;
  const found = useFetched((signal) => get(path`/v1/dead-letters/${category}/${id}`, { key }, signal), [category, id, key]);
  const letter = found.data;
  const is_away = found.error?.kind === "unknown";
  const crumbs = html`<a href="#/dead-letters">Dead letters</a> / <a href=${to(["dead-letters"], { category, key })}>${place(category, key)}</a>`;
  const actions = letter && !is_away && html`
    <button type="button" class="careful" onClick=${() => ask(redrive(letter))}>Redrive…</button>
    <button type="button" class="danger" onClick=${() => ask(purge(letter))}>Purge…</button>`;
  return html`<${Page} title=${html`Dead letter <span class="mono">${id}</span>`} crumbs=${crumbs} actions=${actions}>
    ${is_away
      ? html`<${Panel}><${Empty} title="It is not among the dead letters (any more)">It was redriven or purged; the <a href="#/audit">audit</a> says by whom.<//><//>`
      : html`<${Fetched} of=${found}>${letter && html`<${Shown} letter=${letter} />`}<//>`}
  <//>`;
}

function Shown({ letter }) {
  const { category, key, group, event } = letter;
  return html`
    <${Panel}><${Facts} rows=${[
      ["Key", key === null ? html`<span class="mono">${category}</span> (no keys)` : html`<${KeyLink} category=${category} keyText=${key} group=${group} />`],
      ["Handler", html`<${HandlerLink} group=${group} />`],
      ["Stood at", html`<span class="mono">${letter.origin}</span>`],
      ["Lane", letter.lane],
      ["Event", event.type ? html`<span class="mono">${event.type}</span> version ${event.version}, id <span class="mono">${event.id}</span>` : "could not be read"],
      ["Tries", `${letter.attempts} failed`],
      ["Set aside", html`<${Time} at=${letter.at} both=${true} />`],
      ["Who", letter.who],
      ["Reason", letter.reason],
    ]} /><//>
    ${letter.error && html`<${Panel} title="Error"><div class="inset"><${ErrorText} error=${letter.error} /></div><//>`}
    <${Panel} title="Event"><div class="inset"><${EventParts} event=${event} /></div><//>`;
}
