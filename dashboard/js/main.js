// Starts the dashboard: which page is shown, and the keys.

import { html, render, useEffect, useErrorBoundary, useState } from "../vendor/preact-htm.js";
import { startLive } from "./live.js";
import { Audit } from "./pages/audit.js";
import { Categories } from "./pages/categories.js";
import { DeadLetter, DeadLetters } from "./pages/dead_letters.js";
import { Halted } from "./pages/halted.js";
import { Handler } from "./pages/handler.js";
import { Handlers } from "./pages/handlers.js";
import { Hosts } from "./pages/hosts.js";
import { KeyPage } from "./pages/key.js";
import { Keys } from "./pages/keys.js";
import { Overview } from "./pages/overview.js";
import { PausedPage } from "./pages/paused.js";
import { Tail } from "./pages/tail.js";
import { go, route } from "./router.js";
import { PLACES, Shell } from "./shell.js";
import { useStore } from "./store.js";
import { applyTheme } from "./theme.js";
import { Empty, Failure, Page } from "./ui.js";

const PAGES = {
  "": Overview,
  hosts: Hosts,
  categories: Categories,
  keys: Keys,
  key: KeyPage,
  halted: Halted,
  handlers: Handlers,
  handler: Handler,
  "dead-letters": DeadLetters,
  "dead-letter": DeadLetter,
  paused: PausedPage,
  audit: Audit,
  tail: Tail,
};
/** After `g`, the next key goes somewhere; not longer than this. */
const GO_MS = 1_500;

function App() {
  const { parts, query } = useStore(route);
  const [help, setHelp] = useState(false);
  useKeys(() => setHelp(true));
  useArrival(parts);
  const Shown = PAGES[parts[0] ?? ""] ?? Nowhere;
  return html`<${Shell} help=${help} setHelp=${setHelp}>
    <${Guarded} key=${parts.join("\n")}><${Shown} parts=${parts.slice(1)} query=${query} /><//>
  <//>`;
}

/** A page that breaks leaves the navigation. */
function Guarded({ children }) {
  const [error, reset] = useErrorBoundary((error) => console.error(error));
  return error ? html`<${Page} title="This page broke"><${Failure} error=${error} retry=${reset} /><//>` : children;
}

function Nowhere() {
  return html`<${Page} title="There is no such page"><${Empty} title="The link may be of another release."><a href="#/">Go to the overview</a><//><//>`;
}

/** On another page, its heading is read out and its name is the title. Who is in a field of that page already stays there. */
function useArrival(parts) {
  const name = parts.join("/");
  const [first, setFirst] = useState(true);
  useEffect(() => {
    const heading = document.querySelector("#main h1");
    document.title = heading ? `${heading.textContent} – Keyrail` : "Keyrail";
    const isBusy = document.activeElement?.closest("#main input, #main select, #main textarea, dialog");
    if (!first && !isBusy) heading?.focus();
    setFirst(false);
    scrollTo(0, 0);
  }, [name]);
}

function useKeys(showHelp) {
  useEffect(() => {
    let g_at_ms = 0;
    const press = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (event.target.closest?.("input, select, textarea, dialog")) return;
      const is_after_g = Date.now() - g_at_ms < GO_MS;
      g_at_ms = event.key === "g" ? Date.now() : 0;
      const place = is_after_g && PLACES.find(({ key }) => key === event.key);
      if (place) go(place.name ? [place.name] : []);
      else if (event.key === "?") showHelp();
      else if (event.key === "/") search();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

/** The page's own search, if it has one. */
function search() {
  const fields = [...document.querySelectorAll("[data-search]")];
  const field = fields.find((one) => one.dataset.search === "page") ?? fields.find((one) => one.offsetParent !== null);
  if (!field) {
    go(["keys"]);
    return;
  }
  field.focus();
  field.select();
}

applyTheme();
startLive();
render(html`<${App} />`, document.getElementById("app"));
