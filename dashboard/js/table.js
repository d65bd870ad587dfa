// A table that becomes a list of cards on a narrow screen. Roles are written out, because browsers drop them with `display`.

import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";

/**
 * `columns`: `{name, label, number, wide, cell(row)}`; the first is the row's header. `wide` may take what room is left.
 */
export function Table({ caption, columns, rows, rowName, rowKind }) {
  const [frame, scrolls] = useScrolls();
  return html`<div class="table-frame" ref=${frame} tabindex=${scrolls ? "0" : undefined} role=${scrolls ? "group" : undefined} aria-label=${scrolls ? `${caption}, scrolls sideways` : undefined}>
    <table role="table">
      <caption class="unseen">${caption}</caption>
      <thead role="rowgroup">
        <tr role="row">
          ${columns.map((column) => html`<th key=${column.name} scope="col" role="columnheader" class=${kind(column)}>${column.label}</th>`)}
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${rows.map(
          (row, place) => html`<tr key=${rowName(row, place)} role="row" class=${rowKind?.(row) ?? ""}>
            ${columns.map((column, n) => cell(column, n, row))}
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/** Whether the table is wider than its place: then it must be reached by the keyboard. */
function useScrolls() {
  const frame = useRef(null);
  const [scrolls, setScrolls] = useState(false);
  useEffect(() => {
    const look = () => setScrolls(frame.current !== null && frame.current.scrollWidth > frame.current.clientWidth);
    const observer = new ResizeObserver(look);
    observer.observe(frame.current);
    observer.observe(frame.current.firstElementChild);
    return () => observer.disconnect();
  }, []);
  return [frame, scrolls];
}

function cell(column, place, row) {
  const shown = html`<span class="cell-label" aria-hidden="true">${column.label}</span><span class="cell">${column.cell(row)}</span>`;
  return place === 0
    ? html`<th key=${column.name} scope="row" role="rowheader" class=${kind(column)}>${shown}</th>`
    : html`<td key=${column.name} role="cell" class=${kind(column)}>${shown}</td>`;
}

function kind({ number, wide }) {
  return `${number ? "number" : ""} ${wide ? "wide" : ""}`.trim();
}

/** Steps through a listing whose pages are named by cursors, forward and back. */
export function Steps({ page, hasNext, onBack, onNext, busy }) {
  if (page === 0 && !hasNext) return null;
  return html`<nav class="steps" aria-label="Parts of the list">
    <button type="button" disabled=${page === 0 || busy} onClick=${onBack}>← Back</button>
    <span class="muted">Page ${page + 1}</span>
    <button type="button" disabled=${!hasNext || busy} onClick=${onNext}>Next →</button>
  </nav>`;
}
