/**
 * The component's side of the WIT world. Only `build.sh` imports it, ahead of the handler; elsewhere the imports that it
 * needs do not exist.
 */

import { hostIsThere } from "./platform/install.ts";

import * as logging from "keyrail:handler/logging@0.1.0";
import * as outbox from "keyrail:handler/outbox@0.1.0";
import * as state from "keyrail:handler/state@0.1.0";

import type { Incoming } from "./context.ts";
import type { EmitRefusal, StateRefusal } from "./errors.ts";
import { type Disposition, Handler } from "./handler.ts";
import { type Host, Refused } from "./host.ts";
import type { Metadata } from "./metadata.ts";

/** An event as the engine hands it over: 64-bit integers are numbers, exact up to 2^53. */
type WitEvent = Omit<Incoming, "key" | "recordedAtMs"> & { key: string | null | undefined; recordedAt: number };

const host: Host = {
  get: (name) => state.get(name) ?? undefined,
  put: (name, value) => refusable(() => state.put(name, value)),
  remove: (name) => refusable(() => state.remove(name)),
  emit: (message) => refusable(() => outbox.emit(message)),
  log: (level, context, message) => logging.log(level, context, message),
};

function refusable<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    const refusal = (error as { payload?: { tag: string; val: string | number } }).payload;
    if (refusal === undefined) throw error;
    const { tag: kind, val } = refusal;
    throw new Refused((kind === "too-large" ? { kind, limit: val } : { kind, reason: val }) as StateRefusal | EmitRefusal);
  }
}

/** The export `guest` of a component whose handler is `handler`. */
export function guest(handler: unknown) {
  if (!(handler instanceof Handler)) {
    throw new TypeError("the handler's file must export a handler as its default: export default eventHandler(…)");
  }
  return {
    describe: (): Metadata => handler.metadata(),
    handle({ key, recordedAt, ...event }: WitEvent): Disposition {
      hostIsThere();
      return handler.handle({ ...event, key: key ?? undefined, recordedAtMs: recordedAt }, host);
    },
  };
}
