// What is around every page: navigation, whether the host answers, theme, token, help.

import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { Dialog, Question, told } from "./dialog.js";
import { clock, count, duration } from "./format.js";
import { connectNow, live } from "./live.js";
import { go, route, to } from "./router.js";
import { answerToken, forgetToken, session, wantToken } from "./session.js";
import { useStore } from "./store.js";
import { nextTheme, themeLabel } from "./theme.js";
import { Badge, useNow } from "./ui.js";

const TOLD_MS = 8_000;

/** `{name, label, key}`: the key that goes there after `g`. */
export const PLACES = [
  { name: "", label: "Overview", key: "o" },
  { name: "hosts", label: "Hosts", key: "s" },
  { name: "categories", label: "Categories", key: "c" },
  { name: "keys", label: "Keys", key: "k" },
  { name: "halted", label: "Halted", key: "h", count: (overview) => overview.halted },
  { name: "handlers", label: "Handlers", key: "v" },
  { name: "dead-letters", label: "Dead letters", key: "d", count: (overview) => overview.dead_letters },
  { name: "paused", label: "Paused", key: "p" },
  { name: "audit", label: "Audit", key: "a" },
  { name: "tail", label: "Live tail", key: "t" },
];

const UNDER = { key: "keys", handler: "handlers", "dead-letter": "dead-letters" };

export function Shell({ children, help, setHelp }) {
  const { parts } = useStore(route);
  const { status } = useStore(live);
  const is_off = status !== "live";
  const [isOpen, setOpen] = useState(false);
  useEffect(() => setOpen(false), [parts.join("/")]);
  return html`<div class="shell">
    <a class="skip" href="#main" onClick=${skip}>Go to the content</a>
    <header class="side">
      <div class="brand">
        <a href="#/" class="brand-name"><img src="favicon.svg" alt="" width="22" height="22" />Keyrail</a>
        <button type="button" class="menu" aria-expanded=${String(isOpen)} aria-controls="places" onClick=${() => setOpen(!isOpen)}>Menu</button>
      </div>
      <div class=${isOpen ? "side-rest open" : "side-rest"} id="places">
        <${Search} />
        <${Places} at=${UNDER[parts[0]] ?? parts[0] ?? ""} />
        <${Foot} onHelp=${() => setHelp(true)} />
      </div>
    </header>
    <main class=${is_off ? "content off" : "content"} id="main">
      <${Connection} />
      ${children}
    </main>
    <${Told} />
    <${Question} />
    <${TokenDialog} />
    ${help && html`<${Help} close=${() => setHelp(false)} />`}
  </div>`;
}

function skip(event) {
  event.preventDefault();
  document.querySelector("#main h1")?.focus();
}

function Search() {
  const search = (event) => {
    event.preventDefault();
    const text = event.target.elements.key.value.trim();
    if (text) go(["keys"], { prefix: text });
  };
  return html`<form class="find" role="search" onSubmit=${search} aria-label="Find a key">
    <input type="search" name="key" placeholder="Find a key" aria-label="Find a key" autocomplete="off" data-search="all" />
    <kbd aria-hidden="true">/</kbd>
  </form>`;
}

function Places({ at }) {
  const { overview } = useStore(live);
  return html`<nav aria-label="Main"><ul class="places">
    ${PLACES.map((place) => {
      const number = overview && place.count ? place.count(overview) : 0;
      return html`<li key=${place.name}>
        <a href=${to(place.name ? [place.name] : [])} aria-current=${at === place.name ? "page" : undefined}>
          ${place.label}${number > 0 && html`<span class=${place.name === "halted" ? "number-mark bad" : "number-mark"}>${count(number)}</span>`}
        </a>
      </li>`;
    })}
  </ul></nav>`;
}

function Foot({ onHelp }) {
  const { token } = useStore(session);
  const [theme, setTheme] = useState(themeLabel());
  const { overview } = useStore(live);
  return html`<div class="foot">
    <button type="button" class="quiet" onClick=${() => setTheme(nextTheme())} aria-label=${`Theme: ${theme}. Change it`}>Theme: ${theme}</button>
    ${token
      ? html`<button type="button" class="quiet" onClick=${forgetToken}>Forget the token</button>`
      : html`<button type="button" class="quiet" onClick=${wantToken}>Token…</button>`}
    <button type="button" class="quiet" onClick=${onHelp}>Keyboard <kbd>?</kbd></button>
    ${overview && html`<p class="muted broker" title="The broker of this host">${overview.broker}<br />release ${overview.release}</p>`}
  </div>`;
}

/** Says plainly if what is shown is not what is. */
function Connection() {
  const { status, since_ms, next_try_ms, error, overview, is_blind } = useStore(live);
  useNow();
  if (status === "live") return html`<p class="connection live"><${Badge} kind="ok">Live<//></p>`;
  if (status === "connecting") return html`<p class="connection"><${Badge} kind="idle">Connecting…<//></p>`;
  const past = duration(Math.round((Date.now() - since_ms) / 1_000) * 1_000);
  const wait_s = Math.max(0, Math.ceil((next_try_ms - Date.now()) / 1_000));
  const next = next_try_ms === null ? "" : wait_s === 0 ? " Trying now." : ` Next try in ${wait_s} s.`;
  return html`<div class="connection lost" role="region" aria-label="Connection">
    <p><${Badge} kind="bad"><strong role="status">${status === "denied" ? "No access" : is_blind ? "No news" : "Not connected"} since ${clock(since_ms)}</strong><//> for ${past}: ${error?.message}.${next}</p>
    ${overview && html`<p>What is shown below was true then. It may not be now.</p>`}
    ${status === "denied"
      ? html`<button type="button" onClick=${wantToken}>Give a token</button>`
      : html`<button type="button" onClick=${connectNow}>Try now</button>`}
  </div>`;
}

function Told() {
  const last = useStore(told);
  const [shown, setShown] = useState(null);
  useEffect(() => {
    if (!last) return undefined;
    setShown(last.text);
    const timer = setTimeout(() => setShown(null), TOLD_MS);
    return () => clearTimeout(timer);
  }, [last]);
  return html`<div class=${shown ? "told shown" : "told"} role="status" aria-live="polite">${shown && html`<${Badge} kind="ok">${shown}<//>`}</div>`;
}

function TokenDialog() {
  const { asking } = useStore(session);
  const field = useRef(null);
  if (!asking) return null;
  const give = (event) => {
    event.preventDefault();
    const token = field.current.value.trim();
    if (token) answerToken(token);
  };
  return html`<${Dialog} title="A token is needed" onClose=${() => answerToken(null)} name="token">
    <form onSubmit=${give}>
      <p>This host answers only to who has a token of its <code>http.tokens_file</code>. It is kept in this tab until you close it, and nowhere else.</p>
      ${asking.rejected && html`<p role="alert"><${Badge} kind="bad">The host does not know the token that you gave<//></p>`}
      <label>Token<input ref=${field} type="password" name="token" required autofocus autocomplete="off" spellcheck="false" /></label>
      <div class="dialog-actions">
        <button type="button" onClick=${() => answerToken(null)}>Cancel</button>
        <button type="submit" class="main">Use it</button>
      </div>
    </form>
  <//>`;
}

function Help({ close }) {
  const rows = [["/", "Search"], ["?", "This list"], ["Escape", "Close a dialog"], ...PLACES.map(({ key, label }) => [`g ${key}`, label])];
  return html`<${Dialog} title="Keyboard" onClose=${close} name="help">
    <dl class="keys">${rows.map(([key, label]) => html`<div key=${key}><dt>${key.split(" ").map((one) => html`<kbd>${one}</kbd> `)}</dt><dd>${label}</dd></div>`)}</dl>
    <div class="dialog-actions"><button type="button" onClick=${close}>Close</button></div>
  <//>`;
}
