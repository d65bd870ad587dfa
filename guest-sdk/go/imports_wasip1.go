package keyrail

import "unsafe"

// The component's imports, as the canonical ABI flattens them: a text or list is an address and a length, and a result
// of more than one value is written to an address that comes last.

//go:wasmimport keyrail:handler/state@0.1.0 get
func stateGet(name string, answer unsafe.Pointer)

//go:wasmimport keyrail:handler/state@0.1.0 put
func statePut(name string, value unsafe.Pointer, length uint32, answer unsafe.Pointer)

//go:wasmimport keyrail:handler/state@0.1.0 remove
func stateRemove(name string, answer unsafe.Pointer)

//go:wasmimport keyrail:handler/outbox@0.1.0 emit
func outboxEmit(category, name string, version uint32, headers unsafe.Pointer, headerCount uint32,
	data unsafe.Pointer, length uint32, answer unsafe.Pointer)

//go:wasmimport keyrail:handler/logging@0.1.0 log
func loggingLog(level uint32, context, message string)

// Where answers are written. Not on a stack: the host calls cabi_realloc meanwhile, and that may move the stack.
var answer [3]uint64

func answerAddress() unsafe.Pointer {
	answer = [3]uint64{}
	return unsafe.Pointer(&answer)
}

type imports struct{}

func (imports) Get(name string) ([]byte, bool) {
	at := answerAddress()
	stateGet(name, at)
	defer releaseHandedOver()
	if liftByte(at, 0) == 0 {
		return nil, false
	}
	return liftBytes(at, 4), true
}

func (imports) Put(name string, value []byte) error {
	at := answerAddress()
	statePut(name, unsafe.Pointer(unsafe.SliceData(value)), uint32(len(value)), at)
	return liftStateError(name, at)
}

func (imports) Remove(name string) error {
	at := answerAddress()
	stateRemove(name, at)
	return liftStateError(name, at)
}

func liftStateError(name string, at unsafe.Pointer) error {
	if liftByte(at, 0) == 0 {
		return nil
	}
	defer releaseHandedOver()
	refusal := &StateError{Name: name, Problem: StateProblem(liftByte(at, 8))}
	if refusal.Problem == StateTooLarge {
		refusal.MaxBytes = liftLong(at, 16)
	} else {
		refusal.Text = liftText(at, 16)
	}
	return refusal
}

func (imports) Emit(message Outgoing) (string, error) {
	headers := newArea(len(message.Headers) * 16)
	for i, header := range message.Headers {
		headers.text(uint32(i)*16, header.Name)
		headers.text(uint32(i)*16+8, header.Value)
	}
	at := answerAddress()
	outboxEmit(message.Category, message.Name, message.Version, headers.start(), uint32(len(message.Headers)),
		unsafe.Pointer(unsafe.SliceData(message.Data)), uint32(len(message.Data)), at)
	headers.keepAlive()
	defer releaseHandedOver()
	if liftByte(at, 0) == 0 {
		return liftText(at, 8), nil
	}
	refusal := &EmitError{Category: message.Category, Name: message.Name, Problem: EmitProblem(liftByte(at, 8))}
	if refusal.Problem == EmitTooLarge {
		refusal.MaxBytes = liftLong(at, 16)
	} else {
		refusal.Text = liftText(at, 16)
	}
	return "", refusal
}

func (imports) Log(level Level, context, message string) { loggingLog(uint32(level), context, message) }
