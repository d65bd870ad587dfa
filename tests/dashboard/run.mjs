// Drives a real Chromium through the dashboard of a running host, and checks by the API that what was done has happened.
//
//     node tests/dashboard/run.mjs URL [--only STORY]
//
// Where the host asks for tokens, KEYRAIL_TOKEN may do everything and KEYRAIL_READ_TOKEN may read. It starts
// nothing: `tests/tests/dashboard.rs` prepares the fleet. When the host must be away it prints `stop`, and waits for a line on its
// standard input that says it is; likewise `start`.

import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { launch } from "./browser.mjs";
import { Api, Dashboard } from "./drive.mjs";
import * as connection from "./stories/connection.mjs";
import * as handlers from "./stories/handlers.mjs";
import * as heads from "./stories/heads.mjs";
import * as looking from "./stories/looking.mjs";
import * as pauses from "./stories/pauses.mjs";

const LIMIT_MS = 10 * 60_000;

/** In this order: later ones build on what earlier ones did. */
const STORIES = [
  heads.a_halted_key_is_found_and_understood,
  looking.every_page_is_sound,
  looking.every_page_is_sound_small_and_dark,
  looking.keys_are_found_by_prefix_exactly_and_by_state,
  looking.many_keys_are_paged,
  looking.the_tail_shows_what_is_published,
  looking.state_and_waiting_entries_are_read,
  looking.the_keyboard_is_enough,
  heads.a_retry_gives_all_tries_again,
  heads.a_head_is_skipped,
  heads.who_was_slower_is_told_how_it_is_now,
  heads.a_head_is_set_aside_redriven_and_purged,
  heads.heads_of_one_fault_are_retried_together,
  pauses.a_key_is_paused_and_resumed,
  pauses.a_category_is_paused_and_resumed,
  handlers.a_canary_is_promoted_rolled_back_and_undeployed,
  connection.a_token_is_asked_for_and_its_role_respected,
  connection.a_hidden_tab_rests_and_comes_back,
  connection.a_host_that_is_away_is_told_and_found_again,
];

/** Runs the stories; answers with the names of those that failed. */
export async function tell({ url, token = null, read_token = null, only = null, host }) {
  const browser = await launch();
  const api = new Api(url, token);
  const failed = [];
  try {
    const dashboard = await Dashboard.open(browser, url, { token });
    const narrow = await Dashboard.open(browser, url, { token, size: "small", theme: "dark" });
    await dashboard.says("Live");
    // The browser tells its console of the first 401.
    dashboard.errors.length = narrow.errors.length = 0;
    const tokens = token && { all: token, read: read_token };
    for (const story of STORIES) {
      const { name } = story;
      if (only && !name.includes(only)) continue;
      await dashboard.page.bringToFront();
      try {
        await story({ browser, dashboard, narrow, api, url, tokens, host });
        console.log(`ok ${name}`);
      } catch (error) {
        failed.push(name);
        console.log(`FAILED ${name}: ${error.stack}`);
        // The next story finds no dialog in its way.
        await dashboard.page.reload();
        dashboard.errors.length = 0;
      }
    }
  } finally {
    await browser.close();
  }
  return failed;
}

/** Asks whoever started this. */
function byLines() {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const ask = async (what) => {
    console.log(what);
    await lines.next();
  };
  return { stop: () => ask("stop"), start: () => ask("start") };
}

if (import.meta.filename === process.argv[1]) {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { only: { type: "string" } } });
  setTimeout(() => {
    console.log("FAILED: it takes too long");
    process.exit(1);
  }, LIMIT_MS).unref();
  const { KEYRAIL_TOKEN: token = null, KEYRAIL_READ_TOKEN: read_token = null } = process.env;
  const failed = await tell({ url: positionals[0], token, read_token, only: values.only, host: byLines() });
  console.log(failed.length === 0 ? "all is well" : `${failed.length} failed: ${failed.join(", ")}`);
  process.exit(failed.length === 0 ? 0 : 1);
}
