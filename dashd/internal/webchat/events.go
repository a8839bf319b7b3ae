package webchat

import (
	"context"
	"net/http"
	"slices"

	"arizuko/dashd/internal/live"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/msg"
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
	c.Hub.Serve(w, r, live.Feed{Update: func(s *live.Stream) error {
		err := f.update(r.Context(), s)
		if err != nil && r.Context().Err() == nil {
			c.Shell.Log.Warn("event stream failed", "chat", f.jid, "err", err)
		}
		return err
	}})
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
	shown, isChange, err := f.chat.shown(ctx, m)
	if err != nil || shown == nil {
		return err
	}
	data, err := f.chat.onPage(ctx, shown, f.form)
	if err != nil {
		return err
	}
	event := "message"
	if isChange {
		event = "change"
	}
	return s.Event(event, m.ID, data)
}

// shown returns the row that pages show for a row: itself, or the one of its chat that it changes, nil if that is gone.
func (c *Chat) shown(ctx context.Context, m *msg.Message) (row *msg.Message, isChange bool, err error) {
	if !m.Kind.Changes() || m.Direction != msg.Out {
		return m, false, nil
	}
	row, err = rows.Changed(ctx, c.Store.Reader, m)
	if row != nil && row.ChatJID != m.ChatJID {
		row = nil
	}
	return row, true, err
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
