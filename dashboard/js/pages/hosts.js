// The fleet: who is there, how loaded, on which versions; and who was there a moment ago.

import { html } from "../../vendor/preact-htm.js";
import { Bar } from "../chart.js";
import { count, share } from "../format.js";
import { HandlerLink } from "../links.js";
import { live } from "../live.js";
import { label } from "../rollouts.js";
import { useStore } from "../store.js";
import { Table } from "../table.js";
import { Badge, Empty, Page, Panel, Time } from "../ui.js";
import { HotKeys } from "./hot_keys.js";

export function Hosts() {
  const { overview, gone } = useStore(live);
  if (!overview) return html`<${Page} title="Hosts"><p class="waiting">Waiting for the host…</p><//>`;
  return html`<${Page} title="Hosts" lead="Hosts own keys only while these have work, so an idle fleet owns nothing.">
    <${Panel} title="Load"><${HostTable} overview=${overview} gone=${gone} /><//>
    <${Panel} title="Versions" note="What each host has loaded, and how far it is"><${Versions} hosts=${overview.hosts} /><//>
    <${HotKeys} hot=${overview.hot_keys} always=${true} />
  <//>`;
}

export function HostTable({ overview, gone }) {
  const owned = overview.hosts.reduce((sum, host) => sum + host.owned, 0);
  const rows = [...overview.hosts, ...gone.map((host) => ({ ...host, is_gone: true }))];
  if (rows.length === 0) return html`<${Empty} title="No host is up">Events wait. Start one: keyrail run.<//>`;
  const columns = [
    { name: "host", label: "Host", cell: (host) => html`<span class="mono">${host.owner}</span>` },
    { name: "state", label: "State", cell: state },
    {
      name: "owned",
      label: "Keys owned",
      number: true,
      cell: (host) => (host.is_gone ? "–" : html`<span class="load"><${Bar} part=${host.owned / host.capacity} kind=${host.owned >= host.capacity ? "full" : ""} /><span>${count(host.owned)} <span class="muted">of ${count(host.capacity)}</span></span></span>`),
    },
    { name: "part", label: "Share of all", number: true, cell: (host) => (host.is_gone || owned === 0 ? "–" : share(host.owned / owned)) },
    { name: "running", label: "Running now", number: true, cell: (host) => count(host.running) },
    { name: "settled", label: "Settled since start", number: true, cell: (host) => count(host.settled) },
    { name: "release", label: "Release", cell: (host) => host.release ?? "–" },
  ];
  return html`<${Table} caption="Hosts" rows=${rows} rowName=${(host) => host.owner} columns=${columns} rowKind=${(host) => (host.is_gone ? "faint" : "")} />`;
}

function state(host) {
  if (host.is_gone) {
    return html`<${Badge} kind=${host.was_leaving ? "idle" : "bad"}>${host.was_leaving ? "left" : "gone"}<//> <span class="muted">seen <${Time} at=${host.seen_ms} /></span>`;
  }
  if (host.leaving) return html`<${Badge} kind="warn">leaving<//>`;
  return html`<${Badge} kind="ok">up<//>`;
}

function Versions({ hosts }) {
  const rows = hosts.flatMap((host) => (host.held ?? []).map((held) => ({ host, held })));
  if (rows.length === 0) return html`<${Empty} title="No host has a handler loaded" />`;
  const columns = [
    { name: "host", label: "Host", cell: ({ host }) => html`<span class="mono">${host.owner}</span>` },
    { name: "handler", label: "Handler", cell: ({ held }) => html`<${HandlerLink} group=${held.group} />` },
    { name: "version", label: "Version", cell: ({ held }) => html`<span class="mono">${heldLabel(held)}</span>` },
    { name: "state", label: "State", wide: true, cell: ({ held }) => html`<${HeldState} state=${held.state} />` },
  ];
  return html`<${Table} caption="Versions on hosts" rows=${rows} columns=${columns} rowName=${({ host, held }) => `${host.owner} ${held.group} ${held.revision}`} />`;
}

/** A version on a host: a revision that was deployed, or a file of the host's own. */
export function heldLabel({ version, revision }) {
  if (revision === null || revision === undefined) return `${version || "?"} (own file)`;
  return version ? label({ version, revision }) : `revision ${revision}`;
}

const HELD = { loading: ["idle", "loading"], ready: ["info", "ready"], serving: ["ok", "serving"] };

export function HeldState({ state }) {
  if (state?.failed !== undefined) return html`<${Badge} kind="bad">failed<//> <span>${state.failed}</span>`;
  const [kind, text] = HELD[state] ?? ["idle", String(state)];
  return html`<${Badge} kind=${kind}>${text}<//>`;
}
