/**
 * Errors and what they become. An error that is none of these ends the instance; the host tries the event again.
 */

/** Gives up: the key halts on this event until an operator decides. */
export class Reject extends Error {
  override name = "Reject";
}

/** Asks for another try. Nothing else of this key runs before. */
export class Retry extends Error {
  override name = "Retry";
  /** A wish: the host's own back-off is the least, its cap the most. */
  readonly afterMs: number | undefined;

  constructor(reason: string, options: { afterMs?: number } = {}) {
    super(reason);
    this.afterMs = options.afterMs;
  }
}

/** Why a state write was refused; `limit` is in bytes. */
export type StateRefusal =
  | { kind: "invalid-name"; reason: string }
  | { kind: "too-large"; limit: number }
  | { kind: "other"; reason: string };

/** Why an emit was refused; `limit` is in bytes. */
export type EmitRefusal =
  | {
      kind: "unknown-category" | "unknown-message" | "invalid-key" | "invalid-data" | "other";
      reason: string;
    }
  | { kind: "too-large"; limit: number };

const why = (refusal: StateRefusal | EmitRefusal): string =>
  refusal.kind === "too-large" ? `larger than ${refusal.limit} bytes` : refusal.reason;

/** A refused state write. Not caught, it rejects the event, or asks for another try where that may help. */
export class StateError extends Error {
  override name = "StateError";

  readonly stateName: string;
  readonly refusal: StateRefusal;

  constructor(stateName: string, refusal: StateRefusal) {
    super(`state ${stateName} was refused: ${why(refusal)}`);
    this.stateName = stateName;
    this.refusal = refusal;
  }
}

/** A refused emit. It fails the event even if it is caught. */
export class EmitError extends Error {
  override name = "EmitError";

  readonly category: string;
  readonly messageName: string;
  readonly refusal: EmitRefusal;

  constructor(category: string, messageName: string, refusal: EmitRefusal) {
    super(`emit of ${category}/${messageName} was refused: ${why(refusal)}`);
    this.category = category;
    this.messageName = messageName;
    this.refusal = refusal;
  }
}

/** Whether another try can help: the catalog may learn a type, and what is `other` may pass. */
export function mayPass(error: StateError | EmitError): boolean {
  return ["unknown-category", "unknown-message", "other"].includes(error.refusal.kind);
}
