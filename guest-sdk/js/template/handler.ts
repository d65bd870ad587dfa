import { eventHandler, integer, message, text } from "@keyrail/guest";

export const OrderPlaced = message("order", "OrderPlaced", { order_id: text(), amount_cents: integer() });

/** What is kept of each order: the state value `order`. */
export interface Order {
  count: number;
  total_cents: number;
}

/** Events of one order run one at a time, in the order of publishing. */
export default eventHandler({ name: "{{name}}", version: "1.0.0", sequentialBy: "order_id" })
  .on(OrderPlaced, (event, ctx) => {
    const order = ctx.state.get<Order>("order") ?? { count: 0, total_cents: 0 };
    order.count += 1;
    order.total_cents += event.amount_cents;
    ctx.state.put("order", order);
    ctx.log.info(`order ${event.order_id}: ${order.count} placed, ${order.total_cents} cents`);
  });
