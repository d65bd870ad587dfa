// What of the dashboard needs no browser. `node --test tests/dashboard/units.mjs`

import assert from "node:assert/strict";
import { test } from "node:test";

// The parts of a browser that these modules look at while they are loaded.
globalThis.location = { hash: "", origin: "http://127.0.0.1:7411" };
globalThis.addEventListener = () => {};
globalThis.sessionStorage = { getItem: () => null };

const DASHBOARD = new URL("../../dashboard/js/", import.meta.url);
const load = (name) => import(new URL(name, DASHBOARD));

test("server-sent events are read however they are cut", async () => {
  const { Parser } = await load("stream.js");
  const text = ': hello\nevent: overview\ndata: {"a":\ndata: 1}\n\nid: 7\ndata:plain\r\n\r\nevent: lost\n\n';
  for (let size = 1; size <= text.length; size += 1) {
    const seen = [];
    const parser = new Parser((name, data) => seen.push([name, data]));
    for (let at = 0; at < text.length; at += size) parser.feed(text.slice(at, at + size));
    assert.deepEqual(seen, [["overview", '{"a":\n1}'], ["message", "plain"]], `in pieces of ${size}`);
  }
});

test("rates come from totals, and a change of hosts makes none", async () => {
  const { Series } = await load("series.js");
  const series = new Series();
  assert.equal(series.rate(), null);
  series.push(1_000, 500);
  assert.equal(series.rate(), null, "one total makes no rate");
  for (let second = 2; second <= 8; second += 1) series.push(second * 1_000, 500 + (second - 1) * 10);
  assert.equal(series.rate(), 10);
  // A host went, and its part of the total with it; then one came with a million.
  series.push(9_000, 100);
  series.push(10_000, 1_000_100, true);
  series.push(11_000, 1_000_110);
  assert.equal(series.rate(), 10);
  assert.ok(series.points().every((point) => point === null || (point >= 0 && point <= 10)));
});

test("keys of any form survive a link", async () => {
  const { parse, to } = await load("router.js");
  for (const key of ["..", "a/b", "#?&=%2e", "<img src=x>", "ключ", " x "]) {
    assert.deepEqual(parse(to(["key", "order", key], { group: "g&h" })), { parts: ["key", "order", key], query: { group: "g&h" } });
  }
  assert.deepEqual(parse("#/%ff"), { parts: ["%ff"], query: {} });
  assert.deepEqual(parse(""), { parts: [], query: {} });
});

test("a command line can be pasted", async () => {
  const { commandLine } = await load("format.js");
  const line = commandLine(["head", "skip", "order", "it's $(rm)"], { who: "ann", reason: "why not" });
  assert.equal(line, "keyrail --host http://127.0.0.1:7411 head skip order 'it'\\''s $(rm)' --reason 'why not' --as ann");
  assert.ok(commandLine(["pause", "order"], { who: "", reason: "" }).endsWith("pause order --reason TEXT"));
});

test("errors are told apart from the host's words and the backtrace", async () => {
  const { frames, gist } = await load("format.js");
  const error = "wasm trap: wasm `unreachable` instruction executed; it wrote: thread '<unnamed>' (1) panicked at src/a.rs:1:2: no price; in a::b < c";
  assert.equal(gist(error), "src/a.rs:1:2: no price");
  assert.deepEqual(frames(error).frames, ["a::b", "c"]);
  assert.equal(gist("x".repeat(200), 10), "xxxxxxxxxx…");
  assert.deepEqual(frames("no such client"), { says: "no such client", frames: [] });
});

test("numbers and times are written for people", async () => {
  const { ago, bytes, count, duration, rate } = await load("format.js");
  assert.equal(count(1_234_567), "1\u202f234\u202f567");
  assert.equal(count(null), "–");
  assert.deepEqual([0, 0.41, 9.96, 1_234.4, null].map(rate), ["0", "0.4", "10", "1\u202f234", "–"]);
  assert.deepEqual([0.041, 340, 4_200, 61_000, 240_000, 7_200_000, null].map(duration), ["41 µs", "340 ms", "4.2 s", "61 s", "4 min", "2 h", "–"]);
  assert.equal(ago(1_000, 61_000), "60 s ago");
  assert.equal(ago(61_000, 1_000), "in 60 s");
  assert.equal(bytes(3_211_264), "3.1 MiB");
});
