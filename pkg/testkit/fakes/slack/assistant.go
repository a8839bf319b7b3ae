package slack

import (
	"slices"
	"time"
)

const (
	maxPrompts = 4 // as many suggestions does a pane show
	// statusLife is after what time Slack takes a status away by itself.
	statusLife = 2 * time.Minute
)

// Pane is one thread of the assistant's pane.
type Pane struct {
	Title   string
	Status  string
	Prompts []Prompt
	context string // the channel the person looks at
	since   time.Time
}

// Prompt is a suggestion in a pane.
type Prompt struct {
	Title   string `json:"title"`
	Message string `json:"message"`
}

// Status is one setting of a thread's status; "" takes it away. Posting to the thread takes
// it away too, and that stands here as well.
type Status struct {
	At        time.Time
	ChannelID string
	ThreadTS  string
	Text      string
	Posted    bool // it went because the bot posted
}

// pane is the thread of a request; any thread of a DM is one.
func (s *Server) pane(p params) (*room, *Pane, error) {
	r := s.rooms[p.str("channel_id")]
	switch {
	case r == nil || !s.sees(r):
		return nil, nil, word("channel_not_found")
	case r.Kind != DM:
		return nil, nil, word("method_not_supported_for_channel_type")
	case r.find(p.str("thread_ts")) == nil:
		return nil, nil, word("invalid_thread_ts")
	}
	return r, r.paneOf(p.str("thread_ts")), nil
}

func (r *room) paneOf(ts string) *Pane {
	if r.panes[ts] == nil {
		r.panes[ts] = &Pane{}
	}
	return r.panes[ts]
}

func (s *Server) setStatus(p params) (any, error) {
	r, pane, err := s.pane(p)
	if err != nil {
		return nil, err
	}
	pane.Status, pane.since = p.str("status"), time.Now()
	s.noteStatus(r, p.str("thread_ts"), pane.Status, false)
	return done{OK: true}, nil
}

func (s *Server) noteStatus(r *room, ts, text string, posted bool) {
	s.statuses = append(s.statuses, Status{At: time.Now(), ChannelID: r.ID, ThreadTS: ts, Text: text, Posted: posted})
}

// quiet takes the status away from a thread in which the bot has posted.
func (r *room) quiet(threadTS string, s *Server) {
	if pane := r.panes[threadTS]; pane != nil && pane.Status != "" {
		pane.Status = ""
		s.noteStatus(r, threadTS, "", true)
	}
}

func (s *Server) setTitle(p params) (any, error) {
	r, pane, err := s.pane(p)
	switch {
	case err != nil:
		return nil, err
	case p.str("title") == "":
		return nil, word("invalid_arguments")
	}
	pane.Title = p.str("title")
	root := r.find(p.str("thread_ts"))
	before := root.shown()
	root.Assistant = encoded(map[string]string{"title": pane.Title})
	s.tellChanged(r, root, before) // without edited: nobody wrote
	return done{OK: true}, nil
}

func (s *Server) setPrompts(p params) (any, error) {
	_, pane, err := s.pane(p)
	if err != nil {
		return nil, err
	}
	var prompts []Prompt
	found, valid := p.json("prompts", &prompts)
	if !found || !valid || len(prompts) > maxPrompts || slices.ContainsFunc(prompts, func(p Prompt) bool { return p.Title == "" || p.Message == "" }) {
		return nil, word("invalid_arguments")
	}
	pane.Prompts = prompts
	return done{OK: true}, nil
}

// OpenPane opens the assistant's pane: a new thread in the DM, which the returned Place is.
// The context is the channel the person looks at, or the zero Place.
func (s *Server) OpenPane(by User, context Place) Place {
	dm := s.DM(by)
	dm.act(func(r *room) error {
		m := s.add(r, s.bot(&Message{Subtype: "assistant_app_thread", Text: "New Assistant Thread"}), "")
		m.ThreadTS = m.TS
		dm.ThreadTS = m.TS
		r.paneOf(m.TS).context = context.ChannelID
		s.tellPane("assistant_thread_started", r, m.TS, by)
		return nil
	})
	return dm
}

// SwitchContext moves the person's look to another channel, which becomes the context of the pane.
func (p Place) SwitchContext(by User, context Place) {
	p.act(func(r *room) error {
		r.paneOf(p.ThreadTS).context = context.ChannelID
		p.s.tellPane("assistant_thread_context_changed", r, p.ThreadTS, by)
		return nil
	})
}

func (s *Server) tellPane(kind string, r *room, ts string, by User) {
	looks := map[string]any{}
	if at := r.panes[ts].context; at != "" {
		looks = map[string]any{"channel_id": at, "team_id": teamID, "enterprise_id": nil}
	}
	s.emit(kind, "assistant:write", map[string]any{
		"type": kind, "event_ts": s.nextTS(),
		"assistant_thread": map[string]any{"user_id": by.ID, "context": looks, "channel_id": r.ID, "thread_ts": ts},
	})
}

// Pane is what the bot has made of a pane's thread.
func (p Place) Pane() Pane {
	var shown Pane
	p.act(func(r *room) error {
		if pane := r.panes[p.ThreadTS]; pane != nil {
			shown = *pane
			if time.Since(pane.since) > statusLife {
				shown.Status = ""
			}
		}
		return nil
	})
	return shown
}

// Statuses are all settings of statuses, oldest first.
func (s *Server) Statuses() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.statuses)
}
