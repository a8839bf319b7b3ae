package slack

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	maxStreamText = 12_000 // characters of markdown in a call
	// streamLifetime is the time after which Slack ends a stream by itself, even while it is appended to. It is not
	// documented: about five minutes were seen.
	streamLifetime = 5 * time.Minute
)

// Stream is a message that is, or was, written piece by piece.
type Stream struct {
	Plan  string       // title
	Tasks []StreamTask // in the order of their first updates
	Text  string       // markdown

	since        time.Time
	stopped      bool
	stoppedBy    string // the user who stopped it, "" for none
	usesChunks   bool
	usesMarkdown bool
}

// StreamTask is a task of a stream.
type StreamTask struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Status string `json:"status"` // pending, in_progress, complete or error
}

func (t *Stream) open() bool { return t != nil && !t.stopped && time.Since(t.since) < streamLifetime }

// chunk is a piece of a stream.
type chunk struct {
	Type string `json:"type"`
	Text string `json:"text"`
	StreamTask
}

func (c *chunk) valid() bool {
	switch c.Type {
	case "markdown_text":
		return c.Text != ""
	case "task_update":
		return c.ID != "" && c.Title != "" &&
			slices.Contains([]string{"", "pending", "in_progress", "complete", "error"}, c.Status)
	case "plan_update":
		return c.Title != ""
	}
	return false
}

// chunks are the pieces of a request.
func (p params) chunks() (all []chunk, err error) {
	if _, valid := p.json("chunks", &all); !valid {
		return nil, errorCode("invalid_chunks")
	}
	size := 0
	for _, c := range all {
		if size += utf8.RuneCountInString(c.Text); !c.valid() {
			return nil, errorCode("invalid_chunks")
		}
	}
	if size+utf8.RuneCountInString(p.str("markdown_text")) > maxStreamText {
		return nil, errorCode("msg_too_long")
	}
	return all, nil
}

// take appends the text and chunks of a request to the stream. Text and chunks do not mix in one stream.
func (t *Stream) take(p params) error {
	chunks, err := p.chunks()
	if err != nil {
		return err
	}
	text := p.str("markdown_text")
	t.usesChunks, t.usesMarkdown = t.usesChunks || len(chunks) > 0, t.usesMarkdown || text != ""
	if t.usesChunks && t.usesMarkdown {
		return errorCode("streaming_mode_mismatch")
	}
	t.Text += text
	for _, c := range chunks {
		switch c.Type {
		case "markdown_text":
			t.Text += c.Text
		case "plan_update":
			t.Plan = c.Title
		case "task_update":
			t.update(c.StreamTask)
		}
	}
	return nil
}

func (t *Stream) update(task StreamTask) {
	i := slices.IndexFunc(t.Tasks, func(known StreamTask) bool { return known.ID == task.ID })
	if i < 0 {
		t.Tasks = append(t.Tasks, task)
		return
	}
	if task.Status == "" {
		task.Status = t.Tasks[i].Status
	}
	t.Tasks[i] = task
}

// shown is the message that shows the stream.
func (t *Stream) shown(m *Message) {
	m.Text, m.Streaming = t.Text, "in_progress"
	if !t.open() {
		m.Streaming = "completed"
	}
	blocks := []any{}
	if t.Plan != "" || len(t.Tasks) > 0 {
		blocks = append(blocks, fields{"type": "plan", "title": t.Plan, "tasks": t.Tasks})
	}
	if t.Text != "" {
		blocks = append(blocks, fields{"type": "markdown", "text": t.Text})
	}
	m.Blocks = encoded(blocks)
}

func (s *Server) startStream(p params) (any, error) {
	r, err := s.writable(p.str("channel"))
	if err != nil {
		return nil, err
	}
	root := r.root(p.str("thread_ts"))
	switch {
	case root == nil:
		return nil, errorCode("invalid_thread_ts")
	case root.isLocked:
		return nil, errorCode("restricted_action_thread_locked")
	case !slices.Contains([]string{"", "timeline", "plan"}, p.str("task_display_mode")):
		return nil, errorCode("invalid_arguments")
	}
	if r.Kind != DM {
		to, known := s.users[p.str("recipient_user_id")]
		switch {
		case p.str("recipient_user_id") == "":
			return nil, errorCode("missing_recipient_user_id")
		case p.str("recipient_team_id") == "":
			return nil, errorCode("missing_recipient_team_id")
		case !known || to.IsBot() || p.str("recipient_team_id") != teamID:
			return nil, errorCode("user_not_found")
		}
	}
	m := s.bot(&Message{stream: &Stream{since: time.Now()}})
	if err := m.stream.take(p); err != nil {
		return nil, err
	}
	m.stream.shown(m)
	s.say(r, m, root.TS)
	return posted{OK: true, Channel: r.ID, TS: m.TS}, nil
}

// streaming is the message of a request, which must be one that is being streamed.
func (s *Server) streaming(p params) (*room, *Message, error) {
	r, m, err := s.own(p, "message_not_owned_by_app")
	switch {
	case err != nil:
		return nil, nil, err
	case m.stream != nil && m.stream.stoppedBy != "":
		return nil, nil, errorCode("stopped_by_user")
	case !m.stream.open():
		return nil, nil, errorCode("message_not_in_streaming_state")
	}
	return r, m, nil
}

func (s *Server) appendStream(p params) (any, error) {
	r, m, err := s.streaming(p)
	if err != nil {
		return nil, err
	}
	if p.str("markdown_text") == "" && p.str("chunks") == "" {
		return nil, errorCode("no_text")
	}
	next := *m.stream
	next.Tasks = slices.Clone(next.Tasks)
	if err := next.take(p); err != nil {
		return nil, err
	}
	m.stream = &next
	m.stream.shown(m)
	return posted{OK: true, Channel: r.ID, TS: m.TS}, nil
}

// stopStream ends a stream, and emits the message as a change.
func (s *Server) stopStream(p params) (any, error) {
	r, m, err := s.streaming(p)
	if err != nil {
		return nil, err
	}
	if err := m.stream.take(p); err != nil {
		return nil, err
	}
	before := m.snapshot()
	m.stream.stopped = true
	m.stream.shown(m)
	s.emitChanged(r, m, before)
	shown := m.snapshot()
	return posted{OK: true, Channel: r.ID, TS: m.TS, Message: &shown}, nil
}

// ExpireStreams ends all streams, as Slack does after some minutes.
func (s *Server) ExpireStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rooms {
		for _, m := range r.messages {
			if m.stream.open() {
				m.stream.stopped = true
				m.stream.shown(m)
			}
		}
	}
}

// Stream is the content of a message of the place that is or was streamed; ok is false for any other message, and once
// it was updated.
func (p Place) Stream(ts string) (shown Stream, ok bool) {
	p.act(func(r *room) error {
		if m := r.find(ts); m != nil && m.stream != nil {
			shown, ok = *m.stream, true
			shown.Tasks = slices.Clone(shown.Tasks)
		}
		return nil
	})
	return shown, ok
}

// IsOpen reports whether a stream goes on.
func (t *Stream) IsOpen() bool { return t.open() }

// Lines are the plan and the tasks as a client shows them.
func (t *Stream) Lines() string {
	var lines []string
	if t.Plan != "" {
		lines = append(lines, t.Plan)
	}
	marks := map[string]string{"in_progress": "▸", "complete": "✓", "error": "✗"}
	for _, task := range t.Tasks {
		mark := marks[task.Status]
		if mark == "" {
			mark = "·"
		}
		lines = append(lines, mark+" "+task.Title)
	}
	return strings.Join(lines, "\n")
}
