"""Counts orders and adds up their amounts, for each order's key."""

from keyrail import Context, EventHandler, Reject, message


@message(category="order")
class OrderPlaced:
    order_id: str
    amount_cents: int


# Events of one order run one at a time, in the order in which they were published.
handler = EventHandler(name="{{name}}", version="0.1.0", sequential_by="order_id")


@handler.on
def order_placed(event: OrderPlaced, ctx: Context) -> None:
    if event.amount_cents < 0:
        # No later try can help: the key stands still until somebody decides.
        raise Reject("an order cannot cost less than nothing")
    order = ctx.state.get("order", {"count": 0, "total_cents": 0})
    order["count"] += 1
    order["total_cents"] += event.amount_cents
    ctx.log.info(f"{event.order_id} has {order['total_cents']} so far")
    ctx.state.put("order", order)
