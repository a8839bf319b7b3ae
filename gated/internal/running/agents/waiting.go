package agents

import (
	"slices"
	"time"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// waitingInterval is how often turns are looked for that wait.
	waitingInterval = time.Second
	// maxWaiting bounds the new turns that are watched, maxMarks the messages that are marked in one interval: where
	// hundreds wait, the mark says nothing new, and costs the platform's limits.
	maxWaiting = 1000
	maxMarks   = 20
)

// waiting is a turn that may wait for its agent.
type waiting struct {
	turn   int64
	folder string
	since  int64 // unix ms
}

// watch looks later whether a new turn waits. The caller holds m.mu.
func (m *Manager) watch(t *msg.Turn) {
	if m.cfg.WaitMark > 0 && t.Kind == msg.Conversation && len(m.watched) < maxWaiting {
		m.watched = append(m.watched, waiting{t.ID, t.Folder, t.CreatedAt})
	}
}

// markWaiting marks the messages of turns that have waited for their agent, and that no agent has begun.
func (m *Manager) markWaiting() {
	now := m.now()
	if now >= m.markedAt && now < m.markedAt+waitingInterval.Milliseconds() {
		return
	}
	m.markedAt = now
	m.mu.Lock()
	var due []waiting
	m.watched = slices.DeleteFunc(m.watched, func(w waiting) bool {
		over := w.since <= now-m.cfg.WaitMark.Milliseconds() && len(due) < maxMarks
		if over {
			due = append(due, w)
		}
		return over
	})
	m.mu.Unlock()
	for _, w := range due {
		waits, err := m.st.Waits(m.ctx, w.turn)
		if err != nil || !waits || !m.shows(w.folder) {
			continue
		}
		err = m.st.Write(m.ctx, func(tx *store.Tx) error {
			_, err := tx.MarkWaiting(w.turn, now)
			return err
		})
		if err != nil && m.ctx.Err() == nil {
			m.log.Warn("marking a message that waits failed", "turn", w.turn, "folder", w.folder, "err", err)
		}
	}
}

// shows reports whether a group's chats show what becomes of their messages.
func (m *Manager) shows(folder string) bool {
	c, _, err := m.groupConfig(folder)
	return err == nil && c.Progress != groupconfig.ProgressOff
}

// begins takes the mark of a message away whose turn the agent works on now. Where that fails it goes with the turn's end.
func (r *run) begins(t *msg.Turn) {
	if r.m.cfg.WaitMark == 0 || r.m.now() < t.CreatedAt+r.m.cfg.WaitMark.Milliseconds() {
		return
	}
	marked, err := r.m.st.HasWaitingMark(r.m.ctx, t.ID)
	if err != nil || !marked {
		return
	}
	err = r.m.st.Write(r.m.ctx, func(tx *store.Tx) error { return tx.UnmarkWaiting(t.ID, r.m.now()) })
	if err != nil && r.m.ctx.Err() == nil {
		r.m.log.Warn("mark of a message that waited not taken away", "turn", t.ID, "run", r.row.ID, "err", err)
	}
}
