package main

import (
	"testing"

	"keyrail"
	"keyrail/keyrailtest"
)

func TestOrdersAreCountedByKey(t *testing.T) {
	harness := keyrailtest.New(t, handler)
	events := []OrderPlaced{
		{"o-1", 500},
		{"o-2", 100},
		{"o-1", 250},
	}
	for _, event := range events {
		if delivery := harness.Deliver(event); delivery.Disposition.Outcome != keyrail.Done {
			t.Fatal(delivery.Disposition)
		}
	}
	order, _ := keyrailtest.State[Order](harness, "o-1", "order")
	if want := (Order{Count: 2, TotalCents: 750}); order != want {
		t.Errorf("order o-1 is %+v, not %+v", order, want)
	}
}

func TestANegativeAmountIsRejected(t *testing.T) {
	harness := keyrailtest.New(t, handler)
	if delivery := harness.Deliver(OrderPlaced{"o-1", -1}); delivery.Disposition.Outcome != keyrail.Rejected {
		t.Error(delivery.Disposition)
	}
	if stored := harness.StateBytes("o-1", "order"); stored != nil {
		t.Errorf("the state was written: %s", stored)
	}
}
