// What can be done to heads, dead letters and pauses: what each does in words, the request, the command line that does the same.
//
// An action is `{title, verb, kind, says: [[name, text]], facts: [[name, value]], words, reason, run(by), done(answer), look()}`. `look`
// tells how things are after a conflict.

import { get, path, post } from "./api.js";
import { count, some } from "./format.js";

/** A key of a category, or the category. */
export function place(category, key) {
  return key === null || key === undefined ? category : `${category}/${key}`;
}

const HEAD = {
  retry: {
    label: "Retry",
    kind: "main",
    question: (entry) => `Retry ${entry}?`,
    says: (group) => [
      ["What happens", `${group} runs this event again at once, with all its tries, on the version that serves.`],
      ["Order of the key", "Kept. Later events of the key go on waiting until it succeeds."],
      ["Effects", "Those of the try that succeeds. The failed tries left none inside Keyrail."],
      ["Other handlers", "Not touched."],
    ],
    done: "is tried again",
  },
  "set-aside": {
    label: "Set aside",
    kind: "careful",
    question: (entry) => `Set ${entry} aside?`,
    says: (group) => [
      ["What happens", `${group} goes on without this event. It is kept among the dead letters, to be redriven or purged.`],
      ["Order of the key", "Kept, without this event. Redriven later, it comes after everything that is there then."],
      ["Effects", "None now."],
      ["Other handlers", "Not touched: they handle it, or have."],
    ],
    done: "is set aside, and kept among the dead letters",
  },
  skip: {
    label: "Skip",
    kind: "danger",
    question: (entry) => `Skip ${entry} for good?`,
    says: (group) => [
      ["What happens", `${group} goes on without this event, for good. It is not kept anywhere. This cannot be undone.`],
      ["Order of the key", "Kept, without this event."],
      ["Effects", "None, ever."],
      ["Other handlers", "Not touched: they handle it, or have."],
    ],
    done: "is skipped for good",
  },
};

export const HEAD_VERBS = Object.keys(HEAD);

export function headLabel(verb) {
  return HEAD[verb].label;
}

export function headKind(verb) {
  return HEAD[verb].kind;
}

/** `head` is a HeadView, or a row of the halted with its head in `entry`. */
export function onHead(verb, { category, key, group, entry, waiting }) {
  const action = HEAD[verb];
  const at = `${place(category, key)} (${group})`;
  return {
    title: action.question(entry),
    verb: `${action.label} ${entry}`,
    kind: action.kind,
    facts: [["Key", place(category, key)], ["Handler", group], ["Expected head", entry], waiting && ["Waiting", `${some(waiting, "event")}, this one included`]],
    says: action.says(group),
    note: "If the head has moved since you looked, nothing is changed.",
    words: ["head", verb, category, key, "--group", group, "--expect", entry],
    run: (by) => post(path`/v1/heads/${category}/${verb}`, { key, group, expect: entry, by }),
    done: () => `${entry} of ${at} ${action.done}.`,
    look: async () => {
      const { heads } = await get(path`/v1/heads/${category}`, { key, group });
      if (heads.length === 0) return `Now everything of ${at} is settled.`;
      const [head] = heads;
      const state = head.halted ? `halted (${head.halted.cause}, ${some(head.halted.attempts, "failed try", "failed tries")})` : "not halted";
      return `Now the head of ${at} is ${head.entry}: ${state}, ${some(head.waiting, "event")} waiting.`;
    },
  };
}

/** Retries many heads, each only if it still is one. `rows` are rows of the halted. */
export function retryAll(rows) {
  const { group } = rows[0];
  return {
    title: `Retry ${count(rows.length)} heads of ${group}?`,
    verb: `Retry ${count(rows.length)} heads`,
    kind: "main",
    facts: [["Handler", group], ["Heads", rows.slice(0, 3).map((row) => `${place(row.category, row.key)} ${row.head}`).join(", ") + (rows.length > 3 ? ", …" : "")]],
    says: HEAD.retry.says(group),
    note: "One after the other, each on record by itself. A head that has moved since you looked is left as it is.",
    commands: rows.map((row) => ["head", "retry", row.category, row.key, "--group", group, "--expect", row.head]),
    run: async (by) => {
      const moved = [];
      for (const { category, key, head } of rows) {
        try {
          await post(path`/v1/heads/${category}/retry`, { key, group, expect: head, by });
        } catch (error) {
          if (error.kind !== "conflict") throw error;
          moved.push(place(category, key));
        }
      }
      return { moved };
    },
    done: ({ moved }) => `${some(rows.length - moved.length, "head")} of ${group} ${rows.length - moved.length === 1 ? "is" : "are"} tried again${moved.length > 0 ? `; ${moved.join(", ")} had moved and was left as it is` : ""}.`,
  };
}

function letterAction(verb, letter, more) {
  const { category, key, id, group } = letter;
  return {
    facts: [["Key", place(category, key)], ["Handler", group], ["Dead letter", id], ["Event", `${letter.event.type || "unreadable"} ${letter.event.id}`]],
    words: ["dlq", verb, category, ...(key === null ? [] : [key]), id],
    run: (by) => post(path`/v1/dead-letters/${category}/${id}/${verb}`, { key, by }),
    look: async () => {
      const { rows } = await get("/v1/dead-letters", { category, key });
      return rows.some((row) => row.id === id) ? `${id} is still among the dead letters.` : `${id} is not among the dead letters any more.`;
    },
    ...more,
  };
}

export function redrive(letter) {
  const { category, key, id, group } = letter;
  return letterAction("redrive", letter, {
    title: `Redrive ${id}?`,
    verb: `Redrive ${id}`,
    kind: "careful",
    says: [
      ["What happens", `The event is published again for ${group}, and leaves the dead letters. If it fails again it halts its key again.`],
      [
        "Order of the key",
        key === null ? "None is promised in a category without a key." : "Changed: it comes after everything that is in the stream now, not where it stood.",
      ],
      ["Effects", "Those of the try that succeeds."],
      ["Other handlers", "They settle it without a call: they had it already."],
    ],
    done: ({ entry }) => `${id} of ${place(category, key)} is published again${entry ? `, as ${entry}` : ""}.`,
  });
}

export function purge(letter) {
  const { category, key, id } = letter;
  return letterAction("purge", letter, {
    title: `Purge ${id} for good?`,
    verb: `Purge ${id}`,
    kind: "danger",
    says: [
      ["What happens", "The event is dropped from the dead letters, for good. This cannot be undone."],
      ["Order of the key", "Not touched."],
      ["Effects", "None, ever."],
      ["Other handlers", "Not touched."],
    ],
    done: () => `${id} of ${place(category, key)} is purged.`,
  });
}

export function pause(category, key = null) {
  const at = place(category, key);
  return {
    title: `Pause ${at}?`,
    verb: key === null ? `Pause all of ${category}` : `Pause ${at}`,
    kind: "careful",
    facts: [["What", key === null ? `every key of ${category}` : at]],
    says: [
      ["What happens", `Nothing of ${at} runs until somebody resumes it, on any host. Pauses outlive hosts.`],
      ["Order of the key", "Kept. Publishing goes on, and events wait."],
      ["Effects", "A call that runs now is fenced, leaves nothing, and runs again after the pause."],
      ["Other handlers", "All handlers of the category wait, and process managers that read it."],
    ],
    words: ["pause", category, ...(key === null ? [] : [key])],
    run: (by) => post(path`/v1/categories/${category}/pause`, { key, by }),
    done: ({ changed }) => (changed ? `${at} is paused.` : `${at} was paused already.`),
  };
}

export function resume(category, key = null) {
  const at = place(category, key);
  return {
    title: `Resume ${at}?`,
    verb: `Resume ${at}`,
    kind: "main",
    facts: [["What", key === null ? `every key of ${category}` : at]],
    says: [
      ["What happens", `What waits in ${at} runs again, in its order.`],
      [
        "What stays",
        key === null ? "Keys that were paused by themselves stay paused." : "If the category is paused too, the key waits on: those are two pauses.",
      ],
    ],
    words: ["resume", category, ...(key === null ? [] : [key])],
    reason: "resumed",
    run: (by) => post(path`/v1/categories/${category}/resume`, { key, by }),
    done: ({ changed }) => (changed ? `${at} is resumed.` : `${at} was not paused.`),
  };
}
