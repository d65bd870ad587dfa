// What an event carries: headers, data, errors. Long ones are folded; all of it is text, whatever it looks like.

import { html, useMemo, useState } from "../vendor/preact-htm.js";
import { bytes, frames, some } from "./format.js";
import { pretty } from "./json.js";
import { Badge, CopyButton } from "./ui.js";

const LINES_SHOWN_MAX = 24;
const CHARS_SHOWN_MAX = 4_000;
const FRAMES_SHOWN_MAX = 6;

/** Text over several lines, the first of them unless all are wanted. */
export function Folded({ text, label }) {
  const [whole, setWhole] = useState(false);
  const lines = text.split("\n");
  const first = lines.slice(0, LINES_SHOWN_MAX).join("\n").slice(0, CHARS_SHOWN_MAX);
  const is_long = first.length < text.length;
  return html`<div class="folded">
    <pre tabindex="0" aria-label=${label}>${whole ? text : first}${is_long && !whole ? "\n…" : ""}</pre>
    <div class="folded-actions">
      ${is_long &&
      html`<button type="button" class="quiet" aria-expanded=${String(whole)} onClick=${() => setWhole(!whole)}>
        ${whole ? "Fold" : `Show all (${some(lines.length, "line")}, ${bytes(text.length)})`}
      </button>`}
      <${CopyButton} text=${text} />
    </div>
  </div>`;
}

export function Data({ data, label = "Data" }) {
  const text = useMemo(() => pretty(data), [data]);
  return html`<${Folded} text=${text} label=${label} />`;
}

/** An event with its headers and data. */
export function EventParts({ event }) {
  const headers = Object.entries(event.headers ?? {});
  return html`<div class="event">
    ${headers.length > 0 &&
    html`<p class="part">Headers</p>
      <dl class="headers">
        ${headers.map(([name, value]) => html`<div key=${name}><dt class="mono">${name}</dt><dd class="mono">${typeof value === "string" ? value : pretty(value)}</dd></div>`)}
      </dl>`}
    <p class="part">Data</p>
    <${Data} data=${event.data} />
  </div>`;
}

/** What a failed try said, and the guest's functions it came through. */
export function ErrorText({ error }) {
  const [whole, setWhole] = useState(false);
  const parts = useMemo(() => frames(error), [error]);
  const shown = whole ? parts.frames : parts.frames.slice(0, FRAMES_SHOWN_MAX);
  return html`<div class="error-text">
    <pre class="error-says">${parts.says}</pre>
    ${shown.length > 0 &&
    html`<p class="muted">It came through, innermost first:</p>
      <ol class="frames">
        ${shown.map((frame, n) => html`<li key=${n}><code>${frame}</code></li>`)}
      </ol>`}
    <div class="folded-actions">
      ${parts.frames.length > FRAMES_SHOWN_MAX &&
      html`<button type="button" class="quiet" aria-expanded=${String(whole)} onClick=${() => setWhole(!whole)}>
        ${whole ? "Fold the backtrace" : `Show all ${parts.frames.length} functions`}
      </button>`}
      <${CopyButton} text=${error} label="Copy the error" />
    </div>
  </div>`;
}

/** What an entry holds, if that can be read. */
export function Content({ content }) {
  if (content === "missing") {
    return html`<p><${Badge} kind="bad">Missing<//> The entry is gone from the broker: deleted or trimmed by somebody else.</p>`;
  }
  if (content.undecodable !== undefined) {
    return html`<p><${Badge} kind="bad">Undecodable<//> The stored bytes are no event: ${content.undecodable}</p>`;
  }
  return html`<${EventParts} event=${content.event} />`;
}
