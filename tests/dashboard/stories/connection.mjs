// Tokens, and a host that is away for a while.

import assert from "node:assert/strict";
import { Dashboard, until } from "../drive.mjs";

/** Only with `tokens`. */
export async function a_token_is_asked_for_and_its_role_respected({ browser, url, tokens, api }) {
  if (!tokens) return;
  const dashboard = await Dashboard.open(browser, url);
  await dashboard.says("A token is needed", "dialog");
  await dashboard.isSound("the question for a token").catch((error) => {
    // The browser tells its console of each 401.
    if (!error.message.includes("401")) throw error;
  });
  await dashboard.press("Cancel");
  await dashboard.says("No access since");
  assert.equal(await dashboard.page.$("dialog"), null, "who gave no token is asked again");
  await dashboard.press("Give a token");
  await dashboard.giveToken("wrong");
  await dashboard.says("does not know the token", "dialog");
  await dashboard.giveToken(tokens.read);
  await dashboard.says("Live");
  const kept = await dashboard.page.evaluate(() => [sessionStorage.length, JSON.stringify(localStorage)]);
  assert.ok(kept[0] === 1 && !kept[1].includes(tokens.read), "the token is kept in this tab only");
  await dashboard.at("#/categories");
  await dashboard.press("Pause…");
  const [{ category }] = (await api.get("/v1/overview")).categories;
  await dashboard.decide({ reason: "may I", button: `Pause all of ${category}` });
  await dashboard.says("role does not allow", "dialog");
  assert.equal((await api.get("/v1/paused")).paused.length, 0);
  await dashboard.press("Cancel");
  await dashboard.press("Forget the token");
  await dashboard.says("A token is needed", "dialog");
  await dashboard.giveToken(tokens.all);
  await dashboard.says("Live");
  await dashboard.close();
}

/** A browser has few connections to a host: a tab that nobody looks at gives its own back. */
export async function a_hidden_tab_rests_and_comes_back({ dashboard }) {
  const look = (is_hidden) =>
    dashboard.page.evaluate((hidden) => {
      Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, is_hidden);
  await dashboard.at("#/");
  await dashboard.says("Live");
  await look(true);
  await dashboard.says("Connecting…");
  await look(false);
  await dashboard.says("Live", ".connection");
}

/** `host.stop()` and `host.start()` are the caller's. */
export async function a_host_that_is_away_is_told_and_found_again({ dashboard, host, api }) {
  await dashboard.at("#/");
  await dashboard.says("Live");
  const marker = await dashboard.page.evaluate(() => (globalThis.marker = Math.random()));
  await host.stop();
  await dashboard.says("Not connected since");
  await dashboard.says("It may not be now");
  await dashboard.at("#/audit");
  await dashboard.says("Not connected since");
  await host.start();
  await until("the API answers", () => api.get("/v1/overview"));
  await dashboard.says("Live");
  await dashboard.isGone("Not connected since");
  assert.equal(await dashboard.page.evaluate(() => globalThis.marker), marker, "the page was loaded again");
  await dashboard.says("dashboard-test");
  // What could not be reached is in the browser's console.
  dashboard.errors.length = 0;
}
