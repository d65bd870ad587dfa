/** Handlers through the harness: what is kept, what is dropped, what is refused. */

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  type Context,
  EmitError,
  eventHandler,
  integer,
  list,
  message,
  optional,
  processManager,
  Reject,
  Retry,
  StateError,
  text,
} from "@keyrail/guest";
import { Harness } from "@keyrail/guest/testing";

const OrderPlaced = message("order", "OrderPlaced", { order_id: text(), cents: integer(), note: optional(text()) });
const PaymentRequested = message("payment", "PaymentRequested", { order_id: text(), cents: integer() });
const order = { order_id: "o-1", cents: 500 };

const harness = (run: (event: { cents: number; note?: string | null }, ctx: Context) => void) =>
  new Harness(eventHandler({ name: "billing", version: "1.0.0", sequentialBy: "order_id" }).on(OrderPlaced, run));

test("a handler that is done keeps its writes and emits", () => {
  const billing = harness((event, ctx) => {
    ctx.state.put("cents", (ctx.state.get<number>("cents") ?? 0) + event.cents);
    ctx.emit(PaymentRequested, { order_id: ctx.key ?? "", cents: event.cents }, { headers: { why: "test" } });
    ctx.log.info(`attempt ${ctx.event.attempt} of ${ctx.event.id}`);
  });
  billing.deliver(OrderPlaced, order).assertDone();
  const delivery = billing.deliver(OrderPlaced, { ...order, note: null }).assertDone();
  assert.deepEqual(delivery.emitted(PaymentRequested), [{ order_id: "o-1", cents: 500 }]);
  assert.deepEqual(delivery.emits[0]?.headers, [["why", "test"]]);
  assert.deepEqual(delivery.logs, [{ level: "info", context: "billing", message: "attempt 1 of event-2" }]);
  assert.equal(billing.state("o-1", "cents"), 1000);
});

test("a retry drops what the call did and the next try is counted", () => {
  const billing = harness((_, ctx) => {
    ctx.state.put("tries", ctx.event.attempt);
    ctx.emit(PaymentRequested, order);
    if (ctx.event.attempt === 1) throw new Retry("not yet", { afterMs: 5 });
  });
  const first = billing.deliver(OrderPlaced, order, { id: "e" });
  assert.deepEqual(first.disposition, { tag: "retry", val: { reason: "not yet", afterMs: 5 } });
  assert.deepEqual([first.emits, billing.state("o-1", "tries")], [[], undefined]);
  billing.deliver(OrderPlaced, order, { id: "e" }).assertDone();
  assert.equal(billing.state("o-1", "tries"), 2);
});

test("rejections, and refusals that nobody catches", () => {
  const rejected = (run: (ctx: Context) => void) => harness((_, ctx) => run(ctx)).deliver(OrderPlaced, order).disposition;
  assert.deepEqual(
    rejected(() => {
      throw new Reject("no");
    }),
    { tag: "reject", val: "no" },
  );
  assert.equal(rejected((ctx) => ctx.state.put("bad name", 1)).tag, "reject");
  assert.equal(rejected((ctx) => ctx.state.put("cyclic", undefined)).tag, "reject");
  assert.equal(rejected((ctx) => void ctx.emitRaw({ category: "a", name: "B", data: new Uint8Array([91, 93]) })).tag, "reject");
});

test("refusals are typed, and a refused emit fails the event even if it is caught", () => {
  const billing = harness((_, ctx) => {
    assert.throws(
      () => ctx.state.putText("bad name", ""),
      (error: StateError) => error.refusal.kind === "invalid-name" && error.stateName === "bad name",
    );
    assert.throws(
      () => ctx.emitRaw({ category: "a", name: "B", data: new Uint8Array() }),
      (error: EmitError) => error instanceof EmitError && error.refusal.kind === "invalid-data",
    );
  });
  assert.equal(billing.deliver(OrderPlaced, order).disposition.tag, "reject");
});

test("any other error is thrown on, and nothing of the call is kept", () => {
  const billing = harness((_, ctx) => {
    ctx.state.put("x", 1);
    throw new RangeError("a defect");
  });
  assert.throws(() => billing.deliver(OrderPlaced, order), RangeError);
  assert.deepEqual(billing.keys(), []);
});

test("an async function is refused: it would run on after the event", () => {
  const billing = harness(async () => {});
  assert.throws(() => billing.deliver(OrderPlaced, order), /is async/);
});

test("data that does not fit its type is rejected before the handler sees it", () => {
  const billing = harness(() => assert.fail("it was called"));
  const misfits = ["", "[]", "{}", '{"order_id":1,"cents":1}', '{"order_id":"o","cents":1.5}', '{"order_id":"o","cents":1,"note":2}'];
  for (const data of [...misfits.map((json) => new TextEncoder().encode(json)), new Uint8Array([0x22, 0xff, 0x22])]) {
    const { disposition } = billing.deliverBytes(OrderPlaced, data);
    assert.match(disposition.tag === "reject" ? disposition.val : "", /^order\/OrderPlaced version 1 does not parse: /);
  }
  assert.throws(() => billing.deliver(OrderPlaced, { order_id: "o", cents: 0.5 }), /would not be published/);
  assert.throws(() => billing.deliver(PaymentRequested, order), /is not handled/);
});

test("what a handler declares", () => {
  const manager = processManager({ name: "manager", version: "2", options: { "retry-attempts-max": "3" } })
    .on(OrderPlaced, () => {})
    .correlates(OrderPlaced, "order_id");
  assert.deepEqual(manager.metadata(), {
    name: "manager",
    version: "2",
    role: "process-manager",
    handles: [
      {
        category: "order",
        name: "OrderPlaced",
        version: 1,
        fields: [
          { name: "order_id", kind: "text", required: true },
          { name: "cents", kind: "integer", required: true },
          { name: "note", kind: "text", required: false },
        ],
      },
    ],
    sequentialBy: { tag: "correlation", val: [{ category: "order", message: "OrderPlaced", field: "order_id" }] },
    options: [["retry-attempts-max", "3"]],
  });
  assert.throws(() => manager.on(OrderPlaced, () => {}), /twice/);
});

/** For the compiler alone: each of these must not compile. */
export function mistakes(ctx: Context): void {
  const keyed = eventHandler({ name: "k", version: "1", sequentialBy: "note" });
  // @ts-expect-error The key is optional.
  keyed.on(OrderPlaced, () => {});
  // @ts-expect-error The key is missing.
  keyed.on(PaymentRequested, () => {});
  // @ts-expect-error The key is a list.
  keyed.on(message("a", "B", { note: list() }), () => {});
  // @ts-expect-error No such field.
  processManager({ name: "p", version: "1" }).correlates(OrderPlaced, "nothing");
  // @ts-expect-error A field is missing.
  ctx.emit(PaymentRequested, { order_id: "o" });
  // @ts-expect-error An optional field may be absent.
  eventHandler({ name: "n", version: "1" }).on(OrderPlaced, (event) => event.note.length);
}
