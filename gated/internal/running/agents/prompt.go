package agents

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/shown/turncontext"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// pastSessions is how many former sessions a new one is shown.
const pastSessions = 3

// prompts are those that the agent of a run gets. The run's goroutine owns them.
type prompts struct {
	*runInfo
	files     *files
	settings  *settings
	turns     *turns
	started   bool              // the first one is sent
	shown     turncontext.Shown // in all of them
	announced string            // the date that was given last
}

// facts reads the facts for a turn's prompt and the settings of now, retrying while the database fails.
func (p *prompts) facts(t *msg.Turn) (facts rows.PromptFacts, err error) {
	err = p.env.retryDB(p.env.ctx, "read turn", func() (err error) {
		facts, err = rows.ReadPromptFacts(p.env.ctx, p.env.st.Reader, t, p.row.ID, p.shown.Upto, p.shown.Through)
		if err == nil {
			_, err = p.settings.at(facts.Groups)
		}
		return err
	})
	return facts, err
}

// build builds a turn's prompt, retrying while the database fails. session is the one to resume, if it is the first
// prompt.
func (p *prompts) build(t *msg.Turn, facts rows.PromptFacts) (text, session string, err error) {
	err = p.env.retryDB(p.env.ctx, "build prompt", func() (err error) {
		if err = p.announceLater(t, &facts); err != nil {
			return err
		}
		text, session, err = p.assemble(t, facts)
		return err
	})
	return text, session, err
}

// announceFirst queues the system messages of a run's first turn, and claims those
// that wait for the folder's next prompt.
func (p *prompts) announceFirst(tx *store.Tx, t *msg.Turn) error {
	session, err := rows.AgentSession(p.env.ctx, tx.Reader, t.Folder, t.Topic, p.row.Agent)
	if err != nil {
		return err
	}
	last, known, err := rows.LastAgent(p.env.ctx, tx.Reader, t.Folder, t.Topic, p.row.ID)
	if err != nil {
		return err
	}
	switched := known && last != p.row.Agent
	switch {
	case session == "":
		body, err := p.pastSessions(tx, t, switched)
		if err != nil {
			return err
		}
		if err := p.announce(tx, t, "new_session", body); err != nil {
			return err
		}
	case switched:
		if err := p.announce(tx, t, "agent_switched", fmt.Sprintf(textSwitchedBack,
			groupconfig.AgentTitle(last))); err != nil {
			return err
		}
	}
	p.announced = p.env.today()
	return p.announceDay(tx, t)
}

// announce queues a system message for the prompt of t, unless an earlier attempt
// at t has queued it.
func (p *prompts) announce(tx *store.Tx, t *msg.Turn, event, body string) error {
	const origin = "gated"
	claimed, err := rows.TurnSystemMessages(p.env.ctx, tx.Reader, t.ID)
	if err != nil || slices.ContainsFunc(claimed, func(s rows.SystemMessage) bool {
		return s.Origin == origin &&
			s.Event == event
	}) {
		return err
	}
	return tx.PutSystemMessage(t.Folder, origin, event, body, p.env.now())
}

// announceLater does the same for piped turns, and writes only if there is
// anything to announce.
func (p *prompts) announceLater(t *msg.Turn, facts *rows.PromptFacts) error {
	if !p.started || !facts.SystemWaits && p.announced == p.env.today() {
		return nil
	}
	err := p.env.st.WriteIn(p.env.ctx, p.scope(), func(tx *store.Tx) error { return p.announceDay(tx, t) })
	if err == nil {
		p.announced, facts.HasSystem = p.env.today(), true
	}
	return err
}

func (p *prompts) announceDay(tx *store.Tx, t *msg.Turn) error {
	last, err := rows.LastTurnAt(p.env.ctx, tx.Reader, t.Folder, t.ID)
	if err != nil {
		return err
	}
	if last != 0 && time.UnixMilli(last).In(p.env.cfg.Location).Format(time.DateOnly) != p.env.today() {
		body := p.env.cfg.Now().In(p.env.cfg.Location).Format("Today is Monday, 2 January 2006.")
		if err := p.announce(tx, t, "new_day", body); err != nil {
			return err
		}
	}
	return rows.ClaimSystemMessages(tx, t.Folder, t.ID)
}

func (e *env) today() string { return e.cfg.Now().In(e.cfg.Location).Format(time.DateOnly) }

// endings are the results of session_log in words.
var endings = map[string]string{"ok": "regular", "error": "the agent failed"}

// textSwitchedBack is for an agent whose session goes on after another agent has answered in its topic.
const textSwitchedBack = "An operator has switched the group back to you: since your last answer in this topic the " +
	"agent %q has answered here. You do not remember that part of the conversation: the last messages are " +
	"in the recent channel context; for more look into the files of your folder and, if you have tools for it, " +
	"into the history of the chat."

// pastSessions is the text about earlier sessions for a new one. switched: another agent has had the last of them.
func (p *prompts) pastSessions(tx *store.Tx, t *msg.Turn, switched bool) (string, error) {
	all, err := rows.PastSessions(p.env.ctx, tx.Reader, t.Folder, t.Topic, p.row.ID, pastSessions)
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "This is the first session of this topic.", nil
	}
	undone, err := rows.LastIsUndone(p.env.ctx, tx.Reader, t.Folder, t.Topic, t.ID)
	if err != nil {
		return "", err
	}
	why := "It was ended, by /new for example, or the agent stored no session."
	switch {
	case switched:
		why = "An operator has switched the group to you from another agent, with whom the conversation " +
			"was until now: go on with it. The last messages are in the recent channel context."
	case all[0].Result == "error":
		why = "The last one was lost because the agent failed; the chat knows."
	case undone:
		why = "The last exchange was taken back by /undo, and the session could not be continued without it: " +
			"go on from the last messages in the recent channel context."
	}
	var b strings.Builder
	b.WriteString("This session is new: you do not remember the earlier ones of this topic. " + why +
		"\nBefore you ask users again, look into the files of your folder and, if you have tools for it, " +
		"into the history of the chat.\nThe earlier ones, newest first:")
	at := func(ms int64) string { return time.UnixMilli(ms).In(p.env.cfg.Location).Format(time.RFC3339) }
	for _, s := range all {
		fmt.Fprintf(&b, "\n- from %s", at(s.StartedAt))
		if s.EndedAt != 0 {
			b.WriteString(" to " + at(s.EndedAt))
		}
		if s.Agent != p.row.Agent {
			fmt.Fprintf(&b, ", of the agent %q", groupconfig.AgentTitle(s.Agent))
		}
		fmt.Fprintf(&b, ", messages answered: %d, end: %s", s.MessageCount, cmp.Or(endings[s.Result], "open"))
	}
	return b.String(), nil
}

func (p *prompts) assemble(t *msg.Turn, facts rows.PromptFacts) (text, session string, err error) {
	q := turncontext.Request{Turn: t, Facts: facts, Shown: p.shown, Moment: turncontext.Now(p.env.cfg.Now())}
	q.Shown.Own = func(turn int64) bool {
		_, own := p.turns.prompted[turn]
		return own
	}
	if q.Group, err = p.settings.at(facts.Groups); err != nil {
		return "", "", err
	}
	if !p.started {
		if session, err = rows.AgentSession(p.env.ctx, p.env.st.Reader, t.Folder, t.Topic, p.row.Agent); err != nil {
			return "", "", err
		}
		q.NewSession = session == ""
	}
	reader := turncontext.Reader{
		Store: p.env.st.Reader, Operators: p.env.cfg.Operators, Location: p.env.cfg.Location, Names: p.env.cfg.Names,
		Files: p.files.link,
	}
	made, err := reader.Read(p.env.ctx, q)
	if err != nil {
		return "", "", err
	}
	p.shown.Add(&made)
	p.turns.prompted[t.ID] = made.Through
	return made.Text, session, nil
}

// settings are the configuration of a run's group as it is by now. The run's goroutine owns them.
type settings struct {
	*runInfo
	groups  *groups
	now     groupconfig.Config
	version int64 // of now, 0 for none
	changed bool  // its agents are run differently than the run's
}

// at is the configuration at a version, read again unless it is known; while that is invalid, the one that the run
// began with.
func (s *settings) at(version int64) (groupconfig.Config, error) {
	if version == s.version {
		return s.now, nil
	}
	now, err := s.read()
	if err == nil {
		s.now, s.version = now, version
	}
	return now, err
}

// read reads the configuration, and notes whether agents are run differently by now.
func (s *settings) read() (groupconfig.Config, error) {
	own, problems, err := s.groups.config(s.row.Folder)
	if err != nil || problems != nil {
		return s.setup.Config, err
	}
	now := own.Over(s.env.cfg.Defaults)
	s.changed = !now.RunsLike(s.setup.Config)
	return now, nil
}

// reconfigure ends the run once its turns are answered if its group's agents are run differently by now: the next turn
// is for another run.
func (r *run) reconfigure() {
	if r.agent.ending() {
		return
	}
	if _, err := r.settings.read(); err == nil && r.settings.changed { // else the next turn reads it
		r.env.log.Info("run ends: the configuration of its group has changed", "run", r.row.ID, "folder", r.row.Folder)
		r.drain()
	}
}
