package keyrail

import "fmt"

// Level is how much a line matters.
type Level uint8

// The numbers are those of the contract.
const (
	// Trace is for steps.
	Trace Level = iota
	// Debug is for whoever looks for a fault.
	Debug
	// Info is what happened.
	Info
	// Warn is that something is off.
	Warn
	// Failed is that something failed.
	Failed
	// Critical is that somebody must act.
	Critical
)

// Log writes one line to the host's log. Context groups lines. It is outside the commit: an event that is tried again
// logs again.
func (c *Context) Log(level Level, context, message string) { c.host.Log(level, context, message) }

// Infof logs what happened, with the message's type as the context.
func (c *Context) Infof(format string, args ...any) {
	c.host.Log(Info, c.Name, fmt.Sprintf(format, args...))
}

// Warnf logs that something is off, with the message's type as the context.
func (c *Context) Warnf(format string, args ...any) {
	c.host.Log(Warn, c.Name, fmt.Sprintf(format, args...))
}
