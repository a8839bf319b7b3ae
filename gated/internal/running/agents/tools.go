package agents

import (
	"context"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/groupconfig"
)

// Access is what a run has of the tools: the right to call them, on behalf of the turn at work.
type Access interface {
	// Token is the bearer token of its calls, "" for a run without tools.
	Token() string
	// Tools are the names of the tools that it gives.
	Tools() []string
	// BeforeCalls sets what each call waits for before it is attributed to the turn at work.
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
func (m *Manager) toolsURL(runtime string) string {
	if m.cfg.Tools == nil || m.cfg.ToolsURL == nil {
		return ""
	}
	return m.cfg.ToolsURL(groupconfig.Runtime(runtime))
}

// mcp is the run's access to the tools, nil for none.
func (r *run) mcp() *agentproto.MCP {
	token := r.access.Token()
	if token == "" {
		return nil
	}
	return &agentproto.MCP{URL: r.m.toolsURL(r.row.Runtime), Token: token}
}

// setTurnAtWork tells the tools on which turn the agent works now.
func (r *run) setTurnAtWork() {
	var oldest int64
	if len(r.unanswered) > 0 {
		oldest = r.unanswered[0].ID
	}
	r.piped.Store(len(r.unanswered) > 1)
	r.access.SetTurn(oldest)
}

// awaitFrames waits until the answers that the agent has written so far are stored, so that a tool call is attributed to
// the turn after them. It returns the error of ctx.
func (r *run) awaitFrames(ctx context.Context) error {
	if !r.piped.Load() {
		return nil // the agent has no other turn yet
	}
	if err := r.proc.AwaitOutput(ctx); err != nil {
		return err
	}
	handled := make(chan struct{})
	select {
	case r.idle <- handled:
	case <-ctx.Done():
		return ctx.Err()
	}
	<-handled
	return nil
}
