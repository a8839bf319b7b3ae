package agents

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"arizuko/gated/internal/prompt"
	"arizuko/gated/internal/turncontext"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// observedRows is how many rows of other chats a prompt shows.
	observedRows = 100
	// observedSince is how far back the first turn of a session looks.
	observedSince = 24 * time.Hour
	// pastSessions is how many former sessions a new one is shown.
	pastSessions = 3
)

// shown is what a run has been shown, so that a turn piped into it repeats
// nothing.
type shown struct {
	assistant string
	observe   groupconfig.Observe
	prompted  bool
	through   int64          // the last decision shown
	rows      map[int64]bool // messages shown, in a batch or as reply chain
	recent    int64          // the recent lines of the chat up to this row
}

// promptText is a built prompt and the session it is for.
type promptText struct {
	text    string
	session string
}

// prompt builds a turn's prompt, retrying while the database fails.
func (r *run) prompt(t *msg.Turn) (p promptText, err error) {
	err = r.m.retryDB(r.m.ctx, "read turn", func() (err error) {
		facts, err := r.m.st.PromptFacts(r.m.ctx, t, r.row.ID, r.shown.recent)
		if err != nil {
			return err
		}
		if err = r.announceLater(t, &facts); err != nil {
			return err
		}
		p, err = r.assemble(t, facts)
		return err
	})
	return p, err
}

// announceFirst queues the system messages of a run's first turn, and claims those
// that wait for the folder's next prompt.
func (r *run) announceFirst(tx *store.Tx, t *msg.Turn) error {
	session, err := tx.Session(r.m.ctx, t.Folder, t.Topic)
	if err != nil {
		return err
	}
	if session == "" {
		body, err := r.m.pastSessions(tx, t, r.row.ID)
		if err != nil {
			return err
		}
		if err := r.m.announce(tx, t, "new_session", body); err != nil {
			return err
		}
	}
	r.announcedDate = r.m.today()
	return r.m.announceDay(tx, t)
}

// announce queues a system message for the prompt of t, unless an earlier attempt
// at t has queued it.
func (m *Manager) announce(tx *store.Tx, t *msg.Turn, event, body string) error {
	const origin = "gated"
	claimed, err := tx.TurnSystemMessages(m.ctx, t.ID)
	if err != nil || slices.ContainsFunc(claimed, func(s store.SystemMessage) bool { return s.Origin == origin && s.Event == event }) {
		return err
	}
	return tx.PutSystemMessage(t.Folder, origin, event, body, m.now())
}

// announceLater does the same for piped turns, and writes only if there is
// anything to announce.
func (r *run) announceLater(t *msg.Turn, facts *store.PromptFacts) error {
	if !r.started || !facts.SystemWaits && r.announcedDate == r.m.today() {
		return nil
	}
	err := r.m.st.Write(r.m.ctx, func(tx *store.Tx) error { return r.m.announceDay(tx, t) })
	if err == nil {
		r.announcedDate, facts.HasSystem = r.m.today(), true
	}
	return err
}

func (m *Manager) announceDay(tx *store.Tx, t *msg.Turn) error {
	last, err := tx.LastTurnAt(m.ctx, t.Folder, t.ID)
	if err != nil {
		return err
	}
	if last != 0 && time.UnixMilli(last).In(m.cfg.Location).Format(time.DateOnly) != m.today() {
		body := m.cfg.Now().In(m.cfg.Location).Format("Today is Monday, 2 January 2006.")
		if err := m.announce(tx, t, "new_day", body); err != nil {
			return err
		}
	}
	return tx.ClaimSystemMessages(t.Folder, t.ID)
}

func (m *Manager) today() string { return m.cfg.Now().In(m.cfg.Location).Format(time.DateOnly) }

// endings are what the results of session_log mean.
var endings = map[string]string{"ok": "regular", "error": "the agent failed"}

// pastSessions is the text about earlier sessions for a new one.
func (m *Manager) pastSessions(tx *store.Tx, t *msg.Turn, runID int64) (string, error) {
	past, err := tx.PastSessions(m.ctx, t.Folder, t.Topic, runID, pastSessions)
	if err != nil {
		return "", err
	}
	if len(past) == 0 {
		return "This is the first session of this topic.", nil
	}
	why := "It was ended, by /new for example, or the agent stored no session."
	if past[0].Result == "error" {
		why = "The last one was lost because the agent failed; the chat knows."
	}
	var b strings.Builder
	b.WriteString("This session is new: you do not remember the earlier ones of this topic. " + why +
		"\nBefore you ask users again, look into the files of your folder and, if you have tools for it, into the history of the chat." +
		"\nThe earlier ones, newest first:")
	at := func(ms int64) string { return time.UnixMilli(ms).In(m.cfg.Location).Format(time.RFC3339) }
	for _, p := range past {
		fmt.Fprintf(&b, "\n- from %s", at(p.StartedAt))
		if p.EndedAt != 0 {
			b.WriteString(" to " + at(p.EndedAt))
		}
		fmt.Fprintf(&b, ", messages answered: %d, end: %s", p.MessageCount, cmp.Or(endings[p.Result], "open"))
	}
	return b.String(), nil
}

func (r *run) assemble(t *msg.Turn, facts store.PromptFacts) (p promptText, err error) {
	st := r.m.st
	in := prompt.Input{Turn: t, Kind: facts.Kind, Title: facts.Title, Operators: r.m.cfg.Operators, Location: r.m.cfg.Location}
	if in.Messages, err = st.TurnMessages(r.m.ctx, t.ID); err != nil {
		return p, err
	}
	if err = r.m.linkFiles(t.Folder, in.Messages); err != nil {
		return p, err
	}
	if facts.HasSystem {
		system, err := st.TurnSystemMessages(r.m.ctx, t.ID)
		if err != nil {
			return p, err
		}
		for _, s := range system {
			in.System = append(in.System, prompt.SystemLine{Origin: s.Origin, Event: s.Event, Body: s.Body})
		}
	}
	group, err := r.group(facts.Groups)
	if err != nil {
		return p, err
	}
	if !r.started {
		if p.session, err = st.Session(r.m.ctx, t.Folder, t.Topic); err != nil {
			return p, err
		}
	}
	begins := !r.started && p.session == ""
	if err = r.chatContext(t, group, facts.Unseen, begins, &in); err != nil {
		return p, err
	}
	through, err := r.observe(t, group, facts.LastDecision, &in)
	if err != nil {
		return p, err
	}
	r.remember(group, through, &in)
	r.shownThrough[t.ID] = through
	p.text = prompt.Build(in)
	return p, nil
}

// chatContext adds what the chat has around the turn's messages: the reply chain and
// the recent lines. unseen says whether the chat has rows that the run does not know; begins
// whether the session is new.
func (r *run) chatContext(t *msg.Turn, g groupconfig.Config, unseen, begins bool, in *prompt.Input) error {
	reader := turncontext.Reader{Store: r.m.st.Reader}
	newest := turncontext.Newest(in.Messages)
	rows := in.Messages
	if begins {
		link, err := reader.ForkLink(r.m.ctx, t)
		if err != nil {
			return err
		}
		if link != nil {
			rows = append([]*msg.Message{link}, rows...)
		}
	}
	chain, err := reader.ReplyChain(r.m.ctx, rows, newest, func(id int64) bool { return r.shown.rows[id] })
	if err != nil {
		return err
	}
	in.ReplyChain, in.RowIDs = chain.Rows, chain.RowIDs
	if prompt.ShouldSkipContext(in.Messages) {
		return nil
	}
	if unseen {
		shown := turncontext.Shown{Upto: r.shown.recent, Rows: r.shown.rows, Own: func(turn int64) bool {
			_, own := r.shownThrough[turn]
			return own
		}}
		if in.ChannelContext, err = reader.Window(r.m.ctx, t, in.Messages, in.ReplyChain, shown, g.AssistantName); err != nil {
			return err
		}
	}
	r.shown.recent = max(r.shown.recent, newest)
	return nil
}

// remember records what the prompt shows.
func (r *run) remember(g groupconfig.Config, through int64, in *prompt.Input) {
	if r.shown.rows == nil {
		r.shown.rows = map[int64]bool{}
	}
	r.shown.prompted, r.shown.through, r.shown.assistant, r.shown.observe = true, through, g.AssistantName, g.Observe
	for _, m := range in.Messages {
		r.shown.rows[m.ID] = true
	}
	for _, m := range in.ReplyChain {
		r.shown.rows[m.ID] = true
	}
}

// observe adds the rows of other chats that the session has not seen, and returns
// the last decision that it has now seen. through is the last decision there is.
func (r *run) observe(t *msg.Turn, g groupconfig.Config, through int64, in *prompt.Input) (int64, error) {
	after := r.shown.through
	if !r.shown.prompted {
		var err error
		if after, err = r.m.st.ShownUpto(r.m.ctx, t.Folder, t.Topic); err != nil {
			return 0, err
		}
	}
	if g.Observe == groupconfig.ObserveNone || prompt.ShouldSkipContext(in.Messages) {
		return after, nil
	}
	var since int64
	if after == 0 {
		since = r.m.cfg.Now().Add(-observedSince).UnixMilli()
	}
	rows, left, err := r.m.st.Observed(r.m.ctx, t.Folder, t.ChatJID, after, since, g.Observe == groupconfig.ObserveShared, observedRows)
	if err != nil {
		return 0, err
	}
	for _, row := range rows { // rows may have been decided since
		through = max(through, row.DecisionSeq)
	}
	in.Observed = turncontext.Bound(rows)
	in.ObservedLeft = left + len(rows) - len(in.Observed)
	in.ChatTitles, err = turncontext.Reader{Store: r.m.st.Reader}.Titles(r.m.ctx, rows)
	return through, err
}

// group is the group's current configuration, read again at a new version; while
// that is invalid, the one that the run began with.
func (r *run) group(version int64) (groupconfig.Config, error) {
	if version == r.current.version {
		return r.current.Config, nil
	}
	own, problems, err := r.m.groupConfig(r.row.Folder)
	if err != nil {
		return r.setup.Config, err
	}
	now := r.setup.Config
	if problems == nil {
		now = own.Over(r.m.cfg.Defaults)
		r.configChanged = !now.RunsLike(r.setup.Config)
	}
	r.current = currentConfig{now, version}
	return now, nil
}

// currentConfig is a group's configuration as it was at a version, 0 for none.
type currentConfig struct {
	groupconfig.Config
	version int64
}
