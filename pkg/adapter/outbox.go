package adapter

import (
	"container/heap"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"arizuko/pkg/adapter/rows"
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
	ready   [2][]*lane           // by class: first come, first served
	waiting waitingLanes
	held    []*lane   // until the platform answers
	expires []*lane   // with rows that are too old, which need no platform
	admitAt time.Time // when the first ready lane may be admitted, zero if none waits there
	working [2]int    // lanes that have a worker: of answers, and of decorations
	ended   chan result
	timer   *time.Timer // of the lane that has waited longest
	through int64       // rows up to this one have been seen
	moves   int         // how many chats were moved at the last sweep
}

// lane is a lane with rows to deliver. While it has a worker, only that uses the second part.
type lane struct {
	store.Lane
	again bool      // a row came while it had a worker
	due   time.Time // while it waits
	// unanswered means that it waits since the platform did not answer.
	unanswered bool

	pass   passage // how it was admitted
	waited int64   // the row whose wait is over, even if the clock was set back meanwhile
	permit permit  // of the pacer, for the next part
	search search
}

// search is the state of the search for a part.
type search struct {
	of         [2]int64 // its row and number
	failed     int      // searches, while the platform answered
	impossible bool     // it cannot be searched for
}

// result is how a worker left a lane.
type result struct {
	lane  *lane
	empty bool
	verdict
	movedTo store.Lane // of an empty lane, if its chat was moved
}

// Run listens and delivers outbound rows until ctx ends, and returns nil once no send is running.
func (s *Shell) Run(ctx context.Context) error {
	var listening sync.WaitGroup
	defer listening.Wait()
	if s.Listener != nil {
		listening.Go(func() { s.keepConnected(ctx) })
	}

	poll, sweep := time.NewTicker(s.Poll), time.NewTicker(sweepInterval)
	defer poll.Stop()
	defer sweep.Stop()
	o := s.outbox()
	defer o.timer.Stop()
	shown := s.typing()
	defer shown.wait()
	previews := s.previews()
	defer previews.wait()
	files := s.fetching()
	defer files.wait()
	markAsleep := s.asleep()
	look := func() {
		o.look(ctx)
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
			o.sweepAfterMoves(ctx)
			look()
			markAsleep(ctx)
		case <-s.Wake:
			look()
		case <-sweep.C:
			o.sweep(ctx)
			o.expire(ctx)
		case <-s.admission.changed:
			o.release()
		case <-shown.due():
			shown.look(ctx)
		case <-previews.due():
			previews.look(ctx)
		case <-s.previewNews:
			previews.look(ctx)
		case row := <-files.done():
			delete(files.busy, row)
			files.look(ctx)
		case r := <-o.ended:
			o.settle(r)
		case <-o.due():
			o.endWaits()
		}
	}
}

// release lets the lanes go on that were held until the platform answers.
func (o *outbox) release() {
	for _, l := range o.held {
		o.push(l)
	}
	o.held = nil
	if o.shell.admission.justBack() {
		o.renew()
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
	due := map[store.Lane]bool{}
	for _, l := range old {
		due[l] = true
	}
	for _, from := range []*[]*lane{&o.ready[0], &o.ready[1], &o.held} {
		*from = slices.DeleteFunc(*from, func(l *lane) bool {
			if due[l.Lane] {
				o.expires = append(o.expires, l)
			}
			return due[l.Lane]
		})
	}
}

func (s *Shell) outbox() *outbox {
	timer := time.NewTimer(0)
	timer.Stop()
	ended := make(chan result, maxSends+maxDecorations)
	return &outbox{shell: s, lanes: map[store.Lane]*lane{}, ended: ended, timer: timer}
}

// sweep finds all lanes that have rows to deliver. Those of new rows are found by look; a sweep finds
// rows that look cannot see, such as those that were moved to another chat.
func (o *outbox) sweep(ctx context.Context) {
	through, err := o.shell.Store.LastMessageID(ctx)
	if err == nil {
		var lanes []store.Lane
		if lanes, err = rows.OutboxLanes(ctx, o.shell.Store.Reader, o.shell.Platform); err == nil {
			o.through = max(o.through, through)
			for _, l := range lanes {
				o.add(l, store.Lane{ChatJID: l.ChatJID, ThreadID: l.ThreadID, Decorations: true})
			}
		}
	}
	_ = o.shell.reads.Note(ctx, err)
}

// sweepAfterMoves sweeps if chats have been moved since the last call, or are being moved.
func (o *outbox) sweepAfterMoves(ctx context.Context) {
	moves, moving, err := o.shell.Store.ChatMoves(ctx)
	if err == nil && (len(moves) != o.moves || len(moving) > 0) {
		o.moves = len(moves)
		o.sweep(ctx)
	}
	_ = o.shell.reads.Note(ctx, err)
}

// look finds the lanes of new rows.
func (o *outbox) look(ctx context.Context) {
	lanes, through, err := rows.NewOutbound(ctx, o.shell.Store.Reader, o.shell.Platform, o.through)
	if err == nil {
		o.through = through
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
		added := &lane{Lane: key}
		o.lanes[key] = added
		o.push(added)
	}
}

// startWorkers gives free slots to the lanes that have been ready longest, as far as they are admitted.
func (o *outbox) startWorkers(ctx context.Context) {
	o.admitAt = time.Time{}
	for o.working[0]+o.working[1] < maxSends && len(o.expires) > 0 && ctx.Err() == nil {
		o.startWorker(ctx, shift(&o.expires), shut)
	}
	for ctx.Err() == nil {
		from := &o.ready[0]
		if len(*from) == 0 || o.working[0] >= maxSends {
			from = &o.ready[1]
			if len(*from) == 0 || o.working[1] >= maxDecorations {
				return
			}
		}
		pass, wait := o.shell.admission.enter()
		if pass == shut {
			o.admitAt = time.Now().Add(wait)
			return
		}
		o.startWorker(ctx, shift(from), pass)
	}
}

func (o *outbox) startWorker(ctx context.Context, l *lane, through passage) {
	l.again, l.pass = false, through
	o.working[l.class()]++
	go func() { o.ended <- o.shell.deliverNext(ctx, l) }()
}

// class is the index of answers, or of decorations.
func (l *lane) class() int {
	if l.Decorations {
		return 1
	}
	return 0
}

// push puts a lane at the end of its queue.
func (o *outbox) push(l *lane) { o.ready[l.class()] = append(o.ready[l.class()], l) }

// shift removes the first of some lanes.
func shift(lanes *[]*lane) *lane {
	l := (*lanes)[0]
	(*lanes)[0], *lanes = nil, (*lanes)[1:]
	return l
}

// settle puts a lane whose worker has ended where it waits next.
func (o *outbox) settle(r result) {
	l := r.lane
	o.working[l.class()]--
	if l.pass == probe {
		o.shell.admission.leave()
	}
	answers, _ := o.shell.admission.answers()
	switch {
	case r.held && !answers: // which may have changed since
		o.held = append(o.held, l)
	case r.wait > 0:
		l.due, l.unanswered = time.Now().Add(r.wait), r.unanswered
		heap.Push(&o.waiting, l)
	case !r.empty, l.again:
		o.push(l)
	default:
		delete(o.lanes, l.Lane)
		if r.movedTo.ChatJID != "" {
			o.add(r.movedTo)
		}
	}
}

// due fires when the wait of a lane is over, its own or that to be admitted.
func (o *outbox) due() <-chan time.Time {
	at := o.admitAt
	if len(o.waiting) > 0 && (at.IsZero() || o.waiting[0].due.Before(at)) {
		at = o.waiting[0].due
	}
	if at.IsZero() {
		return nil
	}
	o.timer.Reset(time.Until(at))
	return o.timer.C
}

// renew shortens the waits of lanes to which the platform did not answer, once it does.
func (o *outbox) renew() {
	for soon, i := time.Now().Add(renewAfter), 0; i < len(o.waiting); i++ {
		if l := o.waiting[i]; l.unanswered && l.due.After(soon) {
			l.due = soon
		}
	}
	heap.Init(&o.waiting)
}

func (o *outbox) endWaits() {
	for now := time.Now(); len(o.waiting) > 0 && !o.waiting[0].due.After(now); {
		o.push(heap.Pop(&o.waiting).(*lane))
	}
}

// drain waits for the workers.
func (o *outbox) drain() {
	for range o.working[0] + o.working[1] {
		<-o.ended
	}
}

// deliverNext delivers the oldest row of a lane as far as possible now.
func (s *Shell) deliverNext(ctx context.Context, l *lane) result {
	m, err := rows.NextOutbound(ctx, s.Store.Reader, l.Lane)
	if m != nil && err == nil {
		err = s.readTarget(ctx, m)
	}
	if s.reads.Note(ctx, err) != nil {
		return result{lane: l, verdict: verdict{wait: retryDelay}}
	}
	if m == nil {
		return s.emptyLane(ctx, l)
	}
	if m.Target != nil && m.Target.Open { // so is that of all others in the lane
		return result{lane: l, verdict: verdict{wait: targetDelay}}
	}
	if l.pass != shut {
		if wait := s.permit(l); wait > 0 {
			return result{lane: l, verdict: verdict{wait: wait}} // the row may be cancelled meanwhile
		}
	}
	v, err := s.deliver(ctx, l, m, m.ID == l.waited)
	l.permit = permit{}
	if err != nil {
		s.logWriteError(ctx, m, err)
		return result{lane: l, verdict: verdict{wait: retryDelay}}
	}
	l.waited = m.ID
	return result{lane: l, verdict: v}
}

// permit acquires the pacer's permit for the next part of a lane, and returns how long that has to wait. Decorations
// acquire one that answers do not need soon.
func (s *Shell) permit(l *lane) (wait time.Duration) {
	switch {
	case !l.Decorations:
		return s.pacer.acquire(l.Lane, &l.permit)
	case s.pacer.spare(l.Lane):
		return 0
	}
	return previewBusy
}

// writeAlways writes a result that is known nowhere else. It retries until that succeeds, the daemon stops, or the rows
// have changed meanwhile. m is the row that the result is about, nil for none.
func (s *Shell) writeAlways(ctx context.Context, m *msg.Message, fn func(*store.Tx) error) error {
	for {
		err := s.Store.Write(context.WithoutCancel(ctx), fn)
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

// emptyLane follows the chat of a lane without rows, if it was moved with them.
func (s *Shell) emptyLane(ctx context.Context, l *lane) result {
	r := result{lane: l, empty: true}
	if chat, err := s.Store.Address(ctx, l.ChatJID); err == nil && chat != l.ChatJID {
		r.movedTo = store.Lane{ChatJID: chat, ThreadID: l.ThreadID, Decorations: l.Decorations}
	}
	return r
}

// waitingLanes is a heap of lanes that wait, by when that is over.
type waitingLanes []*lane

func (w waitingLanes) Len() int           { return len(w) }
func (w waitingLanes) Less(i, j int) bool { return w[i].due.Before(w[j].due) }
func (w waitingLanes) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }

// Push implements heap.Interface.
func (w *waitingLanes) Push(l any) { *w = append(*w, l.(*lane)) }

// Pop implements heap.Interface.
func (w *waitingLanes) Pop() any {
	last := len(*w) - 1
	l := (*w)[last]
	(*w)[last], *w = nil, (*w)[:last]
	return l
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
