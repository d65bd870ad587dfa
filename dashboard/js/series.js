// Totals over the last minutes, and the rates that they make. Totals only grow while the same hosts live; when hosts come or
// go, the step between two totals says nothing and is left out.

const KEPT_MS = 150_000;
const RATE_MS = 6_000;
const STEP_MS = 4_000;

export class Series {
  #samples = [];

  /** `after_gap`: nothing is known of the time before this. */
  push(at_ms, total, after_gap = false) {
    const last = this.#samples.at(-1);
    if (last && at_ms <= last.at_ms) at_ms = last.at_ms + 1;
    this.#samples.push({ at_ms, total, gap: !last || after_gap || total < last.total });
    while (this.#samples[0].at_ms < at_ms - KEPT_MS) this.#samples.shift();
  }

  /** Per second, over the last seconds; null as long as it is not known. */
  rate() {
    const end_ms = this.#samples.at(-1)?.at_ms;
    return end_ms === undefined ? null : this.#between(end_ms - RATE_MS, end_ms + 1);
  }

  /** Rates of the last two minutes, oldest first; null where it is not known. */
  points(count = 30) {
    const end_ms = this.#samples.at(-1)?.at_ms;
    if (end_ms === undefined) return [];
    // Steps stand still while time goes on, or the line would tremble.
    const last_step = Math.floor(end_ms / STEP_MS);
    return Array.from({ length: count }, (_, n) => {
      const from_ms = (last_step - count + n) * STEP_MS;
      return this.#between(from_ms, from_ms + STEP_MS);
    });
  }

  #between(from_ms, to_ms) {
    let grown = 0;
    let spent_ms = 0;
    for (let n = 1; n < this.#samples.length; n += 1) {
      const [before, sample] = [this.#samples[n - 1], this.#samples[n]];
      if (sample.gap || sample.at_ms <= from_ms || sample.at_ms > to_ms) continue;
      grown += sample.total - before.total;
      spent_ms += sample.at_ms - before.at_ms;
    }
    return spent_ms === 0 ? null : (grown * 1000) / spent_ms;
  }
}
