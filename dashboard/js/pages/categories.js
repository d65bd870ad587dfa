// Categories: what comes in, what every handler makes of it, what waits.

import { html } from "../../vendor/preact-htm.js";
import { Spark } from "../chart.js";
import { count, duration, rate } from "../format.js";
import { HandlerLink } from "../links.js";
import { live, rateOf, seriesOf } from "../live.js";
import { to } from "../router.js";
import { useStore } from "../store.js";
import { Table } from "../table.js";
import { Badge, Empty, Page, Panel, useNow } from "../ui.js";
import { ask } from "../dialog.js";
import { pause, resume } from "../actions.js";

export function Categories() {
  const { overview } = useStore(live);
  useNow();
  if (!overview) return html`<${Page} title="Categories"><p class="waiting">Waiting for the host…</p><//>`;
  if (overview.categories.length === 0) return html`<${Page} title="Categories"><${Panel}><${Empty} title="No category is registered yet">They come with the first handler: keyrail deploy.<//><//><//>`;
  return html`<${Page} title="Categories" lead="Events of a category with a key field are ordered by key. Lag is what a handler has not settled yet.">
    ${overview.categories.map((category) => html`<${Category} key=${category.category} of=${category} />`)}
  <//>`;
}

function Category({ of }) {
  const published = seriesOf(`published/${of.category}`);
  const act = () => ask(of.paused ? resume(of.category) : pause(of.category));
  const title = html`<span class="mono">${of.category}</span> ${of.paused && html`<${Badge} kind="warn">paused<//>`}`;
  const note = of.key_field === null ? "without a key: no order" : html`ordered by <span class="mono">${of.key_field}</span>`;
  const actions = html`
    ${of.key_field !== null && html`<a class="button" href=${to(["keys"], { category: of.category })}>Keys</a>`}
    <a class="button" href=${to(["tail"], { category: of.category })}>Tail</a>
    <button type="button" onClick=${act}>${of.paused ? "Resume…" : "Pause…"}</button>`;
  return html`<${Panel} title=${title} note=${note} actions=${actions}>
    <dl class="strip">
      <div><dt>Published</dt><dd><strong>${rate(rateOf(`published/${of.category}`))}</strong>/s <${Spark} points=${published.points()} /></dd></div>
      <div><dt>Published in all</dt><dd><strong>${count(of.published ?? 0)}</strong></dd></div>
      <div><dt>Live keys</dt><dd><strong>${of.key_field === null ? "–" : count(of.keys)}</strong></dd></div>
    </dl>
    ${of.groups.length === 0
      ? html`<p class="muted inset">No handler reads it.</p>`
      : html`<${Table} caption=${`Handlers of ${of.category}`} rows=${of.groups} rowName=${(group) => group.group} columns=${groupColumns(of)} />`}
  <//>`;
}

const ROLES = { "event-handler": "event handler", "command-handler": "command handler", "process-manager": "process manager" };

function groupColumns({ category }) {
  return [
    { name: "handler", label: "Handler", cell: ({ group }) => html`<${HandlerLink} group=${group} />` },
    { name: "role", label: "Role", cell: ({ role }) => ROLES[role] ?? role },
    { name: "settled", label: "Handler settles /s", number: true, cell: ({ group }) => html`<${Rate} name=${`settled/${group}`} />` },
    { name: "lag", label: "Waiting", number: true, cell: ({ lag }) => lagText(lag) },
    { name: "oldest", label: "Oldest waits", number: true, cell: ({ lag }) => (lag ? duration(lag.oldest_ms) : "–") },
    { name: "ready", label: "Keys with work", number: true, cell: ({ ready }) => count(ready) },
    { name: "halted", label: "Halted", number: true, cell: ({ halted, group }) => haltedText(halted, category, group) },
  ];
}

function Rate({ name }) {
  const series = seriesOf(name);
  return html`<span class="rate"><${Spark} points=${series.points()} width=${72} height=${18} /><span>${rate(rateOf(name))}</span></span>`;
}

function lagText(lag) {
  if (!lag) return html`<span class="muted" title="A process manager's lag stands under the first category that it reads">counted once</span>`;
  return `${lag.exact ? "" : "≈ "}${count(lag.events)}`;
}

function haltedText(halted, category, group) {
  return halted === 0 ? "0" : html`<a class="bad" href=${to(["halted"], { category, group })}><${Badge} kind="bad">${count(halted)}<//></a>`;
}

/** One line a category and handler, for the overview. */
export function CategoryTable({ categories }) {
  const rows = categories.flatMap((category) =>
    category.groups.length === 0 ? [{ category, group: null }] : category.groups.map((group) => ({ category, group })),
  );
  return html`<${Table} caption="Categories and their handlers" rows=${rows} rowName=${({ category, group }) => `${category.category}/${group?.group}`} columns=${COLUMNS} />`;
}

const COLUMNS = [
  {
    name: "category",
    label: "Category",
    cell: ({ category }) => html`<a class="mono" href=${to(["keys"], { category: category.category })}>${category.category}</a>${category.paused && html` <${Badge} kind="warn">paused<//>`}`,
  },
  { name: "handler", label: "Handler", cell: ({ group }) => (group ? html`<${HandlerLink} group=${group.group} />` : html`<span class="muted">none</span>`) },
  { name: "published", label: "Published /s", number: true, cell: ({ category }) => html`<${Rate} name=${`published/${category.category}`} />` },
  { name: "settled", label: "Handler settles /s", number: true, cell: ({ category, group }) => (group ? html`<${Rate} name=${`settled/${group.group}`} />` : "–") },
  { name: "lag", label: "Waiting", number: true, cell: ({ group }) => (group ? lagText(group.lag) : "–") },
  { name: "oldest", label: "Oldest waits", number: true, cell: ({ group }) => (group?.lag ? duration(group.lag.oldest_ms) : "–") },
  { name: "keys", label: "Live keys", number: true, cell: ({ category }) => (category.key_field === null ? "–" : count(category.keys)) },
  { name: "halted", label: "Halted", number: true, cell: ({ category, group }) => (group ? haltedText(group.halted, category.category, group.group) : "–") },
];
