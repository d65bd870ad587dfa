import { eventHandler, integer, message, Reject, text } from "@keyrail/guest";

export const OrderPlaced = message("order", "OrderPlaced", { order_id: text(), amount_cents: integer() });

/** What is kept of each order: the state value `order`. */
export interface Order {
  count: number;
  total_cents: number;
}

/** Events of one order run one at a time, in the order in which they were published. */
export default eventHandler({ name: "{{name}}", version: "0.1.0", sequentialBy: "order_id" })
  .on(OrderPlaced, (event, ctx) => {
    // No later try can help: the key stands still until somebody decides.
    if (event.amount_cents < 0) throw new Reject("an order cannot cost less than nothing");
    const order = ctx.state.get<Order>("order") ?? { count: 0, total_cents: 0 };
    order.count += 1;
    order.total_cents += event.amount_cents;
    ctx.log.info(`${event.order_id} has ${order.total_cents} so far`);
    ctx.state.put("order", order);
  });
