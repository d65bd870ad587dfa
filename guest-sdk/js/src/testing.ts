/**
 * Handlers tested natively, in an ordinary test: no wasm, no host, no broker.
 *
 * {@link Harness} is the inline broker: single-threaded, in submission order, so `sequentialBy` has nothing to do. State
 * is kept per key, and a call's effects only when it is done, as on a real host.
 *
 * ```ts
 * const harness = new Harness(handler);
 * const delivery = harness.deliver(OrderPlaced, { order_id: "o-1", amount_cents: 500 }).assertDone();
 * assert.equal(delivery.emitted(PaymentRequested)[0].amount_cents, 500);
 * assert.equal(harness.state("o-1", "orders"), 1);
 * ```
 *
 * An error that is no disposition is thrown out of `deliver`; on a host it would end the instance.
 *
 * @module
 */

import type { Incoming } from "./context.ts";
import type { Disposition, Handler } from "./handler.ts";
import { type Host, type Level, type RawMessage, Refused } from "./host.ts";
import { type Data, type Fields, isObject, type Message, misfit } from "./message.ts";

/** What the host would say about an event; the harness chooses what a test does not. */
export interface Submission {
  /** `event-1`, `event-2`, … otherwise. */
  id?: string;
  /** The value of the field that the handler is sequential by otherwise. */
  key?: string;
  /** 1 otherwise, or one more than the last try of this id that failed. */
  attempt?: number;
  headers?: [string, string][];
}

/** A message that was emitted. */
export interface Emitted extends RawMessage {
  id: string;
}

/** A line that a handler logged. */
export interface LogLine {
  level: Level;
  context: string;
  message: string;
}

type Values = Map<string, Uint8Array>;

/** 2026-01-01T00:00:00Z: the harness has a clock of its own, one second an event. */
const FIRST_RECORDED_AT_MS = 1_767_225_600_000;
const STATE_NAME = /^[A-Za-z0-9_.:-]{1,128}$/;

/** What became of one event. */
export class Delivery {
  readonly id: string;
  readonly disposition: Disposition;
  /** What it emitted; nothing unless it is done. */
  readonly emits: readonly Emitted[];
  /** What it logged, also when it failed. */
  readonly logs: readonly LogLine[];

  /** @internal */
  constructor(id: string, disposition: Disposition, emits: readonly Emitted[], logs: readonly LogLine[]) {
    this.id = id;
    this.disposition = disposition;
    this.emits = emits;
    this.logs = logs;
  }

  /** Throws with the reason unless the event was handled. */
  assertDone(): this {
    if (this.disposition.tag !== "done") {
      throw new Error(`event ${this.id} is not done: ${JSON.stringify(this.disposition)}`);
    }
    return this;
  }

  /** The data of the emitted messages of one type, in order. */
  emitted<F extends Fields>(type: Message<F>): Data<F>[] {
    return this.emits
      .filter((one) => one.category === type.category && one.name === type.name && one.version === type.version)
      .map((one) => JSON.parse(new TextDecoder().decode(one.data)));
  }
}

/** Runs one handler. */
export class Harness {
  readonly #handler: Handler<any>;
  readonly #states = new Map<string, Values>();
  readonly #sequences = new Map<string, number>();
  /** Events that failed and were not done since, by id. */
  readonly #failed = new Map<string, { sequence: number; tries: number }>();
  #submitted = 0;

  constructor(handler: Handler<any>) {
    this.#handler = handler;
  }

  /** Delivers one event. Throws if its data does not fit its type: publishing would refuse it. */
  deliver<F extends Fields>(type: Message<F>, data: Data<F>, submission: Submission = {}): Delivery {
    const wrong = misfit(type, data);
    if (wrong !== undefined) throw new TypeError(`${type.category}/${type.name} would not be published: ${wrong}`);
    return this.deliverBytes(type, new TextEncoder().encode(JSON.stringify(data)), submission);
  }

  /** Delivers any bytes, also what is not JSON. Throws if the handler does not handle the type. */
  deliverBytes(type: Message, data: Uint8Array, submission: Submission = {}): Delivery {
    const handled = this.#handler
      .metadata()
      .handles.some((one) => one.category === type.category && one.name === type.name && one.version === type.version);
    if (!handled) throw new TypeError(`${type.category}/${type.name} version ${type.version} is not handled`);
    const event = this.#incoming(type, data, submission);
    const host = new Recorder(event.id, new Map(this.#states.get(event.key ?? "")));
    const disposition = this.#handler.handle(event, host);
    // A refused emit fails the event whatever the handler answered.
    const settled: Disposition =
      disposition.tag === "done" && host.refusal !== undefined
        ? { tag: "reject", val: `an emit was refused: ${host.refusal}` }
        : disposition;
    if (settled.tag !== "done") {
      const tries = (this.#failed.get(event.id)?.tries ?? 0) + 1;
      this.#failed.set(event.id, { sequence: event.sequence, tries });
      return new Delivery(event.id, settled, [], host.logs);
    }
    this.#failed.delete(event.id);
    this.#states.set(event.key ?? "", host.values);
    return new Delivery(event.id, settled, host.emits, host.logs);
  }

  /** A value of a key's state, from JSON. For events without a key, the key is empty. */
  state<T = unknown>(key: string, name: string): T | undefined {
    const text = this.stateText(key, name);
    return text === undefined ? undefined : (JSON.parse(text) as T);
  }

  /** A value as text. */
  stateText(key: string, name: string): string | undefined {
    const bytes = this.stateBytes(key, name);
    return bytes && new TextDecoder().decode(bytes);
  }

  /** A value's bytes. */
  stateBytes(key: string, name: string): Uint8Array | undefined {
    return this.#states.get(key)?.get(name);
  }

  /** The keys that have been handled. */
  keys(): string[] {
    return [...this.#states.keys()];
  }

  #incoming(type: Message, data: Uint8Array, submission: Submission): Incoming {
    this.#submitted += 1;
    const id = submission.id ?? `event-${this.#submitted}`;
    const key = submission.key ?? this.#keyOf(type, data);
    const failed = this.#failed.get(id);
    const stream = JSON.stringify([type.category, key]);
    const sequence = failed?.sequence ?? this.#sequences.get(stream) ?? 0;
    if (!failed) this.#sequences.set(stream, sequence + 1);
    return {
      id,
      category: type.category,
      name: type.name,
      version: type.version,
      key,
      epoch: 1,
      sequence,
      generation: 1,
      attempt: submission.attempt ?? (failed?.tries ?? 0) + 1,
      recordedAtMs: FIRST_RECORDED_AT_MS + 1000 * this.#submitted,
      headers: submission.headers ?? [],
      data,
    };
  }

  #keyOf(type: Message, data: Uint8Array): string | undefined {
    const by = this.#handler.metadata().sequentialBy;
    if (by.tag === "unordered") return undefined;
    const of = (one: { category: string; message: string }) => one.category === type.category && one.message === type.name;
    const field = by.tag === "field" ? by.val : by.val.find(of)?.field;
    try {
      const object: unknown = JSON.parse(new TextDecoder().decode(data));
      const value = field !== undefined && isObject(object) ? object[field] : undefined;
      return typeof value === "string" || Number.isInteger(value) ? String(value) : undefined;
    } catch {
      return undefined;
    }
  }
}

/** The host of one call: its key's state with its writes, what it emitted and logged. Refuses what a host refuses. */
class Recorder implements Host {
  readonly emits: Emitted[] = [];
  readonly logs: LogLine[] = [];
  /** The first refusal of an emit. */
  refusal: string | undefined;

  readonly eventId: string;
  readonly values: Values;

  constructor(eventId: string, values: Values) {
    this.eventId = eventId;
    this.values = values;
  }

  get(name: string): Uint8Array | undefined {
    return this.values.get(name)?.slice();
  }

  put(name: string, value: Uint8Array): void {
    this.#checkName(name);
    this.values.set(name, value.slice());
  }

  remove(name: string): void {
    this.#checkName(name);
    this.values.delete(name);
  }

  emit(message: RawMessage): string {
    try {
      if (!isObject(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(message.data)))) throw new TypeError("no object");
    } catch {
      this.refusal ??= "the data is not a JSON object";
      throw new Refused({ kind: "invalid-data", reason: "the data is not a JSON object" });
    }
    const id = `${this.eventId}.${this.emits.length + 1}`;
    this.emits.push({ ...message, id });
    return id;
  }

  log(level: Level, context: string, message: string): void {
    this.logs.push({ level, context, message });
  }

  #checkName(name: string): void {
    if (!STATE_NAME.test(name)) {
      throw new Refused({ kind: "invalid-name", reason: "names are 1 to 128 bytes of [A-Za-z0-9_.:-]" });
    }
  }
}
