// JSON as it was sent. A number that a double would change (12345678901234567890, 1.50) is kept as its text, where the browser
// can do that; what shows a payload must not round it.

const CAN_KEEP = typeof JSON.rawJSON === "function";

/** Like `JSON.parse`, but such numbers become raw values that `JSON.stringify` prints as they were. */
export function parse(text) {
  return CAN_KEEP ? JSON.parse(text, keep) : JSON.parse(text);
}

function keep(_name, value, context) {
  if (typeof value !== "number" || context?.source === undefined) return value;
  const { source } = context;
  // The API's own fractions may be written `1.0`; they are to be reckoned with.
  return String(value) === source || source === `${value}.0` ? value : JSON.rawJSON(source);
}

/** Over several lines, as people read it. */
export function pretty(value) {
  return JSON.stringify(value, null, 2);
}

/** One line, cut. */
export function brief(value, chars_max) {
  const text = JSON.stringify(value) ?? "";
  return text.length > chars_max ? `${text.slice(0, chars_max)}…` : text;
}
