// What is paused, by whom, why.

import { html } from "../../vendor/preact-htm.js";
import { resume } from "../actions.js";
import { get } from "../api.js";
import { ask } from "../dialog.js";
import { useFetched } from "../fetched.js";
import { KeyLink } from "../links.js";
import { Table } from "../table.js";
import { Empty, Fetched, Page, Panel, Time } from "../ui.js";

export function PausedPage() {
  const found = useFetched(async (signal) => (await get("/v1/paused", {}, signal)).paused, []);
  return html`<${Page} title="Paused" lead="Nothing of these runs until somebody resumes it. A pause of a key and one of its category are two. Pause a category under Categories, a key on its page.">
    <${Panel}><${Fetched} of=${found}><${List} paused=${found.data} /><//><//>
  <//>`;
}

function List({ paused }) {
  if (!paused) return null;
  if (paused.length === 0) return html`<${Empty} title="Nothing is paused" />`;
  const columns = [
    { name: "what", label: "What", cell: ({ category, key }) => (key === null ? html`<span class="mono">${category}</span> <span class="muted">all keys</span>` : html`<${KeyLink} category=${category} keyText=${key} />`) },
    { name: "since", label: "Since", cell: ({ at }) => html`<${Time} at=${at} both=${true} />` },
    { name: "who", label: "Who", cell: ({ who }) => who },
    { name: "reason", label: "Reason", wide: true, cell: ({ reason }) => reason },
    { name: "act", label: "End it", cell: ({ category, key }) => html`<button type="button" class="small" aria-label=${`Resume ${key === null ? category : `${category}/${key}`}`} onClick=${() => ask(resume(category, key))}>Resume…</button>` },
  ];
  return html`<${Table} caption="Paused" rows=${paused} rowName=${({ category, key }) => `${category} ${key}`} columns=${columns} />`;
}
