/** What a handler needs of its host: the component's imports, or the recorder of native tests. */

import type { EmitRefusal, StateRefusal } from "./errors.ts";

/** How much a log line matters. */
export type Level = "trace" | "debug" | "info" | "warn" | "error" | "critical";

/** A message on its way to the outbox, its data still text. */
export interface RawMessage {
  category: string;
  name: string;
  version: number;
  headers: [string, string][];
  data: Uint8Array;
}

/** The imports. `put`, `remove` and `emit` throw a {@link Refused}. */
export interface Host {
  get(name: string): Uint8Array | undefined;
  put(name: string, value: Uint8Array): void;
  remove(name: string): void;
  emit(message: RawMessage): string;
  log(level: Level, context: string, message: string): void;
}

/** Thrown by a {@link Host}; the context turns it into the error that a handler sees. */
export class Refused<R extends StateRefusal | EmitRefusal = StateRefusal | EmitRefusal> {
  readonly refusal: R;

  constructor(refusal: R) {
    this.refusal = refusal;
  }
}
