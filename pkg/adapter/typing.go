package adapter

import (
	"context"
	"slices"
	"sync"
	"time"

	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/store"
)

// Typist is a platform that can show that the bot is typing.
type Typist interface {
	// Type shows the indicator for a while in a thread of a chat where agents work. Once none works there, it removes
	// one that would not expire by itself. An error is only logged.
	Type(ctx context.Context, in store.Lane, works bool) error
	// TypingFor is how often the indicator must be shown again.
	TypingFor() time.Duration
}

// typingRetry is the pause before an indicator for which the account was busy.
const typingRetry = time.Second

// typingTimeout bounds one call: a late indicator is wrong.
const typingTimeout = 3 * time.Second

// typing shows indicators where agents work; nil shows none.
type typing struct {
	shell  *Shell
	typist Typist
	calls  sync.WaitGroup
	shown  map[store.Lane]time.Time // when it was last shown in each lane where agents work
	busy   bool                     // the account had no call to spare for one
}

func (s *Shell) typing() *typing {
	typist, ok := s.platform.(Typist)
	if !ok {
		return nil
	}
	return &typing{shell: s, typist: typist}
}

// due fires when an indicator must be shown again.
func (t *typing) due() <-chan time.Time {
	if t == nil || len(t.shown) == 0 {
		return nil
	}
	wait, now := t.typist.TypingFor(), t.shell.Now()
	for _, last := range t.shown {
		wait = min(wait, t.typist.TypingFor()-now.Sub(last))
	}
	if wait <= 0 { // the last look failed
		wait = t.typist.TypingFor()
	}
	if t.busy {
		wait = min(wait, typingRetry)
	}
	return time.After(wait)
}

// wait returns when no call is running.
func (t *typing) wait() {
	if t != nil {
		t.calls.Wait()
	}
}

// look shows the indicator in all lanes where that is due, and removes it where no agent works. While the account has
// to wait, or the platform does not answer, it calls nothing, and it shows nothing while rows need all that the account
// may call.
func (t *typing) look(ctx context.Context) {
	if t == nil {
		return
	}
	lanes, err := rows.ActiveLanes(ctx, t.shell.Store.Reader, t.shell.Platform)
	if err != nil {
		if ctx.Err() == nil {
			t.shell.Log.Warn("reading active lanes failed; retrying", "err", err)
		}
		return
	}
	working := map[store.Lane]time.Time{}
	t.busy = false
	now := t.shell.Now()
	mayCall := t.shell.admission.mayCall(open)
	for _, lane := range lanes {
		last, seen := t.shown[lane]
		if !mayCall {
			if seen {
				working[lane] = last
			}
			continue
		}
		working[lane] = last
		if ago := now.Sub(last); seen && ago >= 0 && ago < t.typist.TypingFor() {
			continue
		}
		if !t.shell.pacer.spareCall() {
			t.busy = true
			continue
		}
		working[lane] = now
		t.calls.Go(func() { t.show(ctx, lane) })
	}
	for lane := range t.shown {
		switch _, still := working[lane]; {
		case still:
		case mayCall:
			t.calls.Go(func() { t.end(ctx, lane) })
		default:
			working[lane] = t.shown[lane]
		}
	}
	t.shown = working
}

// show holds the lane, so that the indicator never appears after the answer. It does nothing while a
// part is being sent there.
func (t *typing) show(ctx context.Context, lane store.Lane) {
	if unlock, free := t.shell.lanes.tryLock(lane); free {
		defer unlock()
		t.update(ctx, lane, true)
	}
}

// end removes the indicator, unless an agent has begun to work there. It waits for a send or an
// indicator in progress there.
func (t *typing) end(ctx context.Context, lane store.Lane) {
	defer t.shell.lanes.lock(lane)()
	t.update(ctx, lane, false)
}

// update shows or removes the indicator, if agents work there or not, as is meant.
func (t *typing) update(ctx context.Context, lane store.Lane, works bool) {
	lanes, err := rows.ActiveLanes(ctx, t.shell.Store.Reader, t.shell.Platform)
	if err != nil || slices.Contains(lanes, lane) != works {
		return
	}
	err = t.call(ctx, lane, works)
	log := t.shell.Log.With("chat", lane.ChatJID, "thread", lane.ThreadID)
	switch {
	case err == nil, ctx.Err() != nil:
	case works:
		log.Debug("typing indicator not shown", "err", t.shell.Redact(err.Error()))
	default:
		log.Warn("typing indicator not removed", "err", t.shell.Redact(err.Error()))
	}
}

func (t *typing) call(ctx context.Context, lane store.Lane, works bool) (err error) {
	defer t.shell.recoverPanic("typing", &err, "chat", lane.ChatJID)
	ctx, cancel := context.WithTimeout(ctx, typingTimeout)
	defer cancel()
	return t.typist.Type(ctx, lane, works)
}
