// The dashboard's files and a made-up API, to look at the dashboard without a fleet.
//
//     node tests/dashboard/mock.mjs [--fleet empty|normal|broken] [--port 7499] [--token TOKEN]

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Fleet, KEYS, at } from "./fleet.mjs";

// A number that a double cannot hold goes through as text does.
const parse = (text) => JSON.parse(text.replace(/:(\d{17,})/g, ":\"$1\""));

const FILES = fileURLToPath(new URL("../../dashboard/", import.meta.url));
const TYPES = { ".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml" };
/** As `host/src/api/server/dashboard.rs` has it. */
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const PAGE = 50;

/** Serves until `close()`. */
export async function start({ fleet: kind = "normal", port = 0, token = null, read_token = null } = {}) {
  const fleet = typeof kind === "string" ? new Fleet(kind) : kind;
  const server = createServer((request, response) => {
    answer(fleet, { token, read_token }, request, response).catch((error) => fail(response, 500, "failed", String(error.stack)));
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, fleet, close: () => (server.closeAllConnections(), server.close()) };
}

async function answer(fleet, { token, read_token }, request, response) {
  const url = new URL(request.url, "http://mock");
  if (!url.pathname.startsWith("/v1/")) return file(url.pathname, response);
  const given = request.headers.authorization?.replace(/^Bearer /, "");
  if (token && given !== token && given !== read_token) return fail(response, 401, "unauthorized", "a bearer token is needed");
  if (token && given === read_token && request.method !== "GET") return fail(response, 403, "forbidden", "this token may read; the action needs the role operate");
  const parts = url.pathname.slice(4).split("/").map(decodeURIComponent);
  const query = Object.fromEntries(url.searchParams);
  if (parts[0] === "live") return live(fleet, response);
  if (parts[0] === "tail") return tail(fleet, query, response);
  if (request.method === "GET") return read(fleet, parts, query, response);
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return act(fleet, parts, parse(Buffer.concat(pieces).toString() || "{}"), response);
}

async function file(path, response) {
  if (path === "/") {
    response.writeHead(308, { location: "/ui/" });
    return response.end();
  }
  const name = normalize(path.replace(/^\/ui\/?/, "") || "index.html");
  try {
    const bytes = name.startsWith("..") ? null : await readFile(join(FILES, name));
    response.writeHead(200, { "content-type": TYPES[extname(name)] ?? "text/plain", "content-security-policy": POLICY, "x-content-type-options": "nosniff", "cache-control": "no-cache" });
    return response.end(bytes);
  } catch {
    return fail(response, 404, "unknown", `no such path: ${path}`);
  }
}

function send(response, body) {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

function fail(response, status, kind, error) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ error, kind }));
}

function stream(response) {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
  response.write(": hello\n\n");
  return (event, data) => response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

function live(fleet, response) {
  const tell = stream(response);
  let halted = null;
  const beat = () => {
    tell("overview", fleet.overview());
    const now = JSON.stringify(fleet.halts);
    if (now !== halted) tell("halted", { rows: fleet.halts.slice(0, PAGE), next: null });
    halted = now;
  };
  beat();
  const timer = setInterval(beat, 1_000);
  response.on("close", () => clearInterval(timer));
}

function tail(fleet, { category, key, data }, response) {
  const tell = stream(response);
  let n = 0;
  if (fleet.tails) return followed(fleet, { category, key, data }, tell, response);
  const timer = setInterval(() => {
    for (let burst = 0; burst < 4; burst += 1) {
      n += 1;
      const one = { at: at(0), category: n % 5 ? "order" : "flight", key: n % 5 ? `client-${n % 60}` : `D-A${n % 9}`, entry: `1-${9_000 + n}`, type: n % 5 ? "OrderPlaced" : "FlightLanded", id: `e-${n}`, version: 1 };
      if ((category && one.category !== category) || (key && one.key !== key)) continue;
      tell("entry", data === "true" ? { ...one, headers: {}, data: fleet.event(n).data } : one);
    }
    if (n % 80 === 0) tell("missed", { count: 7 });
  }, 300);
  response.on("close", () => clearInterval(timer));
}

function followed(fleet, { category, key, data }, tell, response) {
  const hear = (event) => (!category || event.category === category) && (!key || event.key === key) && tell("entry", data === "true" ? event : { ...event, data: undefined });
  fleet.tails.add(hear);
  response.on("close", () => fleet.tails.delete(hear));
}

function read(fleet, [noun, ...rest], query, response) {
  const some = (rows) => {
    const from = Number(query.cursor?.split(".")[1] ?? 0);
    const limit = Math.min(Number(query.limit ?? PAGE), PAGE);
    return send(response, { rows: rows.slice(from, from + limit), next: from + limit < rows.length ? `0.${from + limit}` : null });
  };
  switch (noun) {
    case "overview":
      return send(response, fleet.overview());
    case "members":
      return send(response, { members: fleet.overview().hosts });
    case "partitions":
      return partitions(fleet, query, response);
    case "halted":
      return some(fleet.halts.filter((one) => (!query.category || one.category === query.category) && (!query.group || one.group === query.group)));
    case "heads":
      return send(response, { heads: heads(fleet, rest[0], query) });
    case "recordings":
      return recording(fleet, rest[0], query, response);
    case "dead-letters": {
      const rows = fleet.letters.filter((one) => (!query.category || one.category === query.category) && (!query.key || one.key === query.key));
      if (rest.length === 0) return some(rows);
      const letter = fleet.letters.find((one) => one.category === rest[0] && one.id === rest[1] && one.key === (query.key ?? null));
      return letter ? send(response, letter) : fail(response, 404, "unknown", `there is no dead letter ${rest[1]} in ${rest[0]}; see keyrail dlq list ${rest[0]}`);
    }
    case "paused":
      return send(response, { paused: fleet.pauses });
    case "audit":
      return some(fleet.audit);
    case "handlers": {
      const { hosts } = fleet.overview();
      const handlers = fleet.deployed.map((view) => ({ ...view, hosts: hosts.flatMap(({ owner, held }) => held.filter(({ group }) => group === view.handler).map((one) => ({ host: owner, revision: one.revision, version: one.version, state: one.state, usage: one.usage }))) }));
      return send(response, { handlers });
    }
    default:
      return fail(response, 404, "unknown", "no such path; see /v1/");
  }
}

/** Looks through 3,000 keys a request, so that a rare one takes several. */
function partitions(fleet, query, response) {
  if (fleet.rows) return kept(fleet, query, response);
  if (fleet.kind === "empty" || (query.category && query.category !== "order") || (query.group && query.group !== "billing")) return send(response, { rows: [], next: null });
  const limit = Math.min(Number(query.limit ?? PAGE), 100);
  const rows = [];
  let n = Number(query.cursor?.split(".")[1] ?? 0);
  const end = Math.min(KEYS, n + 3_000);
  for (; n < end && rows.length < limit; n += 1) {
    const row = fleet.row(n);
    const is_wanted = (!query.key || row.key === query.key) && (!query.prefix || row.key.startsWith(query.prefix)) && matches(row, query.status);
    if (is_wanted) rows.push(row);
  }
  return send(response, { rows, next: n < KEYS ? `0.${n}` : null });
}

function kept(fleet, query, response) {
  const rows = fleet.rows().filter((row) => (!query.category || row.category === query.category) && (!query.group || row.group === query.group) && (!query.key || row.key === query.key) && (!query.prefix || row.key.startsWith(query.prefix)) && matches(row, query.status));
  const from = Number(query.cursor?.split(".")[1] ?? 0);
  const end = from + Math.min(Number(query.limit ?? PAGE), PAGE);
  send(response, { rows: rows.slice(from, end), next: end < rows.length ? `0.${end}` : null });
}

function matches(row, status) {
  if (!status) return true;
  if (status === "waiting") return row.waiting > 0;
  return status === "halted" ? row.halted !== null : row[status];
}

function heads(fleet, category, { key, group }) {
  const halted = fleet.head(category, key, group ?? fleet.group);
  if (halted) return [halted];
  if (fleet.rows) return fleet.rows().filter((row) => row.category === category && row.key === key && row.waiting > 0).map((row) => fleet.runningHead(row));
  const number = /^client-(\d+)$/.exec(key)?.[1];
  const row = category === "order" && number ? fleet.row(Number(number)) : null;
  return row && row.waiting > 0 ? [fleet.runningHead(row)] : [];
}

function recording(fleet, category, { key, group }, response) {
  const entries = Array.from({ length: 12 }, (_, n) => {
    const event = fleet.event(n);
    return { entry: `1-${n + 1}`, lane: "primary", recorded_at_ms: Date.now() - 700_000 + n * 900, id: event.id, category, type: event.type, version: event.version, key, headers: [], data: { json: event.data } };
  });
  send(response, { group, handler_version: "1.4.0", scope: {}, key_rules: {}, categories: {}, state: [["billed_cents", { json: 128_300 }], ["last", { json: { order: "o-77", at: at(-700_000) } }]], entries, failed_tries: 0 });
}

function act(fleet, [noun, name, third, fourth], body, response) {
  const done = (action, target, entry, answer = {}) => {
    fleet.record(action, target, entry, body.by);
    return send(response, { changed: true, ...answer });
  };
  if (noun === "events") {
    const events = [body].flat();
    for (const event of events) fleet.publish?.(event);
    return send(response, { events: events.map((_, n) => ({ id: `m-${n}`, entry: "1-1", duplicate: false })) });
  }
  if (noun === "heads") {
    const place = fleet.halts.findIndex((one) => one.category === name && one.key === body.key && one.group === body.group);
    const head = fleet.halts[place]?.head;
    if (head !== body.expect) return fail(response, 409, "conflict", `${body.expect} is not the head of ${name}/${body.key} (${body.group}) any more${head ? `: ${head} is` : ": everything there is settled"}; nothing was changed`);
    const [halted] = fleet.halts.splice(place, 1);
    fleet.after?.(third, halted);
    if (third === "set-aside") fleet.letters.push({ id: `9-${place}`, category: name, key: body.key, group: body.group, origin: head, lane: "primary", attempts: halted.attempts, error: halted.error, ...body.by, at: at(0), event: fleet.event(1) });
    return done(third, `${name}/${body.key} (${body.group})`, head);
  }
  if (noun === "dead-letters") {
    const place = fleet.letters.findIndex((one) => one.category === name && one.id === third && one.key === (body.key ?? null));
    if (place < 0) return fail(response, 404, "unknown", `there is no dead letter ${third} in ${name}`);
    const [letter] = fleet.letters.splice(place, 1);
    fleet.after?.(fourth, letter);
    return done(fourth, name, third, fourth === "redrive" ? { entry: "1-9001" } : {});
  }
  if (noun === "categories") {
    const key = body.key ?? null;
    const same = (one) => one.category === name && one.key === key;
    const was = fleet.pauses.some(same);
    fleet.pauses = fleet.pauses.filter((one) => !same(one));
    if (third === "pause") fleet.pauses.push({ category: name, key, ...body.by, at: at(0) });
    return done(third, key === null ? name : `${name}/${key}`, "", { changed: was !== (third === "pause") });
  }
  const view = fleet.deployed.find(({ handler }) => handler === name);
  if (!view) return fail(response, 404, "unknown", `no handler named ${name}`);
  if (third === "promote" && !view.candidate) return fail(response, 409, "conflict", `${name} has no canary`);
  if (third === "promote") view.serving = view.revisions.find(({ revision }) => revision === view.candidate.revision);
  if (third === "rollback" && !view.candidate) view.serving = view.revisions.find(({ revision }) => (body.to ? revision === body.to : revision < (view.serving?.revision ?? 99))) ?? view.serving;
  if (third === "undeploy") view.serving = null;
  view.candidate = null;
  return done(third, name, "");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({ options: { fleet: { type: "string", default: "normal" }, port: { type: "string", default: "7499" }, token: { type: "string" } } });
  const mock = await start({ fleet: values.fleet, port: Number(values.port), token: values.token ?? null });
  console.log(`the ${values.fleet} fleet is at ${mock.url}`);
}
