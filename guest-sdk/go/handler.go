package keyrail

import "fmt"

// Role is what kind of handler it is.
type Role uint8

// The numbers are those of the contract.
const (
	// EventHandler reacts to events.
	EventHandler Role = iota
	// CommandHandler carries out commands; a command type has one.
	CommandHandler
	// ProcessManager coordinates over several categories by a correlation value.
	ProcessManager
)

// Correlation says which field of a message holds the value that a process manager correlates by.
type Correlation struct{ Category, Message, Field string }

// Option is a setting for the host. A host refuses unknown names that start with `must-` and ignores others.
type Option struct{ Name, Value string }

// Handler is what a component offers to the host.
type Handler struct {
	// Name is the consumer group, `[a-z][a-z0-9_.-]{0,63}`. Another name starts from the beginning.
	Name string
	// Version is free text, shown to operators.
	Version string
	// Role is EventHandler unless said otherwise.
	Role Role
	// SequentialBy is the field whose value is the key: events with equal keys run one at a time, in publish order.
	// Every handled message has it, required, as text or an integer. Empty: nothing of its own.
	SequentialBy string
	// Correlates is what a process manager has instead of SequentialBy.
	Correlates []Correlation
	// Options are settings such as `retry-attempts-max`.
	Options []Option
	// Handles is one entry for each type of message, made by [On].
	Handles []Handles
}

// Handles binds one type of message to the function that takes it.
type Handles struct {
	// Type is what the host is told.
	Type MessageType
	call func(*Context) error
}

// On binds a function to the type of message that it takes. It panics if T cannot be a message: a program that
// declares such a type never gets to an event.
func On[T Event](handle func(*Context, T) error) Handles {
	return Handles{
		Type: TypeOf[T](),
		call: func(ctx *Context) error {
			event, err := Parse[T](ctx)
			if err != nil {
				return err
			}
			return handle(ctx, event)
		},
	}
}

// Disposition is what the host is told. Only Done keeps the call's state writes and emits.
type Disposition struct {
	Outcome Outcome
	// Reason is shown to operators; empty for Done.
	Reason string
	// AfterMs is a wish for Retry, 0 for none: the host's own back-off is the least, its cap the most.
	AfterMs uint64
}

// Outcome is the kind of a disposition.
type Outcome uint8

// The numbers are those of the contract.
const (
	// Done: handled.
	Done Outcome = iota
	// Retried: to be tried again; nothing else of this key runs before.
	Retried
	// Rejected: no try can succeed, so the key halts on this event until an operator decides.
	Rejected
)

func (o Outcome) String() string {
	return [...]string{"done", "retry", "reject"}[o]
}

// Handle runs one event on a host. The component's export and the test harness call it; a handler does not.
func (h *Handler) Handle(host Host, event Incoming) Disposition {
	ctx := &Context{Incoming: event, host: host}
	for _, one := range h.Handles {
		if one.Type.Category == event.Category && one.Type.Name == event.Name && one.Type.Version == event.Version {
			return dispositionOf(one.call(ctx))
		}
	}
	return Disposition{Outcome: Rejected, Reason: fmt.Sprintf("%s is not handled by this handler", event.typeName())}
}
