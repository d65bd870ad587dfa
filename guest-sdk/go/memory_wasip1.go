package keyrail

import (
	"runtime"
	"unsafe"
)

// Values as they lie in the component's memory, by the canonical ABI: 32-bit addresses, little endian.
//
// Go's collector does not see an address that is stored as a number, so an area keeps what it points to, and what the
// host puts into our memory is kept in handedOver until Go values refer to it. Go does not move what is on its heap.

// area is a record or list that the host reads.
type area struct {
	words []uint64
	kept  []any
}

func newArea(sizeBytes int) *area { return &area{words: make([]uint64, (sizeBytes+7)/8)} }

func (a *area) start() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(a.words)) }
func (a *area) address() uint32       { return uint32(uintptr(a.start())) }
func (a *area) keepAlive()            { runtime.KeepAlive(a) }

func (a *area) byte(at uint32, value uint8)  { *(*uint8)(unsafe.Add(a.start(), at)) = value }
func (a *area) word(at uint32, value uint32) { *(*uint32)(unsafe.Add(a.start(), at)) = value }
func (a *area) long(at uint32, value uint64) { *(*uint64)(unsafe.Add(a.start(), at)) = value }

func (a *area) text(at uint32, value string) {
	// A copy, so that it is surely on the heap and stays where it is.
	bytes := []byte(value)
	a.kept = append(a.kept, bytes)
	a.word(at, uint32(uintptr(unsafe.Pointer(unsafe.SliceData(bytes)))))
	a.word(at+4, uint32(len(bytes)))
}

func (a *area) list(at uint32, count, elementBytes int) *area {
	elements := newArea(count * elementBytes)
	a.kept = append(a.kept, elements)
	a.word(at, elements.address())
	a.word(at+4, uint32(count))
	return elements
}

func pointer(address uint32) unsafe.Pointer { return unsafe.Pointer(uintptr(address)) }

func liftByte(from unsafe.Pointer, at uint32) uint8  { return *(*uint8)(unsafe.Add(from, at)) }
func liftWord(from unsafe.Pointer, at uint32) uint32 { return *(*uint32)(unsafe.Add(from, at)) }
func liftLong(from unsafe.Pointer, at uint32) uint64 { return *(*uint64)(unsafe.Add(from, at)) }

// The host made these bytes for us: they are referred to, not copied.
func liftBytes(from unsafe.Pointer, at uint32) []byte {
	length := liftWord(from, at+4)
	if length == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(pointer(liftWord(from, at))), length)
}

func liftText(from unsafe.Pointer, at uint32) string {
	bytes := liftBytes(from, at)
	return unsafe.String(unsafe.SliceData(bytes), len(bytes))
}

// What the host was given memory for and no Go value refers to yet.
var handedOver [][]uint64

func releaseHandedOver() {
	clear(handedOver)
	handedOver = handedOver[:0]
}

//go:wasmexport cabi_realloc
func cabiRealloc(old unsafe.Pointer, oldBytes, alignment, newBytes uint32) unsafe.Pointer {
	words := make([]uint64, max(1, (newBytes+7)/8))
	handedOver = append(handedOver, words)
	start := unsafe.Pointer(unsafe.SliceData(words))
	if oldBytes > 0 {
		copy(unsafe.Slice((*byte)(start), newBytes), unsafe.Slice((*byte)(old), oldBytes))
	}
	return start
}

// The WASI adapter asks for a page of state and a page of stack at its first call, which Go's own start-up makes: the
// heap is not there yet. Growing the memory instead is not safe, because Go takes the end of the memory for its own.
const adapterBytes = 4 << 16

var (
	adapterMemory [adapterBytes]byte
	adapterUsed   uint32
)

//go:wasmexport cabi_realloc_adapter
//go:nosplit
func cabiReallocAdapter(_ unsafe.Pointer, _, alignment, newBytes uint32) unsafe.Pointer {
	base := uint32(uintptr(unsafe.Pointer(&adapterMemory)))
	at := (base+adapterUsed+alignment-1)&^(alignment-1) - base
	if at+newBytes > adapterBytes {
		return nil
	}
	adapterUsed = at + newBytes
	return unsafe.Pointer(uintptr(base + at))
}
