/** A handler: what it declares, and which function takes which message. */

import { Context, type Incoming } from "./context.ts";
import { EmitError, mayPass, Reject, Retry, StateError } from "./errors.ts";
import type { Host } from "./host.ts";
import { type Data, type Field, type Fields, type Message, misfit } from "./message.ts";
import type { Correlation, Metadata, Role, SequentialBy } from "./metadata.ts";

/** What the host is told. Only `done` keeps the call's state writes and emits. */
export type Disposition =
  | { tag: "done" }
  | { tag: "retry"; val: { reason: string; afterMs: number | undefined } }
  | { tag: "reject"; val: string };

/** What a handler says of itself. */
export interface Declaration<Key extends string | undefined = string | undefined> {
  /** The consumer group, `[a-z][a-z0-9_.-]{0,63}`. Another name starts from the beginning. */
  name: string;
  /** Free text; shown to operators. */
  version: string;
  /** The field that orders the events: required text or an integer in every handled message. */
  sequentialBy?: Key;
  /** Later options. A host refuses unknown names that start with `must-` and ignores others. */
  options?: Record<string, string>;
}

/** Fields among which the key is. */
type Keyed<Key extends string | undefined> = Key extends string
  ? Readonly<Record<Key, Field<unknown, "text" | "integer", true>>>
  : Fields;

interface Route {
  type: Message;
  run: (data: never, ctx: Context) => void;
}

const decoder = new TextDecoder("utf-8", { fatal: true });

/** Made by {@link eventHandler}, {@link commandHandler} or {@link processManager}; filled by {@link Handler.on}. */
export class Handler<Key extends string | undefined = string | undefined> {
  readonly #declaration: Declaration<Key>;
  readonly #role: Role;
  readonly #routes: Route[] = [];
  readonly #correlations: Correlation[] = [];

  /** @internal */
  constructor(role: Role, declaration: Declaration<Key>) {
    this.#role = role;
    this.#declaration = declaration;
  }

  /** Takes a type of message. The function must not be `async`: an event is handled when it returns. */
  on<F extends Fields & Keyed<Key>>(type: Message<F>, run: (event: Data<F>, ctx: Context) => void): this {
    if (this.#route(type)) throw new Error(`${this.#declaration.name} takes ${label(type)} twice`);
    this.#routes.push({ type, run });
    return this;
  }

  /** For a process manager: the field of the message that holds the correlation value. */
  correlates<F extends Fields>(type: Message<F>, field: keyof F & string): this {
    this.#correlations.push({ category: type.category, message: type.name, field });
    return this;
  }

  /** What the host asks for when it loads the component. */
  metadata(): Metadata {
    const { name, version, options = {} } = this.#declaration;
    return {
      name,
      version,
      role: this.#role,
      handles: this.#routes.map(({ type }) => ({
        category: type.category,
        name: type.name,
        version: type.version,
        fields: Object.entries(type.fields).map(([name, { kind, required }]) => ({ name, kind, required })),
      })),
      sequentialBy: this.#sequentialBy(),
      options: Object.entries(options),
    };
  }

  /** Handles one event. An error that is no disposition is thrown on. */
  handle(event: Incoming, host: Host): Disposition {
    const route = this.#route(event);
    if (!route) return { tag: "reject", val: `${label(event)} is not handled by this handler` };
    try {
      const answer: unknown = route.run(parse(route.type, event) as never, new Context(event, host, this.#declaration.name));
      if (answer instanceof Promise) throw new TypeError(`the function for ${label(event)} is async: it must not be`);
      return { tag: "done" };
    } catch (error) {
      return disposition(error);
    }
  }

  #route(wanted: { category: string; name: string; version: number }): Route | undefined {
    return this.#routes.find(
      ({ type }) => type.name === wanted.name && type.category === wanted.category && type.version === wanted.version,
    );
  }

  #sequentialBy(): SequentialBy {
    const field = this.#declaration.sequentialBy;
    if (this.#correlations.length > 0) return { tag: "correlation", val: this.#correlations };
    return field === undefined ? { tag: "unordered" } : { tag: "field", val: field };
  }
}

/** A handler that reacts to events. */
export function eventHandler<const Key extends string | undefined = undefined>(declaration: Declaration<Key>): Handler<Key> {
  return new Handler("event-handler", declaration);
}

/** A handler that carries out commands; a command type has one. */
export function commandHandler<const Key extends string | undefined = undefined>(declaration: Declaration<Key>): Handler<Key> {
  return new Handler("command-handler", declaration);
}

/** A handler that coordinates over categories. Say with {@link Handler.correlates} by what. */
export function processManager(declaration: Omit<Declaration, "sequentialBy">): Handler<undefined> {
  return new Handler<undefined>("process-manager", declaration as Declaration<undefined>);
}

function label(of: { category: string; name: string; version: number }): string {
  return `${of.category}/${of.name} version ${of.version}`;
}

/** Data that does not parse is rejected: no later try can read it. */
function parse(type: Message, event: Incoming): unknown {
  let data: unknown;
  let wrong: string | undefined;
  try {
    data = JSON.parse(decoder.decode(event.data));
    wrong = misfit(type, data);
  } catch (error) {
    wrong = (error as Error).message;
  }
  if (wrong !== undefined) throw new Reject(`${label(event)} does not parse: ${wrong}`);
  return data;
}

function disposition(error: unknown): Disposition {
  if (error instanceof Reject) return { tag: "reject", val: error.message };
  if (error instanceof Retry) return { tag: "retry", val: { reason: error.message, afterMs: error.afterMs } };
  if (error instanceof StateError || error instanceof EmitError) {
    return mayPass(error)
      ? { tag: "retry", val: { reason: error.message, afterMs: undefined } }
      : { tag: "reject", val: error.message };
  }
  throw error;
}
