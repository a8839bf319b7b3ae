package gateway

import (
	"context"
	"errors"
	"slices"
	"time"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/gated/internal/deciding/services"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// maxCalls bounds the concurrent calls to services.
const maxCalls = 64

// calls owns the rows that services decide: the calls that run and wait. Those of one chat to one service
// run one after another; services and chats take turns.
type calls struct {
	to      *services.Services
	st      *store.Store
	log     rowLog
	clock   func() time.Time
	waits   *waits
	done    chan callDone
	lines   map[line]*[]decide.AskService // the waiting calls of each line that has one running, or is in ready
	ready   []line                        // with a call to start, longest first
	running int
}

// line is where calls wait for each other.
type line struct{ chat, service string }

// callDone says that a row was taken care of.
type callDone struct {
	line
	row int64
}

func newCalls(cfg *Config, st *store.Store, log rowLog, waits *waits) *calls {
	return &calls{
		to: &services.Services{Store: st.Reader, Log: log.Logger, Now: cfg.Now, Routd: cfg.Routd, Onbod: cfg.Onbod,
			Dashd: cfg.Dashd, Daemons: cfg.Daemons, Defaults: cfg.Defaults, CheckAgent: cfg.CheckAgent},
		st: st, log: log, clock: cfg.Now, waits: waits, done: make(chan callDone),
		lines: map[line]*[]decide.AskService{},
	}
}

func (s *calls) now() int64 { return s.clock().UnixMilli() }

// add lets another service decide a row. The row stays undecided until the
// answer is stored, so a crash in between repeats the call; the chat's other rows
// go on.
func (s *calls) add(ctx context.Context, c *chat, p decide.AskService) {
	c.skip(p.Row)
	l := line{c.jid, p.Service}
	if waiting := s.lines[l]; waiting != nil {
		*waiting = append(*waiting, p)
		return
	}
	s.lines[l] = &[]decide.AskService{p}
	s.ready = append(s.ready, l)
	s.start(ctx)
}

// start starts as many calls as may run.
func (s *calls) start(ctx context.Context) {
	for s.running < maxCalls && len(s.ready) > 0 {
		l := s.ready[0]
		s.ready = s.ready[1:]
		waiting := s.lines[l]
		p := (*waiting)[0]
		*waiting = (*waiting)[1:]
		s.running++
		go func() {
			s.complete(ctx, p)
			select {
			case s.done <- callDone{l, p.Row}:
			case <-ctx.Done():
			}
		}()
	}
}

// leave forgets the calls that are not out yet about chats of other gateways.
func (s *calls) leave() {
	s.ready = slices.DeleteFunc(s.ready, func(l line) bool {
		if s.waits.decides(l.chat) {
			return false
		}
		delete(s.lines, l)
		return true
	})
	for l, waiting := range s.lines {
		if !s.waits.decides(l.chat) {
			*waiting = nil
		}
	}
}

// finish takes back a row that a service has decided.
func (s *calls) finish(ctx context.Context, d callDone) {
	s.running--
	if waiting := s.lines[d.line]; len(*waiting) > 0 {
		s.ready = append(s.ready, d.line)
	} else {
		delete(s.lines, d.line)
	}
	s.start(ctx)
	if c := s.waits.chats[d.chat]; c != nil {
		delete(c.skipped, d.row)
		s.waits.add(c)
	}
}

// complete makes the call and stores its answer, retrying while the database
// fails.
func (s *calls) complete(ctx context.Context, p decide.AskService) {
	var o *services.Outcome
	for ; ctx.Err() == nil; pause(ctx, dbRetryDelay) {
		m, err := s.st.Message(ctx, p.Row)
		if err == nil && (m == nil || m.Disposition != "") {
			return
		}
		if err == nil {
			if o == nil {
				answer := s.to.Decide(ctx, p, m)
				o = &answer
			}
			err = s.storeAnswer(ctx, m, o)
			if errors.Is(err, store.ErrRefused) {
				s.log.Error("row dropped: its service's answer cannot be stored", "row", p.Row, "chat", m.ChatJID,
					"err", err)
				o.Reply, o.Decision = "", store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonBadRow,
					Error: err.Error()}
				err = s.storeAnswer(ctx, m, o)
			}
			if err == nil {
				d := &o.Decision
				s.log.decided(m.ID, m.ChatJID, d.Disposition, d.Reason, d.RoutedTo, 0)
			}
		}
		if err == nil || errors.Is(err, store.ErrStale) {
			return
		}
		s.log.Error("storing service answer failed; retrying", "row", p.Row, "err", err)
	}
}

func (s *calls) storeAnswer(ctx context.Context, m *msg.Message, o *services.Outcome) error {
	d := o.Decision
	d.Topic, d.ThreadID, d.ReceivedAt = m.Topic, m.ThreadID, m.ReceivedAt
	return s.st.Write(ctx, func(tx *store.Tx) error {
		if err := tx.Decide(m.ID, d, s.now()); err != nil || o.Reply == "" {
			return err
		}
		if o.Revokes != 0 {
			if _, err := rows.RevokeRule(tx, o.Revokes, m.Sender, s.now()); err != nil {
				return err
			}
		}
		_, _, err := tx.PutMessage(replyMessage(m, msg.SourceCommand, o.Reply, s.now()))
		return err
	})
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
