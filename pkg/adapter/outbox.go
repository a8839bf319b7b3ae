package adapter

import (
	"context"
	"sync"
	"time"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// maxSends bounds the rows on their way at once, and with them the connections.
	maxSends = 16
	// trouble is how long to wait when the database is in the way.
	trouble = time.Second
	// sendGrace is how long a part on its way may take when the daemon stops: below the
	// time that daemons are given to stop.
	sendGrace = 5 * time.Second
)

// outbox runs a worker for each lane that has rows to deliver. Lanes do not wait for each
// other; within a lane one row follows the other.
type outbox struct {
	shell   *Shell
	working map[store.Lane]bool // a worker is on it
	ended   chan store.Lane
	workers sync.WaitGroup
}

// Run delivers outbound rows until ctx ends, and returns nil once no part is on its way any
// more.
func (s *Shell) Run(ctx context.Context) error {
	var around sync.WaitGroup
	defer around.Wait()
	if l, ok := s.platform.(Listener); ok {
		around.Go(func() { s.keepConnected(ctx, l) })
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
			delete(o.working, lane) // the next look finds what came while it ended
		}
	}
}

// look starts a worker for every lane where rows wait and nobody works.
func (o *outbox) look(ctx context.Context) {
	lanes, err := o.shell.Store.OutboxLanes(ctx, o.shell.Platform)
	if err != nil {
		if ctx.Err() == nil {
			o.shell.Log.Error("cannot look for outbound rows; trying again", "err", err)
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
	turn := false      // it has come
	for ctx.Err() == nil {
		m, err := s.Store.NextOutbound(ctx, lane)
		if err == nil && m == nil {
			return
		}
		if err == nil && !turn {
			var wait time.Duration
			if wait, turn = s.pacer.take(lane.ChatJID); wait > 0 {
				pause(ctx, wait)
				continue // the row may have been cancelled
			}
		}
		var wait time.Duration
		if err == nil {
			wait, err = s.inSlot(ctx, m, m.ID == waited)
			turn = false
		}
		if err != nil {
			s.Log.Error("cannot keep account of a delivery; trying again", "chat", lane.ChatJID, "err", err)
			pause(ctx, trouble)
			continue
		}
		pause(ctx, wait)
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

func pause(ctx context.Context, d time.Duration) {
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
