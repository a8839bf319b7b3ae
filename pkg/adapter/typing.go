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

// typing shows indicators where agents work; nil shows none. Each of these lanes has a goroutine.
type typing struct {
	shell  *Shell
	typist Typist
	calls  sync.WaitGroup
	ends   map[store.Lane]context.CancelFunc // of the lanes where agents work
}

func (s *Shell) typing() *typing {
	typist, ok := s.platform.(Typist)
	if !ok {
		return nil
	}
	return &typing{shell: s, typist: typist, ends: map[store.Lane]context.CancelFunc{}}
}

// wait returns when no call is running.
func (t *typing) wait() {
	if t != nil {
		t.calls.Wait()
	}
}

// look begins and ends the indicators of lanes where agents have begun to work, or have ended.
func (t *typing) look(ctx context.Context) {
	if t == nil {
		return
	}
	lanes, err := t.active(ctx)
	if err != nil {
		return
	}
	for lane, end := range t.ends {
		if !slices.Contains(lanes, lane) {
			end()
			delete(t.ends, lane)
		}
	}
	for _, lane := range lanes {
		if t.ends[lane] == nil {
			working, end := context.WithCancel(ctx)
			t.ends[lane] = end
			t.calls.Go(func() { t.keep(ctx, working, lane) })
		}
	}
}

// active lists the lanes where agents work.
func (t *typing) active(ctx context.Context) ([]store.Lane, error) {
	lanes, err := rows.ActiveLanes(ctx, t.shell.Store.Reader, t.shell.Platform)
	if err != nil && ctx.Err() == nil {
		t.shell.Log.Warn("reading active lanes failed; retrying", "err", err)
	}
	return lanes, err
}

// keep shows the indicator in a lane again and again while working lasts, and removes it then. While the account has to
// wait, or the platform does not answer, it calls nothing, and it shows nothing while rows need all that the account
// may call, nor while a part is being sent there.
func (t *typing) keep(ctx, working context.Context, lane store.Lane) {
	shown := false
	for working.Err() == nil {
		began, wait := time.Now(), t.typist.TypingFor()
		if !t.shell.admission.mayCall(open) || !t.shell.pacer.spareCall() {
			wait = typingRetry
		} else if unlock, free := t.shell.lanes.tryLock(lane); free {
			shown = t.update(ctx, lane, shown)
			unlock()
		} else {
			shown = true // maybe: that of the turn before, whose end finds an agent at work
		}
		Pause(working, wait-time.Since(began))
	}
	for shown && ctx.Err() == nil && !t.shell.admission.mayCall(open) {
		Pause(ctx, typingRetry)
	}
	if shown && ctx.Err() == nil {
		t.end(ctx, lane)
	}
}

// update shows the indicator, or removes it if it is shown and no agent works there any more. It returns whether it is
// shown. The caller holds the lane, so that it never appears after the answer.
func (t *typing) update(ctx context.Context, lane store.Lane, shown bool) bool {
	lanes, err := t.active(ctx)
	works := slices.Contains(lanes, lane)
	if err != nil || !works && !shown {
		return shown
	}
	t.call(ctx, lane, works)
	return works
}

// end removes the indicator, unless an agent has begun to work there. It waits for a send in progress there.
func (t *typing) end(ctx context.Context, lane store.Lane) {
	defer t.shell.lanes.lock(lane)()
	if lanes, err := t.active(ctx); err == nil && !slices.Contains(lanes, lane) {
		t.call(ctx, lane, false)
	}
}

// call shows or removes the indicator. A failure is only logged.
func (t *typing) call(ctx context.Context, lane store.Lane, works bool) {
	err := func() (err error) {
		defer t.shell.recoverPanic("typing", &err, "chat", lane.ChatJID)
		ctx, cancel := context.WithTimeout(ctx, typingTimeout)
		defer cancel()
		return t.typist.Type(ctx, lane, works)
	}()
	log := t.shell.Log.With("chat", lane.ChatJID, "thread", lane.ThreadID)
	switch {
	case err == nil, ctx.Err() != nil:
	case works:
		log.Debug("typing indicator not shown", "err", t.shell.Redact(err.Error()))
	default:
		log.Warn("typing indicator not removed", "err", t.shell.Redact(err.Error()))
	}
}
