package adapter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"arizuko/pkg/adapter/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// delivery carries out the table of states.go for the next part of an outbound row: it reads the states of the parts,
// asks next for a step, does it, and stores the states that follow. The decisions are there; here are the calls and the
// transactions. The part after it is the next delivery's.
type delivery struct {
	shell     *Shell
	lane      *lane
	row       *msg.Message
	cut       []Part
	renderErr error // why the parts still open can't be sent, nil if they can
	parts     []store.Delivery
	started   bool   // this delivery, not one before a crash, has begun to send the part
	waited    bool   // not_before of the part has passed, even if the clock was set back meanwhile
	overtakes bool   // a preview must be removed, since the row goes out below it
	takenOver string // platform id of the preview that the first part will replace, "" once that was tried
	givenUp   string // platform id of a preview that did not become the first part after all, "" for none
}

// deliver delivers the next part of an outbound row of a lane, if that is possible now. waited means that not_before of
// that part has passed. An error is one of the database.
func (s *Shell) deliver(ctx context.Context, l *lane, m *msg.Message, waited bool) (v verdict, err error) {
	m.Content = s.Redact(m.Content)
	d := &delivery{shell: s, lane: l, row: m, waited: waited}
	d.cut, d.renderErr = s.callCut(m)
	superseded := false
	if m.Kind.Changes() {
		if superseded, err = rows.Superseded(ctx, s.Store.Reader, m); err != nil {
			return verdict{}, err
		}
	}
	err = d.claim(ctx)
	// the row was cancelled, or the daemon stops
	if errors.Is(err, store.ErrStale) || errors.Is(err, context.Canceled) {
		return verdict{}, nil
	}
	i := slices.IndexFunc(d.parts, isOpen)
	switch {
	case err != nil:
		return verdict{}, err
	case i < 0: // the parts were written by another process
		return verdict{}, d.record(ctx, nil)
	case superseded && i == 0:
		for i := range d.parts {
			d.parts[i].State = msg.OutCancelled
		}
		return verdict{}, d.record(ctx, d.parts)
	case ctx.Err() != nil && !d.started:
		return verdict{}, nil
	}
	return d.part(ctx, i)
}

// readTarget reads the outbound row that a row is about, if there is one, the question that a row shows, and whether it
// has an Undo button.
func (s *Shell) readTarget(ctx context.Context, m *msg.Message) (err error) {
	if m.Kind.Changes() {
		m.Target, err = rows.Target(ctx, s.Store.Reader, m)
	}
	if m.Target != nil {
		for i := range m.Target.Edits { // as it was sent
			m.Target.Edits[i].Content = s.Redact(m.Target.Edits[i].Content)
		}
	}
	if shows := showsAsk(m); err == nil && shows != 0 {
		m.Ask, err = s.Store.AskOfMessage(ctx, shows)
	}
	if _, ok := s.platform.(Undoer); ok && err == nil {
		m.UndoUntil, err = factrows.UndoUntil(ctx, s.Store.Reader, m, s.Now().UnixMilli())
	}
	return err
}

// showsAsk returns the row that shows the question of a row, if that may show or edit one; 0 if not. Answers of agents,
// most of all rows, show none.
func showsAsk(m *msg.Message) int64 {
	switch {
	case m.Kind == msg.KindEdit:
		return m.DerivedFrom
	case m.Kind == msg.KindMessage && m.TurnID != 0 && m.Source != msg.SourceAgent:
		return m.ID
	}
	return 0
}

// claim claims the row, unless that was done before, and reads the states of its parts.
func (d *delivery) claim(ctx context.Context) (err error) {
	if d.row.OutState == msg.OutQueued {
		d.started = true
		defer d.shell.lanes.lock(d.lane.Lane)() // once a preview that is being made there is known
		// Read in the same transaction: a part that is claimed and then not sent would look like
		// one that a crash interrupted.
		err = d.shell.Store.WriteIn(ctx, store.Scope{d.row.ChatJID}, func(tx *store.Tx) (err error) {
			if err = tx.ClaimOutbound(d.row.ID, len(d.cut), d.nowMS()); err == nil {
				err = d.takeOver(tx)
			}
			if err == nil {
				d.parts, err = tx.Deliveries(ctx, d.row.ID)
			}
			return err
		})
		if err == nil && d.parts[0].PlatformID != "" {
			d.shell.counters.previewEnded(rows.PreviewFinal)
		}
		if d.overtakes {
			signal(d.shell.previewNews)
		}
	} else {
		d.parts, err = d.shell.Store.Deliveries(ctx, d.row.ID)
	}
	if d.renderErr == nil && len(d.cut) != len(d.parts) {
		d.renderErr = fmt.Errorf("the row renders as %d parts, but was claimed with %d", len(d.cut), len(d.parts))
	}
	if err == nil && d.renderErr == nil {
		d.editPreview()
	}
	if err == nil && d.shell.Log.Enabled(ctx, slog.LevelDebug) {
		d.shell.Log.Debug("delivery claimed", "row", d.row.ID, "chat", d.row.ChatJID, "thread", d.row.ThreadID, "count",
			len(d.parts))
	}
	return err
}

// part does the next steps of one part, until it has ended or has to wait.
func (d *delivery) part(ctx context.Context, i int) (v verdict, err error) {
	for {
		switch s := next(d.parts[i], d.conditions(i)); s.do {
		case doWait:
			return verdict{wait: s.wait}, nil
		case doPass:
			return verdict{}, nil
		case doHold:
			return verdict{held: true}, nil
		case doEnd:
			return verdict{}, d.end(ctx, i, s.part)
		case doSearch:
			if wait, err := d.search(ctx, i); err != nil || !isOpen(d.parts[i]) || wait > 0 {
				return verdict{wait: wait, unanswered: true}, err
			}
		default:
			return d.send(ctx, i, s.do)
		}
	}
}

// conditions returns the conditions of the next step of part i.
func (d *delivery) conditions(i int) conditions {
	finder, marker := d.finderAndMarker()
	answers, outFor := d.shell.admission.answers()
	known := d.lane.search.of == [2]int64{d.row.ID, int64(i)}
	renderErr := ""
	if d.renderErr != nil {
		renderErr = d.shell.Redact(d.renderErr.Error())
	}
	return conditions{
		now: d.nowMS(), queuedAt: d.row.ReceivedAt, maxAge: d.shell.DeliveryMaxAge,
		started: d.started, waited: d.waited, renderErr: renderErr, repeatable: d.repeatable(i),
		searchable: finder != nil && (!known || !d.lane.search.impossible), searches: d.lane.search.failed,
		markable: marker != nil, decorates: d.lane.Decorations,
		mayCall: d.shell.admission.mayCall(d.lane.pass), answers: answers, outFor: outFor,
	}
}

// finderAndMarker returns how the platform can search for a part that may have arrived, and mark it; nil if it can't.
func (d *delivery) finderAndMarker() (f Finder, m Marker) {
	f, _ = d.shell.platform.(Finder)
	if d.shell.Resend == ResendMarked {
		m, _ = d.shell.platform.(Marker)
	}
	return f, m
}

// repeatable reports whether sending part i twice does no harm.
func (d *delivery) repeatable(i int) bool {
	if i >= len(d.cut) {
		return false
	}
	part, ok := d.cut[i].(Repeatable)
	return ok && part.Repeatable()
}

// end records that part i has ended.
func (d *delivery) end(ctx context.Context, i int, as store.Delivery) error {
	d.parts[i] = d.afterTakeOver(ctx, as, nil)
	d.logEnd(&as)
	return d.record(ctx, d.changed(i))
}

// send sends part i, or a marked copy of it, and records the result.
func (d *delivery) send(ctx context.Context, i int, as action) (v verdict, err error) {
	p, c, part := &d.parts[i], d.conditions(i), d.cut[i]
	if as == doMark {
		if part, err = d.callMark(part); err != nil {
			return verdict{}, d.end(ctx, i, ended(*p, msg.OutAmbiguous, msg.Ambiguous, d.shell.Redact(err.Error())))
		}
	}
	copied := as == doMark
	if !d.started {
		d.started, *p = true, beginning(*p, as)
		if err := d.record(ctx, d.parts[i:i+1]); err != nil {
			return verdict{}, err
		}
	}
	failpoint.At(failpoint.Sending)
	began := time.Now()
	id, err := d.sendForms(ctx, part)
	failpoint.At(failpoint.Sent)
	c.now = d.nowMS() // the clock may have been set meanwhile
	d.noteAnswer(began, err)
	*p = afterSend(*p, c, copied, id, err, d.textOf(err))
	*p = d.afterTakeOver(ctx, *p, err)
	if p.State == msg.OutSent {
		d.shell.Log.Debug("part sent", "row", d.row.ID, "chat", d.row.ChatJID, "part", p.Part)
	} else {
		d.logEnd(p)
	}
	err = d.record(ctx, d.changed(i))
	unanswered := p.ErrorClass == msg.Transient || p.ErrorClass == msg.Ambiguous && (c.repeatable || c.searchable)
	return verdict{wait: until(p.NotBefore, c.now), unanswered: unanswered}, err
}

// textOf is the text of an error, or of a remark, in the record of a part.
func (d *delivery) textOf(err error) string {
	var remark *Remark
	switch {
	case err == nil:
		return ""
	case errors.As(err, &remark):
		return d.shell.Redact(remark.Text)
	}
	return d.shell.Redact(err.Error())
}

// noteAnswer notes how a call ended that began at a time.
func (d *delivery) noteAnswer(began time.Time, err error) {
	var remark *Remark
	f := failureOf(err)
	switch {
	case err == nil, errors.As(err, &remark), f.refused():
		d.shell.admission.answer()
	case d.lane.Decorations && d.lane.pass == open: // that holds no answers
	case f.unsent(), f.Class == msg.Ambiguous:
		d.shell.admission.noAnswer(d.lane.pass, began, !f.unsent(), d.textOf(err))
	}
	d.shell.holdAccount(f)
}

// holdAccount stops all calls for a time if a failure asks the account to wait.
func (s *Shell) holdAccount(f *Failure) {
	if f.Class == msg.Rate && f.Account {
		s.admission.hold(f.After)
	}
}

func (d *delivery) logEnd(p *store.Delivery) {
	d.shell.Log.Warn("delivery failed", "row", d.row.ID, "chat", d.row.ChatJID, "part", p.Part, "class", p.ErrorClass,
		"state", p.State,
		"wait", until(p.NotBefore, d.nowMS()), "err", p.Error)
}

// search asks the platform whether part i has arrived, and records the answer unless the part is sent next. wait is how
// long the part has to wait before its next step.
func (d *delivery) search(ctx context.Context, i int) (wait time.Duration, err error) {
	p, c := &d.parts[i], d.conditions(i)
	finder, _ := d.finderAndMarker()
	d.waited = false
	began := time.Now()
	id, err := d.ask(ctx, finder, d.cut[i])
	c.now = d.nowMS() // the clock may have been set meanwhile
	d.noteAnswer(began, err)
	after, searchable := afterSearch(*p, c, id, err, d.textOf(err))
	if of := [2]int64{d.row.ID, int64(i)}; d.lane.search.of != of {
		d.lane.search = search{of: of}
	}
	if d.lane.search.impossible = !searchable; err != nil && c.answers {
		d.lane.search.failed++
	}
	*p = after
	if isOpen(*p) && p.ErrorClass == "" { // it has not arrived
		return 0, nil
	}
	return until(p.NotBefore, c.now), d.record(ctx, d.changed(i))
}

// record writes the states of parts, and settles the row when none is open, in one transaction. It
// retries until it succeeds or the daemon stops: the result of a send is known nowhere else.
func (d *delivery) record(ctx context.Context, changed []store.Delivery) error {
	end := endOf(d.parts)
	err := d.shell.writeAlways(ctx, d.row, func(tx *store.Tx) error {
		for _, p := range changed {
			if err := tx.PutDelivery(p, d.nowMS()); err != nil {
				return err
			}
		}
		if d.givenUp != "" {
			if err := rows.GiveUpPreview(tx, d.row.TurnID, d.givenUp, d.nowMS()); err != nil {
				return err
			}
		}
		if end.state == "" {
			return nil
		}
		err := tx.SettleOutbound(d.row.ID, end.state, end.platformID)
		if err == nil && end.state == msg.OutSent {
			err = d.seed(tx, end.platformID)
		}
		if err != nil || end.state != msg.OutFailed {
			return err
		}
		if err := rows.EditUndeleted(tx, d.row, d.nowMS()); err != nil {
			return err
		}
		return rows.ReportUndelivered(tx, d.row, end.problem, d.nowMS())
	})
	if err != nil {
		return err
	}
	d.shell.counters.recorded(changed)
	if d.givenUp != "" {
		d.givenUp = ""
		signal(d.shell.previewNews)
	}
	if end.state != "" {
		d.reportSettled(end.state)
	}
	return nil
}

// seed queues the reactions that users need on the row.
func (d *delivery) seed(tx *store.Tx, platformID string) error {
	s, ok := d.shell.platform.(Seeder)
	if !ok || platformID == "" {
		return nil
	}
	for _, emoji := range s.Seeds(d.row) {
		_, _, err := tx.PutMessage(&msg.Message{
			ChatJID: d.row.ChatJID, ThreadID: d.row.ThreadID, Topic: d.row.Topic, Direction: msg.Out, IsBot: true,
			Kind: msg.KindReaction, Content: emoji, TargetID: platformID, Source: msg.SourceNotice,
			Timestamp: d.nowMS(), ReceivedAt: d.nowMS(), OutState: msg.OutQueued,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// reportSettled logs and reports a row whose end is stored.
func (d *delivery) reportSettled(as msg.OutState) {
	d.row.OutState = as
	d.shell.counters.settled(d.row, d.shell.Now())
	d.shell.Log.Debug("delivered", "row", d.row.ID, "chat", d.row.ChatJID, "thread", d.row.ThreadID, "state", as)
	if d.shell.Settled != nil {
		d.shell.Settled(d.row)
	}
}

// changed returns part i, which has changed, and the parts that change with it.
func (d *delivery) changed(i int) []store.Delivery { return d.parts[i : i+1+cancelRest(d.parts, i)] }

func (d *delivery) nowMS() int64 { return d.shell.Now().UnixMilli() }
