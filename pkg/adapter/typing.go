package adapter

import (
	"context"
	"slices"
	"sync"
	"time"

	"arizuko/pkg/store"
)

// Typist is a platform that can show that somebody is writing.
type Typist interface {
	// Type shows it for a while in a thread of a chat. An error costs nothing.
	Type(ctx context.Context, in store.Lane) error
	// TypingFor is how often it has to be shown again.
	TypingFor() time.Duration
}

// TypingEnder is a Typist whose sign does not go by itself.
type TypingEnder interface {
	Typist
	// EndTyping takes it away, when no agent works in a thread of a chat any more. An error
	// costs nothing.
	EndTyping(ctx context.Context, in store.Lane) error
}

// typeMost bounds one call: what is shown late is shown wrong.
const typeMost = 3 * time.Second

// typing shows where agents work; nil shows nothing.
type typing struct {
	shell  *Shell
	typist Typist
	ender  TypingEnder // nil where the sign goes by itself
	calls  sync.WaitGroup
	shown  map[store.Lane]time.Time // when it was last shown, where agents work
}

func (s *Shell) typing() *typing {
	typist, ok := s.platform.(Typist)
	if !ok {
		return nil
	}
	ender, _ := typist.(TypingEnder)
	return &typing{shell: s, typist: typist, ender: ender}
}

// due fires when it has to be shown again somewhere.
func (t *typing) due() <-chan time.Time {
	if t == nil || len(t.shown) == 0 {
		return nil
	}
	wait, now := t.typist.TypingFor(), t.shell.Now()
	for _, last := range t.shown {
		wait = min(wait, t.typist.TypingFor()-now.Sub(last))
	}
	if wait <= 0 { // the look that was due has failed
		wait = t.typist.TypingFor()
	}
	return time.After(wait)
}

// wait returns when nothing is being shown any more.
func (t *typing) wait() {
	if t != nil {
		t.calls.Wait()
	}
}

// look shows it wherever that is due, and takes it away where no agent works any more.
func (t *typing) look(ctx context.Context) {
	if t == nil {
		return
	}
	lanes, err := t.shell.Store.ActiveLanes(ctx, t.shell.Platform)
	if err != nil {
		if ctx.Err() == nil {
			t.shell.Log.Warn("cannot look where agents work", "err", err)
		}
		return
	}
	working := map[store.Lane]time.Time{}
	now := t.shell.Now()
	for _, lane := range lanes {
		last, seen := t.shown[lane]
		working[lane] = last
		if ago := now.Sub(last); !seen || ago < 0 || ago >= t.typist.TypingFor() {
			working[lane] = now
			t.calls.Go(func() { t.show(ctx, lane) })
		}
	}
	for lane := range t.shown {
		if _, still := working[lane]; !still && t.ender != nil {
			t.calls.Go(func() { t.end(ctx, lane) })
		}
	}
	t.shown = working
}

// show never comes behind the answer: while it holds the lane, nothing is sent there. Where
// something is being sent, that says enough.
func (t *typing) show(ctx context.Context, lane store.Lane) {
	unlock, free := t.shell.lanes.tryLock(lane)
	if !free {
		return
	}
	defer unlock()
	lanes, err := t.shell.Store.ActiveLanes(ctx, t.shell.Platform)
	if err != nil || !slices.Contains(lanes, lane) {
		return
	}
	if err := t.call(ctx, lane, t.typist.Type); err != nil && ctx.Err() == nil {
		t.shell.Log.Debug("typing is not shown", "chat", lane.ChatJID, "err", t.shell.Redact(err.Error()))
	}
}

// end takes it away, unless an agent has begun to work there meanwhile. It waits for what is
// being sent there, or shown.
func (t *typing) end(ctx context.Context, lane store.Lane) {
	defer t.shell.lanes.lock(lane)()
	lanes, err := t.shell.Store.ActiveLanes(ctx, t.shell.Platform)
	if err != nil || slices.Contains(lanes, lane) {
		return
	}
	if err := t.call(ctx, lane, t.ender.EndTyping); err != nil && ctx.Err() == nil {
		t.shell.Log.Warn("typing is still shown", "chat", lane.ChatJID, "err", t.shell.Redact(err.Error()))
	}
}

func (t *typing) call(ctx context.Context, lane store.Lane, do func(context.Context, store.Lane) error) (err error) {
	defer t.shell.survive("typing", &err, "chat", lane.ChatJID)
	ctx, cancel := context.WithTimeout(ctx, typeMost)
	defer cancel()
	return do(ctx, lane)
}
