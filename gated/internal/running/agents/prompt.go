package agents

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"arizuko/gated/internal/shown/turncontext"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// pastSessions is how many former sessions a new one is shown.
const pastSessions = 3

// promptText is a built prompt and the session it is for.
type promptText struct {
	text    string
	session string
}

// prompt builds a turn's prompt, retrying while the database fails.
func (r *run) prompt(t *msg.Turn) (p promptText, err error) {
	err = r.m.retryDB(r.m.ctx, "read turn", func() (err error) {
		facts, err := r.m.st.PromptFacts(r.m.ctx, t, r.row.ID, r.shown.Upto)
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
	session, err := tx.AgentSession(r.m.ctx, t.Folder, t.Topic, r.row.Agent)
	if err != nil {
		return err
	}
	last, known, err := tx.LastAgent(r.m.ctx, t.Folder, t.Topic, r.row.ID)
	if err != nil {
		return err
	}
	switched := known && last != r.row.Agent
	switch {
	case session == "":
		body, err := r.m.pastSessions(tx, t, r.row, switched)
		if err != nil {
			return err
		}
		if err := r.m.announce(tx, t, "new_session", body); err != nil {
			return err
		}
	case switched:
		if err := r.m.announce(tx, t, "agent_switched", fmt.Sprintf(textSwitchedBack, groupconfig.AgentTitle(last))); err != nil {
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

// textSwitchedBack is for an agent whose session goes on after another agent has answered in its topic.
const textSwitchedBack = "An operator has switched the group back to you: since your last answer in this topic the agent %q has answered here. " +
	"You do not remember that part of the conversation: the last messages are in the recent channel context; " +
	"for more look into the files of your folder and, if you have tools for it, into the history of the chat."

// pastSessions is the text about earlier sessions for a new one. switched: another agent has had the last of them.
func (m *Manager) pastSessions(tx *store.Tx, t *msg.Turn, run msg.Run, switched bool) (string, error) {
	past, err := tx.PastSessions(m.ctx, t.Folder, t.Topic, run.ID, pastSessions)
	if err != nil {
		return "", err
	}
	if len(past) == 0 {
		return "This is the first session of this topic.", nil
	}
	why := "It was ended, by /new for example, or the agent stored no session."
	switch {
	case switched:
		why = "An operator has switched the group to you from another agent, with whom the conversation was until now: go on with it. " +
			"The last messages are in the recent channel context."
	case past[0].Result == "error":
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
		if p.Agent != run.Agent {
			fmt.Fprintf(&b, ", of the agent %q", groupconfig.AgentTitle(p.Agent))
		}
		fmt.Fprintf(&b, ", messages answered: %d, end: %s", p.MessageCount, cmp.Or(endings[p.Result], "open"))
	}
	return b.String(), nil
}

func (r *run) assemble(t *msg.Turn, facts store.PromptFacts) (p promptText, err error) {
	q := turncontext.Request{Turn: t, Facts: facts, Shown: r.shown, Moment: turncontext.Now(r.m.cfg.Now())}
	q.Shown.Own = func(turn int64) bool {
		_, own := r.shownThrough[turn]
		return own
	}
	if q.Group, err = r.group(facts.Groups); err != nil {
		return p, err
	}
	if !r.started {
		if p.session, err = r.m.st.AgentSession(r.m.ctx, t.Folder, t.Topic, r.row.Agent); err != nil {
			return p, err
		}
		q.NewSession = p.session == ""
	}
	reader := turncontext.Reader{
		Store: r.m.st.Reader, Operators: r.m.cfg.Operators, Location: r.m.cfg.Location, Names: r.m.cfg.Names, Files: r.m.linkFiles,
	}
	made, err := reader.Read(r.m.ctx, q)
	if err != nil {
		return p, err
	}
	r.shown.Add(&made)
	r.shownThrough[t.ID] = made.Through
	p.text = made.Text
	return p, nil
}

// group is the group's current configuration, read again at a new version; while
// that is invalid, the one that the run began with.
func (r *run) group(version int64) (groupconfig.Config, error) {
	if version == r.current.version {
		return r.current.Config, nil
	}
	now, err := r.readGroup()
	if err == nil {
		r.current = currentConfig{now, version}
	}
	return now, err
}

// readGroup reads the group's configuration, and notes whether agents are run differently by now.
func (r *run) readGroup() (groupconfig.Config, error) {
	own, problems, err := r.m.groupConfig(r.row.Folder)
	if err != nil || problems != nil {
		return r.setup.Config, err
	}
	now := own.Over(r.m.cfg.Defaults)
	r.configChanged = !now.RunsLike(r.setup.Config)
	return now, nil
}

// reconfigure ends the run once its turns are answered if its group's agents are run differently by now: the next turn is for
// another run.
func (r *run) reconfigure() {
	if r.stopping {
		return
	}
	if _, err := r.readGroup(); err == nil && r.configChanged { // else the next turn reads it
		r.m.log.Info("run ends: the configuration of its group has changed", "run", r.row.ID, "folder", r.row.Folder)
		r.drain()
	}
}

// currentConfig is a group's configuration as it was at a version, 0 for none.
type currentConfig struct {
	groupconfig.Config
	version int64
}
