import assert from "node:assert/strict";
import { test } from "node:test";

import { Harness } from "@keyrail/guest/testing";

import handler, { OrderPlaced } from "./handler.ts";

test("orders are counted by key", () => {
  const harness = new Harness(handler);
  harness.deliver(OrderPlaced, { order_id: "o-1", amount_cents: 500 }).assertDone();
  harness.deliver(OrderPlaced, { order_id: "o-2", amount_cents: 100 }).assertDone();
  harness.deliver(OrderPlaced, { order_id: "o-1", amount_cents: 250 }).assertDone();
  assert.deepEqual(harness.state("o-1", "order"), { count: 2, total_cents: 750 });
  assert.deepEqual(harness.state("o-2", "order"), { count: 1, total_cents: 100 });
});

test("a negative amount is rejected and changes nothing", () => {
  const harness = new Harness(handler);
  assert.equal(harness.deliver(OrderPlaced, { order_id: "o-1", amount_cents: -1 }).disposition.tag, "reject");
  assert.equal(harness.state("o-1", "order"), undefined);
});
