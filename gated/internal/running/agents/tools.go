package agents

import (
	"context"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
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

// mcp is the agent's access to the tools, nil for none.
func (a *agent) mcp() *agentproto.MCP {
	token := a.access.Token()
	if token == "" {
		return nil
	}
	return &agentproto.MCP{URL: a.env.toolsURL(a.row.Runtime), Token: token}
}

// setTurns tells the tools on which turn the agent works now: the first of those that are unanswered.
func (a *agent) setTurns(unanswered []*msg.Turn) {
	var oldest int64
	if len(unanswered) > 0 {
		oldest = unanswered[0].ID
	}
	a.piped.Store(len(unanswered) > 1)
	a.access.SetTurn(oldest)
}

// awaitFrames waits until the answers that the agent has written so far are stored, so that a tool call is attributed
// to the turn after them. It returns the error of ctx. Any goroutine may call it.
func (a *agent) awaitFrames(ctx context.Context) error {
	if !a.piped.Load() {
		return nil // the agent has no other turn yet
	}
	if err := a.proc.AwaitOutput(ctx); err != nil {
		return err
	}
	return a.inbox.awaitIdle(ctx)
}
