"""Keeps the count and the total of the orders placed, by order."""

from keyrail import Context, EventHandler, message


@message(category="order")
class OrderPlaced:
    order_id: str
    amount_cents: int


# Events of one order run one at a time, in the order of publishing.
handler = EventHandler(name="{{name}}", version="1.0.0", sequential_by="order_id")


@handler.on
def order_placed(event: OrderPlaced, ctx: Context) -> None:
    order = ctx.state.get("order", {"count": 0, "total_cents": 0})
    order["count"] += 1
    order["total_cents"] += event.amount_cents
    ctx.state.put("order", order)
    ctx.log.info(f"order {event.order_id}: {order['count']} placed, {order['total_cents']} cents")
