package keyrail

import (
	"errors"
	"fmt"
)

// Failure is an error that says what becomes of the event. Any other error means another try.
type Failure struct {
	// Rejects gives up: the key halts on this event until an operator decides. Otherwise it is tried again.
	Rejects bool
	// AfterMs is the least wait before the next try, 0 for the host's own back-off.
	AfterMs uint64
	cause   error
}

func (f *Failure) Error() string { return f.cause.Error() }

// Unwrap gives the error that was turned into a rejection by [OrReject].
func (f *Failure) Unwrap() error { return f.cause }

// Retry asks for another try, after the host's own back-off.
func Retry(reason string) error { return &Failure{cause: errors.New(reason)} }

// RetryAfter asks for another try, not before afterMs.
func RetryAfter(afterMs uint64, reason string) error {
	return &Failure{AfterMs: afterMs, cause: errors.New(reason)}
}

// Reject gives up: the key halts on this event until an operator decides.
func Reject(reason string) error { return &Failure{Rejects: true, cause: errors.New(reason)} }

// Rejectf is [Reject] with a reason made by fmt.Errorf.
func Rejectf(format string, args ...any) error {
	return &Failure{Rejects: true, cause: fmt.Errorf(format, args...)}
}

// OrReject turns an error into a rejection, and nil into nil.
func OrReject(err error) error {
	if err == nil {
		return nil
	}
	return &Failure{Rejects: true, cause: err}
}

// StateProblem is why the host refused a state value. The numbers are those of the contract.
type StateProblem uint8

const (
	// InvalidName: names are 1 to 128 bytes of `[A-Za-z0-9_.:-]`.
	InvalidName StateProblem = iota
	// StateTooLarge: the value is larger than the host takes.
	StateTooLarge
	// StateOther: anything else.
	StateOther
)

// StateError is a refused state write. Unhandled it rejects the event, except for StateOther, which is tried again.
type StateError struct {
	Name    string
	Problem StateProblem
	// MaxBytes is the limit of StateTooLarge.
	MaxBytes uint64
	// Text says more for the other problems.
	Text string
}

func (e *StateError) Error() string {
	switch e.Problem {
	case StateTooLarge:
		return fmt.Sprintf("state %s was refused: larger than %d bytes", e.Name, e.MaxBytes)
	case InvalidName:
		return fmt.Sprintf("state %s was refused: %s", e.Name, e.Text)
	default:
		return fmt.Sprintf("state %s failed: %s", e.Name, e.Text)
	}
}

// EmitProblem is why the host refused an emit. The numbers are those of the contract.
type EmitProblem uint8

const (
	// UnknownCategory: no such category in the catalog.
	UnknownCategory EmitProblem = iota
	// UnknownMessage: no such type in the category.
	UnknownMessage
	// InvalidKey: the key field holds no valid key.
	InvalidKey
	// InvalidData: not an object with the declared fields.
	InvalidData
	// EmitTooLarge: larger than the host takes.
	EmitTooLarge
	// EmitOther: anything else.
	EmitOther
)

// EmitError is a refused emit. The host fails the event whatever the handler returns. Unhandled it rejects the event,
// except for an unknown category or message and EmitOther, which are tried again: they may be registered by then.
type EmitError struct {
	Category, Name string
	Problem        EmitProblem
	// MaxBytes is the limit of EmitTooLarge.
	MaxBytes uint64
	// Text says more for the other problems.
	Text string
}

func (e *EmitError) Error() string {
	if e.Problem == EmitTooLarge {
		return fmt.Sprintf("emit of %s/%s was refused: larger than %d bytes", e.Category, e.Name, e.MaxBytes)
	}
	if e.Problem == EmitOther {
		return fmt.Sprintf("emit of %s/%s failed: %s", e.Category, e.Name, e.Text)
	}
	return fmt.Sprintf("emit of %s/%s was refused: %s", e.Category, e.Name, e.Text)
}

// dispositionOf finds what an error asks for, also through errors that wrap it; the reason is the whole text.
func dispositionOf(err error) Disposition {
	if err == nil {
		return Disposition{}
	}
	var failure *Failure
	var state *StateError
	var emit *EmitError
	switch {
	case errors.As(err, &failure):
		if !failure.Rejects {
			return Disposition{Outcome: Retried, Reason: err.Error(), AfterMs: failure.AfterMs}
		}
		return Disposition{Outcome: Rejected, Reason: err.Error()}
	case errors.As(err, &state) && state.Problem != StateOther:
		return Disposition{Outcome: Rejected, Reason: err.Error()}
	case errors.As(err, &emit) && (emit.Problem == InvalidKey || emit.Problem == InvalidData || emit.Problem == EmitTooLarge):
		return Disposition{Outcome: Rejected, Reason: err.Error()}
	}
	return Disposition{Outcome: Retried, Reason: err.Error()}
}
