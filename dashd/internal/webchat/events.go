package webchat

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"arizuko/dashd/internal/live"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/apierr"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
)

// feed is the state of one page's event stream.
type feed struct {
	chat   *Chat
	folder string
	jid    string
	form   form
	last   int64 // id of the last row
	typing []string
	work   map[int64]rows.Work // that was sent, by turn
	// The page has seen a row that is not there, since the database was restored. The page is notified once.
	restored bool
}

// Events streams a chat: each message in the order of its row, messages that agents change, in which topics agents
// work, and what they say of it. The id of a change is that of its own row.
func (c *Chat) Events(w http.ResponseWriter, r *http.Request, g *msg.Group) error {
	end, err := rows.WebEnd(r.Context(), c.Store.Reader, JID(g.Folder))
	if err != nil {
		return err
	}
	last, err := lastSeen(r, end)
	if err != nil {
		return err
	}
	newest, err := c.Store.LastMessageID(r.Context())
	if err != nil {
		return err
	}
	f := &feed{chat: c, folder: g.Folder, jid: JID(g.Folder), form: c.formOf(r), last: last,
		work: map[int64]rows.Work{}}
	f.restored = last > newest
	if f.restored {
		f.last = end
	}
	c.Hub.Serve(w, r, 0, func(s *live.Stream) error { return f.update(r.Context(), s) })
	return nil
}

// lastSeen returns the id of the last message that the page has.
func lastSeen(r *http.Request, newest int64) (int64, error) {
	seen := r.Header.Get("Last-Event-ID")
	if seen == "" {
		seen = r.URL.Query().Get("after")
	}
	last, err := number(seen, newest)
	if err != nil || last < 0 {
		return 0, apierr.New(apierr.BadRequest, "Last-Event-ID, after: must be the id of a message")
	}
	return last, nil
}

// update sends the news.
func (f *feed) update(ctx context.Context, s *live.Stream) error {
	work, delivering, err := f.readWork(ctx)
	if err != nil {
		return err
	}
	if f.restored {
		f.restored = false
		if err := s.Event("restored", f.last, struct{}{}); err != nil {
			return err
		}
	}
	for {
		rows, next, more, err := rows.WebAfter(ctx, f.chat.Store.Reader, f.jid, f.last, readAtOnce)
		if err != nil {
			return err
		}
		for _, m := range rows {
			if err := f.send(ctx, s, m); err != nil {
				return err
			}
		}
		f.last = next
		if !more {
			break
		}
	}
	if err := f.updateTyping(ctx, s); err != nil {
		return err
	}
	return f.updateProgress(ctx, s, work, delivering)
}

// send sends a row: a message, or the message that it changes.
func (f *feed) send(ctx context.Context, s *live.Stream, m *msg.Message) error {
	data, err := f.chat.newRow(ctx, m, f.form)
	if err != nil || data == nil {
		return err
	}
	event := "message"
	if data.Change != 0 {
		event, data.Change = "change", 0 // the id of the event
	}
	return s.Event(event, m.ID, data)
}

// updateTyping sends the topics in which an agent works, if they have changed.
func (f *feed) updateTyping(ctx context.Context, s *live.Stream) error {
	working, err := rows.WebWorking(ctx, f.chat.Store.Reader)
	if err != nil {
		return err
	}
	typing := append([]string{}, working[f.jid]...) // never null in JSON
	if f.typing != nil && slices.Equal(typing, f.typing) {
		return nil
	}
	f.typing = typing
	return s.Event("typing", 0, map[string][]string{"topics": typing})
}

// stateEnded is the state of a turn that runs no longer.
const stateEnded agentproto.Status = "ended"

// progress is the work of an agent on a turn, as pages see it.
type progress struct {
	TurnID    int64             `json:"turn_id"`
	Topic     string            `json:"topic"`
	State     agentproto.Status `json:"state"` // running, idle, requires_action or ended
	Text      *string           `json:"text,omitempty"`
	HTML      string            `json:"html,omitempty"` // of the text, safe to insert
	Tools     []agentproto.Tool `json:"tools"`
	Plan      []agentproto.Step `json:"plan"`
	RunningMS int64             `json:"running_ms"`
	UpdatedAt int64             `json:"updated_at"` // unix ms
}

// progressOf is how much of the work a group's chat shows.
func progressOf(g *msg.Group) groupconfig.Progress {
	c, err := groupconfig.Parse(g.Config)
	if err != nil {
		return groupconfig.ProgressLive // routd says what is wrong
	}
	return cmp.Or(c.Progress, groupconfig.ProgressLive)
}

// Progress answers with the work of agents on the turns that run in a chat, and how much of it is shown.
func (c *Chat) Progress(w http.ResponseWriter, r *http.Request, g *msg.Group) error {
	shows, as := progressOf(g), c.formOf(r)
	turns := []progress{}
	if shows != groupconfig.ProgressOff {
		work, err := rows.ChatWork(r.Context(), c.Store.Reader, JID(g.Folder))
		if err != nil {
			return err
		}
		for _, each := range work {
			p, err := c.progress(r.Context(), each, shows, as)
			if err != nil {
				return err
			}
			if p != nil {
				turns = append(turns, *p)
			}
		}
	}
	httpx.JSON(w, http.StatusOK, map[string]any{"shows": shows, "turns": turns})
	return nil
}

// progress returns the work on a turn, nil if it is gone. In chats that show a line of status it has neither text nor
// plan beyond what the line needs.
func (c *Chat) progress(ctx context.Context, w rows.Work, shows groupconfig.Progress, as form) (*progress, error) {
	stored, err := c.Store.Progress(ctx, w.TurnID)
	if err != nil || stored == nil {
		return nil, err
	}
	p := &progress{
		TurnID: w.TurnID, Topic: w.Place, State: stored.State, Tools: stored.Tools, Plan: stored.Plan,
		RunningMS: max(0, c.Shell.Now().UnixMilli()-w.StartedAt), UpdatedAt: stored.UpdatedAt,
	}
	text := ""
	if shows == groupconfig.ProgressLive {
		text = shorten(stored.Text)
		p.HTML = render.HTML(text)
	}
	if !as.page {
		p.Text = &text
	}
	return p, nil
}

// readWork reads the work on the turns of the chat, and whether a row was being delivered after that. It must be read
// before the messages that are sent with it: these include the answer of a turn that has ended by then, unless a row
// was being delivered.
func (f *feed) readWork(ctx context.Context) (work []rows.Work, delivering bool, err error) {
	if work, err = rows.ChatWork(ctx, f.chat.Store.Reader, f.jid); err != nil || len(f.work) == 0 {
		return work, false, err
	}
	undelivered, err := rows.WebUndelivered(ctx, f.chat.Store.Reader)
	_, delivering = undelivered[f.jid]
	return work, delivering, err
}

// updateProgress sends the work that has changed, and which turns have ended.
func (f *feed) updateProgress(ctx context.Context, s *live.Stream, work []rows.Work, delivering bool) error {
	if len(work) == 0 && len(f.work) == 0 {
		return nil
	}
	g, err := f.chat.Store.Group(ctx, f.folder)
	if err != nil {
		return err
	}
	shows := groupconfig.ProgressOff
	if g != nil {
		shows = progressOf(g)
	}
	running := map[int64]bool{}
	for _, w := range work {
		running[w.TurnID] = true
		if before, sent := f.work[w.TurnID]; shows == groupconfig.ProgressOff ||
			sent && before.UpdatedAt == w.UpdatedAt {
			continue
		}
		p, err := f.chat.progress(ctx, w, shows, f.form)
		if err != nil {
			return err
		}
		if p == nil {
			continue
		}
		if err := s.Event("progress", 0, p); err != nil {
			return err
		}
		f.work[w.TurnID] = w
	}
	if delivering { // it may be the answer of a turn that has ended
		return nil
	}
	return f.endProgress(s, running)
}

// endProgress sends the end of turns that run no longer.
func (f *feed) endProgress(s *live.Stream, running map[int64]bool) error {
	for id, w := range f.work {
		if running[id] {
			continue
		}
		ended := progress{TurnID: id, Topic: w.Place, State: stateEnded, Tools: []agentproto.Tool{},
			Plan: []agentproto.Step{}, UpdatedAt: w.UpdatedAt}
		if !f.form.page {
			ended.Text = new("")
		}
		if err := s.Event("progress", 0, ended); err != nil {
			return err
		}
		delete(f.work, id)
	}
	return nil
}
