// Chromium, driven. The two packages that this takes are no part of the repository: they are installed, pinned, into a cache.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";

const PACKAGES = { "puppeteer-core": "24.43.1", "axe-core": "4.14.1" };
const CHROMIUMS = [process.env.KEYRAIL_CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
export const SIZES = { large: [1440, 900], medium: [1024, 768], small: [390, 844] };

/** The folder with the packages; installs them the first time. */
function tools() {
  const cache = process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache");
  const folder = join(cache, "keyrail", "tools", `dashboard-${Object.values(PACKAGES).join("-")}`);
  if (!existsSync(join(folder, "node_modules", "axe-core"))) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, dependencies: PACKAGES }));
    // No package's own scripts run.
    execFileSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], { cwd: folder, stdio: "inherit" });
  }
  return createRequire(join(folder, "package.json"));
}

/** A running browser; `close()` ends it. */
export async function launch() {
  const executablePath = CHROMIUMS.find((one) => one && existsSync(one));
  if (!executablePath) throw new Error("no Chromium: install Debian's package `chromium`, or name one in KEYRAIL_CHROMIUM");
  const puppeteer = tools()("puppeteer-core");
  return puppeteer.launch({ executablePath, headless: true, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--lang=en-GB"] });
}

/** What axe finds wrong with the page, a line each. */
export async function axe(page) {
  const { source } = tools()("axe-core");
  await page.evaluate(source);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
  return violations.flatMap(({ id, help, nodes }) => nodes.map((node) => `${id}: ${help}: ${node.target.join(" ")} ${node.failureSummary?.split("\n")[1] ?? ""}`));
}

/** A page of this size and theme; everything that goes wrong in it is kept in `errors`. */
export async function open(browser, size, theme = "light") {
  const page = await browser.newPage();
  const [width, height] = SIZES[size];
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }, { name: "prefers-reduced-motion", value: "reduce" }]);
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("dialog", (dialog) => {
    errors.push(`a script in the data ran: ${dialog.message()}`);
    dialog.dismiss();
  });
  return { page, errors };
}
