// What of an overview needs somebody, the worst first.

import { duration, gist, share, some } from "./format.js";
import { label } from "./rollouts.js";
import { to } from "./router.js";

/** Longer than retries and takeovers take. */
const OLDEST_MAX_MS = 60_000;
/** Of what one lane can do. */
export const HOT_SHARE = 0.8;

/** `{name, kind, title, text, link, link_text}`. */
export function problems(overview, gone) {
  return [...halted(overview), ...hosts(overview, gone), ...versions(overview), ...lags(overview), ...rest(overview)];
}

function halted({ halted }) {
  if (halted === 0) return [];
  const text = halted === 1 ? "It stands still until somebody decides; all others go on." : "They stand still until somebody decides; all others go on.";
  return [{ name: "halted", kind: "bad", title: some(halted, "halted key"), text, link: to(["halted"]), link_text: "Decide" }];
}

function hosts({ hosts, categories }, gone) {
  const found = [];
  if (hosts.length === 0 && categories.length > 0) found.push({ name: "no-host", kind: "bad", title: "No host is up", text: "Events wait. Start one: keyrail run." });
  for (const host of gone.filter(({ was_leaving }) => !was_leaving)) {
    found.push({ name: `gone-${host.owner}`, kind: "warn", title: `${host.owner} is gone`, text: "It did not say goodbye: killed, frozen, or cut off. Its keys go to others.", link: to(["hosts"]), link_text: "Hosts" });
  }
  const full = hosts.filter((host) => host.owned >= host.capacity);
  if (full.length > 0) found.push({ name: "full", kind: "warn", title: `${some(full.length, "host")} at capacity`, text: "Keys wait for room. Add a host, or raise engine.ownership.capacity.", link: to(["hosts"]), link_text: "Hosts" });
  const releases = [...new Set(hosts.map(({ release }) => release))];
  if (releases.length > 1) found.push({ name: "releases", kind: "warn", title: "Hosts of several releases", text: `${releases.join(", ")}: fine while a rollout goes on.`, link: to(["hosts"]), link_text: "Hosts" });
  return found;
}

function versions({ hosts }) {
  const failed = hosts.flatMap((host) => (host.held ?? []).filter(({ state }) => state?.failed !== undefined).map((held) => ({ host, held })));
  return failed.map(({ host, held }) => ({
    name: `failed-${host.owner}-${held.group}-${held.revision}`,
    kind: "warn",
    title: `${host.owner} cannot serve ${held.group}`,
    text: `${held.version ? label(held) : `revision ${held.revision}`}: ${gist(held.state.failed)}`,
    link: to(["handler", held.group]),
    link_text: "Handler",
  }));
}

function lags({ categories }) {
  const late = categories.flatMap(({ category, groups, paused }) =>
    groups.filter(({ lag, halted }) => !paused && halted === 0 && lag && lag.oldest_ms > OLDEST_MAX_MS).map((group) => ({ category, ...group })),
  );
  return late.map(({ category, group, lag }) => ({
    name: `late-${category}-${group}`,
    kind: "warn",
    title: `${group} is behind on ${category}`,
    text: `${some(lag.events, "event")} ${lag.events === 1 ? "waits" : "wait"}, the oldest for ${duration(lag.oldest_ms)}.`,
    link: to(["keys"], { category, group, status: "waiting" }),
    link_text: "Keys that wait",
  }));
}

function rest({ outbox, dead_letters, categories, hot_keys }) {
  const found = [];
  if (outbox.abandoned > 0) {
    const text = "Emitted events that could not be put into their streams. keyrail doctor says more.";
    found.push({ name: "abandoned", kind: "bad", title: `${some(outbox.abandoned, "outbox record")} abandoned`, text });
  }
  const hot = hot_keys.filter((key) => key.share > HOT_SHARE);
  if (hot.length > 0) {
    const text = `A key runs one event at a time; the hottest uses ${share(Math.max(...hot.map((key) => key.share)))} of that.`;
    found.push({ name: "hot", kind: "warn", title: some(hot.length, "hot key"), text, link: to(["hosts"]), link_text: "Hot keys" });
  }
  const paused = categories.filter((category) => category.paused);
  if (paused.length > 0) found.push({ name: "paused", kind: "warn", title: `${paused.map(({ category }) => category).join(", ")} paused`, text: "Nothing of it runs until somebody resumes it.", link: to(["paused"]), link_text: "Paused" });
  if (dead_letters > 0) found.push({ name: "letters", kind: "info", title: `${some(dead_letters, "dead letter")}`, text: "Set aside, and kept.", link: to(["dead-letters"]), link_text: "Dead letters" });
  return found;
}
