// The stories of `run.mjs` on the mock: quick while the dashboard is being changed. What the mock answers is made up, so this proves
// nothing about a host; `tests/tests/dashboard.rs` does.
//
//     node tests/dashboard/on_mock.mjs [STORY]

import { Fleet, at } from "./fleet.mjs";
import { start } from "./mock.mjs";
import { tell } from "./run.mjs";

const TOKENS = { token: "all-of-it", read_token: "only-read" };
const HALTED = ["retry-me", "skip-me", "moved", "aside-me", "<img src=x onerror=alert(1)>"];

/** The fleet of `tests/tests/dashboard.rs`, made up. */
class StoryFleet extends Fleet {
  constructor() {
    super("normal");
    this.group = "probe";
    this.tails = new Set();
    this.letters = [];
    this.audit = [];
    this.generations = new Map();
    this.waiting = new Map([["calm", 0]]);
    this.halts = HALTED.map((key) => this.halt(key, "1-1"));
    const revision = (number, version) => ({ revision: number, version, content_hash: "ab".repeat(32), by: "ann", reason: "x", at: at(0), withdrawn: null });
    const one = (handler, more) => ({ handler, role: "event-handler", sequential_by: { Field: "key" }, categories: ["probe"], version: "0.1.0", serving: null, candidate: null, revisions: [], hosts: [], ...more });
    const revisions = [revision(2, "3.0.0"), revision(1, "1.0.0")];
    this.deployed = [one("probe"), one("counter", { categories: ["count"], serving: revisions[1], candidate: { ...revisions[0], keys: "k1", serves: true }, revisions })];
  }

  halt(key, head) {
    this.generations.set(key, (this.generations.get(key) ?? 0) + 1);
    this.waiting.set(key, 1);
    return { group: "probe", category: "probe", key, head, cause: "rejected", attempts: 1, error: "asked to reject", handler_version: "0.1.0" };
  }

  event() {
    return { id: "e-1", type: "Probe", version: 1, headers: {}, data: { key: "k", mode: "reject", n: 0 } };
  }

  after(action, what) {
    const fails_again = action === "retry" || action === "redrive";
    if (fails_again) setTimeout(() => this.halts.push(this.halt(what.key, action === "redrive" ? "1-2" : what.head)), 400);
    else this.waiting.set(what.key, 0);
  }

  publish({ category, type, data }) {
    this.waiting.set(data.key, this.pauses.length > 0 ? 1 : 0);
    for (const hear of this.tails) hear({ at: at(0), category, key: data.key, entry: "1-9", type, id: "e", version: 1, headers: {}, data });
  }

  rows() {
    return [...this.waiting].map(([key, waiting]) => {
      const paused = this.pauses.some((one) => one.key === key || one.key === null);
      const halted = this.halts.find((one) => one.key === key) ?? null;
      return { group: "probe", category: "probe", key, last: "1-1", settled: null, waiting: waiting > 0 && !halted && !paused ? 0 : waiting, owner: null, owned: false, generation: this.generations.get(key) ?? 1, attempts: 0, halted, paused, versions: [] };
    });
  }

  runningHead(row) {
    return { ...super.runningHead({ ...row, settled: "1-0" }) };
  }

  overview() {
    const view = super.overview();
    const group = { group: "probe", role: "event-handler", ready: 0, halted: this.halts.length, lag: { events: 0, exact: true, oldest_ms: null }, settled: 0 };
    return { ...view, categories: [{ category: "probe", key_field: "key", published: 0, keys: 6, paused: this.pauses.some(({ key }) => key === null), groups: [group] }] };
  }
}

const fleet = new StoryFleet();
let mock = await start({ fleet, ...TOKENS });
const { url } = mock;
const host = {
  stop: async () => mock.close(),
  start: async () => {
    mock = await start({ fleet, ...TOKENS, port: Number(new URL(url).port) });
  },
};
const failed = await tell({ url, ...TOKENS, only: process.argv[2] ?? null, host });
mock.close();
console.log(failed.length === 0 ? "all is well" : `${failed.length} failed: ${failed.join(", ")}`);
process.exit(failed.length === 0 ? 0 : 1);
