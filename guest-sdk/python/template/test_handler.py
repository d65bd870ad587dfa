import unittest

from handler import OrderPlaced, handler
from keyrail.testing import Harness


class Orders(unittest.TestCase):
    def test_orders_are_counted_by_key(self) -> None:
        harness = Harness(handler)
        harness.deliver(OrderPlaced(order_id="o-1", amount_cents=500)).assert_done()
        harness.deliver(OrderPlaced(order_id="o-2", amount_cents=100)).assert_done()
        harness.deliver(OrderPlaced(order_id="o-1", amount_cents=250)).assert_done()
        self.assertEqual(harness.state("o-1", "order"), {"count": 2, "total_cents": 750})
        self.assertEqual(harness.state("o-2", "order"), {"count": 1, "total_cents": 100})

    def test_a_negative_amount_is_rejected_and_changes_nothing(self) -> None:
        harness = Harness(handler)
        delivery = harness.deliver(OrderPlaced(order_id="o-1", amount_cents=-1))
        self.assertEqual(delivery.disposition.kind, "reject")
        self.assertIsNone(harness.state("o-1", "order"))


if __name__ == "__main__":
    unittest.main()
