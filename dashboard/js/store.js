// A value that components look at, and that anything may change.

import { useEffect, useState } from "../vendor/preact-htm.js";

export class Store {
  #value;
  #watchers = new Set();

  constructor(value) {
    this.#value = value;
  }

  get value() {
    return this.#value;
  }

  set(value) {
    this.#value = value;
    for (const watcher of [...this.#watchers]) watcher(value);
  }

  /** Changes some of the fields. */
  merge(fields) {
    this.set({ ...this.#value, ...fields });
  }

  /** Answers with what ends it. */
  watch(watcher) {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }
}

/** The value of a store, in a component. */
export function useStore(store) {
  const [value, setValue] = useState(store.value);
  useEffect(() => {
    // It may have changed between the first drawing and this.
    setValue(store.value);
    return store.watch((next) => setValue(next));
  }, [store]);
  return value;
}
