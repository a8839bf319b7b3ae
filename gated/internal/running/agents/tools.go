package agents

import (
	"context"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/groupconfig"
)

// toolsURL is where agents of a runtime reach the tools, "" if they cannot.
func (m *Manager) toolsURL(runtime string) string {
	if m.cfg.Tools == nil || m.cfg.ToolsURL == nil {
		return ""
	}
	return m.cfg.ToolsURL(groupconfig.Runtime(runtime))
}

// mcp is the run's access to the tools, nil for none.
func (r *run) mcp() *agentproto.MCP {
	if r.access == nil {
		return nil
	}
	return &agentproto.MCP{URL: r.m.toolsURL(r.row.Runtime), Token: r.access.Token()}
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
