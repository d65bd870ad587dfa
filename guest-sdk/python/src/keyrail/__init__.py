"""Write Keyrail handlers in Python.

A message type is a dataclass; a handler takes one function per message type, and its data arrives as that class. State
writes and emits are kept only when the function returns. ``raise Reject(reason)`` gives up, ``raise Retry(reason)`` asks
for another try, and any other exception is one too: the host tries again. ::

    from keyrail import Context, EventHandler, message

    @message(category="order")
    class OrderPlaced:
        order_id: str
        amount_cents: int

    @message(category="payment")
    class PaymentRequested:
        order_id: str
        amount_cents: int

    handler = EventHandler(name="billing", version="1.0.0", sequential_by="order_id")

    @handler.on
    def order_placed(event: OrderPlaced, ctx: Context) -> None:
        ctx.state.put("orders", ctx.state.get("orders", 0) + 1)
        ctx.emit(PaymentRequested(order_id=event.order_id, amount_cents=event.amount_cents))

The file that a component is built from, ``handler.py``, has the handler in its variable ``handler``.
"""

from ._context import Context, Incoming, Log, State
from ._errors import EmitError, EmitRefusal, Reject, Retry, StateError, StateRefusal
from ._handler import CommandHandler, EventHandler, Handler, ProcessManager
from ._host import Level
from ._message import Binary, Timestamp, message

__all__ = [
    "Binary",
    "CommandHandler",
    "Context",
    "EmitError",
    "EmitRefusal",
    "EventHandler",
    "Handler",
    "Incoming",
    "Level",
    "Log",
    "ProcessManager",
    "Reject",
    "Retry",
    "State",
    "StateError",
    "StateRefusal",
    "Timestamp",
    "message",
]
