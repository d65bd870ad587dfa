// What can be done to a handler's versions. The same shape as in `actions.js`.

import { get, path, post } from "./api.js";

export function label({ version, revision }) {
  return `${version}#${revision}`;
}

async function look(name) {
  const { handlers } = await get("/v1/handlers");
  const view = handlers.find(({ handler }) => handler === name);
  if (!view) return `Now there is no handler ${name}.`;
  const serving = view.serving ? `${label(view.serving)} serves` : "nothing of it serves";
  return `Now ${serving}${view.candidate ? `, ${label(view.candidate)} is its candidate` : ", and it has no candidate"}.`;
}

export function promote({ handler, serving, candidate }) {
  return {
    title: `Promote ${label(candidate)}?`,
    verb: `Promote ${label(candidate)}`,
    kind: "main",
    facts: [["Handler", handler], ["Canary", `${label(candidate)}, on ${candidate.keys ?? "all keys"}`], serving && ["Serves the others", label(serving)]],
    says: [
      ["What happens", `${label(candidate)} serves every key, once every host is ready for it.`],
      ["Order of the keys", "Kept. Each key changes between two of its events, and keeps its owner."],
      ["Effects", "Events that were handled stay handled."],
    ],
    words: ["promote", handler],
    reason: "promoted",
    run: (by) => post(path`/v1/handlers/${handler}/promote`, { by }),
    done: () => `${handler}: ${label(candidate)} serves every key from here on.`,
    look: () => look(handler),
  };
}

/** `to` is a revision; without it, back by one: what is being deployed or tried is taken back, else the version before serves. */
export function rollback({ handler, serving, candidate }, to = null) {
  const back = to ? `go to ${label(to)}` : candidate ? `take ${label(candidate)} back` : "let the version before serve";
  return {
    title: `Roll ${handler} back: ${back}?`,
    verb: "Roll back",
    kind: "careful",
    facts: [["Handler", handler], serving && ["Serves now", label(serving)], candidate && ["Candidate", label(candidate)], to && ["Goes to", label(to)]],
    says: [
      [
        "What happens",
        to
          ? `${label(to)} serves every key, once every host is ready for it.`
          : candidate
            ? `${label(candidate)} is withdrawn on every host; ${serving ? `${label(serving)} serves every key` : "nothing serves then"}.`
            : "The version that served before this one serves every key again.",
      ],
      ["Order of the keys", "Kept. Each key changes between two of its events, and keeps its owner."],
      ["Effects", "Events that were handled stay handled. Message types that only the later version handled are passed over from here on."],
      ["Halted keys", "They stay halted: retry their heads afterwards."],
    ],
    words: ["rollback", handler, ...(to ? ["--to", String(to.revision)] : [])],
    run: (by) => post(path`/v1/handlers/${handler}/rollback`, { ...(to && { to: to.revision }), by }),
    done: () => `${handler} is rolled back.`,
    look: () => look(handler),
  };
}

export function undeploy({ handler, serving }) {
  return {
    title: `Undeploy ${handler}?`,
    verb: `Undeploy ${handler}`,
    kind: "danger",
    facts: [["Handler", handler], serving && ["Serves now", label(serving)]],
    says: [
      ["What happens", `No host serves ${handler} any more. It stays registered, so its events are kept.`],
      ["Order of the keys", "Kept. Events wait for the next deployment or rollback."],
      ["Effects", "None until then. Its lag grows."],
    ],
    words: ["undeploy", handler],
    run: (by) => post(path`/v1/handlers/${handler}/undeploy`, { by }),
    done: () => `${handler} is undeployed: no host serves it.`,
    look: () => look(handler),
  };
}
