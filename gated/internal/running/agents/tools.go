package agents

import (
	"context"

	"arizuko/pkg/groupconfig"
)

// Access is a run's right to call the tools on behalf of the turn at work.
type Access interface {
	// Token is the bearer token of its calls, "" for a run without tools.
	Token() string
	// Tools are the names of the tools that it gives.
	Tools() []string
	// BeforeCalls makes each call wait before it is attributed to the turn at work.
	BeforeCalls(wait func(context.Context) error)
	// Begin begins an attempt at a turn, by the group's configuration.
	Begin(turn int64, c *groupconfig.Config)
	// SetTurn says which turn the run works on, 0 for none.
	SetTurn(turn int64)
	// Close ends its calls, and makes the token invalid. It may be called more than once.
	Close()
}

// noTools is the access of a run without tools.
type noTools struct{}

func (noTools) Token() string                           { return "" }
func (noTools) Tools() []string                         { return nil }
func (noTools) BeforeCalls(func(context.Context) error) {}
func (noTools) Begin(int64, *groupconfig.Config)        {}
func (noTools) SetTurn(int64)                           {}
func (noTools) Close()                                  {}

// toolsURL is where agents of a runtime reach the tools, "" if they cannot.
func (e *env) toolsURL(runtime string) string {
	if e.cfg.Tools == nil || e.cfg.ToolsURL == nil {
		return ""
	}
	return e.cfg.ToolsURL(groupconfig.Runtime(runtime))
}
