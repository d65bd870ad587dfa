/** How `console.log` writes its values: text as it is, errors with their stack, the rest as JSON. */

export function line(values: readonly unknown[]): string {
  return values.map(shown).join(" ");
}

function shown(value: unknown): string {
  if (typeof value === "string") return value;
  if (value instanceof Error) return `${value}\n${value.stack ?? ""}`.trimEnd();
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    // Cycles and bigints are not JSON.
    return String(value);
  }
}
