import unittest

from handler import OrderPlaced, handler
from keyrail.testing import Harness


class Orders(unittest.TestCase):
    def test_orders_are_counted_by_their_id(self) -> None:
        harness = Harness(handler)
        harness.deliver(OrderPlaced(order_id="o-1", amount_cents=500)).assert_done()
        harness.deliver(OrderPlaced(order_id="o-2", amount_cents=300)).assert_done()
        harness.deliver(OrderPlaced(order_id="o-1", amount_cents=250)).assert_done()
        self.assertEqual(harness.state("o-1", "order"), {"count": 2, "total_cents": 750})
        self.assertEqual(harness.state("o-2", "order"), {"count": 1, "total_cents": 300})


if __name__ == "__main__":
    unittest.main()
