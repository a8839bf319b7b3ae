package adapter

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/chatmove"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// maxSends bounds the rows that are sent at once, and with them the connections.
	maxSends = 16
	// maxDecorations is how many decorations are sent at once besides, so that those that hang use up no send of an
	// answer.
	maxDecorations = 4
	// retryDelay is the pause before a step that must succeed, mostly a write, is retried.
	retryDelay = time.Second
	// sendGrace is how long a send may still take when the daemon stops: less than the time that
	// daemons have to stop.
	sendGrace = 5 * time.Second
	// sweepInterval is how often all rows to deliver are looked for, besides new ones.
	sweepInterval = time.Minute
	// targetDelay is how often a decoration looks whether its message has been delivered.
	targetDelay = time.Second
)

// outbox delivers a platform's outbound rows, with one worker for each row that is being sent. Lanes do
// not wait for each other; within a lane rows are delivered in order. Lanes take turns: one that has
// more rows goes to the end of the queue. Only the goroutine of Run uses an outbox.
type outbox struct {
	shell   *Shell
	lanes   map[store.Lane]*lane // those with rows to deliver
	waiting [2][]*lane           // those without a worker, of answers and of decorations, in the order of due
	working [2]int               // how many lanes of each class have a worker
	ended   chan *lane
	timer   *time.Timer       // of the next lane that may be started
	floor   *store.Floor      // rows up to it have been seen
	moves   map[string]string // the chats that were moved at the last look
	moving  bool              // one was being moved then
}

// lane is a lane with rows to deliver. While it has a worker, only that uses the second part.
type lane struct {
	store.Lane
	again bool // a row came while it had a worker
	// due is when the next worker may start. It is zero if the lane has a row that is too old, which needs no platform.
	due time.Time

	pass   passage // how it was admitted
	called bool    // the worker has called the platform
	waited int64   // the row whose wait is over, even if the clock was set back meanwhile
	search search
	left   verdict // how the worker has left it
}

// class is the index of answers, or of decorations.
func (l *lane) class() int {
	if l.Decorations {
		return 1
	}
	return 0
}

// search is the state of the search for a part.
type search struct {
	of         [2]int64 // its row and number
	failed     int      // searches, while the platform answered
	impossible bool     // it cannot be searched for
}

// verdict is how a worker has left a lane.
type verdict struct {
	empty bool          // there are no rows
	wait  time.Duration // before the next step, 0 for none
	held  bool          // until the platform answers
	// unanswered means that the row waits since the platform did not answer, or failed.
	unanswered bool
}

// Run listens and delivers outbound rows until ctx ends, and returns nil once no send is running.
func (s *Shell) Run(ctx context.Context) error {
	var listening sync.WaitGroup
	defer listening.Wait()
	if s.Listener != nil {
		listening.Go(func() { s.keepConnected(ctx) })
	}
	if _, ok := s.platform.(Undoer); ok {
		listening.Go(func() { s.removeUndoButtons(ctx) })
	}

	poll, sweep, asleep := time.NewTicker(s.PollInterval), time.NewTicker(sweepInterval), time.NewTicker(asleepInterval)
	defer poll.Stop()
	defer sweep.Stop()
	defer asleep.Stop()
	o := s.outbox()
	defer o.timer.Stop()
	shown := s.typing()
	defer shown.wait()
	previews := s.previews()
	defer previews.wait()
	files := s.fetching()
	defer files.wait()
	look := func() {
		o.look(ctx)
		o.startWorkers(ctx) // rows wait for no other look
		o.sweepAfterMoves(ctx)
		shown.look(ctx)
		previews.look(ctx)
		files.look(ctx)
	}
	o.sweep(ctx)
	look()
	for {
		o.startWorkers(ctx)
		select {
		case <-ctx.Done():
			o.drain()
			return nil
		case <-poll.C:
			look()
		case <-asleep.C:
			s.markAsleep(ctx)
		case <-s.Wake:
			look()
		case <-sweep.C:
			o.sweep(ctx)
			o.expire(ctx)
		case <-s.admission.changed:
			o.release()
		case <-s.previewNews:
			previews.look(ctx)
		case row := <-files.done():
			delete(files.busy, row)
			files.look(ctx)
		case l := <-o.ended:
			o.settle(l)
		case <-o.timer.C:
		}
	}
}

// release lets the lanes go on that were held until the platform answers. If it has just begun to answer again, it
// also shortens the waits of those to which it did not answer.
func (o *outbox) release() {
	now := time.Now()
	justBack := o.shell.admission.justBack()
	for _, lanes := range o.waiting {
		for _, l := range lanes {
			switch soon := now.Add(renewAfter); {
			case l.left.held && l.due.After(now):
				l.due = now
			case justBack && l.left.unanswered && l.due.After(soon):
				l.due = soon
			}
		}
		slices.SortStableFunc(lanes, func(a, b *lane) int { return a.due.Compare(b.due) })
	}
}

// expire lets lanes with rows that are too old go on while the platform is out of reach: those rows end
// without it.
func (o *outbox) expire(ctx context.Context) {
	if _, outFor := o.shell.admission.answers(); outFor < expiryGrace {
		return
	}
	old, err := rows.OldOutbound(ctx, o.shell.Store.Reader, o.shell.Platform,
		o.shell.Now().Add(-o.shell.DeliveryMaxAge).UnixMilli())
	if o.shell.reads.Note(ctx, err) != nil {
		return
	}
	for _, key := range old {
		if l := o.lanes[key]; l != nil {
			l.due = time.Time{}
		}
	}
	for _, lanes := range o.waiting {
		slices.SortStableFunc(lanes, func(a, b *lane) int { return a.due.Compare(b.due) })
	}
}

func (s *Shell) outbox() *outbox {
	timer := time.NewTimer(0)
	timer.Stop()
	ended := make(chan *lane, maxSends+maxDecorations)
	return &outbox{shell: s, floor: &store.Floor{}, lanes: map[store.Lane]*lane{}, ended: ended, timer: timer}
}

// sweep finds all lanes that have rows to deliver. Those of new rows are found by look; a sweep finds
// rows that look cannot see, such as those that were moved to another chat.
func (o *outbox) sweep(ctx context.Context) {
	floor, err := o.shell.Store.FloorAt(ctx)
	if err == nil {
		var lanes []store.Lane
		if lanes, err = rows.OutboxLanes(ctx, o.shell.Store.Reader, o.shell.Platform); err == nil {
			if o.floor.At == 0 || floor.At < o.floor.At {
				o.floor = floor // else the present one is surer
			}
			for _, l := range lanes {
				o.add(l, store.Lane{ChatJID: l.ChatJID, ThreadID: l.ThreadID, Decorations: true})
			}
		}
	}
	_ = o.shell.reads.Note(ctx, err)
}

// sweepAfterMoves sweeps if chats have been moved since the last call, or were being moved then, or are now.
func (o *outbox) sweepAfterMoves(ctx context.Context) {
	moves, moving, err := chatmove.Moves(ctx, o.shell.Store.Reader)
	if err == nil && (!maps.Equal(moves, o.moves) || len(moving) > 0 || o.moving) {
		o.moves, o.moving = moves, len(moving) > 0
		o.sweep(ctx)
	}
	_ = o.shell.reads.Note(ctx, err)
}

// look finds the lanes of new rows.
func (o *outbox) look(ctx context.Context) {
	lanes, err := rows.NewOutbound(ctx, o.shell.Store.Reader, o.shell.Platform, o.floor)
	if err == nil {
		o.add(lanes...)
	}
	_ = o.shell.reads.Note(ctx, err)
}

func (o *outbox) add(lanes ...store.Lane) {
	for _, key := range lanes {
		if known := o.lanes[key]; known != nil {
			known.again = true
			continue
		}
		o.lanes[key] = &lane{Lane: key, due: time.Now()}
		o.queue(o.lanes[key])
	}
}

// queue puts a lane behind those that are due no later.
func (o *outbox) queue(l *lane) {
	lanes := &o.waiting[l.class()]
	at, _ := slices.BinarySearchFunc(*lanes, l.due, func(other *lane, due time.Time) int {
		if other.due.After(due) {
			return 1
		}
		return -1
	})
	*lanes = slices.Insert(*lanes, at, l)
}

// startWorkers gives free slots to the lanes that have been due longest, as far as they are admitted and the limits of
// the platform allow, and sets the timer for the next ones.
func (o *outbox) startWorkers(ctx context.Context) {
	o.timer.Stop()
	next := time.Duration(0)
	for class, slots := range [2]int{maxSends, maxDecorations} {
		wait := time.Duration(0)
		for wait == 0 && len(o.waiting[class]) > 0 && o.working[class] < slots && ctx.Err() == nil {
			wait = o.startFirst(ctx, class)
		}
		if next == 0 || wait > 0 && wait < next {
			next = wait
		}
	}
	if next > 0 {
		o.timer.Reset(next)
	}
}

// startFirst starts a worker for the lane of a class that has been due longest, or returns the wait for that. A lane
// that has to wait for its own limits gives way.
func (o *outbox) startFirst(ctx context.Context, class int) (wait time.Duration) {
	l := o.waiting[class][0]
	pass := shut
	if !l.due.IsZero() {
		if wait = time.Until(l.due); wait > 0 {
			return wait
		}
		if pass, wait = o.shell.admission.enter(); pass == shut {
			return wait
		}
		all := false
		if !l.Decorations { // they take what answers leave, once their row is read
			wait, all = o.shell.pacer.take(l.Lane)
		}
		if wait > 0 && pass == probe {
			o.shell.admission.leave()
		}
		if all {
			return wait
		}
	}
	o.waiting[class][0] = nil
	o.waiting[class] = o.waiting[class][1:]
	if wait > 0 {
		l.due = time.Now().Add(wait)
		o.queue(l)
		return 0
	}
	l.again, l.pass, l.called = false, pass, false
	o.working[class]++
	go func() {
		l.left = o.shell.deliverNext(ctx, l)
		o.ended <- l
	}()
	return 0
}

// settle puts a lane whose worker has ended back into the queue, unless it is empty.
func (o *outbox) settle(l *lane) {
	o.working[l.class()]--
	if l.pass == probe {
		o.shell.admission.leave()
	}
	if !l.Decorations && l.pass != shut && !l.called {
		o.shell.pacer.refund(l.Lane)
	}
	if l.left.empty && !l.again {
		delete(o.lanes, l.Lane)
		return
	}
	wait := l.left.wait
	if answers, _ := o.shell.admission.answers(); l.left.held && !answers { // which may have changed since
		wait = maxOwnWait
	}
	l.due = time.Now().Add(wait)
	o.queue(l)
}

// drain waits for the workers.
func (o *outbox) drain() {
	for range o.working[0] + o.working[1] {
		<-o.ended
	}
}

// deliverNext delivers the next part of the oldest row of a lane, if that is possible now.
func (s *Shell) deliverNext(ctx context.Context, l *lane) verdict {
	m, err := rows.NextOutbound(ctx, s.Store.Reader, l.Lane)
	if m != nil && err == nil {
		err = s.readTarget(ctx, m)
	}
	switch {
	case s.reads.Note(ctx, err) != nil:
		return verdict{wait: retryDelay}
	case m == nil:
		return verdict{empty: true}
	case m.Target != nil && m.Target.Open: // so is that of all others in the lane
		return verdict{wait: targetDelay}
	case l.Decorations && l.pass != shut && !s.pacer.spare(l.Lane): // answers come first
		return verdict{wait: previewBusy}
	}
	v, err := s.deliver(ctx, l, m, m.ID == l.waited)
	if err != nil {
		s.logWriteError(ctx, m, err)
		return verdict{wait: retryDelay}
	}
	l.waited = m.ID
	if v == (verdict{}) {
		next, err := rows.NextOutbound(ctx, s.Store.Reader, l.Lane)
		v.empty = s.reads.Note(ctx, err) == nil && next == nil
	}
	return v
}

// writeAlways writes a result that is known nowhere else. It retries until that succeeds, the daemon stops, or the rows
// have changed meanwhile. m is the row that the result is about, nil for none.
func (s *Shell) writeAlways(ctx context.Context, m *msg.Message, fn func(*store.Tx) error) error {
	var scope store.Scope
	if m != nil {
		scope = store.Scope{m.ChatJID}
	}
	for {
		err := s.Store.WriteIn(context.WithoutCancel(ctx), scope, fn)
		if err == nil {
			return s.writes.Note(ctx, nil)
		}
		if errors.Is(err, store.ErrStale) || ctx.Err() != nil {
			return err
		}
		s.logWriteError(ctx, m, err)
		Pause(ctx, retryDelay)
	}
}

// logWriteError logs that the state of a row was not stored: once for all rows while the database fails, and
// each time if it refuses the row.
func (s *Shell) logWriteError(ctx context.Context, m *msg.Message, err error) {
	if m != nil && (errors.Is(err, store.ErrStale) || errors.Is(err, store.ErrRefused)) {
		s.Log.Error("storing row failed; retrying", "row", m.ID, "chat", m.ChatJID, "thread", m.ThreadID, "err", err)
		return
	}
	_ = s.writes.Note(ctx, err)
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
