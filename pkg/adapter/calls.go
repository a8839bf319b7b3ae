package adapter

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"arizuko/pkg/msg"
)

// The calls of a platform's own code for a delivery: each is bounded in time, and a panic in it costs one row.

const (
	// maxForms bounds the forms in which a part is tried.
	maxForms = 8
	// sendTimeout bounds the send of a part without files, and a search for one. minUploadRate, in bytes
	// a second, says how much longer a file may take.
	sendTimeout   = time.Minute
	minUploadRate = 100_000
	// changeTimeout bounds a call that changes a message: a decoration, one for a preview, or the one that makes a
	// preview into the answer, which otherwise is a new message.
	changeTimeout = 5 * time.Second
)

// callCut calls Cut. A panic fails only the row.
func (s *Shell) callCut(m *msg.Message) (parts []Part, err error) {
	defer s.recoverPanic("rendering", &err, "row", m.ID, "chat", m.ChatJID)
	return s.platform.Cut(m)
}

// callMark calls Mark. After a panic the part is not sent again.
func (d *delivery) callMark(part Part) (marked Part, err error) {
	defer d.shell.recoverPanic("marking", &err, "row", d.row.ID, "chat", d.row.ChatJID)
	_, marker := d.finderAndMarker()
	return marker.Mark(part), nil
}

// sendForms sends a part, and while it is refused with another form of it, that one. A part that was sent in
// another form has a remark.
func (d *delivery) sendForms(ctx context.Context, part Part) (platformID string, err error) {
	var remarks []string
	for range maxForms {
		var failure *Failure
		platformID, err = d.call(ctx, part)
		if !errors.As(err, &failure) || failure.Other == nil {
			break
		}
		if ctx.Err() != nil { // the daemon stops: the part, which was refused, is sent by the next one
			return "", &Failure{Class: msg.Rate, Err: failure.Err}
		}
		if part = failure.Other; failure.Remark != "" {
			remarks = append(remarks, failure.Remark)
		}
	}
	var remark *Remark
	switch {
	case errors.As(err, &remark):
		remarks = append(remarks, remark.Text)
	case err != nil:
		return "", err
	}
	if len(remarks) == 0 {
		return platformID, nil
	}
	return platformID, &Remark{Text: strings.Join(remarks, "; ")}
}

// call bounds the send of a part, and leaves it some time when the daemon stops. A part whose Send
// panics may have been sent.
func (d *delivery) call(ctx context.Context, part Part) (platformID string, err error) {
	defer d.shell.recoverPanic("sending", &err, "row", d.row.ID, "chat", d.row.ChatJID)
	defer d.shell.lanes.lock(d.lane.Lane)()
	d.lane.called = true
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.timeout(part))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		Pause(sending, sendGrace)
		cancel()
	})
	defer stop()
	if upload, ok := part.(Upload); !ok || upload.UploadSize() == 0 {
		d.shell.admission.endHung(sending, time.Now(), cancel)
	}
	return d.shell.platform.Send(sending, d.row, part)
}

// timeout is how long sending a part may take.
func (d *delivery) timeout(part Part) time.Duration {
	timeout := sendTimeout
	if d.lane.Decorations || d.takenOver != "" {
		return changeTimeout
	}
	if upload, ok := part.(Upload); ok {
		timeout += time.Duration(upload.UploadSize()) * time.Second / minUploadRate
	}
	return timeout
}

// ask calls Find within the time of a send.
func (d *delivery) ask(ctx context.Context, f Finder, part Part) (id string, err error) {
	defer d.shell.recoverPanic("searching", &err, "row", d.row.ID, "chat", d.row.ChatJID)
	d.lane.called = true
	ctx, cancel := context.WithTimeout(ctx, d.timeout(nil))
	defer cancel()
	return f.Find(ctx, d.row, part)
}

// recoverPanic, deferred, turns a panic in a platform's code into an error.
func (s *Shell) recoverPanic(doing string, err *error, where ...any) {
	if cause := recover(); cause != nil {
		s.Log.Error("panic in platform adapter", append(where, "step", doing, "panic", cause, "stack",
			string(debug.Stack()))...)
		*err = fmt.Errorf("panic while %s: %v", doing, cause)
	}
}
