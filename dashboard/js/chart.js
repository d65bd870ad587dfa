// Small pictures of numbers. The numbers stand beside them in text, so readers of the screen are not told about the pictures.

import { html } from "../vendor/preact-htm.js";

/** A line of rates; a gap where they are not known. */
export function Spark({ points, width = 96, height = 24 }) {
  const known = points.filter((point) => point !== null);
  const max = Math.max(1, ...known);
  const step = width / Math.max(1, points.length - 1);
  const place = (point, n) => `${(n * step).toFixed(1)},${(height - 2 - (point / max) * (height - 4)).toFixed(1)}`;
  const runs = [];
  points.forEach((point, n) => {
    if (point === null) return;
    if (n === 0 || points[n - 1] === null) runs.push([]);
    runs.at(-1).push(place(point, n));
  });
  return html`<svg class="spark" viewBox=${`0 0 ${width} ${height}`} width=${width} height=${height} aria-hidden="true">
    <line x1="0" x2=${width} y1=${height - 1} y2=${height - 1} />
    ${runs.map((run) => html`<polyline points=${run.join(" ")} />`)}
  </svg>`;
}

/** How much of a whole is used. */
export function Bar({ part, kind = "" }) {
  const width = Math.max(0, Math.min(1, part)) * 100;
  return html`<svg class=${`bar ${kind}`} viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
    <rect class="rail" width="100" height="6" />
    <rect class="fill" width=${width} height="6" />
  </svg>`;
}
