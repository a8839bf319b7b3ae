package agents

import (
	"context"
	"log/slog"
	"time"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
)

// debug reports whether the steps of a turn's life are logged. Everything below
// asks it first, so that a turn costs nothing where they are not.
func (m *Manager) debug() bool { return m.log.Enabled(context.Background(), slog.LevelDebug) }

func (m *Manager) logQueued(t *msg.Turn) {
	if m.debug() {
		m.log.Debug("turn queued", "turn", t.ID, "folder", t.Folder, "chat", t.ChatJID, "wait", m.waitOf(t))
	}
}

// waitOf is how long a queued turn waits at least.
func (m *Manager) waitOf(t *msg.Turn) time.Duration {
	return time.Duration(max(t.NotBefore-m.now(), 0)) * time.Millisecond
}

func (r *run) logPiped(t *msg.Turn) {
	if r.m.debug() {
		r.m.log.Debug("turn piped", "turn", t.ID, "run", r.row.ID, "folder", t.Folder, "chat", t.ChatJID)
	}
}

func (r *run) logStarted() {
	if r.m.debug() {
		r.m.log.Debug("run started", "run", r.row.ID, "folder", r.row.Folder, "chat", r.row.ChatJID,
			"runtime", r.row.Runtime, "pid", r.proc.PID())
	}
}

func (r *run) logPrompt(t *msg.Turn, bytes int) {
	if r.m.debug() {
		r.m.log.Debug("prompt sent", "turn", t.ID, "run", r.row.ID, "bytes", bytes)
	}
}

func (r *run) logFrame(t *msg.Turn, f *agentproto.Frame) {
	if r.m.debug() {
		r.m.log.Debug("frame received", "turn", t.ID, "run", r.row.ID, "bytes", len(f.Result)+len(f.Error), "final", !f.More())
	}
}

// logAnswer names the row that a frame became, 0 for a silence and for an
// answer that went back to another group as an inbound row.
func (r *run) logAnswer(t *msg.Turn, text string) {
	if !r.m.debug() {
		return
	}
	var row int64
	if text != "" {
		if replies, err := r.m.st.TurnReplies(r.m.ctx, t.ID); err == nil && len(replies) > 0 {
			row = replies[len(replies)-1].ID
		}
	}
	r.m.log.Debug("answer stored", "row", row, "turn", t.ID, "run", r.row.ID)
}

// logEnded names a run that is gone: why it failed, which turns failed with it,
// and which the queue has again.
func (r *run) logEnded(left leftovers, failureLogged bool) {
	if left.failure.problem != "" && !failureLogged {
		r.m.log.Warn("run failed", "run", r.row.ID, "folder", r.row.Folder, "reason", left.failure.problem)
	}
	for _, t := range left.failed {
		r.m.log.Warn("turn failed", "turn", t.ID, "folder", t.Folder, "chat", t.ChatJID, "reason", left.failure.problem)
	}
	if !r.m.debug() {
		return
	}
	for _, t := range left.queued {
		r.m.log.Debug("turn requeued", "turn", t.ID, "run", r.row.ID, "folder", t.Folder, "wait", r.m.waitOf(t))
	}
	r.m.log.Debug("run ended", "run", r.row.ID, "folder", r.row.Folder, "chat", r.row.ChatJID,
		"took", time.Duration(r.m.now()-r.row.StartedAt)*time.Millisecond)
}
