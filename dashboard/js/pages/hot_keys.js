// Keys that come near to what one lane can do.

import { html } from "../../vendor/preact-htm.js";
import { Bar } from "../chart.js";
import { share } from "../format.js";
import { HandlerLink, KeyLink } from "../links.js";
import { HOT_SHARE } from "../problems.js";
import { Table } from "../table.js";
import { Badge, Empty, Panel } from "../ui.js";

const NOTE = "Share of the time in which the key's one lane was busy; above 80 % it falls behind soon";

/** `always`: also when there is none. */
export function HotKeys({ hot, always = false }) {
  if (hot.length === 0 && !always) return null;
  const rows = [...hot].sort((a, b) => b.share - a.share);
  const columns = [
    { name: "key", label: "Key", cell: ({ category, key, group }) => html`<${KeyLink} category=${category} keyText=${key} group=${group} />` },
    { name: "handler", label: "Handler", cell: ({ group }) => html`<${HandlerLink} group=${group} />` },
    { name: "share", label: "Share", number: true, cell: ({ share: part }) => html`<span class="load"><${Bar} part=${part} kind=${part > HOT_SHARE ? "full" : ""} /><span>${share(part)}</span></span>` },
    { name: "state", label: "State", cell: ({ share: part }) => (part > HOT_SHARE ? html`<${Badge} kind="warn">at its limit<//>` : html`<${Badge} kind="idle">busy<//>`) },
  ];
  return html`<${Panel} title="Hot keys" note=${NOTE}>
    ${rows.length === 0
      ? html`<${Empty} title="No key is hot" />`
      : html`<${Table} caption="Hot keys" rows=${rows} columns=${columns} rowName=${({ group, category, key }) => `${group} ${category} ${key}`} />`}
  <//>`;
}
