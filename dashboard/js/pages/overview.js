// The first page: is all well, and if not, where to go.

import { html } from "../../vendor/preact-htm.js";
import { Spark } from "../chart.js";
import { count, duration, rate } from "../format.js";
import { live, rateOf, seriesOf } from "../live.js";
import { to } from "../router.js";
import { useStore } from "../store.js";
import { problems } from "../problems.js";
import { Badge, Empty, Page, Panel, useNow } from "../ui.js";
import { CategoryTable } from "./categories.js";
import { HotKeys } from "./hot_keys.js";
import { HostTable } from "./hosts.js";

export function Overview() {
  const { overview, gone, status, error } = useStore(live);
  useNow();
  if (!overview) {
    return html`<${Page} title="Overview"><p class="waiting">${status === "connecting" || status === "live" ? "Waiting for the host…" : error?.message}</p><//>`;
  }
  if (overview.categories.length === 0) return html`<${Page} title="Overview"><${Nothing} hosts=${overview.hosts} /><//>`;
  return html`<${Page} title="Overview">
    <${Problems} list=${problems(overview, gone)} />
    <${Numbers} overview=${overview} />
    <${Panel} title="Categories"><${CategoryTable} categories=${overview.categories} /><//>
    <${Panel} title="Hosts"><${HostTable} overview=${overview} gone=${gone} /><//>
    <${HotKeys} hot=${overview.hot_keys} />
  <//>`;
}

function Problems({ list }) {
  if (list.length === 0) return html`<p class="well"><${Badge} kind="ok">Nothing needs you<//></p>`;
  return html`<section class="problems" aria-label="What needs you">
    <ul>${list.map((one) => html`<li key=${one.name} class=${one.kind}>
      <${Badge} kind=${one.kind}><strong>${one.title}</strong><//>
      <span class="problem-text">${one.text}</span>
      ${one.link && html`<a href=${one.link}>${one.link_text}</a>`}
    </li>`)}</ul>
  </section>`;
}

function Numbers({ overview }) {
  const published = seriesOf("published");
  const settled = seriesOf("settled");
  const groups = overview.categories.flatMap((category) => category.groups);
  const lags = groups.map((group) => group.lag).filter(Boolean);
  const lag = lags.reduce((sum, one) => sum + one.events, 0);
  const is_exact = lags.every((one) => one.exact);
  const oldest = lags.reduce((max, one) => (one.oldest_ms === null ? max : Math.max(max ?? 0, one.oldest_ms)), null);
  const keys = overview.categories.reduce((sum, one) => sum + one.keys, 0);
  const owned = overview.hosts.reduce((sum, one) => sum + one.owned, 0);
  return html`<dl class="numbers">
    <${Figure} name="Published" unit="/s" value=${rate(rateOf("published"))}><${Spark} points=${published.points()} width=${140} /><//>
    <${Figure} name="Settled" unit="/s" value=${rate(rateOf("settled"))}><${Spark} points=${settled.points()} width=${140} /><//>
    <${Figure} name="Events waiting" value=${`${is_exact ? "" : "≈ "}${count(lag)}`} note=${oldest === null ? "nothing waits" : `oldest for ${duration(oldest)}`} />
    <${Figure} name="Halted keys" value=${count(overview.halted)} kind=${overview.halted > 0 ? "bad" : ""} note=${html`<a href=${to(["halted"])}>look at them</a>`} />
    <${Figure} name="Live keys" value=${count(keys)} note=${`${count(owned)} owned now`} />
    <${Figure} name="Hosts" value=${count(overview.hosts.length)} note=${versions(overview.hosts)} />
  </dl>`;
}

function versions(hosts) {
  const releases = [...new Set(hosts.map((host) => host.release))];
  return releases.length === 0 ? "none is up" : `release ${releases.join(", ")}`;
}

function Figure({ name, value, unit, note, kind = "", children }) {
  return html`<div class=${`figure ${kind}`}>
    <dt>${name}</dt>
    <dd><span class="figure-value">${value}${unit && html`<span class="figure-unit">${unit}</span>`}</span>${children}${note && html`<span class="figure-note">${note}</span>`}</dd>
  </div>`;
}

const FIRST_STEPS = [
  "keyrail new billing --lang rust        # a project that builds with one command",
  `keyrail --host ${location.origin} deploy billing.wasm`,
  `keyrail --host ${location.origin} publish orders.jsonl`,
].join("\n");

function Nothing({ hosts }) {
  return html`<${Panel}><${Empty} title="No handler is registered yet">
    <p>${hosts.length === 0 ? "No host is up either." : `${hosts.length === 1 ? "A host is" : `${hosts.length} hosts are`} up, and waits for a first handler.`} From a terminal:</p>
    <pre tabindex="0">${FIRST_STEPS}</pre>
  <//><//>`;
}
