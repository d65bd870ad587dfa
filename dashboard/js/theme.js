// Light, dark, or as the system has it.

const NAME = "keyrail-theme";
const THEMES = ["auto", "light", "dark"];

export function applyTheme() {
  document.documentElement.dataset.theme = themeLabel();
}

export function themeLabel() {
  const known = localStorage.getItem(NAME);
  return THEMES.includes(known) ? known : "auto";
}

/** The next of the three; answers with it. */
export function nextTheme() {
  const next = THEMES[(THEMES.indexOf(themeLabel()) + 1) % THEMES.length];
  localStorage.setItem(NAME, next);
  applyTheme();
  return next;
}
