// Dialogs: the question before an action, the token, the keys. The browser's own modal dialog keeps focus inside and gives it
// back.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact-htm.js";
import { refreshAll } from "./fetched.js";
import { commandLine } from "./format.js";
import { rememberWho, rememberedWho, session } from "./session.js";
import { Store, useStore } from "./store.js";
import { Badge, CopyButton, Facts } from "./ui.js";

const REASON_MAX_CHARS = 500;

const asked = new Store(null);
/** The last thing that was done, for those who cannot see it happen. */
export const told = new Store(null);

/** Asks before an action of `actions.js` or `rollouts.js`, and takes it. */
export function ask(action) {
  asked.set(action);
}

/** `onClose` is called by Escape as well. */
export function Dialog({ title, onClose, children, name }) {
  const element = useRef(null);
  // At once: a key that is pressed before the dialog is open would go elsewhere.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  const cancel = (event) => {
    event.preventDefault();
    onClose();
  };
  return html`<dialog ref=${element} onCancel=${cancel} aria-labelledby=${`${name}-title`} class=${`dialog ${name}`}>
    <h2 id=${`${name}-title`}>${title}</h2>
    ${children}
  </dialog>`;
}

/** The question that is open, if one is. */
export function Question() {
  const action = useStore(asked);
  if (!action) return null;
  return html`<${Asking} key=${action.title} action=${action} close=${() => asked.set(null)} />`;
}

function Asking({ action, close }) {
  const [who, setWho] = useState(rememberedWho());
  const [reason, setReason] = useState(action.reason ?? "");
  const [state, setState] = useState({ step: "asking" });
  const by = { who: who.trim(), reason: reason.trim() };
  // The host puts the name of a token on record by itself.
  const has_name = session.value.token !== null;
  const is_complete = (by.who !== "" || has_name) && by.reason !== "";
  const command = (action.commands ?? [action.words]).map((words) => commandLine(words, by)).join("\n");

  const act = async (event) => {
    event.preventDefault();
    if (!is_complete || state.step === "running") return;
    rememberWho(by.who);
    setState({ step: "running" });
    try {
      const answer = await action.run(by);
      told.set({ text: action.done(answer), at_ms: Date.now() });
      close();
    } catch (error) {
      const now = error.kind === "conflict" && action.look ? await action.look().catch(() => null) : null;
      setState({ step: error.kind === "conflict" ? "conflict" : "failed", error, now });
    }
    refreshAll();
  };

  return html`<${Dialog} title=${action.title} onClose=${close} name="question">
    <form onSubmit=${act}>
      <${Facts} rows=${action.facts.filter(Boolean).map(([name, value]) => [name, html`<span class="mono">${value}</span>`])} />
      <dl class="says">${action.says.map(([name, text]) => html`<div key=${name}><dt>${name}</dt><dd>${text}</dd></div>`)}</dl>
      ${action.note && html`<p class="muted">${action.note}</p>`}
      <div class="fields">
        <label>Why <span class="muted">(goes on record)</span>
          <input name="reason" required autofocus maxlength=${REASON_MAX_CHARS} autocomplete="off" value=${reason} onInput=${(event) => setReason(event.target.value)} />
        </label>
        <label>Who <span class="muted">${has_name ? "(besides your token's name)" : "(remembered here)"}</span>
          <input name="who" required=${!has_name} maxlength="100" autocomplete="off" value=${who} onInput=${(event) => setWho(event.target.value)} />
        </label>
      </div>
      <div class="command"><p class="muted">The same from a terminal:</p><pre tabindex="0" aria-label="Command line">${command}</pre><${CopyButton} text=${command} /></div>
      ${state.error && html`<${Refused} state=${state} />`}
      <div class="dialog-actions">
        <button type="button" onClick=${close}>${state.step === "conflict" ? "Close, and look again" : "Cancel"}</button>
        ${state.step !== "conflict" &&
        html`<button type="submit" class=${action.kind} disabled=${!is_complete || state.step === "running"}>
          ${state.step === "running" ? "Doing it…" : action.verb}
        </button>`}
      </div>
    </form>
  <//>`;
}

function Refused({ state }) {
  const element = useRef(null);
  useEffect(() => element.current.scrollIntoView({ block: "nearest" }), [state]);
  const is_conflict = state.step === "conflict";
  const unsure = state.error.kind === "unreachable";
  return html`<div class="failure" role="alert" ref=${element}>
    <p class="failure-title"><${Badge} kind=${is_conflict ? "warn" : "bad"}>${is_conflict ? "Nothing was changed" : unsure ? "It may have been done or not" : "It was not done"}<//></p>
    <p class="failure-text">${state.error.message}</p>
    ${state.now && html`<p class="failure-now">${state.now}</p>`}
    ${state.error.status === 403 && html`<p class="muted">Your token's role does not allow this action.</p>`}
  </div>`;
}
