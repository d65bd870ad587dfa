// What the fleet looks like now, as the host streams it, and whether that is still true.
//
// Invariant: `status` is `live` only while the stream is open; whoever shows `overview` with another status says since when.

import { get } from "./api.js";
import { parse } from "./json.js";
import { Series } from "./series.js";
import { Store } from "./store.js";
import { Stream } from "./stream.js";

/** Hosts that left are shown for this long. */
const GONE_KEPT_MS = 15 * 60_000;
const IDLE_MS = 1_500;
/** A silent stream may mean that nothing happens, or that the host cannot reach its broker: after this long it is asked. */
const SILENCE_MS = 5_000;

export const live = new Store({
  /** `connecting`, `live`, `lost`, `denied`. */
  status: "connecting",
  /** Of the status, on this machine's clock. */
  since_ms: Date.now(),
  next_try_ms: null,
  error: null,
  /** The stream is open, and the host itself cannot see: its broker is away. */
  is_blind: false,
  overview: null,
  /** First page of halted partitions; null as long as none came. */
  halted: null,
  /** Hosts that were there and are not: `{owner, seen_ms, was_leaving}`. */
  gone: [],
  /** How much this machine's clock is behind the host's. */
  skew_ms: 0,
});

const series = new Map();
let received_ms = 0;
let last_at_ms = 0;
let hosts_before = null;
let stream = null;
let is_asking = false;
let is_blind = false;

export function startLive() {
  stream = new Stream("/v1/live", undefined, {
    open: () => live.merge({ status: "live", since_ms: Date.now(), next_try_ms: null, error: null }),
    event: (name, text) => received(name, text),
    lost,
    rest: () => {
      live.merge({ status: "connecting", since_ms: Date.now() });
      hosts_before = null;
    },
  });
  setInterval(() => {
    standStill();
    askAfterSilence();
  }, 1_000);
}

function lost(error, wait_ms) {
  const { status, since_ms } = live.value;
  const is_new = status === "live" || status === "connecting";
  live.merge({
    status: wait_ms === null ? "denied" : "lost",
    since_ms: is_new ? Date.now() : since_ms,
    next_try_ms: wait_ms === null ? null : Date.now() + wait_ms,
    error,
    is_blind,
  });
  // What happened meanwhile is not known.
  hosts_before = null;
}

async function askAfterSilence() {
  const { status, next_try_ms, overview } = live.value;
  const is_due = status === "live" ? Date.now() - received_ms > SILENCE_MS : status === "lost" && is_blind && Date.now() > next_try_ms;
  if (!is_due || is_asking || !overview) return;
  is_asking = true;
  try {
    took(await get("/v1/overview"));
    is_blind = false;
  } catch (error) {
    // An end of the connection is told by the stream itself.
    is_blind = error.kind !== "unreachable";
    if (is_blind && live.value.status !== "denied") lost(error, SILENCE_MS);
  }
  is_asking = false;
}

export function connectNow() {
  if (is_blind) live.merge({ next_try_ms: 0 });
  stream?.tryNow();
}

/** The rates of a total: `published/CATEGORY`, `settled/GROUP`, `published`, `settled`. */
export function seriesOf(name) {
  let found = series.get(name);
  if (!found) series.set(name, (found = new Series()));
  return found;
}

/** The rate of a total now: none is known while the host does not answer. */
export function rateOf(name) {
  return live.value.status === "live" ? seriesOf(name).rate() : null;
}

/** The host's time. */
export function now() {
  return Date.now() + live.value.skew_ms;
}

function received(name, text) {
  if (name === "halted") live.merge({ halted: parse(text) });
  if (name === "overview") took(parse(text));
}

/** A look at the fleet, however it came. */
function took(overview) {
  // A host of an older release tells no hot keys.
  overview.hot_keys ??= overview.hosts.flatMap((host) => host.hot ?? []);
  received_ms = Date.now();
  last_at_ms = Date.parse(overview.at) || received_ms;
  const owners = overview.hosts.map((host) => host.owner).join("\n");
  push(overview, last_at_ms, hosts_before !== owners);
  hosts_before = owners;
  const now = { overview, gone: gone(overview), skew_ms: last_at_ms - received_ms };
  const is_back = live.value.status !== "live";
  live.merge(is_back ? { ...now, status: "live", since_ms: received_ms, next_try_ms: null, error: null } : now);
}

/** Who was in the overview before and is not in this one. */
function gone(overview) {
  const { overview: before, gone: known } = live.value;
  const here = new Set(overview.hosts.map((host) => host.owner));
  const left = (before?.hosts ?? []).filter((host) => !here.has(host.owner));
  const fresh = left.map((host) => ({ owner: host.owner, seen_ms: Date.parse(before.at), was_leaving: host.leaving }));
  const oldest_ms = last_at_ms - GONE_KEPT_MS;
  return [...fresh, ...known].filter((host) => !here.has(host.owner) && host.seen_ms > oldest_ms);
}

function push(overview, at_ms, after_gap) {
  const totals = { published: 0, settled: 0 };
  const counted = new Set();
  for (const { category, published, groups } of overview.categories) {
    seriesOf(`published/${category}`).push(at_ms, published ?? 0, after_gap);
    totals.published += published ?? 0;
    for (const { group, settled } of groups) {
      // A handler stands under every category that it reads, each time with all that it settled.
      if (counted.has(group)) continue;
      counted.add(group);
      seriesOf(`settled/${group}`).push(at_ms, settled ?? 0, after_gap);
      totals.settled += settled ?? 0;
    }
  }
  seriesOf("published").push(at_ms, totals.published, after_gap);
  seriesOf("settled").push(at_ms, totals.settled, after_gap);
}

/** The host sends nothing while nothing changes: then the totals stand, and rates go to 0. */
function standStill() {
  const { status, overview } = live.value;
  if (status !== "live" || !overview || Date.now() - received_ms < IDLE_MS) return;
  push(overview, last_at_ms + (Date.now() - received_ms), false);
}
