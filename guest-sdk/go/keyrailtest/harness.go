// Package keyrailtest runs a handler in an ordinary Go test: no WebAssembly, no host, no broker.
//
// A [Harness] delivers one event at a time, in the order of the test. State is kept for each key, and the effects of a
// call only when it is done, as on a host. A handler that panics fails the test as any panic does.
package keyrailtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"testing"

	"keyrail"
)

// 2026-01-01T00:00:00Z: the harness has a clock of its own, one second an event.
const firstRecordedAtMs = 1_767_225_600_000

// Harness runs one handler.
type Harness struct {
	t         testing.TB
	handler   *keyrail.Handler
	states    map[string]map[string][]byte
	sequences map[string]uint64
	// Tries that failed, by event id, and the place of the event.
	failed    map[string]failure
	submitted uint64
}

type failure struct {
	sequence uint64
	tries    uint32
}

// Delivery is what became of one event.
type Delivery struct {
	ID          string
	Disposition keyrail.Disposition
	// Emits is empty unless the event is done.
	Emits []Emitted
	// Logs are kept also when the event failed.
	Logs []LogLine
}

// Emitted is an event that was emitted.
type Emitted struct {
	ID string
	keyrail.Outgoing
}

// LogLine is a line that the handler logged.
type LogLine struct {
	Level            keyrail.Level
	Context, Message string
}

// Submission is an event to deliver. What is zero is found: an id, the key by the field that the handler is sequential
// by, version 1, the attempt by how often this id has failed.
type Submission struct {
	ID       string
	Category string
	Name     string
	Version  uint32
	Key      string
	Attempt  uint32
	Headers  []keyrail.Header
	Data     []byte
}

// New is a harness with nothing delivered and no state.
func New(t testing.TB, handler *keyrail.Handler) *Harness {
	return &Harness{
		t: t, handler: handler,
		states: map[string]map[string][]byte{}, sequences: map[string]uint64{}, failed: map[string]failure{},
	}
}

// Deliver delivers one event.
func (h *Harness) Deliver(event keyrail.Event, headers ...keyrail.Header) Delivery {
	h.t.Helper()
	message, err := keyrail.NewOutgoing(event, headers...)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.Submit(Submission{
		Category: message.Category, Name: message.Name, Version: message.Version, Headers: message.Headers, Data: message.Data,
	})
}

// DeliverLine delivers a line as `keyrail publish` takes it: {"category":…, "type":…, "data":{…}, "id":…}.
func (h *Harness) DeliverLine(line string) Delivery {
	h.t.Helper()
	var parsed struct {
		Category string
		Type     string
		Version  uint32
		ID       string
		Headers  map[string]string
		Data     json.RawMessage
	}
	if err := json.Unmarshal([]byte(line), &parsed); err != nil {
		h.t.Fatalf("not a line of events: %v: %s", err, line)
	}
	submission := Submission{
		ID: parsed.ID, Category: parsed.Category, Name: parsed.Type, Version: parsed.Version, Data: parsed.Data,
	}
	for name, value := range parsed.Headers {
		submission.Headers = append(submission.Headers, keyrail.Header{Name: name, Value: value})
	}
	return h.Submit(submission)
}

// Submit delivers anything, also data that does not fit its type. It fails the test if the handler does not declare the
// type: no host would deliver it.
func (h *Harness) Submit(submission Submission) Delivery {
	h.t.Helper()
	if submission.Version == 0 {
		submission.Version = 1
	}
	if !h.takes(submission) {
		h.t.Fatalf("the handler %s does not handle %s/%s version %d",
			h.handler.Name, submission.Category, submission.Name, submission.Version)
	}
	event := h.incoming(submission)
	run := &recorder{id: event.ID, state: maps.Clone(h.states[event.Key])}
	if run.state == nil {
		run.state = map[string][]byte{}
	}
	disposition := h.handler.Handle(run, event)
	if disposition.Outcome == keyrail.Done && run.refused != nil {
		disposition = keyrail.Disposition{Outcome: keyrail.Rejected, Reason: "an emit was refused: " + run.refused.Error()}
	}
	delivery := Delivery{ID: event.ID, Disposition: disposition, Logs: run.logs}
	if disposition.Outcome == keyrail.Done {
		delete(h.failed, event.ID)
		h.states[event.Key] = run.state
		delivery.Emits = run.emits
	} else {
		h.failed[event.ID] = failure{event.Sequence, h.failed[event.ID].tries + 1}
	}
	return delivery
}

// StateBytes is a value of a key's state; nil if it was never written. For events without a key, the key is empty.
func (h *Harness) StateBytes(key, name string) []byte { return h.states[key][name] }

// State is a value of a key's state; false if it was never written. It fails the test if the value is not a T.
func State[T any](h *Harness, key, name string) (value T, ok bool) {
	h.t.Helper()
	stored := h.StateBytes(key, name)
	if stored == nil {
		return value, false
	}
	if err := json.Unmarshal(stored, &value); err != nil {
		h.t.Fatalf("state %s of %s is not a %T: %v: %s", name, key, value, err, stored)
	}
	return value, true
}

// EmittedOf are the emitted events of one type, in order.
func EmittedOf[T keyrail.Event](d Delivery) []T {
	kind := keyrail.TypeOf[T]()
	var events []T
	for _, one := range d.Emits {
		if one.Category != kind.Category || one.Name != kind.Name || one.Version != kind.Version {
			continue
		}
		var event T
		if err := json.Unmarshal(one.Data, &event); err != nil {
			panic(fmt.Sprintf("an emitted %s does not parse: %v", kind.Name, err))
		}
		events = append(events, event)
	}
	return events
}

func (h *Harness) takes(submission Submission) bool {
	for _, one := range h.handler.Handles {
		kind := one.Type
		if kind.Category == submission.Category && kind.Name == submission.Name && kind.Version == submission.Version {
			return true
		}
	}
	return false
}

func (h *Harness) incoming(submission Submission) keyrail.Incoming {
	h.submitted++
	event := keyrail.Incoming{
		ID: submission.ID, Category: submission.Category, Name: submission.Name, Version: submission.Version,
		Key: submission.Key, Epoch: 1, Generation: 1, Attempt: submission.Attempt,
		RecordedAtMs: firstRecordedAtMs + 1000*h.submitted, Headers: submission.Headers, Data: submission.Data,
	}
	if event.ID == "" {
		event.ID = fmt.Sprintf("event-%d", h.submitted)
	}
	if event.Key == "" {
		event.Key = h.keyOf(submission)
	}
	failed, again := h.failed[event.ID]
	if again {
		event.Sequence = failed.sequence
	} else {
		stream := event.Category + ":" + event.Key
		event.Sequence = h.sequences[stream]
		h.sequences[stream]++
	}
	if event.Attempt == 0 {
		event.Attempt = failed.tries + 1
	}
	return event
}

// keyOf is the value of the key field; empty if there is none, or it cannot be a key.
func (h *Harness) keyOf(submission Submission) string {
	field := h.handler.SequentialBy
	for _, one := range h.handler.Correlates {
		if one.Category == submission.Category && one.Message == submission.Name {
			field = one.Field
		}
	}
	var data map[string]any
	decoder := json.NewDecoder(bytes.NewReader(submission.Data))
	decoder.UseNumber()
	if decoder.Decode(&data) != nil {
		return ""
	}
	switch value := data[field].(type) {
	case string:
		return value
	case json.Number:
		if _, err := strconv.ParseInt(value.String(), 10, 64); err == nil {
			return value.String()
		}
	}
	return ""
}
