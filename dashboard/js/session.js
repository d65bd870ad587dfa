// Who is looking: the token, for this tab only, and the name that goes on record, remembered on this machine.

import { Store } from "./store.js";

const TOKEN = "keyrail-token";
const WHO = "keyrail-who";

/**
 * `asking` is set while somebody must give a token: `{rejected}` says whether the one before was not accepted. Who gave none is not
 * asked again before they want to.
 */
export const session = new Store({ token: sessionStorage.getItem(TOKEN), asking: null, declined: false });

let waiting = [];

/** Asks for a token; true once there is one, false if none was given. However many ask, there is one question. */
export function askForToken(rejected) {
  if (session.value.declined) return Promise.resolve(false);
  if (!session.value.asking) session.merge({ asking: { rejected } });
  return new Promise((resolve) => waiting.push(resolve));
}

/** Somebody wants to give one. */
export function wantToken() {
  session.merge({ declined: false });
  return askForToken(false);
}

/** What was given; null for nothing. */
export function answerToken(token) {
  if (token) sessionStorage.setItem(TOKEN, token);
  session.set({ token: token || session.value.token, asking: null, declined: !token });
  const all = waiting;
  waiting = [];
  for (const resolve of all) resolve(Boolean(token));
}

export function forgetToken() {
  sessionStorage.removeItem(TOKEN);
  session.merge({ token: null, declined: false });
}

export function rememberedWho() {
  return localStorage.getItem(WHO) ?? "";
}

export function rememberWho(who) {
  localStorage.setItem(WHO, who);
}
