package gateway

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

// batch is what a pass has read of one chat.
type batch struct {
	decide.Facts
	chat  *chat
	state decide.State // of the chat when it was read
	bytes int
	stale bool // the chat's rows have changed since
	// commands are those of the senders of commands and pins.
	commands map[string]*decide.Commands
	err      error
}

// needsRoutd reports whether a row needs an answer of routd.
func (b *batch) needsRoutd() bool {
	for i := range b.Rows {
		if b.Rows[i].Lookup(&b.Chat) != nil {
			return true
		}
	}
	return len(b.Samples) > 0
}

// acts reports whether a row might be decided without routd.
func (b *batch) acts() bool {
	for i := range b.Rows {
		if r := &b.Rows[i]; r.Command != nil || r.Change != nil || r.Ballot != nil || r.Choice != nil ||
			r.Code != nil || r.Problem != "" {
			return true
		}
	}
	return false
}

// forget leaves out rows that effects have decided, or that a service will decide.
func (b *batch) forget(effects []decide.Effect) {
	gone := map[int64]bool{}
	for _, e := range effects {
		switch e := e.(type) {
		case decide.Decide:
			gone[e.Row] = true
		case decide.AskService:
			gone[e.Row] = true
		}
	}
	left := b.Rows[:0:0]
	for _, r := range b.Rows {
		if !gone[r.ID] {
			left = append(left, r)
		}
	}
	b.Rows = left
}

// reader reads what is known about rows, which the decisions about them are made from.
type reader struct {
	cfg      *Config
	st       *store.Store
	members  *members
	rates    *rates
	parked   *parked
	requests *requests
	stops    []rows.Stop // under way, when the pass began
	// operators are those of when the pass began.
	operators map[string]bool
}

func (f *reader) now() int64 { return f.cfg.Now().UnixMilli() }

// chat reads a page of a chat's undecided rows: those after the rows that its gate
// holds, and of a chat that waits for routd those not searched for commands yet.
func (f *reader) chat(ctx context.Context, c *chat, page int) (*batch, error) {
	b := &batch{chat: c, state: c.state}
	after := max(c.state.Gate.ThroughID, c.scanned)
	if c.asked != nil {
		after = max(after, c.asked.Last)
	}
	if c.alone && !c.limited {
		page = 1
	}
	info, err := f.st.Chat(ctx, c.jid)
	if err != nil {
		return nil, err
	}
	b.Chat = msg.Chat{JID: c.jid, Kind: msg.KindOfJID(c.jid)}
	if b.HasChat = info != nil; b.HasChat {
		b.Chat = *info
	}
	list, err := rows.Undecided(ctx, f.st.Reader, c.jid, after, page+1)
	if err != nil {
		return nil, err
	}
	known := summaries{}
	for i, m := range list {
		if b.bytes += len(m.Content); i == page {
			b.More = true
			break
		}
		b.Last = m.ID
		if c.skipped[m.ID] || f.covered(m, b.Chat.StickyTopic) {
			continue
		}
		r, err := f.loadRow(ctx, m, known)
		if err != nil {
			return nil, err
		}
		if it := r.Lookup(&b.Chat); it != nil {
			if err := it.Check(); err != nil { // routd would refuse it
				r.Answer, r.Known = routeapi.Answer{ID: r.ID, Error: err.Error()}, true
			}
		}
		b.Rows = append(b.Rows, r)
	}
	b.More = b.More || b.bytes >= rows.PageBytes
	b.MaxAge, b.RetryMS, b.Default = f.cfg.MaxAge.Milliseconds(), f.cfg.Poll.Milliseconds(), f.cfg.Impulse
	if c.state.ReadsRequest || f.parked.chats[c.jid] {
		err = f.loadRequest(ctx, b)
	}
	return b, err
}

// covered reports whether a /stop that is under way drops the row.
func (f *reader) covered(m *msg.Message, stickyTopic string) bool {
	return slices.ContainsFunc(f.stops, func(s rows.Stop) bool {
		return s.ChatJID == m.ChatJID && s.CoversRow(m, stickyTopic)
	})
}

// loadRow parses a row and reads what does not depend on routd's answer.
func (f *reader) loadRow(ctx context.Context, m *msg.Message, known summaries) (r decide.Row, err error) {
	r = decide.Row{Message: m}
	err = f.ofRow(&r, func() (err error) {
		r = decide.NewRow(m, f.cfg.MaxAge.Milliseconds(), f.cfg.BotNames, f.operators)
		if r.Code, err = f.operatorCode(ctx, &r); err != nil {
			return err
		}
		if r.Verb == msg.VerbEdit || r.Verb == msg.VerbDelete {
			if r.Change, err = f.findChange(ctx, m); err != nil {
				return err
			}
		}
		if r.Ballot, err = f.ballot(ctx, m); err != nil || r.Ballot != nil {
			return err
		}
		if stops, err := f.stop(ctx, &r); err != nil || stops {
			return err
		}
		if r.Choice, err = f.choice(ctx, &r); err != nil || r.Choice != nil {
			return err
		}
		if r.Post, err = f.post(ctx, &r); err != nil {
			return err
		}
		if m.GroupKey != "" {
			err = f.join(ctx, &r, known)
		}
		if err != nil || r.ForwardedFrom == nil {
			return err
		}
		return f.readReturn(ctx, &r)
	})
	return r, err
}

// summaries are those of the groups of one chat that were read.
type summaries map[groupID]*decide.GroupSummary

type groupID struct{ key, sender string }

// join reads the group that a row is in.
func (f *reader) join(ctx context.Context, r *decide.Row, known summaries) error {
	id := groupID{r.GroupKey, r.Sender}
	l, found := known[id]
	if !found {
		rows, err := rows.GroupRows(ctx, f.st.Reader, r.ChatJID, r.GroupKey)
		if err != nil {
			return err
		}
		if l = decide.Summarize(r.Message, rows); l != nil && l.CommandRow != nil {
			head := decide.NewRow(l.CommandRow, f.cfg.MaxAge.Milliseconds(), f.cfg.BotNames, f.operators)
			l.Command = head.Command
		}
		known[id] = l
	}
	r.Join(l)
	return nil
}

// ofRow reads something about a row. A panic costs that row alone: it is dropped.
func (f *reader) ofRow(r *decide.Row, read func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			r.Problem = fmt.Sprintf("panic: %v\n%s", cause, debug.Stack())
			err = nil
		}
	}()
	return read()
}

// post returns the platform id of the post that a row is, acts on, or was derived from.
func (f *reader) post(ctx context.Context, r *decide.Row) (id string, err error) {
	switch {
	case r.Verb == msg.VerbReaction, r.Change != nil:
		return r.TargetID, nil
	case r.PlatformID == "" && r.DerivedFrom != 0:
		original, err := f.st.Message(ctx, r.DerivedFrom)
		if original == nil {
			return "", err
		}
		return original.PlatformID, err
	}
	return r.PlatformID, nil
}

// findChange reads what an edit or deletion acts on.
func (f *reader) findChange(ctx context.Context, m *msg.Message) (*decide.Change, error) {
	c := &decide.Change{}
	if m.TargetID == "" {
		return c, nil
	}
	var err error
	if c.Target, err = f.st.MessageByPlatformID(ctx, m.ChatJID, m.TargetID); err != nil || c.Target == nil {
		return c, err
	}
	if c.Latest, err = rows.LatestEdit(ctx, f.st.Reader, m.ChatJID, m.TargetID); err != nil {
		return c, err
	}
	c.Subject = c.Target
	if c.Target.Disposition == msg.Prefix || c.Target.Disposition == msg.Command {
		derived, err := f.st.DerivedFrom(ctx, c.Target.ID)
		if err != nil {
			return c, err
		}
		if len(derived) > 0 { // an edit may have replaced earlier ones
			c.Subject = derived[len(derived)-1]
		}
	}
	fired, err := rows.FiredEdit(ctx, f.st.Reader, m.ChatJID, m.TargetID)
	if err != nil {
		return c, err
	}
	if fired != nil { // it has a turn of its own
		c.Subject = fired
	}
	if c.Subject.TurnID != 0 {
		if c.Turn, err = f.st.Turn(ctx, c.Subject.TurnID); err != nil {
			return c, err
		}
	}
	if m.Verb == msg.VerbEdit {
		c.Deleted, err = rows.Deleted(ctx, f.st.Reader, m.ChatJID, m.TargetID, m.ID)
	}
	c.Fires = m.Verb == msg.VerbEdit && m.Addressed && c.Subject.Disposition == msg.Observed && !c.Deleted
	return c, err
}

// readReturn reads what is known about the return address of a row that an agent wrote.
// One between groups needs no answer of routd.
func (f *reader) readReturn(ctx context.Context, r *decide.Row) error {
	from := r.ForwardedFrom
	if from.Kind == msg.Injection {
		root, err := f.st.Turn(ctx, from.RootTurnID)
		r.SetReturn(&decide.Return{RootExists: root != nil, Elsewhere: root == nil || root.ChatJID != r.ChatJID})
		return err
	}
	folder := from.Folder
	if from.Kind != msg.Answer {
		folder = msg.AddressedFolder(r.ChatJID)
	}
	root, err := f.st.Turn(ctx, from.RootTurnID)
	if err != nil {
		return err
	}
	fan, err := rows.CountDelegations(ctx, f.st.Reader, from.RootTurnID)
	if err != nil {
		return err
	}
	registered, err := f.registered(ctx, folder)
	r.Return = &decide.Return{Registered: registered, RootExists: root != nil, Fan: fan}
	r.Answer, r.Known = decide.ReturnAnswer(r, registered, f.cfg.Impulse), true
	return err
}

// registered reports whether a folder is a group's.
func (f *reader) registered(ctx context.Context, folder string) (bool, error) {
	if valid := msg.ValidFolder(folder) == nil; !valid {
		return false, nil // whatever a table says, it is not the name of a folder
	}
	group, err := f.st.Group(ctx, folder)
	return group != nil, err
}

// complete reads what depends on routd's answers.
func (f *reader) complete(ctx context.Context, b *batch) (err error) {
	b.Now = f.now()
	b.InCall, b.commands = b.InCall[:0], nil
	for id := range b.chat.skipped {
		b.InCall = append(b.InCall, id)
	}
	old := false
	for i := range b.Rows {
		r := &b.Rows[i]
		old = old || r.Old
		if err := f.ofRow(r, func() error { return f.completeRow(ctx, b, r) }); err != nil {
			return err
		}
	}
	if old {
		b.LastStaleAt, err = rows.LastStaleAt(ctx, f.st.Reader, b.Chat.JID)
	}
	return err
}

func (f *reader) completeRow(ctx context.Context, b *batch, r *decide.Row) (err error) {
	if err := f.readMembers(ctx, b, r); err != nil {
		return err
	}
	if r.Known {
		r.Pin = decide.FindPin(r, &b.Chat, func(folder string) bool { return f.isGroup(ctx, folder, &err) })
		if err != nil {
			return err
		}
		if r.Pin != nil {
			if r.Pin.Members, err = f.members.of(ctx, r.Pin.Folder); err != nil {
				return err
			}
		}
	}
	if (r.Command != nil || r.Pin != nil) && !r.Operator {
		if r.Commands, err = f.commandsOf(ctx, b, r.Sender); err != nil {
			return err
		}
	}
	if r.ThreadID != "" {
		if r.Bound, err = f.st.TopicOfThread(ctx, r.ChatJID, r.ThreadID); err != nil {
			return err
		}
	}
	if r.Forks, err = rows.ForksOfRow(ctx, f.st.Reader, r.Message); err != nil {
		return err
	}
	if r.IsBot && r.Answer.Action == routeapi.Trigger {
		r.BotTurns, err = rows.BotTurns(ctx, f.st.Reader, r.ChatJID, r.Sender, r.ReceivedAt-decide.BotTime)
	}
	return err
}

// findPrefixes notes which rows name their group or topic, and reports whether any does.
func (f *reader) findPrefixes(ctx context.Context, b *batch) (found bool) {
	for i := range b.Rows {
		r := &b.Rows[i]
		var err error
		_ = f.ofRow(r, func() error {
			if r.Home, err = f.members.of(ctx, r.Answer.Home); err == nil {
				r.Prefix = decide.FindPrefix(r, func(folder string) bool { return f.isGroup(ctx, folder, &err) })
			}
			return nil
		})
		if err != nil {
			b.err = err
			return false
		}
		found = found || r.Prefix != nil
	}
	return found
}

// isGroup is registered for parsers, which take a function without an error.
func (f *reader) isGroup(ctx context.Context, folder string, failed *error) bool {
	found, err := f.registered(ctx, folder)
	if err != nil {
		*failed = err
	}
	return found
}
