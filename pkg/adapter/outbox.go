package adapter

import (
	"context"
	"sync"
	"time"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// maxSends bounds the rows that are sent at once, and with them the connections.
	maxSends = 16
	// retryDelay is the pause before a step that must succeed, mostly a write, is retried.
	retryDelay = time.Second
	// sendGrace is how long a send may still take when the daemon stops: less than the time that
	// daemons have to stop.
	sendGrace = 5 * time.Second
)

// outbox runs a worker for each lane that has rows to deliver. Lanes do not wait for each other;
// within a lane rows are delivered in order.
type outbox struct {
	shell   *Shell
	working map[store.Lane]bool // lanes that have a worker
	ended   chan store.Lane
	workers sync.WaitGroup
}

// Run listens and delivers outbound rows until ctx ends, and returns nil once no send is running.
func (s *Shell) Run(ctx context.Context) error {
	var listening sync.WaitGroup
	defer listening.Wait()
	if s.Listener != nil {
		listening.Go(func() { s.keepConnected(ctx) })
	}

	o := &outbox{shell: s, working: map[store.Lane]bool{}, ended: make(chan store.Lane)}
	ticker := time.NewTicker(s.Poll)
	defer ticker.Stop()
	shown := s.typing()
	defer shown.wait()
	files := s.fetching()
	defer files.wait()
	for {
		o.look(ctx)
		shown.look(ctx)
		files.look(ctx)
		select {
		case <-ctx.Done():
			o.drain()
			return nil
		case <-ticker.C:
		case <-shown.due():
		case <-s.files:
		case row := <-files.done():
			delete(files.busy, row)
		case <-s.Wake:
		case lane := <-o.ended:
			delete(o.working, lane) // the next look finds rows that came while it ended
		}
	}
}

// look starts a worker for every lane that has rows to deliver and no worker.
func (o *outbox) look(ctx context.Context) {
	lanes, err := o.shell.Store.OutboxLanes(ctx, o.shell.Platform)
	if err != nil {
		if ctx.Err() == nil {
			o.shell.Log.Error("reading outbox failed; retrying", "err", err)
		}
		return
	}
	for _, lane := range lanes {
		if !o.working[lane] {
			o.start(ctx, lane)
		}
	}
}

func (o *outbox) start(ctx context.Context, lane store.Lane) {
	o.working[lane] = true
	o.workers.Go(func() {
		o.shell.deliverLane(ctx, lane)
		o.ended <- lane
	})
}

func (o *outbox) drain() {
	go func() {
		o.workers.Wait()
		close(o.ended)
	}()
	for range o.ended {
	}
}

// deliverLane delivers a lane's rows in order until none is left or ctx ends.
func (s *Shell) deliverLane(ctx context.Context, lane store.Lane) {
	waited := int64(0) // the row whose wait is over, even if the clock was set back meanwhile
	hasPermit := false // of the pacer, for the next part
	for ctx.Err() == nil {
		m, err := s.Store.NextOutbound(ctx, lane)
		if err == nil && m == nil {
			return
		}
		if err == nil && !hasPermit {
			var wait time.Duration
			if wait, hasPermit = s.pacer.take(lane.ChatJID); wait > 0 {
				Pause(ctx, wait)
				continue // the row may have been cancelled
			}
		}
		var wait time.Duration
		if err == nil {
			wait, err = s.inSlot(ctx, m, m.ID == waited)
			hasPermit = false
		}
		if err != nil {
			s.Log.Error("storing delivery failed; retrying", "chat", lane.ChatJID, "thread", lane.ThreadID, "err", err)
			Pause(ctx, retryDelay)
			continue
		}
		Pause(ctx, wait)
		waited = m.ID
	}
}

// inSlot delivers a row once one of the few slots is free.
func (s *Shell) inSlot(ctx context.Context, m *msg.Message, waited bool) (time.Duration, error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
		return s.deliver(ctx, m, waited)
	case <-ctx.Done():
		return 0, nil
	}
}

// Pause returns after d, or when ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
