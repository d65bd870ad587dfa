package keyrail

import (
	"runtime/debug"
	"unsafe"
)

// The component's exports. They own the answers that the host reads after a call has returned: an answer lives until
// the next call, which needs no post-return function.

// Half of what a host allows by default. Go's collector works harder when the heap comes near it, which is better than
// to be stopped for memory that is garbage.
const memoryLimitBytes = 64 << 20

var exported *Handler

// Export offers the handler to the host: the one handler of a component. Outside a component it only returns it.
func Export(handler Handler) *Handler {
	if exported != nil {
		panic("keyrail: a component has one handler, and " + exported.Name + " is exported already")
	}
	exported = &handler
	debug.SetMemoryLimit(memoryLimitBytes)
	return exported
}

func theHandler() *Handler {
	if exported == nil {
		panic("keyrail: no handler: call keyrail.Export in a package-level variable of the main package")
	}
	return exported
}

// The record that describe answers with, once made.
var described *area

//go:wasmexport keyrail:handler/guest@0.1.0#describe
func describe() uint32 {
	if described == nil {
		described = lowerMetadata(theHandler())
	}
	return described.address()
}

var answered *area

//go:wasmexport keyrail:handler/guest@0.1.0#handle
func handle(event uint32) uint32 {
	lifted := liftEvent(pointer(event))
	releaseHandedOver()
	answered = lowerDisposition(theHandler().Handle(imports{}, lifted))
	return answered.address()
}

func lowerMetadata(h *Handler) *area {
	record := newArea(48)
	record.text(0, h.Name)
	record.text(8, h.Version)
	record.byte(16, uint8(h.Role))
	messages := record.list(20, len(h.Handles), 28)
	for i, one := range h.Handles {
		at := uint32(i) * 28
		messages.text(at, one.Type.Category)
		messages.text(at+8, one.Type.Name)
		messages.word(at+16, one.Type.Version)
		fields := messages.list(at+20, len(one.Type.Fields), 12)
		for j, field := range one.Type.Fields {
			at := uint32(j) * 12
			fields.text(at, field.Name)
			fields.byte(at+8, uint8(field.Type))
			if field.Required {
				fields.byte(at+9, 1)
			}
		}
	}
	switch {
	case len(h.Correlates) > 0:
		record.byte(28, 2)
		list := record.list(32, len(h.Correlates), 24)
		for i, one := range h.Correlates {
			at := uint32(i) * 24
			list.text(at, one.Category)
			list.text(at+8, one.Message)
			list.text(at+16, one.Field)
		}
	case h.SequentialBy != "":
		record.byte(28, 1)
		record.text(32, h.SequentialBy)
	}
	options := record.list(40, len(h.Options), 16)
	for i, one := range h.Options {
		options.text(uint32(i)*16, one.Name)
		options.text(uint32(i)*16+8, one.Value)
	}
	return record
}

func lowerDisposition(d Disposition) *area {
	record := newArea(32)
	record.byte(0, uint8(d.Outcome))
	if d.Outcome != Done {
		record.text(8, d.Reason)
	}
	if d.Outcome == Retried && d.AfterMs > 0 {
		record.byte(16, 1)
		record.long(24, d.AfterMs)
	}
	return record
}

func liftEvent(from unsafe.Pointer) Incoming {
	event := Incoming{
		ID:           liftText(from, 0),
		Category:     liftText(from, 8),
		Name:         liftText(from, 16),
		Version:      liftWord(from, 24),
		Epoch:        liftLong(from, 40),
		Sequence:     liftLong(from, 48),
		Generation:   liftLong(from, 56),
		Attempt:      liftWord(from, 64),
		RecordedAtMs: liftLong(from, 72),
		Data:         liftBytes(from, 88),
	}
	if liftByte(from, 28) == 1 {
		event.Key = liftText(from, 32)
	}
	headers, count := pointer(liftWord(from, 80)), liftWord(from, 84)
	for i := range count {
		event.Headers = append(event.Headers, Header{liftText(headers, i*16), liftText(headers, i*16+8)})
	}
	return event
}
