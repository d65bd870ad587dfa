// What waits behind a head, and the state of the key before it: asked for only when somebody wants it, since it is large.

import { html, useState } from "../../vendor/preact-htm.js";
import { get, path } from "../api.js";
import { some } from "../format.js";
import { brief } from "../json.js";
import { Data } from "../payload.js";
import { Table } from "../table.js";
import { Failure, Panel, Time } from "../ui.js";

const ENTRIES = 50;

export function Record({ category, keyText, groups }) {
  const [shown, setShown] = useState(null);
  if (groups.length === 0) return null;
  const load = async (group) => {
    setShown({ group, step: "loading" });
    try {
      const recording = await get(path`/v1/recordings/${category}`, { key: keyText, group, limit: ENTRIES });
      setShown({ group, step: "there", recording });
    } catch (error) {
      setShown({ group, step: "failed", error });
    }
  };
  const actions = groups.map((group) => html`<button key=${group} type="button" onClick=${() => load(group)}>${shown?.group === group ? "Read again" : "Show"}: ${group}</button>`);
  return html`<${Panel} title="State, and what waits" note="As it is when you ask; it does not renew itself" actions=${actions}>
    ${shown?.step === "loading" && html`<p class="waiting" role="status">Loading…</p>`}
    ${shown?.step === "failed" && html`<${Failure} error=${shown.error} />`}
    ${shown?.step === "there" && html`<${Recording} of=${shown.recording} />`}
  <//>`;
}

/** Bytes are `{json}`, `{text}` or `{base64}`. */
function plain(value) {
  return value.json !== undefined ? value.json : (value.text ?? value);
}

function Recording({ of }) {
  const columns = [
    { name: "entry", label: "Entry", cell: ({ entry }) => html`<span class="mono">${entry}</span>` },
    { name: "type", label: "Event", cell: ({ type, version }) => html`<span class="mono">${type}</span> ${version > 1 ? `version ${version}` : ""}` },
    { name: "id", label: "Id", cell: ({ id }) => html`<span class="mono">${id}</span>` },
    { name: "at", label: "Recorded", cell: ({ recorded_at_ms }) => html`<${Time} at=${recorded_at_ms} />` },
    { name: "data", label: "Data", wide: true, cell: ({ data }) => html`<details><summary class="mono">${brief(plain(data), 80)}</summary><${Data} data=${plain(data)} /></details>` },
  ];
  return html`<div class="record">
    <h3>State of ${of.group}</h3>
    ${of.state.length === 0 ? html`<p class="muted">It keeps none for this key.</p>` : html`<dl class="state">${of.state.map(([name, value]) => html`<div key=${name}><dt class="mono">${name}</dt><dd><${Data} data=${plain(value)} label=${`State ${name}`} /></dd></div>`)}</dl>`}
    <h3>${some(of.entries.length, "entry", "entries")} from the head on${of.entries.length >= ENTRIES ? ", and more" : ""}</h3>
    ${of.entries.length === 0 ? html`<p class="muted">Everything is settled.</p>` : html`<${Table} caption="Waiting entries" rows=${of.entries} rowName=${({ category, entry }) => `${category} ${entry}`} columns=${columns} />`}
  </div>`;
}
