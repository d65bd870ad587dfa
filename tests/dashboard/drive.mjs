// The dashboard as a user drives it, and the API beside it to see what happened. Buttons and links are found by what a screen reader
// calls them.

import assert from "node:assert/strict";
import { axe, open } from "./browser.mjs";

const PATIENCE_MS = 30_000;
const LOOK_EVERY_MS = 100;

/** Waits until the answer is true, or fails saying what never came. */
export async function until(what, condition) {
  const end_ms = Date.now() + PATIENCE_MS;
  let last;
  while (Date.now() < end_ms) {
    try {
      last = await condition();
      if (last) return last;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
  throw new Error(`never: ${what}${last instanceof Error ? ` (${last.message})` : ""}`);
}

/** The API with a token. */
export class Api {
  constructor(url, token) {
    this.url = url;
    this.token = token;
  }

  /** A body that is text goes as it is. */
  async send(method, path, body) {
    const headers = { ...(this.token && { authorization: `Bearer ${this.token}` }), ...(body !== undefined && { "content-type": "application/json" }) };
    const response = await fetch(this.url + path, { method, headers, body: typeof body === "object" ? JSON.stringify(body) : body });
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw Object.assign(new Error(`${method} ${path}: ${response.status} ${answer.error}`), { status: response.status });
    return answer;
  }

  get(path) {
    return this.send("GET", path);
  }

  post(path, body) {
    return this.send("POST", path, body);
  }

  publish(category, type, data) {
    return this.post("/v1/events", { category, type, data });
  }

  /** Every row of a listing. */
  async all(path) {
    const rows = [];
    let cursor = null;
    do {
      const query = cursor === null ? "" : `${path.includes("?") ? "&" : "?"}cursor=${encodeURIComponent(cursor)}`;
      const page = await this.get(path + query);
      rows.push(...page.rows);
      cursor = page.next ?? null;
    } while (cursor !== null);
    return rows;
  }

  async isHalted(key) {
    return (await this.all("/v1/halted")).some((row) => row.key === key);
  }

  /** The entry that a key of the probe stands on. */
  async head(key) {
    return (await this.get(`/v1/heads/probe?key=${encodeURIComponent(key)}`)).heads[0].entry;
  }

  /** The last action on record. */
  async lastAction() {
    return (await this.get("/v1/audit")).rows[0];
  }
}

export class Dashboard {
  /** `token` is given in the dialog if it is asked for. */
  static async open(browser, url, { token = null, size = "large", theme = "light" } = {}) {
    const { page, errors } = await open(browser, size, theme);
    const dashboard = new Dashboard(page, errors, url);
    await page.goto(`${url}/`);
    if (token !== null) await dashboard.giveToken(token);
    return dashboard;
  }

  constructor(page, errors, url) {
    this.page = page;
    this.errors = errors;
    this.url = url;
  }

  async giveToken(token) {
    await this.fill("dialog input[name=token]", token);
    await this.press("Use it");
  }

  /** Goes to a page of the dashboard by its address. */
  async at(hash) {
    await this.page.evaluate((to) => void (location.hash = to), hash);
  }

  /** Presses the button of this name. */
  async press(name) {
    await this.#click("button", name);
  }

  async follow(name) {
    await this.#click("link", name);
  }

  async #click(role, name) {
    await this.locate(`::-p-aria([name="${name}"][role="${role}"])`)
      .click()
      .catch(async (error) => {
        throw new Error(`no ${role} ${JSON.stringify(name)} to press (${error.message}); the page says: ${(await this.text()).slice(0, 1_500)}`);
      });
  }

  async fill(selector, text) {
    await this.locate(selector).fill(text);
  }

  locate(selector) {
    return this.page.locator(selector).setTimeout(PATIENCE_MS);
  }

  async text(selector = "#app") {
    return this.page.$eval(selector, (element) => element.innerText);
  }

  /** Waits until the page says this. */
  async says(text, selector) {
    let seen = "";
    await until(`the page says ${JSON.stringify(text)}`, async () => {
      seen = await this.text(selector);
      return seen.includes(text);
    }).catch(async (error) => {
      throw new Error(`${error.message}; it says: ${(seen || (await this.text())).slice(0, 1_500)}`);
    });
  }

  async isGone(text, selector) {
    await until(`the page does not say ${JSON.stringify(text)} any more`, async () => !(await this.text(selector)).includes(text));
  }

  /** Answers the question before an action, which must show these texts. */
  async decide({ reason, shows = [], button }) {
    for (const text of shows) await this.says(text, "dialog");
    await this.fill("dialog input[name=reason]", reason);
    await this.fill("dialog input[name=who]", "dashboard-test");
    const command = await this.text("dialog .command pre");
    assert.ok(command.includes("keyrail --host") && command.includes(reason.split(" ")[0]), `the command line names it all: ${command}`);
    await this.press(button);
  }

  /** Nothing broke in the page, no script of the data ran, and axe finds nothing. */
  async isSound(place) {
    assert.deepEqual(await axe(this.page), [], `axe on ${place}`);
    assert.deepEqual(this.errors, [], `errors of the browser on ${place}`);
  }

  close() {
    return this.page.close();
  }
}
