// Events as they are published, newest first. The list is bounded; what it cannot take is counted, never hidden.

import { html, useEffect, useRef, useState } from "../../vendor/preact-htm.js";
import { clock, count, some } from "../format.js";
import { Choice, SearchField, categoryOptions } from "../forms.js";
import { brief, parse } from "../json.js";
import { KeyLink, categoryNames } from "../links.js";
import { live } from "../live.js";
import { EventParts } from "../payload.js";
import { refine } from "../router.js";
import { useStore } from "../store.js";
import { Stream } from "../stream.js";
import { Badge, Empty, Failure, Page, Panel, useNow } from "../ui.js";

const KEPT_MAX = 200;
const DRAW_EVERY_MS = 250;

export function Tail({ query }) {
  const { category, key } = query;
  const withData = query.data === "true";
  const [isPaused, setPaused] = useState(false);
  const tail = useTail({ category, key, data: withData ? "true" : undefined }, isPaused);
  useStore(live);
  const change = (fields) => refine({ category, key, data: query.data, ...fields });
  return html`<${Page} title="Live tail" lead="Every event that enters a stream from now on.">
    <${Panel}>
      <form class="filters" role="search" aria-label="Filter the tail" onSubmit=${(event) => event.preventDefault()}>
        <${Choice} label="Category" name="category" value=${category} options=${categoryOptions(categoryNames(), category)} onChange=${(next) => change({ category: next, key: next ? key : undefined })} />
        ${category && html`<${SearchField} label="Key is" name="key" value=${key} placeholder="all keys" onChange=${(next) => change({ key: next })} isPageSearch=${true} />`}
        <label class="check"><input type="checkbox" name="data" checked=${withData} onChange=${(event) => change({ data: event.target.checked ? "true" : undefined })} /> with their data</label>
        <button type="button" aria-pressed=${String(isPaused)} onClick=${() => setPaused(!isPaused)}>${isPaused ? "Go on" : "Hold"}</button>
        <button type="button" class="quiet" onClick=${tail.clear}>Clear</button>
      </form>
      <${State} tail=${tail} isPaused=${isPaused} />
      <${Entries} entries=${tail.entries} withData=${withData} />
    <//>
  <//>`;
}

function useTail(query, isPaused) {
  const name = JSON.stringify(query);
  const [shown, setShown] = useState(NOTHING);
  const buffer = useRef({ ...NOTHING, number: 0 });
  const paused = useRef(isPaused);
  paused.current = isPaused;
  useEffect(() => {
    buffer.current = { ...NOTHING, number: 0 };
    setShown({ ...NOTHING });
    const mine = buffer.current;
    const stream = new Stream("/v1/tail", query, {
      open: () => Object.assign(mine, { status: "live", since_ms: Date.now(), error: null }),
      lost: (error) => Object.assign(mine, { since_ms: mine.status === "lost" ? mine.since_ms : Date.now(), status: "lost", error }),
      event: (kind, text) => take(mine, kind, text),
    });
    const timer = setInterval(() => {
      if (paused.current) setShown((before) => ({ ...before, status: mine.status, error: mine.error, since_ms: mine.since_ms, held: mine.seen - before.seen }));
      else setShown({ ...mine, held: 0 });
    }, DRAW_EVERY_MS);
    return () => {
      stream.stop();
      clearInterval(timer);
    };
  }, [name]);
  const clear = () => {
    Object.assign(buffer.current, { entries: [], missed: 0 });
    setShown((before) => ({ ...before, entries: [], missed: 0 }));
  };
  return { ...shown, clear };
}

const NOTHING = { entries: [], seen: 0, missed: 0, held: 0, status: "connecting", since_ms: 0, error: null };

function take(buffer, kind, text) {
  const value = parse(text);
  if (kind === "missed") buffer.missed += value.count;
  if (kind !== "entry") return;
  buffer.seen += 1;
  buffer.number += 1;
  buffer.entries = [{ ...value, number: buffer.number }, ...buffer.entries.slice(0, KEPT_MAX - 1)];
}

function State({ tail, isPaused }) {
  useNow();
  const { status, seen, missed, held, error, since_ms } = tail;
  if (status === "lost" && error?.status === 403) return html`<${Failure} error=${error} />`;
  const state =
    status === "lost"
      ? html`<${Badge} kind="bad">Not connected since ${clock(since_ms)}<//> ${error?.message}. What happens meanwhile is not shown afterwards.`
      : status === "connecting"
        ? html`<${Badge} kind="idle">Connecting…<//>`
        : isPaused
          ? html`<${Badge} kind="warn">Held<//> ${some(held, "event")} since`
          : html`<${Badge} kind="ok">Following<//>`;
  const kept = seen > KEPT_MAX ? `; the last ${KEPT_MAX} are shown` : "";
  return html`<p class="tail-state">${state} <span class="muted">${some(seen, "event")} seen${kept}${missed > 0 ? `; ${count(missed)} missed, because this page was too slow` : ""}</span></p>`;
}

function Entries({ entries, withData }) {
  if (entries.length === 0) return html`<${Empty} title="No event yet">They show up here as they are published.<//>`;
  return html`<ol class="tail" aria-label="Events, newest first">${entries.map((entry) => html`<${Entry} key=${entry.number} entry=${entry} withData=${withData} />`)}</ol>`;
}

function Entry({ entry, withData }) {
  const [isOpen, setOpen] = useState(false);
  const has_more = withData && entry.data !== undefined;
  return html`<li>
    <div class="tail-line">
      <time class="muted mono" datetime=${entry.at ?? ""}>${timeOf(entry.at)}</time>
      <span class="tail-key">${entry.key === null ? html`<span class="mono">${entry.category}</span>` : html`<${KeyLink} category=${entry.category} keyText=${entry.key} />`}</span>
      <span class="mono muted">${entry.entry}</span>
      <span class="mono">${entry.unreadable ? html`<${Badge} kind="bad">unreadable<//>` : entry.type}</span>
      ${entry.unreadable && html`<span>${entry.unreadable}</span>`}
      ${has_more && html`<button type="button" class="quiet tail-data mono" aria-expanded=${String(isOpen)} onClick=${() => setOpen(!isOpen)}>${brief(entry.data, 240)}</button>`}
    </div>
    ${isOpen && html`<div class="tail-open"><p class="muted">id <span class="mono">${entry.id}</span>, version ${entry.version}</p><${EventParts} event=${entry} /></div>`}
  </li>`;
}

function timeOf(at) {
  return at ? new Date(at).toISOString().slice(11, 23) : "no time";
}
