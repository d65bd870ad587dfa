package keyrail

// Host is what a handler runs on: the component's imports, or a test. Refusals are [*StateError] and [*EmitError].
type Host interface {
	Get(name string) ([]byte, bool)
	Put(name string, value []byte) error
	Remove(name string) error
	Emit(message Outgoing) (id string, err error)
	Log(level Level, context, message string)
}
