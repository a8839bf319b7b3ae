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

// previews show the progress of turns; nil shows none. Each turn has a goroutine while it runs or has an open preview.
type previews struct {
	shell *Shell
	calls sync.WaitGroup
	turns map[int64]shownTurn
}

// shownTurn is a turn whose progress is shown, or may be.
type shownTurn struct {
	news chan struct{} // has a value when rows may have changed
	end  context.CancelFunc
}

func (s *Shell) previews() *previews {
	if s.previewer == nil {
		return nil
	}
	return &previews{shell: s, turns: map[int64]shownTurn{}}
}

// signal puts a value into a channel with room for one, unless it has one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// wait returns when no call is running.
func (p *previews) wait() {
	if p != nil {
		p.calls.Wait()
	}
}

// look lets all previews know that their rows may have changed.
func (p *previews) look(ctx context.Context) {
	if p == nil || ctx.Err() != nil {
		return
	}
	all, err := rows.Previews(ctx, p.shell.Store.Reader, p.shell.Platform)
	if err != nil {
		if ctx.Err() == nil {
			p.shell.Log.Warn("reading previews failed; retrying", "err", err)
		}
		return
	}
	for turn, shown := range p.turns {
		if !slices.ContainsFunc(all, func(v rows.Preview) bool { return v.TurnID == turn }) {
			shown.end()
			delete(p.turns, turn)
		}
	}
	for _, v := range all {
		shown, known := p.turns[v.TurnID]
		if !known {
			working, end := context.WithCancel(ctx)
			shown = shownTurn{make(chan struct{}, 1), end}
			p.turns[v.TurnID] = shown
			p.calls.Go(func() { p.keep(ctx, working, v.TurnID, shown.news) })
		}
		signal(shown.news)
	}
}

// keep shows the progress of a turn while working lasts.
func (p *previews) keep(ctx, working context.Context, turn int64, news <-chan struct{}) {
	known := &knownPreview{}
	for working.Err() == nil {
		wait, err := p.step(ctx, turn, known)
		if err != nil {
			if ctx.Err() == nil {
				p.shell.Log.Warn("reading preview failed; retrying", "turn", turn, "err", err)
			}
			wait = previewRetry
		}
		var again <-chan time.Time
		if wait > 0 {
			again = time.After(wait)
		}
		if wait >= 0 {
			select {
			case <-working.Done():
			case <-news:
			case <-again:
			}
		}
	}
}

// step makes the call that is due about the preview of a turn, as the rows say while the lane is locked. wait is the
// time until the next step: 0 if only news can bring one, below 0 if none has to pass. While the account must wait, or
// the platform does not answer, it makes none.
func (p *previews) step(ctx context.Context, turn int64, known *knownPreview) (wait time.Duration, err error) {
	if !p.shell.admission.mayCall(open) {
		return previewRetry, nil
	}
	f, err := p.facts(ctx, turn, known)
	if err != nil {
		return 0, err
	}
	if next := nextPreview(f); next.do == previewLeave {
		return next.wait, nil
	}
	lane := f.Lane
	unlock, free := p.shell.lanes.tryLock(lane)
	if !free {
		return previewBusy, nil
	}
	defer unlock()
	if f, err = p.facts(ctx, turn, known); err == nil {
		err = p.readProgress(ctx, f)
	}
	if err != nil || f.Lane != lane { // the chat was moved
		return previewBusy, err
	}
	switch nextPreview(f).do {
	case previewLeave: // rows have changed since
		return previewBusy, nil
	case previewBegin:
		p.begin(ctx, f)
	case previewChange:
		p.change(ctx, f)
		f.now = p.shell.Now()
		if next := nextPreview(f); next.do == previewLeave { // rows that have changed meanwhile are news
			return next.wait, nil
		}
	case previewRemove:
		p.remove(ctx, f)
	case previewLose:
		p.end(ctx, &f.Preview, rows.PreviewLost)
	}
	return -1, nil
}

// facts reads all that the next step depends on.
func (p *previews) facts(ctx context.Context, turn int64, known *knownPreview) (*previewFacts, error) {
	f := &previewFacts{now: p.shell.Now(), known: known}
	v, err := rows.TurnPreview(ctx, p.shell.Store.Reader, turn)
	if err == nil && v != nil {
		f.Preview, f.every = *v, p.shell.previewer.PreviewEvery(v.Lane)
	}
	return f, err
}

// readProgress adds the facts that the content of a preview depends on.
func (p *previews) readProgress(ctx context.Context, f *previewFacts) (err error) {
	if f.Running && f.ProgressAt != 0 {
		f.progress, err = p.shell.Store.Progress(ctx, f.TurnID)
	}
	if err != nil || f.progress == nil || f.progress.State != agentproto.StatusRequiresAction {
		return err
	}
	asks, err := p.shell.Store.TurnAsks(ctx, f.TurnID)
	for _, a := range asks {
		if a.State == msg.AskOpen && !a.Who.Everyone {
			f.asked = a.Who.Label
		}
	}
	return err
}

// begin makes the message of a preview, if there is something to show. It is neutral, since a crash before its id is
// stored leaves it behind.
func (p *previews) begin(ctx context.Context, f *previewFacts) {
	if f.content() == (content{}) {
		f.known.progressAt = f.ProgressAt
		return
	}
	if !p.permit(f) {
		return
	}
	var row *rows.Preview
	stored := p.write(ctx, func(tx *store.Tx) (err error) {
		row, err = rows.BeginPreview(tx, f.TurnID, p.nowMS())
		return err
	})
	if !stored {
		f.known.waitUntil = p.shell.Now().Add(previewBusy)
		return
	}
	f.Preview, f.progress, f.known.given = *row, nil, content{}
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
	case class == msg.Permanent, class == msg.Ambiguous:
		// The message may be there all the same. A change without an answer may even be carried out later, and must not
		// replace an answer that has taken the message over.
		p.write(ctx, func(tx *store.Tx) error {
			return rows.OvertakePreview(tx, f.ID, p.nowMS())
		})
		f.known.waitUntil = time.Time{}
	}
}

// shown notes that the preview shows all that is known.
func (f *previewFacts) shown() {
	f.known.progressAt = f.ProgressAt
	if f.quiet() {
		f.known.quietSince = f.lastSign()
	}
}

// permit acquires a permit of the pacer that no row needs soon.
func (p *previews) permit(f *previewFacts) bool {
	ok := p.shell.pacer.spare(f.Lane)
	if !ok {
		f.known.waitUntil = p.shell.Now().Add(previewBusy)
	}
	return ok
}

// show calls the platform, and notes how that ended.
func (p *previews) show(ctx context.Context, f *previewFacts, c content) (id string, err error) {
	v := &Preview{
		Turn: f.TurnID, In: f.Lane, ReplyTo: f.ReplyTo, Mode: f.Mode, PlatformID: f.PlatformID, BeganAt: f.StartedAt,
		Text: p.shell.Growing(c.text), Line: p.shell.Redact(c.line),
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
	err = p.call(ctx, f, func(ctx context.Context) (err error) {
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
	if !f.known.reserved {
		wait, counted := p.shell.pacer.reserve(f.Lane)
		f.known.reserved = counted
		if wait > 0 {
			f.known.waitUntil = p.shell.Now().Add(wait)
			return
		}
	}
	f.known.reserved = false
	err := p.call(ctx, f, func(ctx context.Context) error {
		return p.shell.previewer.RemovePreview(ctx, f.Lane, f.PlatformID)
	})
	failpoint.At(failpoint.Unshown)
	if err == nil || failureOf(err).Class == msg.Permanent {
		p.end(ctx, &f.Preview, rows.PreviewRemoved)
	}
}

// call makes a call about a preview, which may end when the daemon stops, and notes how long the next one has to wait.
func (p *previews) call(ctx context.Context, about *previewFacts, do func(context.Context) error) (err error) {
	known, lane := about.known, about.Lane
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
