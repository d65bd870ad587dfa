// Handlers: which version serves, what is being tried, how many hosts have it.

import { html } from "../../vendor/preact-htm.js";
import { get } from "../api.js";
import { useFetched } from "../fetched.js";
import { count } from "../format.js";
import { HandlerLink } from "../links.js";
import { label } from "../rollouts.js";
import { Table } from "../table.js";
import { Badge, Empty, Fetched, Page, Panel } from "../ui.js";

export function Handlers() {
  const found = useFetched(async (signal) => (await get("/v1/handlers", {}, signal)).handlers, []);
  return html`<${Page} title="Handlers"><${Panel}><${Fetched} of=${found}><${List} handlers=${found.data} /><//><//><//>`;
}

function List({ handlers }) {
  if (!handlers) return null;
  if (handlers.length === 0) return html`<${Empty} title="No handler is registered yet"><pre tabindex="0">keyrail --host ${location.origin} deploy billing.wasm</pre><//>`;
  return html`<${Table} caption="Handlers" rows=${handlers} rowName=${({ handler }) => handler} columns=${COLUMNS} />`;
}

export function serves(view) {
  if (view.serving) return html`<${Badge} kind="ok"><span class="mono">${label(view.serving)}</span><//>`;
  if (view.hosts.some(({ revision }) => revision === null)) return html`<${Badge} kind="ok"><span class="mono">${view.version ?? "?"}</span><//> <span class="muted">hosts' own files</span>`;
  return html`<${Badge} kind="warn">nothing serves<//>`;
}

export function candidateState({ keys, serves }) {
  if (!serves) return html`<${Badge} kind="info">being loaded<//>`;
  return html`<${Badge} kind="info">canary<//> <span class="muted">on ${keys ?? "all keys"}</span>`;
}

export function sequentialBy(by) {
  if (by === null || by === undefined) return "–";
  if (by === "Unordered") return "nothing: no order";
  if (by.Field !== undefined) return html`<span class="mono">${by.Field}</span>`;
  const fields = (by.Correlation ?? []).map(({ category, message, field }) => `${category}/${message}.${field}`);
  return html`<span class="mono">${fields.join(", ")}</span>`;
}

const COLUMNS = [
  { name: "handler", label: "Handler", cell: ({ handler }) => html`<${HandlerLink} group=${handler} />` },
  { name: "role", label: "Role", cell: ({ role }) => role?.replace("-", " ") ?? "–" },
  { name: "categories", label: "Reads", cell: ({ categories }) => html`<span class="mono">${categories.join(", ") || "–"}</span>` },
  { name: "serving", label: "Serves", cell: serves },
  { name: "candidate", label: "Candidate", cell: ({ candidate }) => (candidate ? html`<span class="mono">${label(candidate)}</span> ${candidateState(candidate)}` : "–") },
  { name: "hosts", label: "Hosts serving", number: true, cell: ({ hosts }) => `${count(hosts.filter(({ state }) => state === "serving").length)} of ${count(new Set(hosts.map(({ host }) => host)).size)}` },
  { name: "failed", label: "Failed calls", number: true, cell: ({ hosts }) => count(hosts.reduce((sum, { usage }) => sum + usage.failed, 0)) },
];
