// The conformance handler: what every language's SDK must be able to do, one action a step.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"time"

	"keyrail"
)

// Step says what to do.
type Step struct {
	Key    string  `json:"key"`
	Action string  `json:"action"`
	Name   *string `json:"name"`
	Text   *string `json:"text"`
	Count  *int64  `json:"count"`
}

// EventCategory is the category of this suite.
func (Step) EventCategory() string { return "conformance" }

// Echo is what `emit` emits; the handler conformance-sink takes it.
type Echo struct {
	Key  string `json:"key"`
	Text string `json:"text"`
	Nth  int64  `json:"nth"`
}

// EventCategory is the category of the sink.
func (Echo) EventCategory() string { return "conformance-out" }

var handler = keyrail.Export(keyrail.Handler{
	Name:         "conformance",
	Version:      "1.0.0",
	SequentialBy: "key",
	Options:      []keyrail.Option{{Name: "retry-attempts-max", Value: "3"}, {Name: "retry-backoff-base-ms", Value: "1"}},
	Handles:      []keyrail.Handles{keyrail.On(step)},
})

func main() {}

func step(ctx *keyrail.Context, step Step) error {
	text := or(step.Text, "")
	name := or(step.Name, "")
	count := or(step.Count, 0)
	switch step.Action {
	case "append":
		log, _ := ctx.StateBytes("log")
		return ctx.PutStateBytes("log", slices.Concat(log, []byte(text+"\n")))
	case "put":
		return ctx.PutStateBytes(name, []byte(text))
	case "remove":
		return ctx.RemoveState(name)
	case "binary":
		return binary(ctx)
	case "emit":
		for nth := range count {
			echo := Echo{Key: step.Key, Text: text, Nth: nth}
			if _, err := ctx.Emit(echo, keyrail.Header{Name: "conformance", Value: "yes"}); err != nil {
				return err
			}
		}
		return nil
	case "emit-bad":
		// The refusal is dropped on purpose: the host must fail the event all the same.
		_, _ = ctx.EmitRaw(keyrail.Outgoing{Category: "nowhere", Name: "Nothing", Version: 1, Data: []byte("{}")})
		return nil
	case "retry":
		if int64(ctx.Attempt) <= count {
			if err := ctx.PutStateBytes("dropped", []byte("x")); err != nil {
				return err
			}
			return keyrail.RetryAfter(1, "not yet")
		}
		return ctx.PutStateBytes("attempts", strconv.AppendUint(nil, uint64(ctx.Attempt), 10))
	case "reject":
		return keyrail.Reject(text)
	case "trap":
		panic("this step panics")
	case "spin":
		for {
		}
	case "grow":
		grow()
		return nil
	case "log":
		ctx.Log(keyrail.LevelInfo, "conformance", text)
		fmt.Println(text)
		return nil
	case "context":
		return ctx.PutState("context", contextOf(ctx))
	case "clock":
		return clock(ctx)
	default:
		return keyrail.Reject("unknown action: " + step.Action)
	}
}

func binary(ctx *keyrail.Context) error {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	stored, again := ctx.StateBytes("bytes")
	if !again {
		return ctx.PutStateBytes("bytes", all)
	}
	if !bytes.Equal(stored, all) {
		return keyrail.Reject("bytes differ")
	}
	slices.Reverse(all)
	return ctx.PutStateBytes("bytes-again", all)
}

var kept [][]byte

func grow() {
	for {
		piece := make([]byte, 1<<20)
		for i := range piece {
			piece[i] = 1
		}
		kept = append(kept, piece)
	}
}

func contextOf(ctx *keyrail.Context) any {
	headers := [][2]string{}
	for _, header := range ctx.Headers {
		headers = append(headers, [2]string{header.Name, header.Value})
	}
	return struct {
		ID         string      `json:"id"`
		Category   string      `json:"category"`
		Name       string      `json:"name"`
		Version    uint32      `json:"version"`
		Key        string      `json:"key"`
		Epoch      uint64      `json:"epoch"`
		Sequence   uint64      `json:"sequence"`
		Generation uint64      `json:"generation"`
		Attempt    uint32      `json:"attempt"`
		RecordedAt uint64      `json:"recordedAt"`
		Headers    [][2]string `json:"headers"`
	}{
		ctx.ID, ctx.Category, ctx.Name, ctx.Version, ctx.Key, ctx.Epoch, ctx.Sequence, ctx.Generation, ctx.Attempt,
		ctx.RecordedAtMs, headers,
	}
}

func clock(ctx *keyrail.Context) error {
	if err := ctx.PutStateBytes("clock", strconv.AppendInt(nil, time.Now().UnixMilli(), 10)); err != nil {
		return err
	}
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return err
	}
	return ctx.PutStateBytes("random", []byte(hex.EncodeToString(random[:])))
}

func or[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}
