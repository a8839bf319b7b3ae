package agents

import (
	"slices"
	"sync"
	"time"

	"arizuko/gated/internal/rows"
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

// waitMarks marks the messages of new turns that wait for their agent. The mutex guards what it watches; only
// Manager.Run uses markedAt.
type waitMarks struct {
	env      *env
	groups   *groups
	markedAt int64 // unix ms

	mu      sync.Mutex
	watched []waiting // oldest first
}

// watch looks later whether new turns wait.
func (w *waitMarks) watch(turns ...*msg.Turn) {
	if w.env.cfg.WaitMark == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range turns {
		if t.Kind == msg.Conversation && len(w.watched) < maxWaiting {
			w.watched = append(w.watched, waiting{t.ID, t.Folder, t.CreatedAt})
		}
	}
}

// due returns turns that have been new for as long as a message may wait, and watches them no more.
func (w *waitMarks) due(now int64) (due []waiting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watched = slices.DeleteFunc(w.watched, func(t waiting) bool {
		over := t.since <= now-w.env.cfg.WaitMark.Milliseconds() && len(due) < maxMarks
		if over {
			due = append(due, t)
		}
		return over
	})
	return due
}

// mark marks the messages of turns that have waited for their agent, and that no agent has begun.
func (w *waitMarks) mark() {
	now := w.env.now()
	if now >= w.markedAt && now < w.markedAt+waitingInterval.Milliseconds() {
		return
	}
	w.markedAt = now
	for _, t := range w.due(now) {
		waits, err := rows.Waits(w.env.ctx, w.env.st.Reader, t.turn)
		if err != nil || !waits {
			continue
		}
		config, _, err := w.groups.config(t.folder)
		if err != nil || config.Progress == groupconfig.ProgressOff {
			continue
		}
		err = w.env.st.Write(w.env.ctx, func(tx *store.Tx) error {
			_, err := rows.MarkWaiting(tx, t.turn, now)
			return err
		})
		if err != nil && w.env.ctx.Err() == nil {
			w.env.log.Warn("marking a message that waits failed", "turn", t.turn, "folder", t.folder, "err", err)
		}
	}
}

// unmark removes the mark of a message whose turn an agent works on now. Where that fails it goes with the turn's end.
func (w *waitMarks) unmark(t *msg.Turn, run int64) {
	if w.env.cfg.WaitMark == 0 || w.env.now() < t.CreatedAt+w.env.cfg.WaitMark.Milliseconds() {
		return
	}
	marked, err := rows.HasMark(w.env.ctx, w.env.st.Reader, t.ID)
	if err != nil || !marked {
		return
	}
	unmark := func(tx *store.Tx) error { return tx.Unmark(t.ID, w.env.now()) }
	err = w.env.st.WriteIn(w.env.ctx, store.Scope{t.ChatJID}, unmark)
	if err != nil && w.env.ctx.Err() == nil {
		w.env.log.Warn("mark of a message that waited not taken away", "turn", t.ID, "run", run, "err", err)
	}
}
