// The pictures of the documentation, of a real fleet: three hosts on a Redis of their own, real flights, two of them broken.
//
//     node tests/dashboard/screenshots.mjs KEYRAIL GUESTS [FOLDER]
//
// KEYRAIL is the program, GUESTS the folder of built components; the pictures go to docs/images unless FOLDER says otherwise.

import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { launch } from "./browser.mjs";
import { Api, Dashboard, until } from "./drive.mjs";

const [keyrail, guests, folder = fileURLToPath(new URL("../../docs/images", import.meta.url))] = process.argv.slice(2);
const FLIGHTS = fileURLToPath(new URL("../../examples/flights/sample.jsonl.gz", import.meta.url));
const HOSTS = 3;
const PICTURE_MAX_BYTES = 200_000;
/** Published again and again under new ids, so that there are rates to be seen. */
const BATCH = 40;
const BATCH_EVERY_MS = 250;
const WATCHED_MS = 60_000;

const work = mkdtempSync(join(tmpdir(), "keyrail-pictures-"));
const children = [];

function start(program, args, log) {
  const child = spawn(program, args, { cwd: work, stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  child.stdout.on("data", (text) => log?.(String(text)));
  return child;
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** The address of the first host's API. */
async function fleet() {
  const redis = await freePort();
  start("redis-server", ["--port", String(redis), "--save", "", "--appendonly", "no", "--bind", "127.0.0.1"]);
  const broker = `redis://127.0.0.1:${redis}`;
  const run = (...args) => execFileSync(keyrail, ["--broker", broker, ...args], { cwd: work, stdio: ["ignore", "ignore", "inherit"] });
  await until("Redis answers", () => new Promise((resolve) => {
    const probe = spawn("redis-cli", ["-p", String(redis), "ping"]);
    probe.on("exit", (code) => resolve(code === 0));
  }));
  const port = await freePort();
  for (let n = 0; n < HOSTS; n += 1) {
    const listen = n === 0 ? `127.0.0.1:${port}` : "off";
    start(keyrail, ["--broker", broker, "run", "--set", `http.listen=${listen}`, "--set", "engine.retry.attempts_max=2", "--set", "engine.retry.backoff_base_ms=10"]);
  }
  const api = new Api(`http://127.0.0.1:${port}`, null);
  await until("the hosts are up", async () => (await api.get("/v1/overview")).hosts.length === HOSTS);
  run("deploy", join(guests, "itinerary.wasm"), "--reason", "the first release", "--as", "ann@ci");
  run("deploy", join(guests, "order-fulfilment.wasm"), "--reason", "the shop moves in", "--as", "ann@ci");
  run("deploy", join(guests, "order-process.wasm"), "--reason", "the shop moves in", "--as", "ann@ci");
  run("deploy", join(guests, "counter-1.wasm"), "--reason", "counts", "--as", "ann@ci");
  run("deploy", join(guests, "counter-3.wasm"), "--canary", "5%", "--reason", "counts in lists too", "--as", "bob@ci");
  return api;
}

/** Real flights without end; an order now and then. */
function traffic(api) {
  const flights = gunzipSync(readFileSync(FLIGHTS)).toString().trim().split("\n").map((line) => JSON.parse(line));
  let at = 0;
  const timer = setInterval(() => {
    const events = Array.from({ length: BATCH }, () => {
      const flight = flights[at % flights.length];
      at += 1;
      return { ...flight, id: `${flight.id}-${Math.floor(at / flights.length)}` };
    });
    const order = { category: "order", type: "OrderPlaced", data: { order_id: `o${at}`, customer: `c${at % 97}`, amount_cents: 900 + (at % 700) } };
    api.post("/v1/events", events).catch((error) => console.error(error.message));
    api.post("/v1/events", order).catch((error) => console.error(error.message));
  }, BATCH_EVERY_MS);
  return () => clearInterval(timer);
}

/** A late arrival, and then a departure whose time the handler cannot read: the aircraft stands still. */
async function broken(api, tail_number, at) {
  const flight = { tail_number, carrier: "B6", flight: 1806, origin: "JFK", destination: "BOS" };
  await api.post("/v1/events", [
    { category: "flight", type: "FlightArrived", data: { ...flight, at: "2013-01-31T10:17:00Z", delay_minutes: 42 } },
    { category: "flight", type: "FlightDeparted", headers: { traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" }, data: { ...flight, at, delay_minutes: 55 } },
    { category: "flight", type: "FlightArrived", data: { ...flight, at: "2013-01-31T14:02:00Z", delay_minutes: 51 } },
  ]);
}

async function picture(dashboard, name, clip = undefined) {
  const path = join(folder, `dashboard-${name}.png`);
  await dashboard.page.screenshot({ path, clip });
  const { size } = statSync(path);
  if (size > PICTURE_MAX_BYTES) throw new Error(`${path} has ${size} bytes`);
  console.log(`${path}: ${size} bytes`);
}

const browser = await launch();
try {
  mkdirSync(folder, { recursive: true });
  const api = await fleet();
  const stop = traffic(api);
  const dashboard = await Dashboard.open(browser, api.url);
  await dashboard.says("itinerary");
  await broken(api, "N708JB", "2013-01-31 11:05");
  await broken(api, "N3DUAA", "31 Jan 2013 11:20");
  await until("both stand still", async () => (await api.all("/v1/halted")).length === 2);
  await new Promise((resolve) => setTimeout(resolve, WATCHED_MS));
  await picture(dashboard, "overview");
  await dashboard.at("#/keys?category=flight");
  await dashboard.says("flight/N");
  await picture(dashboard, "keys");
  await dashboard.at("#/key/flight/N708JB");
  await dashboard.says("not a UTC time");
  await picture(dashboard, "key");
  await dashboard.press("Skip…");
  await dashboard.fill("dialog input[name=reason]", "the airline sent it twice, the second is right");
  await dashboard.fill("dialog input[name=who]", "ann");
  await picture(dashboard, "skip");
  await dashboard.press("Cancel");
  await dashboard.at("#/handler/counter");
  await dashboard.says("canary");
  await picture(dashboard, "handler");
  const dark = await Dashboard.open(browser, api.url, { theme: "dark" });
  await dark.at("#/tail?data=true");
  await dark.says("flight/N", "ol.tail");
  await dark.page.bringToFront();
  await picture(dark, "tail-dark", { x: 0, y: 0, width: 1440, height: 620 });
  stop();
} finally {
  await browser.close();
  for (const child of children.reverse()) child.kill("SIGTERM");
  await Promise.all(children.map((child) => child.exitCode ?? new Promise((resolve) => child.on("exit", resolve))));
  rmSync(work, { recursive: true });
}
