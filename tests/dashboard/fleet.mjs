// Made-up fleets for the mock: nothing, a normal day, a bad night. 100,000 keys are computed from their number, not kept.

export const KEYS = 100_000;
const HASHES = ["ab905f1899f6c1d2", "77e1c0ffee42aa01", "0d9f4b1c2e3a5577", "c0de11aa22bb33cc"].map((part) => part.repeat(4));
const ERRORS = [
  "wasm trap: wasm `unreachable` instruction executed; it wrote: thread '<unnamed>' (1) panicked at src/billing.rs:88:14: no price for \"SKU-4411\" in currency EUR; in billing::price::lookup < billing::price::total < billing::Billing::order_placed < <billing::Billing as keyrail_guest::handler::Handler>::handle < keyrail_guest::exports::handle < wit_bindgen::rt::run_ctors_once < cabi_realloc < export_handle",
  "the order has no lines: refusing to invoice nothing",
];

/** What members tell, of hosts with these names. */
function hosts(names, t) {
  return names.map((owner, n) => ({
    owner,
    groups: ["billing", "fulfilment", "itinerary", "mailer"],
    capacity: 256,
    owned: [118, 131, 97][n % 3] + (t % 5),
    running: 2 + ((t + n) % 3),
    settled: 1_204_000 + n * 90_000 + t * 110,
    release: "0.1.0",
    leaving: false,
    hot: [],
    held: [
      held("billing", 7, "1.4.0", "serving", 412_000 + t * 40),
      held("fulfilment", 3, "2.1.0", "serving", 90_000 + t * 10),
      held("itinerary", null, "0.9.2", "serving", 630_000 + t * 60),
      held("mailer", 2, "1.0.1", "serving", 51_000 + t * 5),
    ],
  }));
}

function held(group, revision, version, state, calls) {
  return { group, revision, version, state, usage: { calls, failed: Math.floor(calls / 9_000), cpu_us: calls * 41, host_us: calls * 310, memory_max_bytes: 3_211_264, denied: 0 } };
}

function category(name, key_field, published, keys, groups, paused = false) {
  return { category: name, key_field, published, keys, paused, groups };
}

function group(name, role, settled, { ready = 0, halted = 0, events = 0, oldest_ms = null, exact = true, lag } = {}) {
  return { group: name, role, ready, halted, lag: lag === null ? null : { events, exact, oldest_ms }, settled };
}

const ANN = { who: "ann@web-1", reason: "wait for the fix" };

export class Fleet {
  constructor(kind) {
    this.kind = kind;
    this.begun_ms = Date.now();
    this.group = "billing";
    this.letters = kind === "empty" ? [] : letters();
    this.pauses = kind === "broken" ? [{ category: "invoice", key: null, who: "ann@web-1", reason: "the ledger's database moves", at: at(-1_900_000) }, { category: "order", key: "client-77", who: "bob", reason: "under investigation", at: at(-420_000) }] : [];
    this.halts = kind === "broken" ? halts() : kind === "normal" ? [] : [];
    this.audit = kind === "empty" ? [] : audit();
    this.deployed = deployments(kind);
  }

  get t() {
    return Math.floor((Date.now() - this.begun_ms) / 1000);
  }

  record(action, target, entry, by) {
    this.audit.unshift({ at: at(0), action, target, entry, who: by.who, reason: by.reason });
  }

  overview() {
    const t = this.t;
    const base = { at: at(0), broker: "redis://10.0.0.5:6379", release: "0.1.0", outbox: { records: t % 4, abandoned: 0 }, dead_letters: this.letters.length, halted: this.halts.length, hot_keys: [] };
    if (this.kind === "empty") return { ...base, outbox: { records: 0, abandoned: 0 }, hosts: hosts(["laptop-811-8dcdd001"], 0).map((host) => ({ ...host, owned: 0, running: 0, settled: 0, groups: [], held: [] })), categories: [] };
    const wave = Math.round(40 * Math.sin(t / 6));
    const is_bad = this.kind === "broken";
    const halted = (name) => this.halts.filter((one) => one.group === name).length;
    const paused = (name) => this.pauses.some((one) => one.category === name && one.key === null);
    const names = ["web-1-811-8dcdd001", "web-2-790-11f0a3c2", "web-3-1204-77be90aa"];
    // On the bad night a host dies after some seconds.
    const up = is_bad && t > 4 ? names.slice(0, 2) : names;
    const fleet = hosts(up, t);
    if (is_bad) {
      fleet[1].release = "0.1.1";
      fleet[1].held[0] = { ...fleet[1].held[0], revision: 8, version: "", state: { failed: "cannot run it: its 64 MiB of memory are above this host's ceiling of 32 MiB (runtime.memory_max_bytes)" } };
      fleet[0].owned = 256;
    }
    return {
      ...base,
      outbox: is_bad ? { records: 412, abandoned: 3 } : base.outbox,
      hosts: fleet,
      hot_keys: is_bad ? [{ group: "billing", category: "order", key: "client-42", share: 0.93 }, { group: "fulfilment", category: null, key: "basket-9", share: 0.41 }] : [{ group: "billing", category: "order", key: "client-42", share: 0.34 }],
      categories: [
        category("order", "order_id", 2_400_000 + t * 130 + wave, KEYS, [
          group("billing", "event-handler", 2_399_000 + t * (is_bad ? 60 : 130) + wave, { ready: is_bad ? 214 : 3, halted: halted("billing"), events: is_bad ? 48_211 + t * 70 : 14, oldest_ms: is_bad ? 312_000 + t * 1000 : 140 }),
          group("fulfilment", "process-manager", 801_000 + t * 20, { ready: 1, halted: halted("fulfilment"), events: 3, oldest_ms: 90 }),
        ], paused("order")),
        category("payment", "order_id", 801_233 + t * 22, 61_882, [group("fulfilment", "process-manager", 801_000 + t * 20, { lag: null }), group("ledger", "command-handler", 801_200 + t * 22, { events: 2, oldest_ms: 40 })], paused("payment")),
        category("flight", "aircraft", 631_000 + t * 60, 4_201, [group("itinerary", "event-handler", 631_000 + t * 60, { exact: false, events: 1_250, oldest_ms: 800, ready: 44 })], paused("flight")),
        category("invoice", "client_id", 12_400 + t, 900, [group("ledger", "command-handler", 801_200 + t * 22, { events: is_bad ? 77 : 0, oldest_ms: is_bad ? 1_890_000 : null, ready: is_bad ? 31 : 0 })], paused("invoice")),
        category("mail", null, 51_200 + t * 5, 0, [group("mailer", "event-handler", 51_200 + t * 5, {})], paused("mail")),
      ],
    };
  }

  /** The key of this number, as each of its groups has it. */
  row(n) {
    const key = n === 0 ? "<img src=x onerror=alert(1)>" : n === 1 ? "../..?#/%2e" : `client-${n}`;
    const halted = this.halts.find((one) => one.category === "order" && one.key === key) ?? null;
    const paused = this.pauses.some((one) => one.category === "order" && (one.key === null || one.key === key));
    const waiting = halted ? 12 : paused ? 4 : n % 97 === 0 ? (n % 7) + 1 : 0;
    const owned = !halted && !paused && (waiting > 0 || n % 210 === 0);
    const last = (n * 31) % 9_000 + 12;
    return {
      group: "billing", category: "order", key, last: `1-${last}`, settled: `1-${last - waiting}`, waiting,
      owner: ["web-1-811-8dcdd001", "web-2-790-11f0a3c2", "web-3-1204-77be90aa"][n % 3], owned, generation: (n % 40) + 1,
      attempts: halted ? halted.attempts : n % 970 === 0 ? 1 : 0,
      halted: halted && { category: halted.category, head: halted.head, cause: halted.cause, attempts: halted.attempts, error: halted.error, handler_version: halted.handler_version },
      paused, versions: [{ version: "1.3.2#6", since: "1-1" }, { version: "1.4.0#7", since: `1-${Math.max(2, last - 40)}` }],
    };
  }

  event(n, more = {}) {
    return { id: `order-${n}`, type: "OrderPlaced", version: 2, headers: { traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" }, data: { order_id: `client-${n}`, total_cents: 12_900, currency: "EUR", note: "<script>alert('a payload')</script>", ...more } };
  }

  head(category, key, group) {
    const halted = this.halts.find((one) => one.category === category && one.key === key && one.group === group);
    if (!halted) return null;
    const { head, cause, attempts, error, handler_version } = halted;
    const lines = Array.from({ length: 40 }, (_, n) => ({ sku: `SKU-${4400 + n}`, pieces: (n % 3) + 1, cents: 1_290 + n }));
    const content = cause === "missing" ? "missing" : cause === "undecodable" ? { undecodable: "no field \"t\" in the entry" } : { event: this.event(4411, { lines }) };
    return {
      group, category, key, entry: head, lane: "primary", recorded_at: at(-740_000), content, attempts, crashes: cause === "crashed" ? 2 : 0, next_try: "never",
      last_error: cause === "missing" ? null : error, halted: { category, head, cause, attempts, error, handler_version }, owner: null, waiting: 12, paused: false,
    };
  }

  /** A running head of a key that waits. */
  runningHead(row) {
    const next_try = row.paused ? "never" : row.owned ? "running" : "due";
    return { group: row.group, category: row.category, key: row.key, entry: `1-${Number(row.settled.slice(2)) + 1}`, lane: "primary", recorded_at: at(-3_000), content: { event: this.event(7) }, attempts: row.attempts, crashes: 0, next_try, last_error: row.attempts > 0 ? ERRORS[1] : null, halted: null, owner: row.owned ? row.owner : null, waiting: row.waiting, paused: row.paused };
  }
}

export function at(offset_ms) {
  return new Date(Date.now() + offset_ms).toISOString();
}

function halts() {
  const causes = ["poison", "poison", "poison", "rejected", "crashed", "missing", "undecodable"];
  const keys = ["client-42", "client-7", "client-1311", "<img src=x onerror=alert(1)>", "client-970", "client-5", "client-12", ...Array.from({ length: 12 }, (_, n) => `client-${2_000 + n * 13}`)];
  return keys.map((key, n) => ({
    group: "billing", key, category: "order", head: `1-${40 + n}`, cause: causes[n] ?? "poison", attempts: causes[n] === "rejected" ? 1 : 5,
    error: causes[n] === "rejected" ? ERRORS[1] : causes[n] === "missing" ? "the entry is not in the stream" : causes[n] === "undecodable" ? "no field \"t\" in the entry" : causes[n] === "crashed" ? "2 hosts died while it ran" : ERRORS[0],
    handler_version: "1.4.0#7",
  }));
}

function letters() {
  return [
    { id: "3-0", category: "order", key: "client-9", group: "billing", origin: "1-17" },
    { id: "3-1", category: "order", key: "client-12", group: "billing", origin: "1-4" },
    { id: "1-1", category: "mail", key: null, group: "mailer", origin: "1-201" },
  ].map((letter, n) => ({
    ...letter, lane: "primary", attempts: 5, error: ERRORS[n % 2], ...ANN, at: at(-3_600_000 * (n + 1)),
    event: { id: `e-${n}`, type: n === 2 ? "MailWanted" : "OrderPlaced", version: 1, headers: {}, data: { order_id: letter.key, total_cents: 900, big: JSON.rawJSON?.("12345678901234567890") } },
  }));
}

function audit() {
  const actions = [
    ["set-aside", "order/client-9 (billing)", "order/client-9 1-17"], ["retry", "order/client-3 (billing)", "order/client-3 1-8"], ["promote", "billing 1.4.0#7", ""],
    ["deploy", "billing 1.4.0#7", ""], ["pause", "invoice", ""], ["resume", "invoice", ""], ["withdraw", "billing 1.3.9#5", ""],
  ];
  return Array.from({ length: 120 }, (_, n) => {
    const [action, target, entry] = actions[n % actions.length];
    return { at: at(-60_000 * (n * n + 1)), action, target, entry, who: n % 3 ? "ann@web-1" : "bob@laptop", reason: n % 2 ? "the database is back" : "an hour without a halted key" };
  });
}

function deployments(kind) {
  if (kind === "empty") return [];
  const revision = (number, version, more = {}) => ({ revision: number, version, content_hash: HASHES[number % 4], by: "ann@ci", reason: "rounds to cents", at: at(-86_400_000 * (9 - number)), withdrawn: null, ...more });
  const one = (handler, role, sequential_by, categories, version, more) => ({ handler, role, sequential_by, categories, version, serving: null, candidate: null, revisions: [], hosts: [], ...more });
  const billing = [revision(8, "1.5.0"), revision(7, "1.4.0"), revision(6, "1.3.2"), revision(5, "1.3.9", { withdrawn: "web-2-790-11f0a3c2 cannot run it: it imports wasi:sockets/tcp, which is not granted" })];
  return [
    one("billing", "event-handler", { Field: "order_id" }, ["order"], "1.4.0", { serving: billing[1], candidate: { ...billing[0], keys: "5 % of the keys", serves: true }, revisions: billing }),
    one("fulfilment", "process-manager", { Correlation: [{ category: "order", message: "OrderPlaced", field: "order_id" }, { category: "payment", message: "PaymentTaken", field: "order_id" }] }, ["order", "payment"], "2.1.0", { serving: revision(3, "2.1.0"), revisions: [revision(3, "2.1.0"), revision(2, "2.0.0")] }),
    one("itinerary", "event-handler", { Field: "aircraft" }, ["flight"], "0.9.2"),
    one("ledger", "command-handler", { Field: "order_id" }, ["payment", "invoice"], "3.0.0"),
    one("mailer", "event-handler", "Unordered", ["mail"], "1.0.1", { serving: revision(2, "1.0.1"), revisions: [revision(2, "1.0.1")] }),
  ];
}
