"""Real flights through the handler: every aircraft must end in the expected state, digest included."""

import gzip
import json
import unittest
from pathlib import Path

from flight_time import unix_seconds
from handler import FlightArrived, FlightDeparted, handler
from keyrail import Reject
from keyrail.testing import Harness

FLIGHTS = Path(__file__).parent.parent / "flights"


class Flights(unittest.TestCase):
    def test_the_shipped_sample_ends_as_expected(self) -> None:
        harness = Harness(handler)
        types = {"FlightDeparted": FlightDeparted, "FlightArrived": FlightArrived}
        with gzip.open(FLIGHTS / "sample.jsonl.gz", "rt") as lines:
            for event in map(json.loads, lines):
                harness.deliver(types[event["type"]](**event["data"]), id=event["id"]).assert_done()
        expected = [json.loads(line) for line in (FLIGHTS / "sample.itinerary.jsonl").read_text().splitlines()]
        self.assertGreater(len(expected), 250, "so few aircraft show little")
        self.assertEqual(len(harness.keys()), len(expected))
        for members in expected:
            tail_number = members.pop("tail_number")
            found = harness.state(tail_number, "itinerary")
            # What `propagated` is computed from.
            del found["last_arrival"]
            self.assertEqual(found, members, tail_number)

    def test_times_are_utc_and_whole_seconds(self) -> None:
        self.assertEqual(unix_seconds("2013-01-01T10:17:00Z"), 1_357_035_420)
        for at in ["", "2013-01-01", "2013-01-01T10:17:00", "2013-13-01T10:17:00Z", "2013-01-01T1a:17:00Z"]:
            with self.assertRaises(Reject, msg=at):
                unix_seconds(at)


if __name__ == "__main__":
    unittest.main()
