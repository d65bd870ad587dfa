// Pictures of every page on the mock, to be looked at: 3 fleets, 3 sizes, light and dark. And axe on each of them.
//
//     node tests/dashboard/looks.mjs FOLDER [FLEET] [SIZE] [PAGE]

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { SIZES, axe, launch, open } from "./browser.mjs";
import { start } from "./mock.mjs";

const [folder, only_fleet, only_size, only_page] = process.argv.slice(2);
const AWKWARD = encodeURIComponent("<img src=x onerror=alert(1)>");
const PAGES = {
  overview: "", hosts: "hosts", categories: "categories", keys: "keys", "keys-halted": "keys?status=halted", key: "key/order/client-42", awkward: `key/order/${AWKWARD}`, halted: "halted",
  handlers: "handlers", handler: "handler/billing", letters: "dead-letters", letter: "dead-letter/order/3-0?key=client-9", paused: "paused", audit: "audit", tail: "tail?data=true",
};

mkdirSync(folder, { recursive: true });
const browser = await launch();
let faults = 0;
for (const fleet of only_fleet ? [only_fleet] : ["empty", "normal", "broken"]) {
  const mock = await start({ fleet });
  for (const size of only_size ? [only_size] : Object.keys(SIZES)) {
    for (const theme of ["light", "dark"]) {
      const { page, errors } = await open(browser, size, theme);
      await page.goto(`${mock.url}/ui/`);
      await new Promise((resolve) => setTimeout(resolve, fleet === "empty" ? 800 : 6_000));
      for (const [name, place] of Object.entries(PAGES).filter(([name]) => !only_page || name === only_page)) {
        await page.evaluate((hash) => void (location.hash = hash), `#/${place}`);
        await new Promise((resolve) => setTimeout(resolve, 700));
        await page.screenshot({ path: join(folder, `${fleet}-${name}-${size}-${theme}.png`), fullPage: false });
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        // The empty fleet has no such letter, and the browser tells its console of the 404.
        const told = errors.splice(0).filter((error) => !(fleet === "empty" && error.includes("404")));
        const found = [...(await axe(page)), ...told, ...(wide > 0 ? [`it is ${wide} px too wide`] : [])];
        for (const fault of found) console.log(`${fleet} ${name} ${size} ${theme}: ${fault}`);
        faults += found.length;
      }
      await page.close();
    }
  }
  mock.close();
}
await browser.close();
console.log(faults === 0 ? "nothing found" : `${faults} faults`);
process.exitCode = faults === 0 ? 0 : 1;
