// Looking: every page, search, filters, the tail, the keys of the keyboard.

import assert from "node:assert/strict";
import { until } from "../drive.mjs";

const PAGES = ["", "hosts", "categories", "keys", "key/probe/calm", "halted", "handlers", "handler/probe", "dead-letters", "paused", "audit", "tail", "no-such-page"];

export async function every_page_is_sound({ dashboard, api }) {
  const { hosts } = await api.get("/v1/overview");
  await dashboard.at("#/hosts");
  for (const { owner } of hosts) await dashboard.says(owner);
  for (const place of PAGES) {
    await dashboard.at(`#/${place}`);
    await dashboard.isGone("Loading…");
    await dashboard.isSound(place || "overview");
  }
}

export async function every_page_is_sound_small_and_dark({ narrow }) {
  for (const place of PAGES) {
    await narrow.at(`#/${place}`);
    await narrow.isGone("Loading…");
    await narrow.isSound(`${place || "overview"}, small and dark`);
    const wide = await narrow.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(wide <= 0, `${place} is ${wide} px too wide for a phone`);
  }
}

export async function keys_are_found_by_prefix_exactly_and_by_state({ dashboard }) {
  const shown = () => dashboard.page.$$eval("tbody th a", (links) => links.map((link) => link.innerText));
  const found = (expected) => until(`the list is ${expected}`, async () => JSON.stringify((await shown()).sort()) === JSON.stringify(expected));
  await dashboard.at("#/keys");
  await dashboard.says("Key begins with");
  await dashboard.page.keyboard.press("/");
  await dashboard.page.keyboard.type("ski");
  await found(["probe/skip-me"]);
  assert.ok(dashboard.page.url().endsWith("prefix=ski"), "a search can be linked to");
  await dashboard.at("#/keys?category=probe&key=calm");
  await found(["probe/calm"]);
  await dashboard.at("#/keys");
  await found_again(dashboard);
  await dashboard.page.click("input[name=exact]");
  await dashboard.says("Key is");
  await dashboard.page.type("input[name=key][data-search=page]", "cal");
  await dashboard.says("No such key");
  assert.ok(dashboard.page.url().endsWith("key=cal"), "so can an exact one");
  await dashboard.at("#/keys?prefix=retry&status=halted");
  await found(["probe/retry-me"]);
  await dashboard.at("#/keys?prefix=calm&status=halted");
  await dashboard.says("No such key");
  await dashboard.at("#/");
  await dashboard.says("Categories");
  await dashboard.page.goBack();
  await dashboard.says("No such key");
}

/** The list without a filter. */
function found_again(dashboard) {
  return dashboard.says("probe/calm", "tbody");
}

/** A hundred keys more are paged on the server. */
export async function many_keys_are_paged({ dashboard, api }) {
  const events = Array.from({ length: 120 }, (_, n) => ({ category: "probe", type: "Probe", data: { key: `many-${n}`, mode: "count", n: 0 } }));
  await api.post("/v1/events", events);
  const seen = new Set();
  await dashboard.at("#/keys?prefix=many-");
  for (let page = 1; page <= 10; page += 1) {
    await dashboard.says(page === 1 ? "many-" : `Page ${page}`);
    await until("this page is there", async () => (await dashboard.page.$$("tbody th a")).length > 0);
    for (const key of await dashboard.page.$$eval("tbody th a", (links) => links.map((link) => link.innerText))) seen.add(key);
    const next = await dashboard.page.$("nav.steps button:last-child:not(:disabled)");
    if (!next) break;
    const before = await dashboard.text("tbody");
    await next.click();
    await until("the next page is there", async () => (await dashboard.text("#main")).includes(`Page ${page + 1}`) && (await dashboard.text("#main")) !== before && !(await dashboard.text("#main")).includes("Loading…"));
  }
  assert.equal(seen.size, 120, "each key is on one of the pages");
}

export async function the_tail_shows_what_is_published({ dashboard, api }) {
  await dashboard.at("#/tail?category=probe&key=calm");
  await dashboard.says("Following");
  await api.publish("probe", "Probe", { key: "loud", mode: "count", n: 0 });
  await api.publish("probe", "Probe", { key: "calm", mode: "count", n: 0 });
  await dashboard.says("probe/calm", "ol.tail");
  assert.ok(!(await dashboard.text("ol.tail")).includes("loud"), "another key is shown");
  await dashboard.page.click("input[name=data]");
  await dashboard.says("0 events seen");
  await dashboard.says("Following");
  // More than a double holds: what shows a payload must not round it.
  await api.post("/v1/events", '{"category":"probe","type":"Probe","data":{"key":"calm","mode":"count","n":12345678901234567890}}');
  await dashboard.says("12345678901234567890", "ol.tail");
  await dashboard.press("Hold");
  await api.publish("probe", "Probe", { key: "calm", mode: "count", n: 4712 });
  await dashboard.says("1 event since");
  assert.ok(!(await dashboard.text("ol.tail")).includes("4712"), "a held list goes on");
  await dashboard.press("Go on");
  await dashboard.says("4712", "ol.tail");
  await dashboard.isSound("the tail");
}

export async function state_and_waiting_entries_are_read({ dashboard, api }) {
  await dashboard.at("#/key/probe/retry-me");
  await dashboard.press("Show: probe");
  await dashboard.says("from the head on");
  await dashboard.says(await api.head("retry-me"), ".record");
  await dashboard.isSound("a key with its state");
}

/** In the page: goes to the keys, and presses / when their search is drawn. Where the focus is then, and a while later. */
function pressSlashAsSoonAsItCan() {
  return new Promise((resolve) => {
    const watcher = new MutationObserver(() => {
      if (!document.querySelector("[data-search=page]")) return;
      watcher.disconnect();
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "/", bubbles: true }));
      const had = document.activeElement.tagName;
      // The title is set where the focus is moved.
      const timer = setInterval(() => {
        if (!document.title.startsWith("Keys")) return;
        clearInterval(timer);
        resolve({ had, has: document.activeElement.tagName });
      }, 10);
    });
    watcher.observe(document.body, { childList: true, subtree: true });
    location.hash = "#/keys";
  });
}

export async function the_keyboard_is_enough({ dashboard, api }) {
  const { keyboard } = dashboard.page;
  await dashboard.at("#/");
  await dashboard.says("Categories");
  await dashboard.page.evaluate(() => document.activeElement?.blur());
  await keyboard.press("?");
  await dashboard.says("This list", "dialog");
  await keyboard.press("Escape");
  await until("the dialog is closed", async () => (await dashboard.page.$("dialog")) === null);
  await keyboard.press("g");
  await keyboard.press("h");
  await dashboard.says("until you decide");
  await until("the heading has the focus", () => dashboard.page.evaluate(() => document.activeElement.tagName === "H1"));
  // Who presses / as soon as the field is there keeps it: the heading of a new page does not take the focus away.
  const { had, has } = await dashboard.page.evaluate(pressSlashAsSoonAsItCan);
  assert.deepEqual([had, has], ["INPUT", "INPUT"], "the focus left the search");
  // A dialog keeps the focus, and gives it back.
  await dashboard.at("#/key/probe/retry-me");
  await dashboard.says("Retry…");
  await dashboard.page.focus(".decide button");
  await keyboard.press("Enter");
  await dashboard.says(`Retry ${await api.head("retry-me")}?`, "dialog");
  await dashboard.isSound("a dialog");
  for (let n = 0; n < 12; n += 1) {
    await keyboard.press("Tab");
    assert.ok(await dashboard.page.evaluate(() => document.activeElement === document.body || document.activeElement.closest("dialog") !== null), "the focus left the dialog");
  }
  await keyboard.press("Escape");
  await until("the dialog is closed, and the focus is back", () => dashboard.page.evaluate(() => document.activeElement.innerText === "Retry…"));
}
