"""Handlers through the harness: what is kept, what is dropped, what is refused."""

from __future__ import annotations

import unittest
from collections.abc import Callable
from dataclasses import dataclass, field

from keyrail import (
    Binary,
    Context,
    EmitError,
    EventHandler,
    ProcessManager,
    Reject,
    Retry,
    StateError,
    Timestamp,
    message,
)
from keyrail._message import message_type
from keyrail.testing import Disposition, Harness


@message(category="order")
class OrderPlaced:
    order_id: str
    cents: int
    note: str | None = None


@message(category="payment")
class PaymentRequested:
    order_id: str
    cents: int


ORDER = OrderPlaced(order_id="o-1", cents=500)


def harness(run: Callable[[OrderPlaced, Context], None]) -> Harness:
    handler = EventHandler(name="billing", version="1.0.0", sequential_by="order_id")

    @handler.on
    def placed(event: OrderPlaced, ctx: Context) -> None:
        run(event, ctx)

    return Harness(handler)


class Handlers(unittest.TestCase):
    def test_a_handler_that_is_done_keeps_its_writes_and_emits(self) -> None:
        def run(event: OrderPlaced, ctx: Context) -> None:
            ctx.state.put("cents", ctx.state.get("cents", 0) + event.cents)
            ctx.emit(PaymentRequested(ctx.key or "", event.cents), headers={"why": "test"})
            ctx.log.info(f"attempt {ctx.event.attempt} of {ctx.event.id}")

        billing = harness(run)
        billing.deliver(ORDER).assert_done()
        delivery = billing.deliver(ORDER).assert_done()
        self.assertEqual(delivery.emitted(PaymentRequested), [PaymentRequested("o-1", 500)])
        self.assertEqual(delivery.emits[0].message.headers, [("why", "test")])
        self.assertEqual([(line.context, line.message) for line in delivery.logs], [("billing", "attempt 1 of event-2")])
        self.assertEqual(billing.state("o-1", "cents"), 1000)

    def test_a_retry_drops_what_the_call_did_and_the_next_try_is_counted(self) -> None:
        def run(_: OrderPlaced, ctx: Context) -> None:
            ctx.state.put("tries", ctx.event.attempt)
            ctx.emit(PaymentRequested("o-1", 1))
            if ctx.event.attempt == 1:
                raise Retry("not yet", after_ms=5)

        billing = harness(run)
        first = billing.deliver(ORDER, id="e")
        self.assertEqual(first.disposition, Disposition("retry", "not yet", 5))
        self.assertEqual((first.emits, billing.state("o-1", "tries")), ([], None))
        billing.deliver(ORDER, id="e").assert_done()
        self.assertEqual(billing.state("o-1", "tries"), 2)

    def test_rejections_and_refusals_that_nobody_catches(self) -> None:
        def no(_: OrderPlaced, ctx: Context) -> None:
            raise Reject("no")

        self.assertEqual(harness(no).deliver(ORDER).disposition, Disposition("reject", "no"))
        refused: list[Callable[[OrderPlaced, Context], None]] = [
            lambda _, ctx: ctx.state.put("bad name", 1),
            lambda _, ctx: ctx.state.put("set", {1, 2}),
            lambda _, ctx: ctx.state.put("nan", float("nan")),
            lambda _, ctx: ctx.state.put("surrogate", "\ud800"),
            lambda _, ctx: print(ctx.emit_raw("a", "B", b"[]")),
        ]
        for run in refused:
            self.assertEqual(harness(run).deliver(ORDER).disposition.kind, "reject")

    def test_refusals_are_typed_and_a_refused_emit_fails_the_event_even_if_it_is_caught(self) -> None:
        def run(_: OrderPlaced, ctx: Context) -> None:
            with self.assertRaises(StateError) as state:
                ctx.state.put_text("bad name", "")
            self.assertEqual((state.exception.kind, state.exception.name), ("invalid-name", "bad name"))
            with self.assertRaises(EmitError) as emit:
                ctx.emit_raw("a", "B", b"")
            self.assertEqual((emit.exception.kind, emit.exception.limit_bytes), ("invalid-data", None))

        self.assertEqual(harness(run).deliver(ORDER).disposition.kind, "reject")

    def test_any_other_exception_is_raised_on_and_nothing_of_the_call_is_kept(self) -> None:
        def run(_: OrderPlaced, ctx: Context) -> None:
            ctx.state.put("x", 1)
            raise ZeroDivisionError

        billing = harness(run)
        self.assertRaises(ZeroDivisionError, billing.deliver, ORDER)
        self.assertEqual(billing.keys(), [])

    def test_data_that_does_not_fit_its_type_is_rejected_before_the_handler_sees_it(self) -> None:
        billing = harness(lambda _, ctx: self.fail("it was called"))
        misfits = ["", "[]", "{}", '{"order_id":1,"cents":1}', '{"order_id":"o","cents":1.5}', '{"order_id":"o","cents":true}']
        for data in [*(text.encode() for text in misfits), b'{"order_id":"\xff","cents":1}']:
            disposition = billing.deliver_bytes(OrderPlaced, data).disposition
            self.assertEqual(disposition.kind, "reject")
            self.assertRegex(disposition.reason, "^order/OrderPlaced version 1 does not parse: ")
        self.assertRaisesRegex(TypeError, "would not be published", billing.deliver, OrderPlaced("o", 0.5))  # type: ignore[arg-type]
        self.assertRaisesRegex(TypeError, "is not handled", billing.deliver, PaymentRequested("o", 1))

    def test_members_that_are_not_declared_are_dropped(self) -> None:
        seen: list[OrderPlaced] = []
        billing = harness(lambda event, _: seen.append(event))
        billing.deliver_bytes(OrderPlaced, b'{"order_id":"o","cents":1,"note":null,"later":[]}').assert_done()
        self.assertEqual(seen, [OrderPlaced("o", 1)])


class Declarations(unittest.TestCase):
    def test_every_kind_of_field(self) -> None:
        @dataclass
        class Address:
            city: str

        # Local classes are not found by name: this checks annotations that are values too.
        cls = type("Every", (), {"__annotations__": {
            "a": str, "b": int, "c": float, "d": bool, "e": Timestamp, "f": Binary, "g": list[str], "h": dict[str, int],
            "i": Address, "j": list[int], "k": str | None,
        }, "j": field(default_factory=list), "k": None})  # fmt: skip
        of = message_type(message(category="a", name="B", version=2)(cls))
        kinds = ["text", "integer", "number", "boolean", "timestamp", "binary", "list", "object", "object", "list", "text"]
        self.assertEqual([one.kind for one in of.fields], kinds)
        self.assertEqual([one.required for one in of.fields], [True] * 9 + [False] * 2)
        parsed = of.parse(b'{"a":"","b":1,"c":1,"d":true,"e":"","f":"","g":[],"h":{},"i":{"city":"Bern"}}')
        self.assertEqual((parsed.i, parsed.j, parsed.k), (Address("Bern"), [], None))
        self.assertRaisesRegex(ValueError, "does not fit", of.parse, b'{"a":"","b":1,"c":1,"d":true,"e":"","f":"","g":[],"h":{},"i":{}}')

    def test_what_cannot_be_declared(self) -> None:
        with self.assertRaisesRegex(TypeError, "give it a default"):
            message(category="a")(type("A", (), {"__annotations__": {"a": str | None}}))
        with self.assertRaisesRegex(TypeError, "a field is str, int"):
            message(category="a")(type("A", (), {"__annotations__": {"a": set}}))
        for wrong in ("note", "nothing"):
            handler = EventHandler(name="h", version="1", sequential_by=wrong)
            with self.assertRaisesRegex(TypeError, "required text or integer"):
                handler.on(_placed)
        handler = EventHandler(name="h", version="1")
        handler.on(_placed)
        self.assertRaisesRegex(TypeError, "twice", handler.on, _placed)
        self.assertRaisesRegex(TypeError, "is async", handler.on, _async)
        self.assertRaisesRegex(TypeError, "not a message type", handler.on, _of_a_string)
        self.assertRaisesRegex(TypeError, "no field", ProcessManager(name="p", version="1").correlates, OrderPlaced, "no")


def _placed(event: OrderPlaced, ctx: Context) -> None: ...


async def _async(event: OrderPlaced, ctx: Context) -> None: ...


def _of_a_string(event: str, ctx: Context) -> None: ...


if __name__ == "__main__":
    unittest.main()
