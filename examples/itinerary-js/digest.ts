/** 64-bit FNV-1a over the ids of all events in the order applied, not reset between ids, kept as 16 hex digits. */

/** The digest of nothing: the offset basis. */
export const EMPTY = "cbf29ce484222325";

const encoder = new TextEncoder();

/**
 * The digest with an event's id added.
 *
 * The hash is kept in two halves of 32 bits: the prime is 2^40 + 0x1b3, so that a step is a multiplication by 0x1b3, which
 * fits a double, and a shift of the low half into the high one. BigInt says the same more slowly.
 */
export function add(digest: string, id: string): string {
  let high = Number.parseInt(digest.slice(0, 8), 16);
  let low = Number.parseInt(digest.slice(8), 16);
  for (const byte of encoder.encode(id)) {
    low = (low ^ byte) >>> 0;
    const product = low * 0x1b3;
    high = (high * 0x1b3 + Math.floor(product / 2 ** 32) + low * 2 ** 8) % 2 ** 32;
    low = product % 2 ** 32;
  }
  return hex(high) + hex(low);
}

function hex(half: number): string {
  return half.toString(16).padStart(8, "0");
}
