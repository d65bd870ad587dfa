// Versions of a handler: promoted, rolled back, undeployed.

import assert from "node:assert/strict";
import { until } from "../drive.mjs";

export async function a_canary_is_promoted_rolled_back_and_undeployed({ dashboard, api }) {
  const view = async () => (await api.get("/v1/handlers")).handlers.find(({ handler }) => handler === "counter");
  assert.equal((await view()).candidate.version, "3.0.0");
  await dashboard.at("#/handlers");
  await dashboard.says("canary");
  await dashboard.isSound("handlers");
  await dashboard.follow("counter");
  await dashboard.says("1.0.0#1");
  await dashboard.isSound("a handler");
  await dashboard.press("Promote 3.0.0#2…");
  await dashboard.decide({ reason: "an hour without a halted key", shows: ["serves every key", "promote counter"], button: "Promote 3.0.0#2" });
  await dashboard.says("3.0.0#2 serves every key from here on");
  await until("it serves", async () => (await view()).serving?.version === "3.0.0");

  await dashboard.isGone("Promote 3.0.0#2…");
  await dashboard.press("Roll back…");
  await dashboard.decide({ reason: "rounds wrongly", shows: ["Events that were handled stay handled"], button: "Roll back" });
  await dashboard.says("counter is rolled back");
  await until("the version before serves", async () => (await view()).serving?.version === "1.0.0");
  // To a revision by its number.
  await dashboard.press("Roll back to 3.0.0#2");
  await dashboard.decide({ reason: "it was not that", shows: ["rollback counter --to 2"], button: "Roll back" });
  await until("the named revision serves", async () => (await view()).serving?.revision === 2);

  await dashboard.press("Undeploy…");
  await dashboard.decide({ reason: "moves to another fleet", shows: ["its events are kept"], button: "Undeploy counter" });
  await dashboard.says("counter is undeployed");
  await until("nothing serves", async () => (await view()).serving === null);
  assert.equal((await api.lastAction()).action, "undeploy");
}
