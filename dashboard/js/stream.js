// Server-sent events by `fetch`: `EventSource` cannot send a bearer token. Connects again with a growing wait, for ever.

import { open } from "./api.js";
import { session } from "./session.js";

const WAITS_MS = [500, 1_000, 2_000, 4_000, 8_000, 15_000];
/** The host sends a comment every 15 s; after this much silence the connection is dead, whatever TCP believes. */
const SILENCE_MAX_MS = 40_000;
/** A browser has six connections to a host for all of its tabs: one that nobody looks at lets go of its own. */
const REST_AFTER_MS = 5_000;
const EVENT_MAX_CHARS = 32 * 1024 * 1024;

/**
 * Follows a stream until `stop()`. `on.event(name, text)` for each event; `on.open()`;
 * `on.lost(error, next_try_ms)`, where `next_try_ms` is null if only a change of token can help. With `on.rest()` it rests while its
 * tab is hidden, and says so.
 */
export class Stream {
  #abort = new AbortController();
  #wake = null;
  #failures = 0;
  /** Ends the connection that there is. */
  #cut = null;
  #unwatch;
  #rest_timer = null;
  #look = () => {
    clearTimeout(this.#rest_timer);
    if (document.hidden) this.#rest_timer = setTimeout(() => this.#cut?.(new Error("nobody looks")), REST_AFTER_MS);
    else this.tryNow();
  };

  constructor(path, query, on) {
    let token_before = session.value.token;
    // Who gives up a token sees nothing more by it, and who has another sees at once.
    this.#unwatch = session.watch(({ token }) => {
      if (token === token_before) return;
      token_before = token;
      this.#cut?.(new Error("the token has changed"));
      this.tryNow();
    });
    if (on.rest) document.addEventListener("visibilitychange", this.#look);
    this.#run(path, query, on);
  }

  stop() {
    this.#unwatch();
    clearTimeout(this.#rest_timer);
    document.removeEventListener("visibilitychange", this.#look);
    this.#abort.abort();
    this.#wake?.();
  }

  /** Does not wait for the next try. */
  tryNow() {
    this.#failures = 0;
    this.#wake?.();
  }

  async #run(path, query, on) {
    while (!this.#abort.signal.aborted) {
      const error = await this.#follow(path, query, on).then(
        () => new Error("the host ended the connection"),
        (error) => error,
      );
      if (this.#abort.signal.aborted) return;
      if (on.rest && document.hidden) {
        on.rest();
        await new Promise((resolve) => (this.#wake = resolve));
        continue;
      }
      const is_denied = error.status === 401 || error.status === 403;
      const wait_ms = Math.max(WAITS_MS[Math.min(this.#failures, WAITS_MS.length - 1)], (error.retry_after_s ?? 0) * 1000);
      this.#failures += 1;
      on.lost(error, is_denied ? null : wait_ms);
      await new Promise((resolve) => {
        const timer = is_denied ? null : setTimeout(resolve, wait_ms);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  async #follow(path, query, on) {
    const cut = new AbortController();
    const signal = AbortSignal.any([this.#abort.signal, cut.signal]);
    this.#cut = (error) => cut.abort(error);
    const silent = () => cut.abort(new Error("the host fell silent"));
    const response = await open("GET", path, { query, signal, accept: "text/event-stream" });
    on.open();
    let timer = setTimeout(silent, SILENCE_MAX_MS);
    try {
      const parser = new Parser((name, text) => on.event(name, text));
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        this.#failures = 0;
        clearTimeout(timer);
        timer = setTimeout(silent, SILENCE_MAX_MS);
        parser.feed(value);
      }
    } finally {
      clearTimeout(timer);
      // A reader that threw leaves the connection open.
      cut.abort();
    }
  }
}

/** Lines into events, as the HTML standard has it; ids and retry times are not used. */
export class Parser {
  #rest = "";
  #name = "";
  #data = [];
  #emit;

  constructor(emit) {
    this.#emit = emit;
  }

  feed(text) {
    this.#rest += text;
    // A line that ends in \r may go on with \n in the next piece.
    const lines = this.#rest.split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop();
    if (this.#rest.length > EVENT_MAX_CHARS) throw new Error("an event of the stream is too large");
    for (const line of lines) this.#line(line);
  }

  #line(line) {
    if (line === "") {
      if (this.#data.length > 0) this.#emit(this.#name || "message", this.#data.join("\n"));
      this.#name = "";
      this.#data = [];
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#name = value;
    if (field === "data") this.#data.push(value);
  }
}
