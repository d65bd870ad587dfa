// One handler: its revisions, its candidate, the hosts that have it, and what each used.

import { html } from "../../vendor/preact-htm.js";
import { get } from "../api.js";
import { ask } from "../dialog.js";
import { useFetched } from "../fetched.js";
import { bytes, count, duration } from "../format.js";
import { label, promote, rollback, undeploy } from "../rollouts.js";
import { to } from "../router.js";
import { Table } from "../table.js";
import { Badge, Empty, Facts, Fetched, Page, Panel, Time } from "../ui.js";
import { candidateState, sequentialBy, serves } from "./handlers.js";
import { HeldState, heldLabel } from "./hosts.js";

export function Handler({ parts: [name = ""] }) {
  const found = useFetched(async (signal) => (await get("/v1/handlers", {}, signal)).handlers.find(({ handler }) => handler === name) ?? "none", [name]);
  const crumbs = html`<a href="#/handlers">Handlers</a>`;
  const view = found.data;
  return html`<${Page} title=${name} crumbs=${crumbs} actions=${view && view !== "none" && html`<${Actions} view=${view} />`}>
    <${Fetched} of=${found}>${view === "none" ? html`<${Panel}><${Empty} title=${`No handler named ${name} is registered`} /><//>` : html`<${Shown} view=${view} />`}<//>
  <//>`;
}

function Actions({ view }) {
  const is_deployed = view.serving !== null || view.candidate !== null;
  const has_earlier = view.candidate !== null || view.revisions.length > 1 || (view.serving === null && view.revisions.length > 0);
  return html`
    <a class="button" href=${to(["keys"], { group: view.handler })}>Keys</a>
    ${view.candidate?.serves && html`<button type="button" class="main" onClick=${() => ask(promote(view))}>Promote ${label(view.candidate)}…</button>`}
    ${has_earlier && html`<button type="button" class="careful" onClick=${() => ask(rollback(view))}>Roll back…</button>`}
    ${is_deployed && html`<button type="button" class="danger" onClick=${() => ask(undeploy(view))}>Undeploy…</button>`}`;
}

function Shown({ view }) {
  return html`
    <${Panel}><${Facts} rows=${[
      ["Serves", serves(view)],
      view.candidate && ["Candidate", html`<span class="mono">${label(view.candidate)}</span> ${candidateState(view.candidate)}`],
      ["Role", view.role?.replace("-", " ") ?? "not registered yet"],
      ["Ordered by", sequentialBy(view.sequential_by)],
      ["Reads", html`<span class="mono">${view.categories.join(", ") || "–"}</span>`],
      ["Registered", html`<span class="mono">${view.version ?? "–"}</span>`],
    ]} /><//>
    <${Panel} title="Revisions" note="Newest first; the last ten are kept"><${Revisions} view=${view} /><//>
    <${Panel} title="Hosts" note="What each used since it loaded the version"><${Hosts} hosts=${view.hosts} /><//>`;
}

function Revisions({ view }) {
  if (view.revisions.length === 0) return html`<${Empty} title="Nothing of it was deployed">Hosts run files of their own, or nobody serves it.<//>`;
  const is_now = ({ revision }) => revision === view.serving?.revision;
  const is_candidate = ({ revision }) => revision === view.candidate?.revision;
  const state = (revision) => {
    if (is_now(revision)) return html`<${Badge} kind="ok">serves<//>`;
    if (is_candidate(revision)) return candidateState(view.candidate);
    if (revision.withdrawn !== null && revision.withdrawn !== undefined) return html`<${Badge} kind="warn">withdrawn<//> <span>${revision.withdrawn}</span>`;
    return html`<${Badge} kind="idle">kept<//>`;
  };
  const columns = [
    { name: "revision", label: "Revision", cell: (one) => html`<span class="mono">${label(one)}</span><br /><span class="mono muted small-text" title=${`SHA-256 of the component: ${one.content_hash}`}>${one.content_hash.slice(0, 12)}</span>` },
    { name: "state", label: "State", wide: true, cell: state },
    { name: "at", label: "Deployed", cell: ({ at }) => html`<${Time} at=${at} both=${true} />` },
    { name: "by", label: "By whom, and why", wide: true, cell: ({ by, reason }) => `${by}: ${reason}` },
    { name: "go", label: "Back to it", cell: (one) => (is_now(one) || is_candidate(one) ? "–" : html`<button type="button" class="careful small" aria-label=${`Roll back to ${label(one)}`} onClick=${() => ask(rollback(view, one))}>Roll back…</button>`) },
  ];
  return html`<${Table} caption="Revisions" rows=${view.revisions} rowName=${({ revision }) => revision} columns=${columns} />`;
}

function Hosts({ hosts }) {
  if (hosts.length === 0) return html`<${Empty} title="No host has it" />`;
  const each = (us, calls) => (calls === 0 ? "–" : duration(us / calls / 1000));
  const columns = [
    { name: "host", label: "Host", cell: ({ host }) => html`<span class="mono">${host}</span>` },
    { name: "version", label: "Version", cell: (held) => html`<span class="mono">${heldLabel(held)}</span>` },
    { name: "state", label: "State", wide: true, cell: ({ state }) => html`<${HeldState} state=${state} />` },
    { name: "calls", label: "Calls", number: true, cell: ({ usage }) => count(usage.calls) },
    { name: "failed", label: "Failed", number: true, cell: ({ usage }) => count(usage.failed) },
    { name: "cpu", label: "CPU a call", number: true, cell: ({ usage }) => each(usage.cpu_us, usage.calls) },
    { name: "time", label: "Host calls a call", number: true, cell: ({ usage }) => each(usage.host_us, usage.calls) },
    { name: "memory", label: "Memory, most", number: true, cell: ({ usage }) => (usage.memory_max_bytes === 0 ? "–" : bytes(usage.memory_max_bytes)) },
    { name: "denied", label: "Denied", number: true, cell: ({ usage }) => count(usage.denied) },
  ];
  return html`<${Table} caption="Hosts that have it" rows=${hosts} rowName=${({ host, revision }) => `${host} ${revision}`} columns=${columns} />`;
}
