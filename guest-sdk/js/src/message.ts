/** Message types: what an event's JSON object holds, once for the host's checks and once for the compiler. */

/** What a field holds in JSON. A key is `text` or `integer`. */
export type FieldType = "text" | "integer" | "number" | "boolean" | "timestamp" | "list" | "object" | "binary";

/** One member of an event's JSON object. `T` is its type in TypeScript and exists for the compiler alone. */
export interface Field<T = unknown, Kind extends FieldType = FieldType, Required extends boolean = boolean> {
  readonly kind: Kind;
  readonly required: Required;
  readonly type?: T;
}

/** The fields of a message by name. */
export type Fields = Readonly<Record<string, Field>>;

type TypeOf<F extends Field> = NonNullable<F["type"]>;

/** The data of a message: what a handler's function gets. An optional field may be absent or null. */
export type Data<F extends Fields> = {
  [Name in keyof F as F[Name]["required"] extends true ? Name : never]: TypeOf<F[Name]>;
} & {
  [Name in keyof F as F[Name]["required"] extends true ? never : Name]?: TypeOf<F[Name]> | null;
};

/** A type of event or command. Made by {@link message}. */
export interface Message<F extends Fields = Fields> {
  /** `[a-z][a-z0-9_.-]{0,63}`. */
  readonly category: string;
  /** `[A-Za-z][A-Za-z0-9_.-]{0,63}`. */
  readonly name: string;
  /** Starts at 1. */
  readonly version: number;
  readonly fields: F;
}

/** Declares a message type: `message("order", "OrderPlaced", { order_id: text() })`. */
export function message<const F extends Fields>(category: string, name: string, fields: F, version = 1): Message<F> {
  return Object.freeze({ category, name, version, fields });
}

/** A string. */
export const text = (): Field<string, "text", true> => ({ kind: "text", required: true });
/** A number without a fraction. Exact up to 2^53: JSON's larger ones lose digits in JavaScript. */
export const integer = (): Field<number, "integer", true> => ({ kind: "integer", required: true });
/** Any number. */
export const number = (): Field<number, "number", true> => ({ kind: "number", required: true });
/** True or false. */
export const boolean = (): Field<boolean, "boolean", true> => ({ kind: "boolean", required: true });
/** A string of RFC 3339, such as `2013-01-01T10:17:00Z`. */
export const timestamp = (): Field<string, "timestamp", true> => ({ kind: "timestamp", required: true });
/** A list; its elements are not checked. */
export const list = <T = unknown>(): Field<T[], "list", true> => ({ kind: "list", required: true });
/** An object; its members are not checked. */
export const object = <T extends object = Record<string, unknown>>(): Field<T, "object", true> => ({
  kind: "object",
  required: true,
});
/** A string of base64. */
export const binary = (): Field<string, "binary", true> => ({ kind: "binary", required: true });

/** A field that a message need not carry: `optional(text())`. */
export const optional = <T, Kind extends FieldType>(field: Field<T, Kind>): Field<T, Kind, false> => ({
  kind: field.kind,
  required: false,
});

const FITS: Record<FieldType, (value: unknown) => boolean> = {
  text: (value) => typeof value === "string",
  timestamp: (value) => typeof value === "string",
  binary: (value) => typeof value === "string",
  integer: (value) => Number.isInteger(value),
  number: (value) => typeof value === "number",
  boolean: (value) => typeof value === "boolean",
  list: (value) => Array.isArray(value),
  object: isObject,
};

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Why `data` is not of the type, or undefined. What the host checks when it publishes. */
export function misfit(type: Message, data: unknown): string | undefined {
  if (!isObject(data)) return "it is not a JSON object";
  for (const [name, field] of Object.entries(type.fields)) {
    const value = Object.hasOwn(data, name) ? data[name] : undefined;
    if (value === undefined || value === null) {
      if (field.required) return `the field "${name}" is missing`;
    } else if (!FITS[field.kind](value)) {
      return `the field "${name}" is not of type ${field.kind}`;
    }
  }
  return undefined;
}
