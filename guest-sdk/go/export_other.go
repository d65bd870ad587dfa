//go:build !wasip1

package keyrail

// Export offers the handler to the host: the one handler of a component. Outside a component it only returns it.
func Export(handler Handler) *Handler { return &handler }
