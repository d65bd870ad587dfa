// The head of a partition, with all that is known of it and what can be done.

import { html } from "../vendor/preact-htm.js";
import { HEAD_VERBS, headKind, headLabel, onHead } from "./actions.js";
import { ask } from "./dialog.js";
import { duration, some } from "./format.js";
import { HandlerLink } from "./links.js";
import { Content, ErrorText } from "./payload.js";
import { Badge, Facts, Time } from "./ui.js";

const CAUSES = {
  poison: "It failed as often as it may. Is something away that the handler needs?",
  rejected: "The handler said that no try can succeed. Look at its text, and at the event's data.",
  crashed: "Hosts died while it ran. Look at their memory and logs; a retry may kill another.",
  missing: "The entry is gone: deleted by somebody, or lost in a failover. What happened to the broker?",
  undecodable: "The stored bytes are no event. Who writes to the stream besides Keyrail?",
};

function nextTry(head) {
  const next = head.next_try;
  if (next === "running") return "under way, or about to be";
  if (next === "due") return "as soon as a host takes the key";
  if (next?.["in-ms"] !== undefined) return `in ${duration(next["in-ms"])}`;
  return head.halted ? "none, until you decide" : "none while it is paused";
}

export function HeadState({ head }) {
  if (head.halted) return html`<${Badge} kind="bad">halted: ${head.halted.cause}<//>`;
  if (head.paused) return html`<${Badge} kind="warn">paused<//>`;
  if (head.attempts > 0) return html`<${Badge} kind="warn">retrying<//>`;
  return html`<${Badge} kind="ok">running normally<//>`;
}

/** `head` is a HeadView. */
export function HeadPanel({ head }) {
  const event = head.content.event;
  const has_failed = head.halted !== null || head.attempts > 0;
  const crashes = head.crashes > 0 ? `; ${some(head.crashes, "host")} died with it` : "";
  return html`<article class="head" aria-label=${`Head ${head.entry} of ${head.group}`}>
    ${head.halted && html`<p class="cause">${CAUSES[head.halted.cause] ?? ""}</p>`}
    <${Facts} rows=${[
      ["Head", html`<span class="mono">${head.entry}</span>`],
      ["State", html`<${HeadState} head=${head} />`],
      ["Event", event ? html`<span class="mono">${event.type}</span> version ${event.version}, id <span class="mono">${event.id}</span>` : "cannot be read"],
      ["Recorded", html`<${Time} at=${head.recorded_at} both=${true} />`],
      ["Waiting", `${some(head.waiting, "event")}, this one included`],
      ["Tries", `${some(head.attempts, "failed try", "failed tries")}${crashes}`],
      ["Next try", nextTry(head)],
      ["Owner", html`<span class="mono">${head.owner ?? "nobody"}</span>`],
      ["Lane", head.lane],
      head.halted && ["Halted by", html`version <span class="mono">${head.halted.handler_version}</span> of <${HandlerLink} group=${head.group} />`],
    ]} />
    ${has_failed && html`<${HeadActions} head=${head} />`}
    ${head.last_error && html`<p class="part">Last error</p><${ErrorText} error=${head.last_error} />`}
    <${Content} content=${head.content} />
  </article>`;
}

/** The three decisions, the gentlest first. */
function HeadActions({ head }) {
  return html`<div class="decide" role="group" aria-label=${`Decide on ${head.entry}`}>
    ${HEAD_VERBS.map((verb) => html`<button key=${verb} type="button" class=${headKind(verb)} onClick=${() => ask(onHead(verb, head))}>${headLabel(verb)}…</button>`)}
  </div>`;
}
