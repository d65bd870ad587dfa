package keyrailtest

import (
	"errors"
	"testing"

	"keyrail"
)

type Added struct {
	Counter string `json:"counter"`
	By      int64  `json:"by"`
}

func (Added) EventCategory() string { return "counter" }

type Grown struct {
	Counter string `json:"counter"`
}

func (Grown) EventCategory() string { return "grown" }

var counter = keyrail.Export(keyrail.Handler{
	Name: "counter", Version: "1.0.0", SequentialBy: "counter", Handles: []keyrail.Handles{keyrail.On(added)},
})

func added(ctx *keyrail.Context, event Added) error {
	total, _, err := keyrail.State[int64](ctx, "total")
	if err != nil {
		return err
	}
	if err := ctx.PutState("total", total+event.By); err != nil {
		return err
	}
	if _, err := ctx.Emit(Grown{event.Counter}); err != nil {
		return err
	}
	ctx.Infof("attempt %d", ctx.Attempt)
	if event.By == 0 && ctx.Attempt < 3 {
		return errors.New("not yet")
	}
	if event.By < 0 {
		return ctx.RemoveState("no such name!")
	}
	return nil
}

func TestOnlyADoneCallKeepsItsEffects(t *testing.T) {
	harness := New(t, counter)
	harness.Deliver(Added{"a", 2})
	harness.Deliver(Added{"b", 5})
	done := harness.Deliver(Added{"a", 3})
	if total, _ := State[int64](harness, "a", "total"); total != 5 {
		t.Errorf("the total is %d", total)
	}
	if grown := EmittedOf[Grown](done); len(grown) != 1 || grown[0].Counter != "a" {
		t.Errorf("emitted %v", done.Emits)
	}

	rejected := harness.Deliver(Added{"a", -1})
	if rejected.Disposition.Outcome != keyrail.Rejected || len(rejected.Emits) != 0 {
		t.Errorf("%+v", rejected)
	}
	if total, _ := State[int64](harness, "a", "total"); total != 5 {
		t.Errorf("a rejected event changed the total to %d", total)
	}
}

func TestAttemptsAreCountedByEventID(t *testing.T) {
	harness := New(t, counter)
	line := `{"category":"counter","type":"Added","id":"e-1","data":{"counter":"a","by":0}}`
	for _, want := range []keyrail.Outcome{keyrail.Retried, keyrail.Retried, keyrail.Done} {
		if got := harness.DeliverLine(line); got.Disposition.Outcome != want {
			t.Fatalf("%+v, not %v", got, want)
		}
	}
}

func TestDataThatDoesNotParseIsRejected(t *testing.T) {
	harness := New(t, counter)
	for _, data := range []string{`{"counter":"a","by":"x"}`, `not JSON`, `[]`} {
		got := harness.Submit(Submission{Category: "counter", Name: "Added", Data: []byte(data)})
		if got.Disposition.Outcome != keyrail.Rejected {
			t.Errorf("%s: %+v", data, got.Disposition)
		}
	}
}
