package adapter

import (
	"context"
	"slices"
	"sync"
	"time"

	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// previewBusy is the pause before a call for which the lane, or the pacer, was busy.
const previewBusy = 500 * time.Millisecond

// previews show the progress of turns; nil shows none. Each decision of a look is made again under the lane's lock,
// since rows may have changed since.
type previews struct {
	shell *Shell
	calls sync.WaitGroup
	again time.Time // when to look, at the latest; zero if there is nothing to wait for

	mu    sync.Mutex
	known map[int64]knownPreview // by turn
	busy  map[int64]bool         // turns whose preview is being called for; true: there may be news meanwhile
}

func (s *Shell) previews() *previews {
	if s.previewer == nil {
		return nil
	}
	return &previews{shell: s, known: map[int64]knownPreview{}, busy: map[int64]bool{}}
}

// lookAtPreviews makes the shell look at the previews.
func (s *Shell) lookAtPreviews() {
	select {
	case s.previewNews <- struct{}{}:
	default:
	}
}

// due fires when it is time to look at the previews.
func (p *previews) due() <-chan time.Time {
	if p == nil || p.again.IsZero() {
		return nil
	}
	return time.After(max(p.again.Sub(p.shell.Now()), time.Millisecond))
}

// wait returns when no call is running.
func (p *previews) wait() {
	if p != nil {
		p.calls.Wait()
	}
}

// look begins the calls that are due about previews. While the account must wait, or the platform does not answer, it
// begins none.
func (p *previews) look(ctx context.Context) {
	if p == nil || ctx.Err() != nil {
		return
	}
	p.again = time.Time{}
	if !p.shell.admission.mayCall(open) {
		p.again = p.shell.Now().Add(previewRetry)
		return
	}
	turns, err := rows.PreviewTurns(ctx, p.shell.Store.Reader, p.shell.Platform)
	var shown []rows.Preview
	if err == nil {
		shown, err = rows.OpenPreviews(ctx, p.shell.Store.Reader, p.shell.Platform)
	}
	if err != nil {
		if ctx.Err() == nil {
			p.shell.Log.Warn("reading previews failed; retrying", "err", err)
		}
		return
	}
	facts := map[int64]*previewFacts{}
	for i := range turns {
		facts[turns[i].ID] = p.factsOf(&turns[i], nil)
	}
	for i := range shown {
		if f := facts[shown[i].TurnID]; f != nil {
			f.open = &shown[i]
		} else {
			facts[shown[i].TurnID] = p.factsOf(nil, &shown[i])
		}
	}
	p.forget(facts)
	for turn, f := range facts {
		p.lookAt(ctx, turn, f)
	}
}

// forget frees the entries of turns that are over.
func (p *previews) forget(facts map[int64]*previewFacts) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for turn := range p.known {
		if _, calling := p.busy[turn]; facts[turn] == nil && !calling {
			delete(p.known, turn)
		}
	}
}

// factsOf returns the facts about a preview, except whether the lane of one without a running turn waits.
func (p *previews) factsOf(t *rows.PreviewTurn, shown *rows.Preview) *previewFacts {
	f := &previewFacts{now: p.shell.Now(), turn: t, open: shown}
	if t != nil {
		f.mode, f.every, f.waiting = t.Mode, p.shell.previewer.PreviewEvery(t.Lane), t.Waiting
	}
	return f
}

// lookAt begins a call about the preview of a turn, if one is due.
func (p *previews) lookAt(ctx context.Context, turn int64, f *previewFacts) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, calling := p.busy[turn]; calling {
		p.busy[turn] = true
		return
	}
	f.known = p.known[turn]
	step := nextPreview(f)
	if step.wait > 0 {
		if at := f.now.Add(step.wait); p.again.IsZero() || at.Before(p.again) {
			p.again = at
		}
	}
	if step.do == previewLeave {
		return
	}
	p.busy[turn] = false
	lane := laneOf(f)
	p.calls.Go(func() {
		known, upToDate := p.act(ctx, turn, lane, f.known)
		p.mu.Lock()
		again := p.busy[turn] || !upToDate
		p.known[turn] = known
		delete(p.busy, turn)
		p.mu.Unlock()
		if again {
			p.shell.lookAtPreviews()
		}
	})
}

func laneOf(f *previewFacts) store.Lane {
	if f.open != nil {
		return f.open.Lane
	}
	return f.turn.Lane
}

// act makes the call that is due about the preview of a turn, as the rows say while the lane is locked. It returns the
// known state of the preview then, and whether there is nothing more to do before the rows change.
func (p *previews) act(ctx context.Context, turn int64, lane store.Lane, known knownPreview) (now knownPreview,
	upToDate bool) {
	unlock, free := p.shell.lanes.tryLock(lane)
	if !free {
		known.waitUntil = p.shell.Now().Add(previewBusy)
		return known, false
	}
	defer unlock()
	f, err := p.readFacts(ctx, turn, lane)
	if err != nil {
		if ctx.Err() == nil {
			p.shell.Log.Warn("reading preview failed; retrying", "turn", turn, "chat", lane.ChatJID, "err", err)
		}
		known.waitUntil = p.shell.Now().Add(previewRetry)
		return known, false
	}
	f.known = known
	switch nextPreview(f).do {
	case previewLeave: // rows have changed since the look
		f.known.waitUntil = p.shell.Now().Add(previewBusy)
	case previewBegin:
		p.begin(ctx, f)
	case previewChange:
		p.change(ctx, f)
		upToDate = f.known.progressAt == f.turn.ProgressAt
	case previewRemove:
		p.remove(ctx, f)
	case previewLose:
		p.end(ctx, f.open, rows.PreviewLost)
	}
	return f.known, upToDate
}

// readFacts reads the rows about the preview of a turn.
func (p *previews) readFacts(ctx context.Context, turn int64, lane store.Lane) (f *previewFacts, err error) {
	t, err := rows.RunningTurn(ctx, p.shell.Store.Reader, turn)
	if err != nil {
		return nil, err
	}
	f = p.factsOf(t, nil)
	shown, err := rows.LanePreviews(ctx, p.shell.Store.Reader, lane)
	for i := range shown {
		if shown[i].TurnID == turn {
			f.open = &shown[i]
		}
	}
	switch {
	case err != nil:
	case t == nil:
		var next *msg.Message
		next, err = rows.NextOutbound(ctx, p.shell.Store.Reader, lane)
		f.waiting = next != nil
	case t.ProgressAt != 0:
		f.progress, err = p.shell.Store.Progress(ctx, turn)
	}
	if err == nil && f.progress != nil && f.progress.State == agentproto.StatusRequiresAction {
		var asks []*msg.Ask
		asks, err = p.shell.Store.TurnAsks(ctx, turn)
		for _, a := range asks {
			if a.State == msg.AskOpen && !a.Who.Everyone {
				f.asked = a.Who.Label
			}
		}
	}
	return f, err
}

// begin makes the message of a preview, if there is something to show. It is neutral, since a crash before its id is
// stored leaves it behind.
func (p *previews) begin(ctx context.Context, f *previewFacts) {
	if f.content() == (content{}) {
		f.known.progressAt = f.turn.ProgressAt
		return
	}
	if !p.permit(f) {
		return
	}
	var row *rows.Preview
	stored := p.write(ctx, func(tx *store.Tx) (err error) {
		row, err = rows.BeginPreview(tx, f.turn.ID, p.nowMS())
		return err
	})
	if !stored {
		f.known.waitUntil = p.shell.Now().Add(previewBusy)
		return
	}
	f.open, f.progress, f.known.given = row, nil, content{}
	failpoint.At(failpoint.Previewing)
	id, err := p.show(ctx, f, content{line: PreviewStart})
	failpoint.At(failpoint.Previewed)
	switch failure := failureOf(err); {
	case err == nil && id != "":
		kept := p.write(ctx, func(tx *store.Tx) error {
			return rows.KeepPreview(tx, row, id, p.nowMS())
		})
		if !kept { // the chat was moved meanwhile, or the daemon stops
			p.end(ctx, row, rows.PreviewLost)
		}
	case err != nil && (failure.refused() || failure.unsent()):
		p.end(ctx, row, rows.PreviewRemoved)
	default:
		p.end(ctx, row, rows.PreviewLost)
	}
}

// change shows the news since the last call.
func (p *previews) change(ctx context.Context, f *previewFacts) {
	c := f.content()
	if c == (content{}) || c == f.known.given {
		f.shown()
		return
	}
	if !p.permit(f) {
		return
	}
	_, err := p.show(ctx, f, c)
	class := failureOf(err).Class
	switch {
	case err == nil:
		f.known.given = c
		f.shown()
	case f.open != nil && (class == msg.Permanent || class == msg.Ambiguous):
		// The message may be there all the same. A change without an answer may even be carried out later, and must not
		// replace an answer that has taken the message over.
		p.write(ctx, func(tx *store.Tx) error {
			return rows.OvertakePreview(tx, f.open.ID, p.nowMS())
		})
		f.known.waitUntil = time.Time{}
	}
}

// shown notes that the preview shows all that is known.
func (f *previewFacts) shown() {
	f.known.progressAt = f.turn.ProgressAt
	if f.quiet() {
		f.known.quietSince = f.lastSign()
	}
}

// permit acquires a permit of the pacer that no row needs soon.
func (p *previews) permit(f *previewFacts) bool {
	ok := p.shell.pacer.spare(f.turn.Lane)
	if !ok {
		f.known.waitUntil = p.shell.Now().Add(previewBusy)
	}
	return ok
}

// show calls the platform, and notes how that ended.
func (p *previews) show(ctx context.Context, f *previewFacts, c content) (id string, err error) {
	v := &Preview{
		Turn: f.turn.ID, In: f.turn.Lane, ReplyTo: f.turn.ReplyTo, Mode: f.mode, BeganAt: f.turn.StartedAt,
		Text: p.shell.Growing(c.text), Line: p.shell.Redact(c.line),
	}
	if f.open != nil {
		v.PlatformID = f.open.PlatformID
	}
	if f.progress != nil {
		v.State, v.Plan, v.Tools = f.progress.State, slices.Clone(f.progress.Plan), slices.Clone(f.progress.Tools)
	}
	for i := range v.Plan {
		v.Plan[i].Content = p.shell.Redact(v.Plan[i].Content)
	}
	for i := range v.Tools {
		v.Tools[i].Title = p.shell.Redact(v.Tools[i].Title)
	}
	err = p.call(ctx, &f.known, f.turn.Lane, func(ctx context.Context) (err error) {
		id, err = p.shell.previewer.ShowPreview(ctx, v)
		return err
	})
	if err != nil && failureOf(err).Class == msg.Permanent {
		f.known.refused = true
	}
	return id, err
}

// remove deletes the message of a preview. It gets its turn among rows: users must not see it for long after its end.
func (p *previews) remove(ctx context.Context, f *previewFacts) {
	if wait := p.shell.pacer.acquire(f.open.Lane, &f.known.permit); wait > 0 {
		f.known.waitUntil = p.shell.Now().Add(wait)
		return
	}
	f.known.permit = permit{}
	err := p.call(ctx, &f.known, f.open.Lane, func(ctx context.Context) error {
		return p.shell.previewer.RemovePreview(ctx, f.open.Lane, f.open.PlatformID)
	})
	failpoint.At(failpoint.Unshown)
	if err == nil || failureOf(err).Class == msg.Permanent {
		p.end(ctx, f.open, rows.PreviewRemoved)
	}
}

// call makes a call about a preview, which may end when the daemon stops, and notes how long the next one has to wait.
func (p *previews) call(ctx context.Context, known *knownPreview, lane store.Lane,
	do func(context.Context) error) (err error) {
	defer func() {
		known.calledAt, known.waitUntil = p.shell.Now(), time.Time{}
		if err == nil {
			return
		}
		f := failureOf(err)
		known.waitUntil = p.shell.Now().Add(max(f.After, previewRetry))
		p.shell.holdAccount(f)
		p.shell.Log.Debug("preview call failed", "chat", lane.ChatJID, "thread", lane.ThreadID, "class", f.Class, "err",
			p.shell.Redact(err.Error()))
	}()
	defer p.shell.recoverPanic("showing a preview", &err, "chat", lane.ChatJID)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTimeout)
	defer cancel()
	return do(ctx)
}

// end stores how a preview has ended.
func (p *previews) end(ctx context.Context, row *rows.Preview, state rows.PreviewState) {
	if p.write(ctx, func(tx *store.Tx) error { return rows.EndPreview(tx, row.ID, state, p.nowMS()) }) {
		p.shell.counters.previewEnded(state)
	}
}

// write is writeAlways, and reports whether it has succeeded.
func (p *previews) write(ctx context.Context, fn func(*store.Tx) error) bool {
	return p.shell.writeAlways(ctx, nil, fn) == nil
}

func (p *previews) nowMS() int64 { return p.shell.Now().UnixMilli() }
