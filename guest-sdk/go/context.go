package keyrail

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Header is one header of an event. Names that start with `keyrail-` are the host's.
type Header struct{ Name, Value string }

// Incoming is an event with everything that the host says about it.
type Incoming struct {
	// ID is the same in every delivery: what a handler or an external system uses for idempotency.
	ID       string
	Category string
	Name     string
	Version  uint32
	// Key is the validated key; empty in a category that is not partitioned.
	Key string
	// Epoch and Sequence are the place in the stream. They order, and only that.
	Epoch    uint64
	Sequence uint64
	// Generation grows each time the partition changes hands: what to fence external calls with.
	Generation uint64
	// Attempt is 1 for the first try.
	Attempt uint32
	// RecordedAtMs is when the broker recorded it, in milliseconds since 1970.
	RecordedAtMs uint64
	Headers      []Header
	// Data is a JSON object in UTF-8.
	Data []byte
}

// Header is the value of the first header of that name.
func (e *Incoming) Header(name string) (string, bool) {
	for _, header := range e.Headers {
		if header.Name == name {
			return header.Value, true
		}
	}
	return "", false
}

func (e *Incoming) typeName() string {
	return fmt.Sprintf("%s/%s version %d", e.Category, e.Name, e.Version)
}

// Context is what a handler has while it handles one event: the event, its key's state, the outbox.
type Context struct {
	Incoming
	host Host
}

// Parse reads the event's data. Data that does not parse is rejected: no later try can read it.
func Parse[T any](ctx *Context) (T, error) {
	var event T
	if err := json.Unmarshal(ctx.Data, &event); err != nil {
		return event, Rejectf("%s does not parse: %w", ctx.typeName(), err)
	}
	return event, nil
}

// State reads a value of this key's state; false if it was never written. It sees the call's own writes.
func State[T any](ctx *Context, name string) (value T, ok bool, err error) {
	stored, ok := ctx.host.Get(name)
	if !ok {
		return value, false, nil
	}
	if err := json.Unmarshal(stored, &value); err != nil {
		return value, true, Rejectf("state %s does not parse: %w", name, err)
	}
	return value, true, nil
}

// PutState writes a value as JSON. Names are 1 to 128 bytes of `[A-Za-z0-9_.:-]`. A refusal is a [*StateError].
func (c *Context) PutState(name string, value any) error {
	stored, err := toJSON(value)
	if err != nil {
		return Rejectf("state %s cannot be written as JSON: %w", name, err)
	}
	return c.host.Put(name, stored)
}

// RemoveState removes a value; no error if there is none.
func (c *Context) RemoveState(name string) error { return c.host.Remove(name) }

// StateBytes is a value's bytes; false if it was never written.
func (c *Context) StateBytes(name string) ([]byte, bool) { return c.host.Get(name) }

// PutStateBytes writes bytes that need not be JSON.
func (c *Context) PutStateBytes(name string, value []byte) error { return c.host.Put(name, value) }

// Emit emits an event: recorded in the same step as this event's acknowledgement, published after it, in order. It
// returns the new event's id, which is the same in every try. A refusal is a [*EmitError], and fails this event even if
// the error is dropped.
func (c *Context) Emit(event Event, headers ...Header) (id string, err error) {
	message, err := NewOutgoing(event, headers...)
	if err != nil {
		return "", err
	}
	return c.EmitRaw(message)
}

// Outgoing is a message to emit that has no Go type.
type Outgoing struct {
	Category string
	Name     string
	Version  uint32
	Headers  []Header
	// Data is a JSON object in UTF-8.
	Data []byte
}

// NewOutgoing is an event as it is emitted.
func NewOutgoing(event Event, headers ...Header) (Outgoing, error) {
	kind := identityOf(event)
	data, err := toJSON(event)
	if err != nil {
		return Outgoing{}, Rejectf("event %s cannot be written as JSON: %w", kind.Name, err)
	}
	return Outgoing{kind.Category, kind.Name, kind.Version, headers, data}, nil
}

// EmitRaw is [Context.Emit] for a message that has no Go type.
func (c *Context) EmitRaw(message Outgoing) (id string, err error) { return c.host.Emit(message) }

// toJSON leaves `<`, `>` and `&` as they are: nobody embeds events in HTML unseen.
func toJSON(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}
