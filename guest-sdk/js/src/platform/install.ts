/**
 * What handlers expect of any JavaScript and QuickJS has not: text coding, `console`, `crypto.getRandomValues`.
 *
 * Imported before anything else, since modules may use these while they load. Chance comes from the host, which seeds it
 * per event, so that a handler that is run again sees the same. Modules load while the component is built, without a host:
 * `console` is silent then, and chance is the building machine's.
 */

import { log } from "keyrail:handler/logging@0.1.0";
import { getRandomBytes } from "wasi:random/random@0.2.6";

import { line } from "./line.ts";
import { TextDecoder, TextEncoder } from "./text.ts";

let running = false;

/** To be called when the host calls: from then on `console` writes. */
export function hostIsThere(): void {
  running = true;
}

const print = (level: "info" | "warn", stream: string) => (...values: unknown[]) => {
  if (running) log(level, stream, line(values));
};
const out = print("info", "stdout");
const err = print("warn", "stderr");

/** A number in [0, 1) of 53 random bits. */
function random(): number {
  const words = new Uint32Array(Uint8Array.from(getRandomBytes(8)).buffer);
  return ((words[0] ?? 0) * 2 ** 21 + ((words[1] ?? 0) >>> 11)) / 2 ** 53;
}

function getRandomValues<T extends ArrayBufferView>(array: T): T {
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(getRandomBytes(array.byteLength));
  return array;
}

Object.assign(globalThis, {
  TextDecoder,
  TextEncoder,
  console: { debug: out, error: err, info: out, log: out, trace: err, warn: err },
  crypto: { getRandomValues },
});
Math.random = random;
