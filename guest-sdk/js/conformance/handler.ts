/** The handler of the conformance suite: the same actions in every language, driven by `tests/tests/conformance.rs`. */

import { type Context, eventHandler, integer, message, optional, Reject, Retry, text } from "@keyrail/guest";

const Step = message("conformance", "Step", {
  key: text(),
  action: text(),
  name: optional(text()),
  text: optional(text()),
  count: optional(integer()),
});

/** Declared by the handler `conformance-sink`. */
const Echo = message("conformance-out", "Echo", { key: text(), text: text(), nth: integer() });

export default eventHandler({
  name: "conformance",
  version: "1.0.0",
  sequentialBy: "key",
  options: { "retry-attempts-max": "3", "retry-backoff-base-ms": "1" },
}).on(Step, (step, ctx) => {
  const { state } = ctx;
  const said = step.text ?? "";
  const name = step.name ?? "";
  const count = step.count ?? 0;
  switch (step.action) {
    case "append":
      return state.putText("log", `${state.getText("log") ?? ""}${said}\n`);
    case "put":
      return state.putText(name, said);
    case "remove":
      return state.remove(name);
    case "binary":
      return binary(ctx);
    case "emit":
      for (let nth = 0; nth < count; nth += 1) {
        ctx.emit(Echo, { key: step.key, text: said, nth }, { headers: { conformance: "yes" } });
      }
      return;
    case "emit-bad":
      return emitBad(ctx);
    case "retry":
      if (ctx.event.attempt <= count) {
        state.putText("dropped", "x");
        throw new Retry("not yet", { afterMs: 1 });
      }
      return state.putText("attempts", String(ctx.event.attempt));
    case "reject":
      throw new Reject(said);
    case "trap":
      throw new Error("asked to trap");
    case "spin":
      for (;;);
    case "grow":
      for (const kept: Uint8Array[] = []; ; ) kept.push(new Uint8Array(1 << 20).fill(1));
    case "log":
      ctx.log.write("info", said, "conformance");
      return console.log(said);
    case "context":
      return context(ctx);
    case "clock":
      state.putText("clock", String(Date.now()));
      return state.putText("random", hex(crypto.getRandomValues(new Uint8Array(8))));
    default:
      throw new Reject(`unknown action: ${step.action}`);
  }
});

function binary({ state }: Context): void {
  const all = Uint8Array.from({ length: 256 }, (_, byte) => byte);
  const before = state.getBytes("bytes");
  if (before === undefined) return state.putBytes("bytes", all);
  if (before.length !== 256 || before.some((byte, at) => byte !== at)) throw new Reject("bytes differ");
  state.putBytes("bytes-again", all.reverse());
}

function emitBad(ctx: Context): void {
  try {
    ctx.emit(message("nowhere", "Nothing", { key: text() }), { key: "k" });
  } catch {
    // The refusal fails the event all the same.
  }
}

function context({ event, state }: Context): void {
  const { id, category, name, version, key, epoch, sequence, generation, attempt, headers } = event;
  const recordedAt = event.recordedAtMs;
  state.put("context", { id, category, name, version, key, epoch, sequence, generation, attempt, recordedAt, headers });
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
