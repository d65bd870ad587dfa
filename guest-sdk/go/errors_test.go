package keyrail

import (
	"errors"
	"fmt"
	"testing"
)

func TestErrorsBecomeDispositions(t *testing.T) {
	plain := errors.New("plain")
	for _, one := range []struct {
		err  error
		want Disposition
	}{
		{nil, Disposition{}},
		{plain, Disposition{Retried, "plain", 0}},
		{Retry("later"), Disposition{Retried, "later", 0}},
		{RetryAfter(50, "later"), Disposition{Retried, "later", 50}},
		{Reject("never"), Disposition{Rejected, "never", 0}},
		{Rejectf("%d is odd: %w", 3, plain), Disposition{Rejected, "3 is odd: plain", 0}},
		{OrReject(nil), Disposition{}},
		{OrReject(plain), Disposition{Rejected, "plain", 0}},
		{fmt.Errorf("outside: %w", Reject("never")), Disposition{Rejected, "outside: never", 0}},
		{&StateError{Name: "n", Problem: InvalidName, Text: "no"}, Disposition{Rejected, "state n was refused: no", 0}},
		{&StateError{Name: "n", Problem: StateTooLarge, MaxBytes: 9}, Disposition{Rejected, "state n was refused: larger than 9 bytes", 0}},
		{&StateError{Name: "n", Problem: StateOther, Text: "no"}, Disposition{Retried, "state n failed: no", 0}},
		{&EmitError{"c", "N", InvalidKey, 0, "no"}, Disposition{Rejected, "emit of c/N was refused: no", 0}},
		{&EmitError{"c", "N", UnknownCategory, 0, "no"}, Disposition{Retried, "emit of c/N was refused: no", 0}},
		{&EmitError{"c", "N", EmitTooLarge, 9, ""}, Disposition{Rejected, "emit of c/N was refused: larger than 9 bytes", 0}},
		{&EmitError{"c", "N", EmitOther, 0, "no"}, Disposition{Retried, "emit of c/N failed: no", 0}},
	} {
		if got := dispositionOf(one.err); got != one.want {
			t.Errorf("%v became %+v, not %+v", one.err, got, one.want)
		}
	}
	if err := OrReject(plain); !errors.Is(err, plain) {
		t.Error("a rejection hides its cause")
	}
}
