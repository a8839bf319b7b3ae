package agents

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"arizuko/gated/internal/running/queue"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// progressInterval is how often a run stores what its agent says of its work, at most; laterInterval is the same once
	// its turn has been shown at work for laterAfter: users follow a long turn less closely, and each commit costs about a
	// millisecond of a processor in gated and in who shows it.
	progressInterval = 250 * time.Millisecond
	laterInterval    = time.Second
	laterAfter       = 3 * time.Second
	// shownFirst and shownInterval are the same where the platform shows it: adapters begin after a second, and change what
	// they show every two seconds at most. The web chat shows everything.
	shownFirst    = time.Second
	shownInterval = 2 * time.Second
	// progressRetry is the delay after a failure. It is long: what the answer says does not depend on it.
	progressRetry = 5 * time.Second
	// maxTools bounds the calls of tools that are kept for a turn. The oldest go first.
	maxTools = 100
)

// progress is what the agent has said of its work on a turn in this run.
type progress struct {
	row     store.Progress
	usage   agentproto.Usage // in this run
	counted agentproto.Usage // what of it is stored
	changed bool             // since it was stored
	began   time.Time
	// onPlatform: it is shown by a chat platform, and not by the web chat.
	onPlatform bool
	inputs     bool // of tools are shown
}

// event takes in what the agent says of its work. It is stored with others that follow soon.
func (r *run) event(e *agentproto.Event) {
	if e.Ask != nil {
		r.ask(e)
		return
	}
	if e.Features != nil {
		if r.folds = e.Features.Fold; r.folds {
			r.m.schedule(func(q *queue.GroupQueue) queue.Actions { return q.Folds(r.row.ID) })
		}
		return
	}
	if e.Models != nil {
		r.offers(*e.Models)
		return
	}
	t := r.addressee(e.TurnID)
	if t == nil {
		return // like a frame for no turn
	}
	r.guard(t, func() {
		p := r.progress[t.ID]
		if p == nil {
			p = r.newProgress(r.m.cfg.Now())
			r.progress[t.ID] = p
			r.begins(t)
		}
		p.take(e, r.setup)
		if p.changed && !r.storing {
			now := r.m.cfg.Now()
			interval := p.interval(now)
			r.storing = true
			r.storeTimer.Reset(min(interval, interval-now.Sub(r.storedAt)))
		}
	})
}

func (r *run) newProgress(now time.Time) *progress {
	return &progress{
		row: store.Progress{State: agentproto.StatusRunning}, changed: true, began: now,
		onPlatform: msg.FamilyOf(r.row.ChatJID) != msg.PlatformWeb, inputs: r.current.ToolInput,
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

// take makes an event a part of the progress, and notes whether that changes it.
func (p *progress) take(e *agentproto.Event, s setup) {
	row, usage := p.row, p.usage
	row.Tools = slices.Clone(row.Tools)
	p.add(e, s)
	same := row.State == p.row.State && row.Text == p.row.Text && slices.Equal(row.Plan, p.row.Plan) && slices.Equal(row.Tools, p.row.Tools)
	p.changed = p.changed || !same || usage != p.usage
}

// add makes an event a part of the progress.
func (p *progress) add(e *agentproto.Event, s setup) {
	switch {
	case e.Status != "":
		p.row.State = e.Status
	case e.Text != nil:
		p.row.Text = s.growing(agentproto.StripGrowing(*e.Text))
	case e.Tool != nil:
		p.addTool(agentproto.Tool{ID: s.redact(e.Tool.ID), Title: p.title(e.Tool, s.redact), Kind: s.redact(e.Tool.Kind), Status: e.Tool.Status})
	case e.Plan != nil:
		p.row.Plan = slices.Clone(e.Plan.Entries)
		for i := range p.row.Plan {
			p.row.Plan[i].Content = s.redact(p.row.Plan[i].Content)
		}
	case e.Usage != nil:
		p.addUsage(*e.Usage)
	}
}

// addUsage takes in what the run has used so far, which never gets less. A value of 0 says nothing.
func (p *progress) addUsage(u agentproto.Usage) {
	p.usage.Input, p.usage.Output = max(p.usage.Input, u.Input), max(p.usage.Output, u.Output)
	p.usage.CostUSD = max(p.usage.CostUSD, u.CostUSD)
	p.usage.ContextUsed, p.usage.ContextSize = cmp.Or(u.ContextUsed, p.usage.ContextUsed), cmp.Or(u.ContextSize, p.usage.ContextSize)
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

// storeProgress stores what has changed since it was stored, in one commit.
func (r *run) storeProgress() {
	r.storing, r.storedAt = false, r.m.cfg.Now()
	if len(r.changedProgress()) == 0 { // it was stored with an answer
		r.checkBudget()
		return
	}
	if err := r.m.st.Write(r.m.ctx, r.putProgress); err != nil {
		if r.m.ctx.Err() == nil {
			r.m.log.Warn("storing progress failed; retrying", "run", r.row.ID, "folder", r.row.Folder, "err", err)
		}
		r.storing = true
		r.storeTimer.Reset(progressRetry)
		return
	}
	r.progressStored()
	r.checkBudget()
}

func (r *run) changedProgress() (turns []int64) {
	for _, id := range slices.Sorted(maps.Keys(r.progress)) {
		if r.progress[id].changed {
			turns = append(turns, id)
		}
	}
	return turns
}

// putProgress stores what has changed. Of a turn that has ended only its usage is stored. Once it is committed,
// progressStored has to be called.
func (r *run) putProgress(tx *store.Tx) error {
	for _, turn := range r.changedProgress() {
		p := r.progress[turn]
		p.row.UpdatedAt = r.m.now()
		if err := tx.PutProgress(r.row, turn, &p.row); err != nil && !errors.Is(err, store.ErrStale) {
			return err
		}
		if p.usage == p.counted {
			continue
		}
		used := p.usage
		used.Input, used.Output, used.CostUSD = used.Input-p.counted.Input, used.Output-p.counted.Output, used.CostUSD-p.counted.CostUSD
		if err := tx.AddUsage(turn, used, r.m.today()); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) progressStored() {
	for _, turn := range r.changedProgress() {
		p := r.progress[turn]
		p.changed, p.counted = false, p.usage
	}
}

// answeredInPart begins the text of a turn's progress again: what it was is a message now.
func (r *run) answeredInPart(turn int64) {
	if p := r.progress[turn]; p != nil && p.row.Text != "" {
		p.row.Text, p.changed = "", true // it is stored with the next event
	}
}

// forgetProgress frees what is not stored of an answered turn any more. Its usage may still grow.
func (r *run) forgetProgress(turn int64) {
	if p := r.progress[turn]; p != nil {
		p.row = store.Progress{State: agentproto.StatusIdle}
	}
}
