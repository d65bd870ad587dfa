/** What the components' QuickJS gets from us, compared with Node's own. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { line } from "../src/platform/line.ts";
import * as ours from "../src/platform/text.ts";

/** A fixed sequence of numbers below 2^31 (the constants of the C standard's example `rand`). */
function* sequence(seed: number): Generator<number> {
  for (let state = seed; ; ) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    yield state >>> 1;
  }
}

test("text is encoded as Node does, lone surrogates too", () => {
  const texts = ["", "a\0b", "e\u0301 é", "\ud83d\ude00", "\ud83d", "\ude00a", "\ud83d\ud83d\ude00", "\uffff\u{10ffff}", "x😀".repeat(5000)];
  for (const text of texts) {
    const encoded = new TextEncoder().encode(text);
    assert.deepEqual(new ours.TextEncoder().encode(text), encoded);
    assert.equal(new ours.TextDecoder().decode(encoded), new TextDecoder().decode(encoded));
  }
});

test("bytes are decoded as Node does, good or bad", () => {
  // Bytes at the edges of UTF-8's ranges, so that sequences nearly fit.
  const edges = [0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xed, 0xef, 0xbb];
  const all = [...edges, 0xf0, 0xf1, 0xf4, 0xf5, 0xff];
  const random = sequence(20261130);
  const next = () => random.next().value >>> 8;
  for (let round = 0; round < 20_000; round += 1) {
    const bytes = Uint8Array.from({ length: next() % 9 }, () => all[next() % all.length] ?? 0);
    const shown = Array.from(bytes, (byte) => byte.toString(16)).join(" ");
    assert.equal(new ours.TextDecoder().decode(bytes), new TextDecoder().decode(bytes), shown);
    const fatal = (decoder: { decode(bytes: Uint8Array): string }) => {
      try {
        return decoder.decode(bytes);
      } catch (error) {
        return (error as Error).name;
      }
    };
    const options = { fatal: true, ignoreBOM: round % 2 === 0 };
    assert.equal(fatal(new ours.TextDecoder("utf-8", options)), fatal(new TextDecoder("utf-8", options)), shown);
  }
});

test("console.log writes a line", () => {
  assert.equal(line(["a", 1, { b: [null] }, undefined, 2n]), 'a 1 {"b":[null]} undefined 2');
  assert.match(line([new TypeError("why")]), /^TypeError: why\n/);
  const cyclic: unknown[] = [];
  cyclic.push(cyclic);
  assert.equal(line([cyclic]), "");
});
