// Data that a page asks for, and asks for again while it is looked at: some seconds apart, and after every action.

import { useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { live } from "./live.js";
import { Store } from "./store.js";

const EVERY_MS = 4_000;
/** What takes long is asked for less often: this many times as long lies between two. */
const PAUSE_FACTOR = 10;
const PAUSE_MAX_MS = 120_000;

/** Grows with every action that was taken here. */
const actions = new Store(0);

export function refreshAll() {
  actions.set(actions.value + 1);
}

/**
 * `load(signal)` is called at once, when `inputs` change, and again and again. Answers with `{data, error, at_ms, reload}`: data of
 * other inputs is never shown; data that could not be renewed has an `error` beside it.
 */
export function useFetched(load, inputs, { every_ms = EVERY_MS } = {}) {
  const name = JSON.stringify(inputs);
  const [state, setState] = useState({ name, data: null, error: null, at_ms: null });
  const again = useRef(() => {});
  useEffect(() => {
    const abort = new AbortController();
    let timer = null;
    let is_under_way = false;
    let is_wanted_again = false;
    const run = async () => {
      clearTimeout(timer);
      if (is_under_way) {
        is_wanted_again = true;
        return;
      }
      is_under_way = true;
      const begun_ms = performance.now();
      try {
        const data = await load(abort.signal);
        if (!abort.signal.aborted) setState({ name, data, error: null, at_ms: Date.now() });
      } catch (error) {
        if (!abort.signal.aborted) {
          setState((before) => (before.name === name ? { ...before, error } : { name, data: null, error, at_ms: null }));
        }
      }
      is_under_way = false;
      if (abort.signal.aborted) return;
      if (is_wanted_again) {
        is_wanted_again = false;
        return run();
      }
      const pause_ms = Math.min(PAUSE_MAX_MS, PAUSE_FACTOR * (performance.now() - begun_ms));
      timer = setTimeout(look, Math.max(every_ms, pause_ms));
    };
    // Nobody looks at a hidden tab, and a host that is away is asked by the live stream alone.
    const look = () => {
      if (document.hidden || live.value.status === "lost" || live.value.status === "denied") timer = setTimeout(look, 1_000);
      else run();
    };
    again.current = run;
    run();
    const ends = [actions.watch(run), watchReturn(run)];
    return () => {
      abort.abort();
      clearTimeout(timer);
      for (const end of ends) end();
    };
  }, [name]);
  const current = state.name === name ? state : { data: null, error: null, at_ms: null };
  return { ...current, reload: () => again.current() };
}

/** The live stream came back. */
function watchReturn(run) {
  let before = live.value.status;
  return live.watch(({ status }) => {
    const is_back = status === "live" && before !== "live";
    before = status;
    if (is_back) run();
  });
}
