package keyrail

import "fmt"

// Level is how much a line matters.
type Level uint8

// The numbers are those of the contract.
const (
	// LevelTrace is for steps.
	LevelTrace Level = iota
	// LevelDebug is for whoever looks for a fault.
	LevelDebug
	// LevelInfo is what happened.
	LevelInfo
	// LevelWarn is that something is off.
	LevelWarn
	// LevelError is that something failed.
	LevelError
	// LevelCritical is that somebody must act.
	LevelCritical
)

// Log writes one line to the host's log. Context groups lines. It is outside the commit: an event that is tried again
// logs again.
func (c *Context) Log(level Level, context, message string) { c.host.Log(level, context, message) }

// Infof logs what happened, with the message's type as the context.
func (c *Context) Infof(format string, args ...any) {
	c.host.Log(LevelInfo, c.Name, fmt.Sprintf(format, args...))
}

// Warnf logs that something is off, with the message's type as the context.
func (c *Context) Warnf(format string, args ...any) {
	c.host.Log(LevelWarn, c.Name, fmt.Sprintf(format, args...))
}

// Errorf logs that something failed, with the message's type as the context. It does not end the call.
func (c *Context) Errorf(format string, args ...any) {
	c.host.Log(LevelError, c.Name, fmt.Sprintf(format, args...))
}
