package adapter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// maxAttempts of a part whose failures pass by themselves; with the pauses between them
	// about twenty minutes.
	maxAttempts = 12
	firstPause  = time.Second
	longPause   = 5 * time.Minute
	// maxCopies is how often a part is sent again with a mark: each time it may have arrived.
	maxCopies = 3
	// offlineLook is how often a part in doubt looks whether its platform is connected again, and
	// offlineMost how long: there may be a way to send though none to listen.
	offlineLook = time.Second
	offlineMost = longPause
	// authPause is how often a part is tried that needs somebody to mend the credentials.
	authPause = time.Minute
	// longestWait is the longest that a row found waiting has to wait on. No platform asks for
	// more: it is the clock that was set back while the daemon was down.
	longestWait = 24 * time.Hour
)

// delivery is one outbound row on its way.
type delivery struct {
	*Shell
	row       *msg.Message
	cut       []Part
	unsayable error // why the parts still open can't be sent, nil if they can
	parts     []store.Delivery
	ours      int  // the part that this delivery, and not one before a crash, has begun to send
	waited    bool // the first open part has, for as long as it had to
	turn      bool // the next part's turn to be sent has come
}

// deliver brings an outbound row as far as it goes now; the turn of its next part to be sent has
// come. wait is how long the part after that has to wait apart from its turn, 0 too if the row is
// settled. waited says that the row has waited for as long as it was told to. An error is one of
// the database.
func (s *Shell) deliver(ctx context.Context, m *msg.Message, waited bool) (wait time.Duration, err error) {
	m.Content = s.Redact(m.Content)
	d := &delivery{Shell: s, row: m, ours: -1, waited: waited, turn: true}
	d.cut, d.unsayable = s.cut(m)
	err = d.claim(ctx)
	switch {
	case errors.Is(err, store.ErrStale), errors.Is(err, context.Canceled): // the row was cancelled, or the daemon stops
		return 0, nil
	case err != nil:
		return 0, err
	case d.over(): // somebody else has written its parts
		return 0, d.record(ctx, nil)
	}
	for i := range d.parts {
		if !isOpen(d.parts[i]) {
			continue
		}
		if (ctx.Err() != nil || !d.turn) && d.ours != i {
			return 0, nil
		}
		if wait, err := d.part(ctx, i); err != nil || isOpen(d.parts[i]) {
			return wait, err
		}
	}
	return 0, nil
}

// cut is Cut. A row that breaks it costs itself, never the daemon.
func (s *Shell) cut(m *msg.Message) (parts []Part, err error) {
	defer s.survive("its rendering", &err, "chat", m.ChatJID, "row", m.ID)
	return s.platform.Cut(m)
}

// survive, deferred, makes an error of a panic in a platform's own code: it costs what was being
// done, never the daemon.
func (s *Shell) survive(doing string, err *error, where ...any) {
	if cause := recover(); cause != nil {
		s.Log.Error("a platform's own code broke", append(where, "doing", doing, "cause", cause, "stack", string(debug.Stack()))...)
		*err = fmt.Errorf("%s broke: %v", doing, cause)
	}
}

// claim takes the row, if that has not happened before, and reads how its parts stand.
func (d *delivery) claim(ctx context.Context) (err error) {
	if d.row.OutState == msg.OutQueued {
		d.ours = 0
		// Read in the same transaction: a part that is claimed and then not sent would pass for
		// one that a crash left in the middle.
		err = d.Store.Write(ctx, func(tx *store.Tx) (err error) {
			if err = tx.ClaimOutbound(d.row.ID, len(d.cut), d.now()); err == nil {
				d.parts, err = tx.Deliveries(ctx, d.row.ID)
			}
			return err
		})
	} else {
		d.parts, err = d.Store.Deliveries(ctx, d.row.ID)
	}
	if d.unsayable == nil && len(d.cut) != len(d.parts) {
		d.unsayable = fmt.Errorf("the row is cut into %d parts, and was begun as %d", len(d.cut), len(d.parts))
	}
	return err
}

func isOpen(p store.Delivery) bool { return p.State == msg.OutQueued || p.State == msg.OutSending }

// part sends one part, or says how long it has to wait.
func (d *delivery) part(ctx context.Context, i int) (wait time.Duration, err error) {
	p := &d.parts[i]
	switch {
	case d.unsayable != nil && (d.Repeatable || !d.doubtful(i)):
		p.State, p.ErrorClass, p.Error = msg.OutFailed, msg.Permanent, d.Redact(d.unsayable.Error())
		return 0, d.record(ctx, d.follow(ctx, i))
	case d.ours == i:
	case p.NotBefore > d.now() && !d.waited:
		return min(d.until(p.NotBefore), longestWait), nil
	case d.doubtful(i) && d.offline() && d.now()-p.NotBefore < offlineMost.Milliseconds():
		return offlineLook, nil // the next try would end in doubt too
	}
	d.waited, d.turn = false, false
	part, err := d.clear(ctx, i)
	if err != nil || !isOpen(*p) {
		return 0, err
	}
	if part == nil {
		return d.until(p.NotBefore), nil
	}
	failpoint.At(failpoint.Sending)
	id, err := d.send(ctx, part)
	failpoint.At(failpoint.Sent)
	d.judge(p, id, err)
	d.Shell.parts.WithLabelValues(d.Platform, string(p.State)).Inc()
	err = d.record(ctx, d.follow(ctx, i))
	return d.until(p.NotBefore), err
}

// doubtful says whether a part may have arrived already: a crash left it in the middle, or its
// platform did not say.
func (d *delivery) doubtful(i int) bool {
	p := d.parts[i]
	return p.State == msg.OutSending && d.ours != i || p.State == msg.OutQueued && p.ErrorClass == msg.Ambiguous
}

// clear has a part recorded as being sent, and returns what is to be sent: the part, or, where
// it may have arrived, the same with a mark. nil means that it has to wait, or is settled.
func (d *delivery) clear(ctx context.Context, i int) (part Part, err error) {
	p := &d.parts[i]
	if d.unsayable == nil {
		part = d.cut[i]
	}
	finder, finds := d.platform.(Finder)
	switch {
	case d.ours == i:
		return part, nil
	case d.Repeatable && part != nil, !d.doubtful(i):
		d.ours, p.State = i, msg.OutSending
		return part, d.record(ctx, d.parts[i:i+1])
	case finds && part != nil:
		return d.find(ctx, finder, i)
	}
	return d.again(ctx, i, part)
}

// again has a part that may have arrived be sent once more with a mark, which each copy but the
// first one has, or gives it up.
func (d *delivery) again(ctx context.Context, i int, part Part) (marked Part, err error) {
	p := &d.parts[i]
	marker, marks := d.platform.(Marker)
	if !marks || !d.Mark || part == nil {
		return nil, d.giveUp(ctx, i, cmp.Or(p.Error, "the daemon ended while this was on its way"))
	}
	if marked, err = d.mark(marker, part); err != nil {
		return nil, d.giveUp(ctx, i, d.Redact(err.Error()))
	}
	d.ours = i
	p.State, p.ErrorClass, p.Error = msg.OutSending, msg.Ambiguous, "sent again with a mark: it may have arrived before"
	return marked, d.record(ctx, d.parts[i:i+1])
}

// giveUp leaves it open whether a part has arrived.
func (d *delivery) giveUp(ctx context.Context, i int, why string) error {
	p := &d.parts[i]
	p.State, p.ErrorClass, p.Error = msg.OutAmbiguous, msg.Ambiguous, why
	return d.record(ctx, d.follow(ctx, i))
}

// find asks the platform about a part that may have arrived. What did not is sent as if for the
// first time. A platform that will never say is not asked again.
func (d *delivery) find(ctx context.Context, finder Finder, i int) (Part, error) {
	p := &d.parts[i]
	id, err := d.ask(ctx, finder, d.cut[i])
	p.NotBefore = 0
	failure := &Failure{}
	errors.As(err, &failure)
	switch {
	case failure.Class == msg.Permanent:
		p.Error = d.Redact(err.Error())
		return d.again(ctx, i, d.cut[i])
	case err != nil && p.Attempts+1 < maxAttempts:
		p.Attempts++
		p.State, p.ErrorClass, p.Error = msg.OutQueued, msg.Ambiguous, d.Redact(err.Error())
		p.NotBefore = d.now() + max(pauseAfter(p.Attempts), failure.After).Milliseconds()
		return nil, d.record(ctx, d.parts[i:i+1])
	case err != nil:
		return nil, d.giveUp(ctx, i, d.Redact(err.Error()))
	case id != "":
		p.State, p.PlatformID, p.ErrorClass, p.Error = msg.OutSent, id, "", ""
		return nil, d.record(ctx, d.follow(ctx, i))
	}
	d.ours = i
	p.State, p.ErrorClass, p.Error = msg.OutSending, "", ""
	return d.cut[i], d.record(ctx, d.parts[i:i+1])
}

func (d *delivery) ask(ctx context.Context, f Finder, part Part) (id string, err error) {
	defer d.survive("looking for it", &err, "chat", d.row.ChatJID, "row", d.row.ID)
	return f.Find(ctx, d.row, part)
}

func (d *delivery) mark(m Marker, part Part) (marked Part, err error) {
	defer d.survive("marking it", &err, "chat", d.row.ChatJID, "row", d.row.ID)
	return m.Mark(part), nil
}

// send gives a part on its way some time when the daemon stops. One that breaks may have been
// sent before.
func (d *delivery) send(ctx context.Context, part Part) (platformID string, err error) {
	defer d.survive("sending it", &err, "chat", d.row.ChatJID, "row", d.row.ID)
	defer d.lanes.lock(store.Lane{ChatJID: d.row.ChatJID, ThreadID: d.row.ThreadID})()
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		pause(sending, sendGrace)
		cancel()
	})
	defer stop()
	return d.platform.Send(sending, d.row, part)
}

// judge says how a part stands after it was sent.
func (d *delivery) judge(p *store.Delivery, platformID string, err error) {
	before := p.ErrorClass
	p.NotBefore, p.ErrorClass = 0, ""
	var remark *Remark
	if err == nil || errors.As(err, &remark) {
		p.State, p.PlatformID = msg.OutSent, platformID
		switch {
		case remark != nil:
			p.Error = d.Redact(remark.Text)
		case before != msg.Ambiguous || d.Repeatable:
			p.Error = ""
		}
		return
	}
	failure := &Failure{Class: msg.Ambiguous, Err: err}
	if errors.As(err, &failure); !failure.Class.Known() {
		failure = &Failure{Class: msg.Ambiguous, Err: err}
	}
	p.ErrorClass, p.Error = failure.Class, d.Redact(err.Error())
	clears := failure.Class == msg.Ambiguous && d.clears(before, p.Attempts)
	if failure.Class == msg.Transient || clears {
		p.Attempts++
	}
	again, state := nextTry(failure, p.Attempts)
	if clears && p.Attempts < maxAttempts {
		again, state = pauseAfter(p.Attempts), msg.OutQueued
	}
	if p.State = state; state == msg.OutQueued {
		p.NotBefore = d.now() + again.Milliseconds()
		if before == msg.Ambiguous { // this try has failed, the one before may have arrived
			p.ErrorClass = before
		}
	}
	d.Log.Warn("part not delivered", "chat", d.row.ChatJID, "row", d.row.ID, "part", p.Part, "class", failure.Class,
		"state", p.State, "again_in", again, "err", p.Error)
}

// clears says whether anything is to be done about a part that may have arrived, whose class and
// attempts before it was sent are given: it can be sent again as it is, looked for, or sent once
// more with a mark.
func (d *delivery) clears(before msg.ErrorClass, attempts int) bool {
	_, finds := d.platform.(Finder)
	_, marks := d.platform.(Marker)
	if before == msg.Ambiguous { // what was sent had the mark
		return d.Repeatable || marks && d.Mark && attempts < maxCopies
	}
	return d.Repeatable || finds || marks && d.Mark
}

// nextTry says what a failure makes of a part, and when a queued one is tried again. A
// platform that asks for patience, and missing credentials, use up no attempt.
func nextTry(f *Failure, attempts int) (time.Duration, msg.OutState) {
	switch f.Class {
	case msg.Rate:
		return max(f.After, firstPause), msg.OutQueued
	case msg.Auth:
		return authPause, msg.OutQueued
	case msg.Transient:
		if attempts < maxAttempts {
			return pauseAfter(attempts), msg.OutQueued
		}
		return 0, msg.OutFailed
	case msg.Permanent:
		return 0, msg.OutFailed
	}
	return 0, msg.OutAmbiguous
}

func pauseAfter(attempts int) time.Duration { return min(firstPause<<(attempts-1), longPause) }

// record writes how parts stand, and settles the row when none is open, in one transaction.
// It tries until it succeeds or the daemon stops: what happened outside is known nowhere else.
func (d *delivery) record(ctx context.Context, changed []store.Delivery) error {
	over := d.over()
	for {
		err := d.Store.Write(context.WithoutCancel(ctx), func(tx *store.Tx) error {
			for _, p := range changed {
				if err := tx.PutDelivery(p, d.now()); err != nil {
					return err
				}
			}
			if over {
				return tx.SettleOutbound(d.row.ID, d.outcome(), d.platformID())
			}
			return nil
		})
		if err == nil && over && d.Settled != nil {
			d.row.OutState = d.outcome()
			d.Settled(d.row)
		}
		if err == nil || errors.Is(err, store.ErrStale) || ctx.Err() != nil {
			return err
		}
		d.Log.Error("cannot keep account of a delivery; trying again", "chat", d.row.ChatJID, "row", d.row.ID, "err", err)
		pause(ctx, trouble)
	}
}

// follow returns part i and those that change with it: behind a delivered part the next one
// is being sent, behind a failed one all others are cancelled.
func (d *delivery) follow(ctx context.Context, i int) []store.Delivery {
	behind := i + 1
	switch d.parts[i].State {
	case msg.OutFailed:
		for ; behind < len(d.parts); behind++ {
			d.parts[behind].State = msg.OutCancelled
		}
	case msg.OutSent, msg.OutAmbiguous:
		if behind < len(d.parts) && isOpen(d.parts[behind]) && ctx.Err() == nil && d.pacer.now(d.row.ChatJID) {
			d.parts[behind].State, d.ours = msg.OutSending, behind
			behind++
		}
	}
	return d.parts[i:behind]
}

func (d *delivery) over() bool { return !slices.ContainsFunc(d.parts, isOpen) }

// platformID is that of the first part: the one that replies and edits refer to.
func (d *delivery) platformID() string {
	if len(d.parts) == 0 {
		return ""
	}
	return d.parts[0].PlatformID
}

// outcome is how a row ends: failed if a part has, ambiguous if one may have arrived, or if
// nobody knows, else sent.
func (d *delivery) outcome() msg.OutState {
	if len(d.parts) == 0 {
		return msg.OutAmbiguous
	}
	state := msg.OutSent
	for _, p := range d.parts {
		switch p.State {
		case msg.OutFailed:
			return msg.OutFailed
		case msg.OutAmbiguous:
			state = msg.OutAmbiguous
		}
	}
	return state
}

func (d *delivery) now() int64 { return d.Now().UnixMilli() }

// until is how long it is until then.
func (d *delivery) until(at int64) time.Duration {
	return max(0, time.Duration(at-d.now())*time.Millisecond)
}
