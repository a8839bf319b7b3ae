package agents

import (
	"context"
	"log/slog"
	"time"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

// debug reports whether the steps of a turn's life are logged.
func (e *env) debug() bool { return e.log.Enabled(context.Background(), slog.LevelDebug) }

// waitOf is how long a queued turn waits at least.
func (e *env) waitOf(t *msg.Turn) time.Duration {
	return time.Duration(max(t.NotBefore-e.now(), 0)) * time.Millisecond
}

// logAnswer names the row that a frame became, 0 for a silence and for an
// answer that went back to another group as an inbound row.
func (e *env) logAnswer(run int64, t *msg.Turn, text string) {
	if !e.debug() {
		return
	}
	var row int64
	if text != "" {
		if replies, err := factrows.TurnReplies(e.ctx, e.st.Reader, t.ID); err == nil && len(replies) > 0 {
			row = replies[len(replies)-1].ID
		}
	}
	e.log.Debug("answer stored", "row", row, "turn", t.ID, "run", run)
}

// logEnded names a run that is gone: why it failed, which turns failed with it,
// and which the queue has again.
func (e *env) logEnded(run *msg.Run, left *leftovers, failureLogged bool) {
	if left.failure.problem != "" && !failureLogged {
		e.log.Warn("run failed", "run", run.ID, "folder", run.Folder, "reason", left.failure.problem)
	}
	for _, t := range left.failed {
		e.log.Warn("turn failed", "turn", t.ID, "folder", t.Folder, "chat", t.ChatJID, "reason", left.failure.problem)
	}
	if !e.debug() {
		return
	}
	for _, t := range left.queued {
		e.log.Debug("turn requeued", "turn", t.ID, "run", run.ID, "folder", t.Folder, "wait", e.waitOf(t))
	}
	e.log.Debug("run ended", "run", run.ID, "folder", run.Folder, "chat", run.ChatJID,
		"took", time.Duration(e.now()-run.StartedAt)*time.Millisecond)
}
