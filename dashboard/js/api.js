// Requests to the host, and what can go wrong with them.

import { parse } from "./json.js";
import { askForToken, session } from "./session.js";

const TIMEOUT_MS = 20_000;
/** Pages of a listing that one look follows. */
const PAGES_MAX = 40;

/** A request that failed. `kind` is the host's (`conflict`, `unknown`, …), or `unreachable`. */
export class ApiError extends Error {
  constructor(kind, message, { status = 0, retry_after_s = null } = {}) {
    super(message);
    this.kind = kind;
    this.status = status;
    this.retry_after_s = retry_after_s;
  }
}

export function get(path, query, signal) {
  return request("GET", path, { query, signal });
}

/**
 * Rows of a listing from `cursor` on, and where to go on: pages are followed, since one may be short or empty, until there are
 * `rows_max` rows or enough was asked. `tell(asked)` hears of each request.
 */
export async function rowsOf(path, query, { cursor = null, rows_max = Infinity, signal, tell = () => {} }) {
  const rows = [];
  let next = cursor;
  for (let asked = 1; asked <= PAGES_MAX; asked += 1) {
    const page = await get(path, { ...query, cursor: next }, signal);
    rows.push(...page.rows);
    next = page.next ?? null;
    tell(asked);
    if (next === null || rows.length >= rows_max) break;
  }
  return { rows, next };
}

export function post(path, body) {
  return request("POST", path, { body });
}

async function request(method, path, { query, body, signal }) {
  const response = await open(method, path, { query, body, signal, limit_ms: TIMEOUT_MS });
  try {
    return parse(await response.text());
  } catch (error) {
    throw new ApiError("failed", `the host's answer to ${path} cannot be read: ${error.message}`);
  }
}

/**
 * The response, which is a good one; asks for a token where one is needed. `limit_ms` is for the whole of it; without one, only its
 * head must come in time.
 */
export async function open(method, path, { query, body, signal, limit_ms = null, accept = "application/json" } = {}) {
  for (;;) {
    const { token } = session.value;
    const response = await send(method, address(path, query), { token, body, signal, limit_ms, accept });
    if (response.ok) return response;
    if (response.status !== 401) throw await failure(response);
    // Somebody may have given another token while this was under way.
    if (session.value.token !== token) continue;
    if (!(await askForToken(token !== null))) throw await failure(response);
  }
}

async function send(method, url, { token, body, signal, limit_ms, accept }) {
  const headers = { accept };
  if (token) headers.authorization = `Bearer ${token}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  const sent = body === undefined ? undefined : JSON.stringify(body);
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new Error("late")), limit_ms ?? TIMEOUT_MS);
  const either = signal ? AbortSignal.any([signal, late.signal]) : late.signal;
  try {
    return await fetch(url, { method, headers, body: sent, signal: either, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError("unreachable", late.signal.aborted ? `no answer within ${TIMEOUT_MS / 1000} s` : "the host does not answer");
  } finally {
    if (limit_ms === null) clearTimeout(timer);
  }
}

async function failure(response) {
  const text = await response.text().catch(() => "");
  const retry = Number(response.headers.get("retry-after"));
  const more = { status: response.status, retry_after_s: retry > 0 ? retry : null };
  try {
    const { error, kind } = JSON.parse(text);
    if (typeof error === "string") return new ApiError(kind ?? "failed", error, more);
  } catch {
    // Something between the host and here answered: its own words follow.
  }
  return new ApiError("failed", text.trim().slice(0, 300) || `status ${response.status}`, more);
}

/** Parts that are not given are left out. */
function address(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(given).toString();
  return text ? `${path}?${text}` : path;
}

/** A path of parts, each taken as it is. */
export function path(parts, ...values) {
  return parts.reduce((all, part, n) => all + encodeURIComponent(values[n - 1]) + part);
}
