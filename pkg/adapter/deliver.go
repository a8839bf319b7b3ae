package adapter

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"arizuko/pkg/faultpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// maxAttempts of a part whose failures pass by themselves; with the pauses between them
	// about twenty minutes.
	maxAttempts = 12
	firstPause  = time.Second
	longPause   = 5 * time.Minute
	// authPause is how often a part is tried that needs somebody to mend the credentials.
	authPause = time.Minute
	// longestWait is what is left of a longer one, such as the clock makes of any when it is
	// set back while the daemon is down.
	longestWait = time.Hour
)

// delivery is one outbound row on its way.
type delivery struct {
	*Shell
	row       *msg.Message
	cut       []Part
	unsayable error // why the parts still open can't be sent, nil if they can
	parts     []store.Delivery
	ours      int  // the part that this delivery, and not one before a crash, has begun to send
	waited    bool // as long as its next part had to
}

// deliver brings an outbound row as far as it goes now. wait is how long its next part has to
// wait, 0 if the row is settled. waited says that the row has waited for as long as it was told
// to. An error is one of the database.
func (s *Shell) deliver(ctx context.Context, m *msg.Message, waited bool) (wait time.Duration, err error) {
	d := &delivery{Shell: s, row: m, ours: -1, waited: waited}
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
		if ctx.Err() != nil && d.ours != i {
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
	defer func() {
		if cause := recover(); cause != nil {
			s.Log.Error("an outbound row broke its rendering", "chat", m.ChatJID, "row", m.ID, "cause", cause, "stack", string(debug.Stack()))
			parts, err = nil, fmt.Errorf("its rendering broke: %v", cause)
		}
	}()
	return s.platform.Cut(m)
}

// claim takes the row, if that has not happened before, and reads how its parts stand.
func (d *delivery) claim(ctx context.Context) (err error) {
	if d.row.OutState == msg.OutQueued {
		d.ours = 0
		// Read in the same transaction: a part that is claimed and then not sent would pass for
		// one that a crash left in the middle.
		err = d.Store.Write(ctx, func(tx *store.Tx) (err error) {
			if err = tx.ClaimOutbound(d.row.ID, len(d.cut), d.now()); err == nil {
				d.parts, err = tx.Deliveries(d.row.ID)
			}
			return err
		})
	} else {
		d.parts, err = d.Store.Deliveries(d.row.ID)
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
	case p.State == msg.OutSending && d.ours != i && !d.Repeatable:
		p.State, p.ErrorClass, p.Error = msg.OutAmbiguous, msg.Ambiguous, "the daemon ended while this was on its way"
		return 0, d.record(ctx, d.follow(ctx, i))
	case d.unsayable != nil:
		p.State, p.ErrorClass, p.Error = msg.OutFailed, msg.Permanent, d.unsayable.Error()
		return 0, d.record(ctx, d.follow(ctx, i))
	case p.NotBefore > d.now() && !d.waited:
		return d.until(p.NotBefore), nil
	case p.State == msg.OutQueued:
		p.State, d.ours = msg.OutSending, i
		if err := d.record(ctx, d.parts[i:i+1]); err != nil {
			return 0, err
		}
	}
	faultpoint.At(faultpoint.Sending)
	id, err := d.send(ctx, d.cut[i])
	faultpoint.At(faultpoint.Sent)
	d.judge(p, id, err)
	d.Shell.parts.WithLabelValues(d.Platform, string(p.State)).Inc()
	err = d.record(ctx, d.follow(ctx, i))
	return d.until(p.NotBefore), err
}

// send gives a part on its way some time when the daemon stops.
func (d *delivery) send(ctx context.Context, part Part) (platformID string, err error) {
	defer func() {
		if cause := recover(); cause != nil { // it may have been sent before
			d.Log.Error("sending a part broke", "chat", d.row.ChatJID, "row", d.row.ID, "cause", cause, "stack", string(debug.Stack()))
			platformID, err = "", fmt.Errorf("sending it broke: %v", cause)
		}
	}()
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
	p.NotBefore, p.ErrorClass, p.Error = 0, "", ""
	if err == nil {
		p.State, p.PlatformID = msg.OutSent, platformID
		return
	}
	failure := &Failure{Class: msg.Ambiguous, Err: err}
	if errors.As(err, &failure); !failure.Class.Known() {
		failure = &Failure{Class: msg.Ambiguous, Err: err}
	}
	p.ErrorClass, p.Error = failure.Class, err.Error()
	if failure.Class == msg.Transient {
		p.Attempts++
	}
	again, state := nextTry(failure, p.Attempts)
	if p.State = state; state == msg.OutQueued {
		p.NotBefore = d.now() + again.Milliseconds()
	}
	d.Log.Warn("part not delivered", "chat", d.row.ChatJID, "row", d.row.ID, "part", p.Part, "class", p.ErrorClass,
		"state", p.State, "again_in", again, "err", p.Error)
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
			return min(firstPause<<(attempts-1), longPause), msg.OutQueued
		}
		return 0, msg.OutFailed
	case msg.Permanent:
		return 0, msg.OutFailed
	}
	return 0, msg.OutAmbiguous
}

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
		if behind < len(d.parts) && isOpen(d.parts[behind]) && ctx.Err() == nil {
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

// until is how long it is until then, at most longestWait.
func (d *delivery) until(at int64) time.Duration {
	return min(max(0, time.Duration(at-d.now())*time.Millisecond), longestWait)
}
