// Pausing and resuming, of a key and of a category.

import assert from "node:assert/strict";
import { until } from "../drive.mjs";

export async function a_key_is_paused_and_resumed({ dashboard, api }) {
  const paused = async () => (await api.get("/v1/paused")).paused;
  await dashboard.at("#/key/probe/calm");
  await dashboard.press("Pause this key…");
  await dashboard.decide({ reason: "under investigation", shows: ["Pauses outlive hosts", "pause probe calm"], button: "Pause probe/calm" });
  await dashboard.says("probe/calm is paused.");
  assert.deepEqual((await paused()).map(({ category, key, reason }) => [category, key, reason]), [["probe", "calm", "under investigation"]]);
  await dashboard.says("This key is paused by");
  await dashboard.says(": under investigation");
  await api.publish("probe", "Probe", { key: "calm", mode: "count", n: 0 });
  await dashboard.says("none while it is paused");
  await dashboard.isSound("a paused key");
  await dashboard.at("#/paused");
  await dashboard.says("under investigation");
  await dashboard.isSound("paused");
  await dashboard.press("Resume probe/calm");
  await dashboard.decide({ reason: "understood", shows: ["runs again, in its order"], button: "Resume probe/calm" });
  await dashboard.says("Nothing is paused");
  assert.equal((await paused()).length, 0);
  await until("what waited has run", async () => (await api.all("/v1/partitions?category=probe&key=calm")).every((row) => row.waiting === 0));
}

export async function a_category_is_paused_and_resumed({ dashboard, api }) {
  await dashboard.at("#/categories");
  await dashboard.says("ordered by key");
  await dashboard.press("Pause…");
  const { categories } = await api.get("/v1/overview");
  const { category } = categories[0];
  await dashboard.decide({ reason: "the database moves", shows: [`every key of ${category}`], button: `Pause all of ${category}` });
  await dashboard.says(`${category} is paused.`);
  assert.deepEqual((await api.get("/v1/paused")).paused.map((one) => [one.category, one.key]), [[category, null]]);
  await dashboard.press("Resume…");
  await dashboard.decide({ reason: "it has moved", button: `Resume ${category}` });
  await dashboard.says(`${category} is resumed.`);
  assert.equal((await api.get("/v1/paused")).paused.length, 0);
}
