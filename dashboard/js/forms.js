// Fields of the filters above listings. What they say is in the address, so a filtered listing can be linked to.

import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";

const TYPING_MS = 350;

export function Choice({ label, name, value, options, onChange }) {
  return html`<label class="field">${label}
    <select name=${name} value=${value ?? ""} onChange=${(event) => onChange(event.target.value)}>
      ${options.map(([one, text]) => html`<option key=${one} value=${one} selected=${one === (value ?? "")}>${text}</option>`)}
    </select>
  </label>`;
}

/** Tells after a pause in typing, and at once on Enter. */
export function SearchField({ label, name, value, placeholder, onChange, isPageSearch }) {
  const [text, setText] = useState(value ?? "");
  const told = useRef(value ?? "");
  const tell = () => {
    told.current = text.trim();
    onChange(told.current);
  };
  // A value that comes back as it was told is older than what has been typed since.
  useEffect(() => {
    if ((value ?? "") === told.current) return;
    told.current = value ?? "";
    setText(told.current);
  }, [value]);
  useEffect(() => {
    if (text.trim() === (value ?? "")) return undefined;
    const timer = setTimeout(tell, TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return html`<label class="field grow">${label}
    <input type="search" name=${name} value=${text} placeholder=${placeholder} autocomplete="off" spellcheck="false"
      data-search=${isPageSearch ? "page" : undefined}
      onInput=${(event) => setText(event.target.value)}
      onKeyDown=${(event) => event.key === "Enter" && tell()} />
  </label>`;
}

export function categoryOptions(names, chosen) {
  const all = chosen && !names.includes(chosen) ? [...names, chosen] : names;
  return [["", "all categories"], ...all.map((name) => [name, name])];
}
