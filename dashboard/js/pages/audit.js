// Who did what, newest first.

import { html, useState } from "../../vendor/preact-htm.js";
import { get } from "../api.js";
import { useFetched } from "../fetched.js";
import { Steps, Table } from "../table.js";
import { Empty, Fetched, Page, Panel, Time } from "../ui.js";

const ROWS = 50;

export function Audit() {
  const [cursors, setCursors] = useState([null]);
  const cursor = cursors.at(-1);
  const found = useFetched((signal) => get("/v1/audit", { cursor, limit: ROWS }, signal), [cursor]);
  const next = found.data?.next ?? null;
  return html`<${Page} title="Audit" lead="Every action on record, whichever host or command took it. At least the last 10,000 are kept.">
    <${Panel}><${Fetched} of=${found}>
      ${found.data?.rows.length === 0
        ? html`<${Empty} title="Nobody did anything yet" />`
        : html`<${Table} caption="Actions" rows=${found.data?.rows ?? []} rowName=${(row, n) => `${row.at} ${row.action} ${row.target} ${n}`} columns=${COLUMNS} />`}
      <${Steps} page=${cursors.length - 1} hasNext=${next !== null} onBack=${() => setCursors(cursors.slice(0, -1))} onNext=${() => setCursors([...cursors, next])} />
    <//><//>
  <//>`;
}

const COLUMNS = [
  { name: "at", label: "When", cell: ({ at }) => html`<${Time} at=${at} both=${true} />` },
  { name: "action", label: "Action", cell: ({ action }) => html`<strong>${action}</strong>` },
  { name: "target", label: "On", wide: true, cell: ({ target }) => html`<span class="mono">${target}</span>` },
  { name: "entry", label: "Entry", wide: true, cell: ({ entry }) => (entry ? html`<span class="mono">${entry}</span>` : "–") },
  { name: "who", label: "Who", cell: ({ who }) => html`<span class="nowrap">${who}</span>` },
  { name: "reason", label: "Reason", wide: true, cell: ({ reason }) => reason },
];
