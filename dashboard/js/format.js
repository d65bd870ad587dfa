// Numbers, times, errors and command lines as people read them.

const NUMBER = new Intl.NumberFormat("en-GB");
const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** `12 345`, with spaces that do not break. */
export function count(number) {
  return number === null || number === undefined ? "–" : NUMBER.format(number).replaceAll(",", "\u202f");
}

/** `1 event`, `2 events`. */
export function some(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** Per second: `0`, `0.4`, `12`, `1 234`. */
export function rate(per_s) {
  if (per_s === null || per_s === undefined) return "–";
  if (per_s === 0) return "0";
  return per_s < 9.95 ? per_s.toFixed(1) : count(Math.round(per_s));
}

export function share(part) {
  return `${Math.round(part * 100)} %`;
}

/** `340 ms`, `4.2 s`, `3 min`, `5 h`, `2 days`. */
export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms > 0 && ms < 1) return `${Math.round(ms * 1_000)} µs`;
  if (ms < SECOND_MS) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10 * SECOND_MS) return `${(ms / SECOND_MS).toFixed(1)} s`;
  if (ms < 2 * MINUTE_MS) return `${Math.round(ms / SECOND_MS)} s`;
  if (ms < 2 * HOUR_MS) return `${Math.round(ms / MINUTE_MS)} min`;
  if (ms < 2 * DAY_MS) return `${Math.round(ms / HOUR_MS)} h`;
  return `${Math.round(ms / DAY_MS)} days`;
}

export function bytes(number) {
  if (number < 1024) return `${number} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  const step = Math.min(units.length, Math.floor(Math.log2(number) / 10));
  return `${(number / 1024 ** step).toFixed(number / 1024 ** step < 10 ? 1 : 0)} ${units[step - 1]}`;
}

/** `2026-11-30 14:21:34 UTC`. */
export function utc(ms) {
  return new Date(ms).toISOString().replace("T", " ").replace(/\.\d+Z$/, " UTC");
}

/** `14:21:34 UTC`. */
export function clock(ms) {
  return utc(ms).slice(11);
}

export function ago(ms, now_ms) {
  const past_ms = now_ms - ms;
  if (past_ms < -SECOND_MS) return `in ${duration(-past_ms)}`;
  return past_ms < 2 * SECOND_MS ? "just now" : `${duration(past_ms)} ago`;
}

/**
 * What an error tells, on one line: of a trap not the host's words for it, which are the same for each, but what the guest
 * wrote about it. The same as `gist` of the command line.
 */
export function gist(error, chars_max = 140) {
  const written = /^wasm trap: [^]*?; it wrote: ([^]*)$/.exec(error)?.[1] ?? error;
  const told = written.replace(/^thread '[^]*?' (\(\d+\) )?panicked at /, "").replace(/; in [^]*$/, "");
  const thrown = /Exception \{ message: Some\("([^]*?)"\), stack: /.exec(told)?.[1] ?? told;
  const line = thrown.replace(/\s+/g, " ").trim();
  return line.length > chars_max ? `${line.slice(0, chars_max)}…` : line;
}

/** An error whose end is a guest's backtrace (`…; in a < b < c`): what it says, and its functions, innermost first. */
export function frames(error) {
  const place = error.lastIndexOf("; in ");
  if (place < 0) return { says: error, frames: [] };
  return { says: error.slice(0, place), frames: error.slice(place + 5).split(" < ") };
}

/** A word as a shell takes it. */
export function word(text) {
  return /^[A-Za-z0-9_\-./:@%+=,]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** A command line that does the same through this host. */
export function commandLine(words, { who, reason }) {
  const all = ["keyrail", "--host", location.origin, ...words, "--reason", reason || "TEXT"];
  if (who) all.push("--as", who);
  return all.map(word).join(" ");
}
