// Halted heads: seen, understood, retried, skipped, set aside; and somebody was faster.

import assert from "node:assert/strict";
import { until } from "../drive.mjs";

const AWKWARD = "<img src=x onerror=alert(1)>";

function keyPage(key) {
  return `#/key/probe/${encodeURIComponent(key)}`;
}

/** A halted key is found from the overview, and shows everything that is known of it. */
export async function a_halted_key_is_found_and_understood({ dashboard, api }) {
  await dashboard.at("#/");
  await dashboard.says("halted keys");
  await dashboard.follow("Decide");
  await dashboard.says("asked to reject");
  await dashboard.says(`probe/${AWKWARD}`);
  await dashboard.follow(`probe/${AWKWARD}`);
  await dashboard.says("rejected");
  await dashboard.says('"mode": "reject"');
  const heads = await api.get(`/v1/heads/probe?key=${encodeURIComponent(AWKWARD)}`);
  await dashboard.says(heads.heads[0].entry, "article.head");
  assert.equal(await dashboard.page.$$eval("#app img", (images) => images.filter((image) => !image.src.endsWith("favicon.svg")).length), 0, "a key became an element");
  await dashboard.isSound("a key that looks like HTML");
}

export async function a_retry_gives_all_tries_again({ dashboard, api }) {
  const generation = async () => (await api.all("/v1/partitions?category=probe&key=retry-me"))[0]?.generation ?? 0;
  const before = await generation();
  const entry = await api.head("retry-me");
  await dashboard.at(keyPage("retry-me"));
  await dashboard.press("Retry…");
  await dashboard.decide({ reason: "the database is back", shows: ["with all its tries", "Kept. Later events of the key go on waiting", "head retry probe retry-me"], button: `Retry ${entry}` });
  await dashboard.says(`${entry} of probe/retry-me (probe) is tried again`);
  assert.equal((await api.lastAction()).action, "retry");
  assert.ok((await api.lastAction()).who.includes("dashboard-test"));
  await until("it is rejected again, by an owner that came later", async () => (await generation()) > before && (await api.isHalted("retry-me")));
}

export async function a_head_is_skipped({ dashboard, api }) {
  const entry = await api.head("skip-me");
  await dashboard.at("#/halted");
  await dashboard.says("probe/skip-me");
  await dashboard.at(keyPage("skip-me"));
  await dashboard.press("Skip…");
  await dashboard.decide({ reason: "it should never have been", shows: ["cannot be undone", "None, ever.", "Expected head"], button: `Skip ${entry}` });
  await dashboard.says("is skipped for good");
  const last = await api.lastAction();
  assert.deepEqual([last.action, last.reason], ["skip", "it should never have been"]);
  await until("it goes on", async () => !(await api.isHalted("skip-me")));
  await dashboard.says("Everything here is settled");
}

export async function who_was_slower_is_told_how_it_is_now({ dashboard, api }) {
  const entry = await api.head("moved");
  await dashboard.at(keyPage("moved"));
  await dashboard.press("Skip…");
  await dashboard.says(`Skip ${entry} for good?`, "dialog");
  await api.post("/v1/heads/probe/skip", { key: "moved", group: "probe", expect: entry, by: { who: "ann", reason: "faster" } });
  await dashboard.decide({ reason: "too late", button: `Skip ${entry}` });
  await dashboard.says("Nothing was changed", "dialog");
  await dashboard.says("of probe/moved", "dialog");
  assert.equal((await api.lastAction()).reason, "faster", "the second skip is on record");
  await dashboard.press("Close, and look again");
  await dashboard.isGone("Nothing was changed");
  // The browser itself tells its console of the 409.
  dashboard.errors.length = 0;
}

/** Set aside, redriven, set aside again, purged: the whole life of a dead letter. */
export async function a_head_is_set_aside_redriven_and_purged({ dashboard, api }) {
  const letters = () => api.all("/v1/dead-letters?category=probe&key=aside-me");
  const setAside = async (entry) => {
    await dashboard.at(keyPage("aside-me"));
    await dashboard.says(entry, "article.head");
    await dashboard.press("Set aside…");
    await dashboard.decide({ reason: "wait for the fix", shows: ["It is kept among the dead letters"], button: `Set aside ${entry}` });
    await dashboard.says(`${entry} of probe/aside-me (probe) is set aside`);
    return until("it is among the dead letters", async () => (await letters())[0]);
  };
  const first = await setAside(await api.head("aside-me"));
  assert.equal(first.reason, "wait for the fix");
  await dashboard.at("#/");
  await dashboard.says("Set aside, and kept.");
  await dashboard.at("#/dead-letters?category=probe&key=aside-me");
  await dashboard.says("wait for the fix");
  await dashboard.isSound("dead letters");
  await dashboard.follow(first.id);
  await dashboard.says("asked to reject");
  await dashboard.isSound("a dead letter");
  await dashboard.press("Redrive…");
  await dashboard.decide({ reason: "mended", shows: ["Changed: it comes after everything", "dlq redrive probe aside-me"], button: `Redrive ${first.id}` });
  await dashboard.says("is published again, as");
  await until("it left the dead letters", async () => (await letters()).length === 0);
  await dashboard.says("It is not among the dead letters");

  const entry = await until("it halts again", async () => (await api.all("/v1/halted")).find((row) => row.key === "aside-me")?.head);
  const second = await setAside(entry);
  await dashboard.at(`#/dead-letter/probe/${second.id}?key=aside-me`);
  await dashboard.press("Purge…");
  await dashboard.decide({ reason: "a test order", shows: ["cannot be undone"], button: `Purge ${second.id}` });
  await dashboard.says("is purged");
  await until("it is gone", async () => (await letters()).length === 0);
  assert.equal((await api.lastAction()).action, "purge");
  // Looking for what is gone is a 404, which the browser tells its console.
  dashboard.errors.length = 0;
}

/** One fault halted several keys: all of them are retried in one go, each on record. */
export async function heads_of_one_fault_are_retried_together({ dashboard, api }) {
  const rows = async () => (await api.all("/v1/halted")).filter((row) => row.group === "probe" && row.cause === "rejected");
  const count = (await rows()).length;
  await dashboard.at("#/halted");
  await dashboard.press(`Retry all ${count}…`);
  await dashboard.decide({ reason: "all of them", shows: ["One after the other"], button: `Retry ${count} heads` });
  await dashboard.says(`${count} heads of probe are tried again`);
  const audit = (await api.get("/v1/audit")).rows.slice(0, count);
  assert.deepEqual([...new Set(audit.map(({ action, reason }) => `${action} ${reason}`))], ["retry all of them"]);
  await until("all are rejected again", async () => (await rows()).length === count);
}
