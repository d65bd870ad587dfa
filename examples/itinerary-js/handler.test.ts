/** Real flights through the handler: every aircraft must end in the expected state, digest included. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";

import { Reject } from "@keyrail/guest";
import { Harness } from "@keyrail/guest/testing";

import handler, { type Aircraft, FlightArrived, FlightDeparted } from "./handler.ts";
import { unixSeconds } from "./time.ts";

const flights = "../flights";
const lines = (text: string) => text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));

test("the shipped sample ends as expected", () => {
  const harness = new Harness(handler);
  for (const { id, type, data } of lines(gunzipSync(readFileSync(`${flights}/sample.jsonl.gz`)).toString())) {
    harness.deliver(type === "FlightDeparted" ? FlightDeparted : FlightArrived, data, { id }).assertDone();
  }
  const expected = lines(readFileSync(`${flights}/sample.itinerary.jsonl`, "utf8"));
  assert.ok(expected.length > 250, "so few aircraft show little");
  assert.equal(harness.keys().length, expected.length);
  for (const { tail_number, ...members } of expected) {
    // The state has a member more, which `propagated` is computed from.
    const { last_arrival, ...found } = harness.state<Aircraft>(tail_number, "itinerary") ?? assert.fail(tail_number);
    assert.deepEqual(found, members, tail_number);
  }
});

test("times are UTC and whole seconds", () => {
  assert.equal(unixSeconds("2013-01-01T10:17:00Z"), 1_357_035_420);
  for (const at of ["", "2013-01-01", "2013-01-01T10:17:00", "2013-13-01T10:17:00Z", "2013-01-01T1a:17:00Z"]) {
    assert.throws(() => unixSeconds(at), Reject, at);
  }
});
