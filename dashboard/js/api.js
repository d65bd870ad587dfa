// Requests to the host, and what can go wrong with them.

import { parse } from "./json.js";
import { askForToken, session } from "./session.js";

const TIMEOUT_MS = 20_000;

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

export function post(path, body) {
  return request("POST", path, { body });
}

async function request(method, path, { query, body, signal }) {
  const response = await open(method, path, {
    query,
    body,
    signal: within(TIMEOUT_MS, signal),
  });
  try {
    return parse(await response.text());
  } catch (error) {
    throw new ApiError("failed", `the host's answer to ${path} cannot be read: ${error.message}`);
  }
}

/** The response, which is a good one; asks for a token where one is needed. */
export async function open(method, path, { query, body, signal, accept = "application/json" } = {}) {
  for (;;) {
    const { token } = session.value;
    const response = await send(method, address(path, query), { token, body, signal, accept });
    if (response.ok) return response;
    if (response.status !== 401) throw await failure(response);
    // Somebody may have given another token while this was under way.
    if (session.value.token !== token) continue;
    if (!(await askForToken(token !== null))) throw await failure(response);
  }
}

async function send(method, url, { token, body, signal, accept }) {
  const headers = { accept };
  if (token) headers.authorization = `Bearer ${token}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  const sent = body === undefined ? undefined : JSON.stringify(body);
  try {
    return await fetch(url, { method, headers, body: sent, signal, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (signal?.aborted && signal.reason?.name === "AbortError") throw error;
    if (error.name === "TimeoutError") throw new ApiError("unreachable", `no answer within ${TIMEOUT_MS / 1000} s`);
    throw new ApiError("unreachable", "the host does not answer");
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

function within(limit_ms, signal) {
  const limit = AbortSignal.timeout(limit_ms);
  return signal ? AbortSignal.any([signal, limit]) : limit;
}

/** A path of parts, each taken as it is. */
export function path(parts, ...values) {
  return parts.reduce((all, part, n) => all + encodeURIComponent(values[n - 1]) + part);
}
