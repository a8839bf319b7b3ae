package adapter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// maxAttempts bounds the retries of transient failures; with their pauses about 20 minutes.
	maxAttempts = 12
	firstPause  = time.Second
	maxPause    = 5 * time.Minute
	// maxCopies bounds the marked copies of a part: each of them may have arrived.
	maxCopies = 3
	// offlineCheck is how often a part that may have arrived checks whether its platform is
	// connected, and maxOffline for how long: sending may work although listening does not.
	offlineCheck = time.Second
	maxOffline   = maxPause
	// authPause is how often a part is retried while the credentials are refused.
	authPause = time.Minute
	// sendTimeout bounds the send of a part without files, and a search for one. minUploadRate, in bytes
	// a second, says how much longer a file may take.
	sendTimeout   = time.Minute
	minUploadRate = 100_000
	// maxWait bounds the wait of a row found in the database. No platform asks for more: a longer
	// wait means that the clock was set back while the daemon was down.
	maxWait = 24 * time.Hour
)

// delivery is one outbound row being delivered.
type delivery struct {
	*Shell
	row         *msg.Message
	cut         []Part
	renderErr   error // why the parts still open can't be sent, nil if they can
	parts       []store.Delivery
	startedPart int  // index of the part that this delivery, not one before a crash, began to send
	waited      bool // not_before of the first open part has passed
	hasPermit   bool // the pacer has given a permit for the next part
}

// deliver delivers an outbound row as far as possible now; the caller has the pacer's permit for its
// next part. wait is how long the part after that has to wait besides its permit, 0 if the row is
// settled. waited means that not_before of the row's first open part has passed. An error is one of
// the database.
func (s *Shell) deliver(ctx context.Context, m *msg.Message, waited bool) (wait time.Duration, err error) {
	m.Content = s.Redact(m.Content)
	d := &delivery{Shell: s, row: m, startedPart: -1, waited: waited, hasPermit: true}
	d.cut, d.renderErr = s.callCut(m)
	err = d.claim(ctx)
	switch {
	case errors.Is(err, store.ErrStale), errors.Is(err, context.Canceled): // the row was cancelled, or the daemon stops
		return 0, nil
	case err != nil:
		return 0, err
	case d.over(): // its parts were written by another process
		return 0, d.record(ctx, nil)
	}
	for i := range d.parts {
		if !isOpen(d.parts[i]) {
			continue
		}
		if (ctx.Err() != nil || !d.hasPermit) && d.startedPart != i {
			return 0, nil
		}
		if wait, err := d.part(ctx, i); err != nil || isOpen(d.parts[i]) {
			return wait, err
		}
	}
	return 0, nil
}

// readTarget reads what a row about another outbound row is about. That one was delivered before, since it
// is an older row of the same lane.
func (s *Shell) readTarget(ctx context.Context, m *msg.Message) (err error) {
	if m.Kind.Changes() {
		m.Target, err = s.Store.Target(ctx, m)
	}
	if m.Target != nil {
		for i := range m.Target.Edits { // as it was sent
			m.Target.Edits[i].Content = s.Redact(m.Target.Edits[i].Content)
		}
	}
	return err
}

// callCut calls Cut. A panic fails only the row.
func (s *Shell) callCut(m *msg.Message) (parts []Part, err error) {
	defer s.recoverPanic("rendering", &err, "row", m.ID, "chat", m.ChatJID)
	return s.platform.Cut(m)
}

// recoverPanic, deferred, turns a panic in a platform's code into an error.
func (s *Shell) recoverPanic(doing string, err *error, where ...any) {
	if cause := recover(); cause != nil {
		s.Log.Error("panic in platform adapter", append(where, "step", doing, "panic", cause, "stack", string(debug.Stack()))...)
		*err = fmt.Errorf("panic while %s: %v", doing, cause)
	}
}

// claim claims the row, unless that was done before, and reads the states of its parts.
func (d *delivery) claim(ctx context.Context) (err error) {
	if d.row.OutState == msg.OutQueued {
		d.startedPart = 0
		// Read in the same transaction: a part that is claimed and then not sent would look like
		// one that a crash interrupted.
		err = d.Store.Write(ctx, func(tx *store.Tx) (err error) {
			if err = tx.ClaimOutbound(d.row.ID, len(d.cut), d.nowMS()); err == nil {
				d.parts, err = tx.Deliveries(ctx, d.row.ID)
			}
			return err
		})
	} else {
		d.parts, err = d.Store.Deliveries(ctx, d.row.ID)
	}
	if d.renderErr == nil && len(d.cut) != len(d.parts) {
		d.renderErr = fmt.Errorf("the row renders as %d parts, but was claimed with %d", len(d.cut), len(d.parts))
	}
	if err == nil && d.Log.Enabled(ctx, slog.LevelDebug) {
		d.Log.Debug("delivery claimed", "row", d.row.ID, "chat", d.row.ChatJID, "thread", d.row.ThreadID, "count", len(d.parts))
	}
	return err
}

func isOpen(p store.Delivery) bool { return p.State == msg.OutQueued || p.State == msg.OutSending }

// part sends one part, or returns how long it has to wait.
func (d *delivery) part(ctx context.Context, i int) (wait time.Duration, err error) {
	p := &d.parts[i]
	switch {
	case d.renderErr != nil && (d.Repeatable || !d.doubtful(i)):
		p.State, p.ErrorClass, p.Error = msg.OutFailed, msg.Permanent, d.Redact(d.renderErr.Error())
		return 0, d.record(ctx, d.follow(ctx, i))
	case d.startedPart == i:
	case p.NotBefore > d.nowMS() && !d.waited:
		return min(d.until(p.NotBefore), maxWait), nil
	case d.doubtful(i) && d.offline() && d.nowMS()-p.NotBefore < maxOffline.Milliseconds():
		return offlineCheck, nil // the next send would probably be ambiguous again
	}
	d.waited, d.hasPermit = false, false
	part, err := d.beginSend(ctx, i)
	if err != nil || !isOpen(*p) {
		return 0, err
	}
	if part == nil {
		return d.until(p.NotBefore), nil
	}
	failpoint.At(failpoint.Sending)
	id, err := d.send(ctx, part)
	failpoint.At(failpoint.Sent)
	d.settlePart(p, id, err)
	err = d.record(ctx, d.follow(ctx, i))
	return d.until(p.NotBefore), err
}

// doubtful reports whether a part may have arrived already: a crash interrupted the send, or the
// platform did not answer.
func (d *delivery) doubtful(i int) bool {
	p := d.parts[i]
	return p.State == msg.OutSending && d.startedPart != i || p.State == msg.OutQueued && p.ErrorClass == msg.Ambiguous
}

// beginSend records that a part is being sent, and returns what to send: the part, or a marked copy
// if it may have arrived. nil means that it has to wait, or is settled.
func (d *delivery) beginSend(ctx context.Context, i int) (part Part, err error) {
	p := &d.parts[i]
	if d.renderErr == nil {
		part = d.cut[i]
	}
	finder, finds := d.platform.(Finder)
	switch {
	case d.startedPart == i:
		return part, nil
	case d.Repeatable && part != nil, !d.doubtful(i):
		d.startedPart, p.State = i, msg.OutSending
		return part, d.record(ctx, d.parts[i:i+1])
	case finds && part != nil:
		return d.find(ctx, finder, i)
	}
	return d.resendMarked(ctx, i, part)
}

// resendMarked prepares a marked copy of a part that may have arrived, or ends the part as ambiguous
// if the platform or the configuration allows none.
func (d *delivery) resendMarked(ctx context.Context, i int, part Part) (marked Part, err error) {
	p := &d.parts[i]
	marker, marks := d.platform.(Marker)
	if !marks || !d.Mark || part == nil {
		return nil, d.giveUp(ctx, i, cmp.Or(p.Error, "the daemon ended while this was being sent"))
	}
	if marked, err = d.callMark(marker, part); err != nil {
		return nil, d.giveUp(ctx, i, d.Redact(err.Error()))
	}
	d.startedPart = i
	p.State, p.ErrorClass, p.Error = msg.OutSending, msg.Ambiguous, "resent with a mark: it may have arrived before"
	return marked, d.record(ctx, d.parts[i:i+1])
}

// giveUp ends a part as ambiguous.
func (d *delivery) giveUp(ctx context.Context, i int, why string) error {
	p := &d.parts[i]
	p.State, p.ErrorClass, p.Error = msg.OutAmbiguous, msg.Ambiguous, why
	return d.record(ctx, d.follow(ctx, i))
}

// find asks the platform whether a part has arrived. One that did not is sent as if for the first
// time. After a permanent failure the platform is not asked again.
func (d *delivery) find(ctx context.Context, finder Finder, i int) (Part, error) {
	p := &d.parts[i]
	id, err := d.ask(ctx, finder, d.cut[i])
	p.NotBefore = 0
	failure := &Failure{}
	errors.As(err, &failure)
	switch {
	case failure.Class == msg.Permanent:
		p.Error = d.Redact(err.Error())
		return d.resendMarked(ctx, i, d.cut[i])
	case err != nil && p.Attempts+1 < maxAttempts:
		p.Attempts++
		p.State, p.ErrorClass, p.Error = msg.OutQueued, msg.Ambiguous, d.Redact(err.Error())
		p.NotBefore = d.nowMS() + max(pauseAfter(p.Attempts), failure.After).Milliseconds()
		return nil, d.record(ctx, d.parts[i:i+1])
	case err != nil:
		return nil, d.giveUp(ctx, i, d.Redact(err.Error()))
	case id != "":
		p.State, p.PlatformID, p.ErrorClass, p.Error = msg.OutSent, id, "", ""
		return nil, d.record(ctx, d.follow(ctx, i))
	}
	d.startedPart = i
	p.State, p.ErrorClass, p.Error = msg.OutSending, "", ""
	return d.cut[i], d.record(ctx, d.parts[i:i+1])
}

func (d *delivery) ask(ctx context.Context, f Finder, part Part) (id string, err error) {
	defer d.recoverPanic("searching", &err, "row", d.row.ID, "chat", d.row.ChatJID)
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	return f.Find(ctx, d.row, part)
}

func (d *delivery) callMark(m Marker, part Part) (marked Part, err error) {
	defer d.recoverPanic("marking", &err, "row", d.row.ID, "chat", d.row.ChatJID)
	return m.Mark(part), nil
}

// send bounds the send of a part, and leaves it some time when the daemon stops. A part whose Send
// panics may have been sent.
func (d *delivery) send(ctx context.Context, part Part) (platformID string, err error) {
	defer d.recoverPanic("sending", &err, "row", d.row.ID, "chat", d.row.ChatJID)
	defer d.lanes.lock(store.Lane{ChatJID: d.row.ChatJID, ThreadID: d.row.ThreadID})()
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeoutOf(part))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		Pause(sending, sendGrace)
		cancel()
	})
	defer stop()
	return d.platform.Send(sending, d.row, part)
}

// sendTimeoutOf is how long sending a part may take.
func sendTimeoutOf(part Part) time.Duration {
	timeout := sendTimeout
	if upload, ok := part.(Upload); ok {
		timeout += time.Duration(upload.UploadSize()) * time.Second / minUploadRate
	}
	return timeout
}

// settlePart sets the state of a part after Send returned.
func (d *delivery) settlePart(p *store.Delivery, platformID string, err error) {
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
		d.Log.Debug("part sent", "row", d.row.ID, "chat", d.row.ChatJID, "part", p.Part)
		return
	}
	failure := &Failure{Class: msg.Ambiguous, Err: err}
	if errors.As(err, &failure); !failure.Class.Known() {
		failure = &Failure{Class: msg.Ambiguous, Err: err}
	}
	p.ErrorClass, p.Error = failure.Class, d.Redact(err.Error())
	resolvable := failure.Class == msg.Ambiguous && d.resolvable(before, p.Attempts)
	if failure.Class == msg.Transient || resolvable {
		p.Attempts++
	}
	again, state := nextTry(failure, p.Attempts)
	if resolvable && p.Attempts < maxAttempts {
		again, state = pauseAfter(p.Attempts), msg.OutQueued
	}
	if p.State = state; state == msg.OutQueued {
		p.NotBefore = d.nowMS() + again.Milliseconds()
		if before == msg.Ambiguous { // this send failed, but the one before may have arrived
			p.ErrorClass = before
		}
	}
	d.Log.Warn("delivery failed", "row", d.row.ID, "chat", d.row.ChatJID, "part", p.Part, "class", failure.Class,
		"state", p.State, "wait", again, "err", p.Error)
}

// resolvable reports whether there is a next step for a part that may have arrived, whose class and
// attempts before the send are given: sending it again unchanged, searching for it, or sending a
// marked copy.
func (d *delivery) resolvable(before msg.ErrorClass, attempts int) bool {
	_, finds := d.platform.(Finder)
	_, marks := d.platform.(Marker)
	if before == msg.Ambiguous { // the send was a marked copy
		return d.Repeatable || marks && d.Mark && attempts < maxCopies
	}
	return d.Repeatable || finds || marks && d.Mark
}

// nextTry returns the state of a part after a failure, and when a queued one is retried. Rate limits
// and refused credentials use up no attempt.
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

func pauseAfter(attempts int) time.Duration { return min(firstPause<<(attempts-1), maxPause) }

// record writes the states of parts, and settles the row when none is open, in one transaction. It
// retries until it succeeds or the daemon stops: the result of a send is known nowhere else.
func (d *delivery) record(ctx context.Context, changed []store.Delivery) error {
	over := d.over()
	for {
		err := d.Store.Write(context.WithoutCancel(ctx), func(tx *store.Tx) error {
			for _, p := range changed {
				if err := tx.PutDelivery(p, d.nowMS()); err != nil {
					return err
				}
			}
			if over {
				return tx.SettleOutbound(d.row.ID, d.outcome(), d.platformID())
			}
			return nil
		})
		if err == nil {
			_ = d.writes.Note(ctx, nil)
			d.counters.recorded(changed)
		}
		if err == nil && over {
			d.reportSettled()
		}
		if err == nil || errors.Is(err, store.ErrStale) || ctx.Err() != nil {
			return err
		}
		d.logWriteError(ctx, d.row, err)
		Pause(ctx, retryDelay)
	}
}

// reportSettled logs and reports a row whose end is stored.
func (d *delivery) reportSettled() {
	d.row.OutState = d.outcome()
	d.counters.settled(d.row, d.Now())
	d.Log.Debug("delivered", "row", d.row.ID, "chat", d.row.ChatJID, "thread", d.row.ThreadID, "state", d.row.OutState)
	if d.Settled != nil {
		d.Settled(d.row)
	}
}

// follow returns part i and those that change with it: after a delivered part the next one is being
// sent, after a failed one all others are cancelled.
func (d *delivery) follow(ctx context.Context, i int) []store.Delivery {
	next := i + 1
	switch d.parts[i].State {
	case msg.OutFailed:
		for ; next < len(d.parts); next++ {
			d.parts[next].State = msg.OutCancelled
		}
	case msg.OutSent, msg.OutAmbiguous:
		if next < len(d.parts) && isOpen(d.parts[next]) && ctx.Err() == nil && d.pacer.now(d.row.ChatJID) {
			d.parts[next].State, d.startedPart = msg.OutSending, next
			next++
		}
	}
	return d.parts[i:next]
}

func (d *delivery) over() bool { return !slices.ContainsFunc(d.parts, isOpen) }

// platformID is the id of the first part, to which replies and edits refer.
func (d *delivery) platformID() string {
	if len(d.parts) == 0 {
		return ""
	}
	return d.parts[0].PlatformID
}

// outcome is how a row ends: failed if a part failed, ambiguous if one may have arrived or the row
// has no parts, else sent.
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

func (d *delivery) nowMS() int64 { return d.Now().UnixMilli() }

// until returns the time left before at, in unix ms.
func (d *delivery) until(at int64) time.Duration {
	return max(0, time.Duration(at-d.nowMS())*time.Millisecond)
}
