package keyrailtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"

	"keyrail"
)

// recorder is the host of one call: it sees the state of one key and keeps what the call does.
type recorder struct {
	id      string
	state   map[string][]byte
	emits   []Emitted
	logs    []LogLine
	refused error
}

var stateName = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,128}$`)

func (r *recorder) Get(name string) ([]byte, bool) {
	value, ok := r.state[name]
	return bytes.Clone(value), ok
}

func (r *recorder) Put(name string, value []byte) error {
	if err := checkName(name); err != nil {
		return err
	}
	r.state[name] = append([]byte{}, value...)
	return nil
}

func (r *recorder) Remove(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	delete(r.state, name)
	return nil
}

func checkName(name string) error {
	if stateName.MatchString(name) {
		return nil
	}
	return &keyrail.StateError{Name: name, Text: fmt.Sprintf("state name %q is not 1 to 128 bytes of [A-Za-z0-9_.:-]", name)}
}

// Emit takes any category: the harness has no catalog.
func (r *recorder) Emit(message keyrail.Outgoing) (string, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(message.Data, &object); err != nil || object == nil {
		r.refused = &keyrail.EmitError{
			Category: message.Category, Name: message.Name, Problem: keyrail.InvalidData, Text: "the data is not a JSON object",
		}
		return "", r.refused
	}
	id := fmt.Sprintf("%s.%d", r.id, len(r.emits))
	r.emits = append(r.emits, Emitted{id, message})
	return id, nil
}

func (r *recorder) Log(level keyrail.Level, context, message string) {
	r.logs = append(r.logs, LogLine{level, context, message})
}
