/** What a handler has while it handles one event: the event, the key's state, the outbox, the log. */

import { EmitError, type EmitRefusal, Reject, StateError, type StateRefusal } from "./errors.ts";
import { type Host, type Level, Refused } from "./host.ts";
import type { Data, Fields, Message } from "./message.ts";

/** One event with everything that the host says about it. */
export interface Incoming {
  /** The event's own id, the same in every delivery: what to use for idempotency. */
  readonly id: string;
  readonly category: string;
  readonly name: string;
  readonly version: number;
  /** The validated key, for a partitioned category. */
  readonly key: string | undefined;
  /** Writer epoch: with `sequence` the place in the stream. They order, and only that. */
  readonly epoch: number;
  readonly sequence: number;
  /** Grows each time the partition changes hands: what to fence external calls with. */
  readonly generation: number;
  /** 1 for the first try. */
  readonly attempt: number;
  /** Milliseconds since 1970, by the broker's clock. */
  readonly recordedAtMs: number;
  /** Names that start with `keyrail-` are the host's. */
  readonly headers: readonly (readonly [string, string])[];
  /** A JSON object in UTF-8. */
  readonly data: Uint8Array;
}

export interface EmitOptions {
  /** An object, or pairs where a name repeats. Names that start with `keyrail-` are the host's. */
  headers?: Record<string, string> | Iterable<readonly [string, string]>;
}

/** A message to emit that has no {@link Message} value. */
export interface Outgoing extends EmitOptions {
  category: string;
  name: string;
  version?: number;
  /** A JSON object in UTF-8. */
  data: Uint8Array;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The state of the event's key. Its writes are kept only when the handler's function returns. */
export class State {
  readonly #host: Host;

  /** @internal */
  constructor(host: Host) {
    this.#host = host;
  }

  /** A value that {@link put} wrote; undefined if there is none. Sees the call's own writes. */
  get<T>(name: string): T | undefined {
    const json = this.getText(name);
    if (json === undefined) return undefined;
    try {
      return JSON.parse(json) as T;
    } catch (error) {
      throw new Reject(`state ${name} does not parse: ${(error as Error).message}`);
    }
  }

  /** Writes a value as JSON. Names are 1 to 128 bytes of `[A-Za-z0-9_.:-]`. Throws a {@link StateError}. */
  put(name: string, value: unknown): void {
    const json = JSON.stringify(value);
    if (json === undefined) throw new Reject(`state ${name} cannot be written as JSON: it is ${typeof value}`);
    this.putText(name, json);
  }

  /** Removes a value; no error if there is none. */
  remove(name: string): void {
    this.#refusable(name, () => this.#host.remove(name));
  }

  /** A value as text. */
  getText(name: string): string | undefined {
    const bytes = this.getBytes(name);
    return bytes && decoder.decode(bytes);
  }

  /** Writes text as it is, without JSON's quotes. */
  putText(name: string, value: string): void {
    this.putBytes(name, encoder.encode(value));
  }

  /** A value's bytes. */
  getBytes(name: string): Uint8Array | undefined {
    return this.#host.get(name);
  }

  /** Writes bytes that need be neither JSON nor text. */
  putBytes(name: string, value: Uint8Array): void {
    this.#refusable(name, () => this.#host.put(name, value));
  }

  #refusable(name: string, write: () => void): void {
    try {
      write();
    } catch (error) {
      throw error instanceof Refused ? new StateError(name, error.refusal as StateRefusal) : error;
    }
  }
}

/** The host's log. Outside the commit: an event that is tried again logs again. */
export class Log {
  readonly #host: Host;
  readonly #context: string;

  /** @internal */
  constructor(host: Host, context: string) {
    this.#host = host;
    this.#context = context;
  }

  trace(message: string): void {
    this.write("trace", message);
  }
  debug(message: string): void {
    this.write("debug", message);
  }
  info(message: string): void {
    this.write("info", message);
  }
  warn(message: string): void {
    this.write("warn", message);
  }
  error(message: string): void {
    this.write("error", message);
  }
  critical(message: string): void {
    this.write("critical", message);
  }

  /** Writes one line. `context` groups lines; it is the handler's name otherwise. */
  write(level: Level, message: string, context: string = this.#context): void {
    this.#host.log(level, context, message);
  }
}

/** The event in hand, the state of its key, the outbox and the log. */
export class Context {
  readonly event: Incoming;
  readonly state: State;
  readonly log: Log;
  readonly #host: Host;

  /** @internal */
  constructor(event: Incoming, host: Host, handlerName: string) {
    this.event = event;
    this.state = new State(host);
    this.log = new Log(host, handlerName);
    this.#host = host;
  }

  /** The validated key; undefined in a category that is not partitioned. */
  get key(): string | undefined {
    return this.event.key;
  }

  /** The first header of that name. */
  header(name: string): string | undefined {
    return this.event.headers.find(([known]) => known === name)?.[1];
  }

  /**
   * Emits a message: recorded in the same step as this event's acknowledgement, published after it, in order. Returns
   * its id, which is the same in every try. Throws an {@link EmitError}; a refused emit fails this event even if the
   * error is caught.
   */
  emit<F extends Fields>(type: Message<F>, data: Data<F>, options: EmitOptions = {}): string {
    const bytes = encoder.encode(JSON.stringify(data));
    return this.emitRaw({ ...options, category: type.category, name: type.name, version: type.version, data: bytes });
  }

  /** {@link emit} for a message that has no {@link Message} value. */
  emitRaw({ category, name, version = 1, headers = [], data }: Outgoing): string {
    const pairs = Symbol.iterator in headers ? headers : Object.entries<string>(headers);
    const list = Array.from(pairs as Iterable<readonly [string, string]>, ([name, value]): [string, string] => [name, value]);
    try {
      return this.#host.emit({ category, name, version, headers: list, data });
    } catch (error) {
      throw error instanceof Refused ? new EmitError(category, name, error.refusal as EmitRefusal) : error;
    }
  }
}
