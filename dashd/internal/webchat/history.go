package webchat

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"arizuko/dashd/internal/rows"
	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/store"
)

const (
	defaultPage = 50
	maxPage     = 200
	// maxHistory is about how large an answer is, in bytes: its first row may be larger.
	maxHistory = 1 << 20
	// maxShown is how much of a message is shown, in bytes: more than users may type, and than agents
	// may answer at once. In JSON that may be 4 MiB, if all of it needs escaping twice.
	maxShown = 256 << 10
	// readAtOnce bounds the rows in memory; the store returns fewer if they are large.
	readAtOnce = 8
	maxQuote   = 120 // bytes
)

// form is how a client gets rows.
type form struct {
	// page leaves out the text of rows that have HTML, and the options of polls from their HTML.
	page  bool
	voter string // whose votes in polls are shown
}

func (c *Chat) formOf(r *http.Request) form {
	voter, _ := c.Sender(r)
	return form{page: r.URL.Query().Get("view") == "page", voter: voter}
}

// message is a row as pages see it.
type message struct {
	ID         int64         `json:"id"`
	Direction  msg.Direction `json:"direction"`
	Topic      string        `json:"topic"`
	Sender     string        `json:"sender"`
	SenderName string        `json:"sender_name"`
	Source     string        `json:"source"`
	Quote      string        `json:"quote,omitempty"` // of a notice: the beginning of the message that it is about
	Content    *string       `json:"content,omitempty"`
	HTML       string        `json:"html,omitempty"` // of outbound rows, safe to insert
	Timestamp  int64         `json:"timestamp"`
	TurnID     *int64        `json:"turn_id"`
	Edited     bool          `json:"edited,omitempty"`
	Deleted    bool          `json:"deleted,omitempty"`    // without text then
	Undone     bool          `json:"undone,omitempty"`     // a user's, whose turn was taken back
	Failed     string        `json:"failed,omitempty"`     // a user's: why it gets no answer, in words, if no notice says it
	MovedTo    string        `json:"moved_to,omitempty"`   // a user's: the topic to which "#topic text" sent it
	MovedFrom  int64         `json:"moved_from,omitempty"` // the row that was moved to this one
	Reactions  []string      `json:"reactions,omitempty"`  // of agents
	Files      []file        `json:"files,omitempty"`
	Poll       *poll         `json:"poll,omitempty"`     // of a poll, to vote in it
	Question   *question     `json:"question,omitempty"` // of an open question of an agent, to answer it
	UndoMS     int64         `json:"undo_ms,omitempty"`  // for how long it has a button that takes its turn back
	// Change is the row that has changed this one, in an answer to a request for news; 0 for a new row.
	Change int64 `json:"change,omitempty"`
}

// onPage returns a row as pages see it, with its changes.
func (c *Chat) onPage(ctx context.Context, m *msg.Message, as form) (message, error) {
	changes, err := rows.Changes(ctx, c.Store.Reader, m)
	if err != nil {
		return message{}, err
	}
	shown := message{
		ID: m.ID, Direction: m.Direction, Topic: m.Topic, Sender: m.Sender, SenderName: m.SenderName,
		Source: m.Source, Timestamp: m.Timestamp, Files: c.filesOf(m),
	}
	end := ""
	if m.Direction == msg.In {
		ends, err := factrows.TurnEnds(ctx, c.Store.Reader, []*msg.Message{m})
		if end = ends[m.ID]; err != nil {
			return message{}, err
		}
		shown.Undone = end == factrows.TakenBack
		shown.MovedFrom = m.DerivedFrom
		if shown.MovedTo, err = rows.WebMoved(ctx, c.Store.Reader, m); err != nil {
			return message{}, err
		}
	}
	text, open, err := c.poll(ctx, m, as)
	if err != nil {
		return message{}, err
	}
	shown.Poll = open
	if shown.Question, err = c.openQuestion(ctx, m); err != nil {
		return message{}, err
	}
	content := shorten(shown.apply(text, changes))
	if !shown.Undone && slices.Contains(shown.Reactions, string(msg.MarkUnanswered)) {
		shown.Failed = end
	}
	shown.Content = &content
	if m.TurnID != 0 {
		shown.TurnID = &m.TurnID
	}
	if m.Direction == msg.Out {
		if !shown.Deleted {
			if shown.UndoMS, err = c.undoMS(ctx, m); err != nil {
				return message{}, err
			}
		}
		if shown.Quote, err = c.quote(ctx, m); err != nil {
			return message{}, err
		}
		shown.HTML = render.HTML(content)
		shown.SenderName = cmp.Or(m.SenderName, c.Assistant)
		if as.page {
			shown.Content = nil
		}
	}
	return shown, nil
}

// quote returns the first words of the message that a notice is about: others may have come between them.
func (c *Chat) quote(ctx context.Context, m *msg.Message) (string, error) {
	if m.Source != msg.SourceNotice || m.ReplyToID == "" {
		return "", nil
	}
	about, err := c.Store.MessageByPlatformID(ctx, m.ChatJID, m.ReplyToID)
	if err != nil || about == nil {
		return "", err
	}
	text := strings.Join(strings.Fields(about.Content), " ")
	if kept := store.Truncate(text, maxQuote); kept != text {
		return kept + "…", nil
	}
	return text, nil
}

// apply returns a row's text after its changes, and notes them.
func (s *message) apply(content string, changes []*msg.Message) string {
	for _, change := range changes {
		switch change.Kind {
		case msg.KindEdit:
			content, s.Edited = change.Content, true
		case msg.KindDelete:
			s.Deleted = true
		case msg.KindReaction:
			emoji, remove := strings.CutPrefix(change.Content, "-")
			s.Reactions = slices.DeleteFunc(s.Reactions, func(shown string) bool { return shown == emoji })
			if !remove {
				s.Reactions = append(s.Reactions, emoji)
			}
		}
	}
	if s.Deleted {
		s.Files, s.Reactions, s.Poll, s.Question, content = nil, nil, nil, nil, ""
	}
	return content
}

// shorten cuts a message at maxShown, and says so.
func shorten(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return fmt.Sprintf("%s\n\n[cut: the message has %d bytes]", store.Truncate(text, maxShown), len(text))
}

// historyPage is the request of a page, and the rows that answer it.
type historyPage struct {
	form
	topic  *string // nil for all
	before int64   // row id
	limit  int

	rows []json.RawMessage
	size int // of rows, in bytes
}

// add adds a row, unless the answer is full.
func (p *historyPage) add(shown *message) (added bool, err error) {
	row, err := json.Marshal(shown)
	if err != nil || len(p.rows) == p.limit || len(p.rows) > 0 && p.size+len(row) > maxHistory {
		return false, err
	}
	p.rows, p.size = append(p.rows, row), p.size+len(row)
	return true, nil
}

func readHistoryPage(query url.Values) (p historyPage, err error) {
	if p.before, err = number(query.Get("before"), 1<<62); err != nil {
		return p, apierr.New(apierr.BadRequest, "before: must be the id of a message")
	}
	limit, err := number(query.Get("limit"), defaultPage)
	if err != nil {
		return p, apierr.New(apierr.BadRequest, "limit: must be a number up to %d", maxPage)
	}
	p.limit, p.rows = int(min(max(limit, 1), maxPage)), []json.RawMessage{} // never null
	if query.Has("topic") {
		p.topic = new(query.Get("topic"))
	}
	return p, nil
}

func number(text string, unset int64) (int64, error) {
	if text == "" {
		return unset, nil
	}
	return strconv.ParseInt(text, 10, 64)
}

// History answers with a page of stored messages, oldest first: the newest that fit. With a parameter "after" it
// answers with the news since then.
func (c *Chat) History(w http.ResponseWriter, r *http.Request, g *msg.Group) error {
	if r.URL.Query().Has("after") {
		return c.newRows(w, r, g)
	}
	page, err := readHistoryPage(r.URL.Query())
	if err != nil {
		return err
	}
	page.form = c.formOf(r)
	more, err := c.history(r.Context(), JID(g.Folder), &page)
	if err != nil {
		return err
	}
	slices.Reverse(page.rows)
	page.write(w, map[string]any{"more": more})
	return nil
}

// write answers with the rows, and further fields.
func (p *historyPage) write(w http.ResponseWriter, answer map[string]any) {
	answer["messages"] = p.rows
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // it fails only if the client has gone away
}

// history adds the newest rows before one to a page, the newest first, and returns whether there are older ones.
func (c *Chat) history(ctx context.Context, jid string, page *historyPage) (more bool, err error) {
	before := page.before
	for {
		count := min(readAtOnce, page.limit-len(page.rows)+1) // one more, to know whether there are more
		batch, more, err := rows.WebHistory(ctx, c.Store.Reader, jid, page.topic, before, count)
		if err != nil {
			return false, err
		}
		for _, m := range slices.Backward(batch) {
			shown, err := c.onPage(ctx, m, page.form)
			if err != nil {
				return false, err
			}
			if added, err := page.add(&shown); !added {
				return true, err
			}
			before = m.ID
		}
		if !more {
			return false, nil
		}
	}
}

// newRows answers with the rows after an id and the rows that have changed since, oldest first. The answer is
// bounded as a page of the history is; "next" is the id to continue after, "more" says whether to ask again at once.
func (c *Chat) newRows(w http.ResponseWriter, r *http.Request, g *msg.Group) error {
	query := r.URL.Query()
	if query.Has("before") || query.Has("topic") {
		return apierr.New(apierr.BadRequest, "after: takes neither before nor topic")
	}
	after, err := number(query.Get("after"), -1)
	if err != nil || after < 0 {
		return apierr.New(apierr.BadRequest, "after: must be the id of a message")
	}
	page, err := readHistoryPage(query)
	if err != nil {
		return err
	}
	end, err := c.Store.LastMessageID(r.Context())
	if err != nil {
		return err
	}
	if after > end {
		return apierr.New(apierr.Conflict, "after: there is no message %d, the newest is %d: "+
			"the database was restored. Read the history again", after, end)
	}
	page.form = c.formOf(r)
	next, more, err := c.after(r.Context(), JID(g.Folder), after, &page)
	if err != nil {
		return err
	}
	page.write(w, map[string]any{"next": next, "more": more})
	return nil
}

// after adds the rows after one to a page, the oldest first. It returns the id to continue after, and whether there are
// more already.
func (c *Chat) after(ctx context.Context, jid string, after int64, page *historyPage) (next int64, more bool,
	err error) {
	for {
		batch, end, more, err := rows.WebAfter(ctx, c.Store.Reader, jid, after, readAtOnce)
		if err != nil {
			return 0, false, err
		}
		for _, m := range batch {
			shown, err := c.newRow(ctx, m, page.form)
			if err != nil {
				return 0, false, err
			}
			if shown != nil {
				if added, err := page.add(shown); !added {
					return after, true, err
				}
			}
			after = m.ID
		}
		if after = end; !more {
			return after, false, nil
		}
	}
}

// newRow returns what pages show for a row: itself, or the row of its chat that it changes; nil if that is gone.
func (c *Chat) newRow(ctx context.Context, m *msg.Message, as form) (*message, error) {
	if !m.Kind.Changes() || m.Direction != msg.Out {
		shown, err := c.onPage(ctx, m, as)
		return &shown, err
	}
	row, err := rows.Changed(ctx, c.Store.Reader, m)
	if err != nil || row == nil || row.ChatJID != m.ChatJID {
		return nil, err
	}
	shown, err := c.onPage(ctx, row, as)
	shown.Change = m.ID
	return &shown, err
}
