/**
 * Write Keyrail handlers in TypeScript or JavaScript.
 *
 * A message type is a value; a handler takes one function per message type, and its data arrives typed. State writes
 * and emits are kept only when the function returns. `throw new Reject(reason)` gives up, `throw new Retry(reason)` asks
 * for another try, and any other error is one too: the host tries again.
 *
 * ```ts
 * import { eventHandler, integer, message, text } from "@keyrail/guest";
 *
 * const OrderPlaced = message("order", "OrderPlaced", { order_id: text(), amount_cents: integer() });
 * const PaymentRequested = message("payment", "PaymentRequested", { order_id: text(), amount_cents: integer() });
 *
 * export default eventHandler({ name: "billing", version: "1.0.0", sequentialBy: "order_id" })
 *   .on(OrderPlaced, (event, ctx) => {
 *     const orders = ctx.state.get<number>("orders") ?? 0;
 *     ctx.state.put("orders", orders + 1);
 *     ctx.emit(PaymentRequested, { order_id: event.order_id, amount_cents: event.amount_cents });
 *   });
 * ```
 *
 * The file that a component is built from has the handler as its default export.
 *
 * @module
 */

export { Context, Log, State } from "./context.ts";
export type { EmitOptions, Incoming, Outgoing } from "./context.ts";
export { EmitError, Reject, Retry, StateError } from "./errors.ts";
export type { EmitRefusal, StateRefusal } from "./errors.ts";
export { commandHandler, eventHandler, Handler, processManager } from "./handler.ts";
export type { Declaration, Disposition } from "./handler.ts";
export type { Level } from "./host.ts";
export { binary, boolean, integer, list, message, number, object, optional, text, timestamp } from "./message.ts";
export type { Data, Field, Fields, FieldType, Message } from "./message.ts";
export type { Metadata, Role } from "./metadata.ts";
