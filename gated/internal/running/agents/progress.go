package agents

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// progressInterval is how often a run stores the progress of its agent, at most; laterInterval is the same
	// once its turn has been shown at work for laterAfter: users follow a long turn less closely, and each commit costs
	// about a millisecond of a processor in gated and in who shows it.
	progressInterval = 250 * time.Millisecond
	laterInterval    = time.Second
	laterAfter       = 3 * time.Second
	// shownFirst and shownInterval are the same where the platform shows it: adapters begin after a second, and change
	// what they show every two seconds at most. A little later than that they need not wait for it, which would wake
	// them twice for each change. The web chat shows everything.
	shownFirst    = time.Second
	shownInterval = 2100 * time.Millisecond
	// progressRetry is the delay after a failure. It is long: the answer does not depend on it.
	progressRetry = 5 * time.Second
	// signInterval is how often it is stored that the agent works where it says nothing new.
	signInterval = 20 * time.Second
	// maxTools bounds the calls of tools that are kept for a turn. The oldest go first.
	maxTools = 100
)

// progress is the progress of a turn in this run, as its agent has reported it.
type progress struct {
	row     store.Progress
	said    string           // the answer so far, as the agent wrote it; only what is stored is worth reading
	usage   agentproto.Usage // in this run
	counted agentproto.Usage // the part of it that is stored
	changed bool             // since it was stored
	began   time.Time
	// onPlatform: it is shown by a chat platform, and not by the web chat.
	onPlatform bool
	inputs     bool                // of tools are shown
	growing    func(string) string // redacts said
}

// event takes in an event of the agent. It is stored with others that follow soon.
func (r *run) event(e *agentproto.Event) {
	if e.Ask != nil {
		r.ask(e)
		return
	}
	if e.Features != nil {
		r.turns.folds = e.Features.Fold
		r.tellFolds()
		return
	}
	if e.Models != nil {
		r.offers.store(*e.Models)
		return
	}
	t := r.turns.addressee(e.TurnID)
	if t == nil {
		return // like a frame for no turn
	}
	r.guard(t, func() {
		p := r.progress.turns[t.ID]
		if p == nil {
			p = newProgress(r.row.ChatJID, r.env.cfg.Now())
			p.inputs, p.growing = r.settings.now.ToolInput, r.setup.growing
			r.progress.turns[t.ID] = p
			r.m.marks.unmark(t, r.row.ID)
		}
		p.update(e, &r.setup, r.env.cfg.Now())
		r.progress.storeSoon(p)
	})
}

func newProgress(chatJID string, now time.Time) *progress {
	return &progress{
		row: store.Progress{State: agentproto.StatusRunning}, changed: true, began: now,
		onPlatform: msg.FamilyOf(chatJID) != msg.PlatformWeb,
	}
}

// interval is how often the progress is stored.
func (p *progress) interval(now time.Time) time.Duration {
	first, later := progressInterval, laterInterval
	if p.onPlatform {
		first, later = shownFirst, shownInterval
	}
	if now.Sub(p.began) < laterAfter {
		return first
	}
	return later
}

// update makes an event a part of the progress, and notes whether that is to be stored.
func (p *progress) update(e *agentproto.Event, s *setup, now time.Time) {
	row, said, usage := p.row, p.said, p.usage
	row.Tools = slices.Clone(row.Tools)
	p.add(e, s)
	same := row.State == p.row.State && said == p.said && slices.Equal(row.Plan, p.row.Plan) &&
		slices.Equal(row.Tools, p.row.Tools)
	stale := p.row.UpdatedAt != 0 && now.UnixMilli()-p.row.UpdatedAt >= signInterval.Milliseconds()
	p.changed = p.changed || !same || usage != p.usage || stale
}

// add makes an event a part of the progress.
func (p *progress) add(e *agentproto.Event, s *setup) {
	switch {
	case e.Status != "":
		p.row.State = e.Status
	case e.Text != nil:
		p.said = *e.Text
	case e.Tool != nil:
		p.addTool(agentproto.Tool{ID: s.redact(e.Tool.ID), Title: p.title(e.Tool, s.redact),
			Kind: s.redact(e.Tool.Kind), Status: e.Tool.Status})
	case e.Plan != nil:
		p.row.Plan = slices.Clone(e.Plan.Entries)
		for i := range p.row.Plan {
			p.row.Plan[i].Content = s.redact(p.row.Plan[i].Content)
		}
	case e.Usage != nil:
		p.addUsage(*e.Usage)
	}
}

// text is the answer so far as users may see it.
func (p *progress) text() string { return p.growing(agentproto.StripGrowing(p.said)) }

// addUsage takes in the run's usage so far, which never gets less. A value of 0 says nothing.
func (p *progress) addUsage(u agentproto.Usage) {
	p.usage.Input, p.usage.Output = max(p.usage.Input, u.Input), max(p.usage.Output, u.Output)
	p.usage.CostUSD = max(p.usage.CostUSD, u.CostUSD)
	p.usage.ContextUsed, p.usage.ContextSize = cmp.Or(u.ContextUsed, p.usage.ContextUsed),
		cmp.Or(u.ContextSize, p.usage.ContextSize)
}

func (p *progress) addTool(tool agentproto.Tool) {
	if i := slices.IndexFunc(p.row.Tools, func(t agentproto.Tool) bool { return t.ID == tool.ID }); i >= 0 {
		p.row.Tools[i] = tool
		return
	}
	if len(p.row.Tools) == maxTools {
		p.row.Tools = slices.Delete(p.row.Tools, 0, 1)
	}
	p.row.Tools = append(p.row.Tools, tool)
}

// progressList is the progress of the turns of a run. The run's goroutine owns it.
type progressList struct {
	*runInfo
	turns    map[int64]*progress
	timer    *time.Timer // then the changes are stored
	due      bool        // the timer is to fire
	storedAt time.Time
}

// storeIn stores the changes after d.
func (l *progressList) storeIn(d time.Duration) {
	l.due = true
	l.timer.Reset(d)
}

// storeSoon stores the progress of a turn, if it has changed, in its interval.
func (l *progressList) storeSoon(p *progress) {
	if !p.changed || l.due {
		return
	}
	now := l.env.cfg.Now()
	interval := p.interval(now)
	l.storeIn(min(interval, interval-now.Sub(l.storedAt)))
}

// store stores the changes since the last time, in one commit, and reports whether it did. Else it tries again
// later.
func (l *progressList) store() bool {
	l.due, l.storedAt = false, l.env.cfg.Now()
	if len(l.changed()) == 0 {
		return true // it was stored with an answer
	}
	if err := l.env.st.WriteIn(l.env.ctx, l.scope(), l.put); err != nil {
		if l.env.ctx.Err() == nil {
			l.env.log.Warn("storing progress failed; retrying", "run", l.row.ID, "folder", l.row.Folder, "err", err)
		}
		l.storeIn(progressRetry)
		return false
	}
	l.stored()
	return true
}

func (l *progressList) changed() (turns []int64) {
	for _, id := range slices.Sorted(maps.Keys(l.turns)) {
		if l.turns[id].changed {
			turns = append(turns, id)
		}
	}
	return turns
}

// put stores the changes. Of a turn that has ended only its usage is stored. The caller calls stored
// once it is committed.
func (l *progressList) put(tx *store.Tx) error {
	for _, turn := range l.changed() {
		p := l.turns[turn]
		p.row.Text, p.row.UpdatedAt = p.text(), l.env.now()
		if err := rows.PutProgress(tx, l.row, turn, &p.row); err != nil && !errors.Is(err, store.ErrStale) {
			return err
		}
		if p.usage == p.counted {
			continue
		}
		used := p.usage
		used.Input, used.Output, used.CostUSD = used.Input-p.counted.Input, used.Output-p.counted.Output,
			used.CostUSD-p.counted.CostUSD
		if err := rows.AddUsage(tx, turn, used, l.env.today()); err != nil {
			return err
		}
	}
	return nil
}

func (l *progressList) stored() {
	for _, turn := range l.changed() {
		p := l.turns[turn]
		p.changed, p.counted = false, p.usage
	}
}

// textSent begins the text of a turn's progress again: the text so far is a message now.
func (l *progressList) textSent(turn int64) {
	if p := l.turns[turn]; p != nil && p.said != "" {
		p.said, p.changed = "", true // it is stored with the next event
	}
}

// forget frees the parts of an answered turn that are not stored any more. Its usage may still grow.
func (l *progressList) forget(turn int64) {
	if p := l.turns[turn]; p != nil {
		p.row, p.said = store.Progress{State: agentproto.StatusIdle}, ""
	}
}

// setWaiting says which turns wait for users now, and did before.
func (l *progressList) setWaiting(now, before []int64) {
	for id, p := range l.turns {
		switch {
		case slices.Contains(now, id):
			p.row.State = agentproto.StatusRequiresAction
		case p.row.State == agentproto.StatusRequiresAction && slices.Contains(before, id):
			p.row.State = agentproto.StatusRunning
		}
	}
}
