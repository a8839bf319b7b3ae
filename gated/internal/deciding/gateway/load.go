package gateway

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"arizuko/gated/internal/codes"
	"arizuko/gated/internal/deciding/decide"
	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

// batch has the rows of one chat in a pass, with their facts.
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
		if b.Rows[i].Kind.Acts() {
			return true
		}
	}
	return false
}

// forget leaves out rows that effects have decided, or that a service will decide.
func (b *batch) forget(effects []decide.Effect) {
	gone := map[int64]bool{}
	for _, e := range effects {
		switch e.(type) {
		case decide.Decide, decide.AskService:
			gone[e.Of()] = true
		}
	}
	b.Rows = slices.DeleteFunc(slices.Clone(b.Rows), func(r decide.Row) bool { return gone[r.ID] })
}

// reader reads the facts about rows.
type reader struct {
	cfg      *Config
	st       *store.Store
	members  *members
	rates    *rates
	outside  *outside
	requests *requests
	facts    rows.ChatFacts // of the chat whose rows are being read
}

func (f *reader) now() int64 { return f.cfg.Now().UnixMilli() }

// chat reads, beside other calls of it, a page of a chat's undecided rows: those after the rows that its gate
// holds, and of a chat that waits for routd those not searched for commands yet.
func (f *reader) chat(ctx context.Context, c *chat, page int) (*batch, error) {
	own := *f // has the facts of this chat
	f = &own
	after := max(c.state.Gate.ThroughID, c.scanned)
	if c.asked != nil {
		after = max(after, c.asked.Last)
	}
	if c.timeouts > 0 && !c.limited {
		page = 1
	}
	list, err := rows.Undecided(ctx, f.st.Reader, c.jid, after, page+1)
	if err == nil { // after the rows: what they answer was there before them
		f.facts, err = rows.ReadChatFacts(ctx, f.st.Reader, c.jid, f.cfg.Operators)
	}
	if err != nil {
		return nil, err
	}
	b := f.newBatch(c, f.facts.Chat)
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
	return b, nil
}

// newBatch is a batch of a chat, without rows.
func (f *reader) newBatch(c *chat, info *msg.Chat) *batch {
	b := &batch{chat: c, state: c.state}
	b.Chat = msg.Chat{JID: c.jid, Kind: msg.KindOfJID(c.jid)}
	if b.HasChat = info != nil; b.HasChat {
		b.Chat = *info
	}
	b.MaxAge, b.RetryMS, b.Default = f.cfg.MaxAge.Milliseconds(), f.cfg.Poll.Milliseconds(), f.cfg.Impulse
	return b
}

// covered reports whether a /stop that is under way drops the row.
func (f *reader) covered(m *msg.Message, stickyTopic string) bool {
	return slices.ContainsFunc(f.facts.Stops, func(s rows.Stop) bool { return s.CoversRow(m, stickyTopic) })
}

// loadRow classifies a row and reads the facts of its kind, except those that depend on routd's answer.
func (f *reader) loadRow(ctx context.Context, m *msg.Message, known summaries) (r decide.Row, err error) {
	r = decide.Row{Message: m}
	err = f.ofRow(&r, func() error {
		if r = f.parse(m); f.leaks(&r) {
			return nil
		}
		switch r.Kind {
		case decide.KindText, decide.KindCommand:
			return f.loadText(ctx, &r, known)
		case decide.KindEvent:
			return f.loadEvent(ctx, &r)
		case decide.KindChange:
			return f.loadChange(ctx, &r)
		case decide.KindBallot:
			return f.loadBallot(ctx, &r)
		case decide.KindAnswer:
			return f.loadPress(ctx, &r)
		case decide.KindForwarded:
			return f.loadForwarded(ctx, &r)
		}
		return nil
	})
	return r, err
}

func (f *reader) parse(m *msg.Message) decide.Row {
	return decide.NewRow(m, f.cfg.MaxAge.Milliseconds(), f.cfg.BotNames, f.facts.Operators)
}

// loadText reads about a text or a command: whether it answers a question, its group of rows, and who injected it.
func (f *reader) loadText(ctx context.Context, r *decide.Row, known summaries) error {
	choice, err := f.typed(ctx, r)
	if err != nil {
		return err
	}
	if choice != nil {
		r.Kind, r.Choice, r.Command = decide.KindAnswer, choice, nil
		return nil
	}
	r.Code = f.codeOf(r)
	if r.Post, err = f.post(ctx, r.Message); err != nil {
		return err
	}
	if r.GroupKey != "" {
		if err = f.join(ctx, r, known); err != nil {
			return err
		}
	}
	if r.ForwardedFrom == nil {
		return nil
	}
	root, err := f.st.Turn(ctx, r.ForwardedFrom.RootTurnID)
	if err == nil {
		r.SetReturn(&decide.Return{RootExists: root != nil, Elsewhere: root == nil || root.ChatJID != r.ChatJID})
	}
	return err
}

// loadEvent reads whether a reaction votes, and the post that the event is about.
func (f *reader) loadEvent(ctx context.Context, r *decide.Row) (err error) {
	if r.Verb != msg.VerbReaction {
		r.Post, err = f.post(ctx, r.Message)
		return err
	}
	r.Post = r.TargetID
	ballot, err := f.reactionBallot(ctx, r.Message)
	if ballot != nil {
		r.Kind, r.Ballot = decide.KindBallot, ballot
	}
	return err
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
			head := f.parse(l.CommandRow)
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
			r.Break(fmt.Sprintf("panic: %v\n%s", cause, debug.Stack()))
			err = nil
		}
	}()
	return read()
}

// post returns the platform id of the post that a text is, or was derived from.
func (f *reader) post(ctx context.Context, m *msg.Message) (id string, err error) {
	if m.PlatformID != "" || m.DerivedFrom == 0 {
		return m.PlatformID, nil
	}
	original, err := f.st.Message(ctx, m.DerivedFrom)
	if original == nil {
		return "", err
	}
	return original.PlatformID, err
}

// loadChange reads the message that an edit or deletion acts on, and whether the edit fires as a mention does.
func (f *reader) loadChange(ctx context.Context, r *decide.Row) (err error) {
	c := &decide.Change{}
	r.Change, r.Post = c, r.TargetID
	if r.TargetID == "" {
		return nil
	}
	if c.Target, err = f.st.MessageByPlatformID(ctx, r.ChatJID, r.TargetID); err != nil || c.Target == nil {
		return err
	}
	if c.Latest, err = rows.LatestEdit(ctx, f.st.Reader, r.ChatJID, r.TargetID); err != nil {
		return err
	}
	if c.Subject, err = f.subject(ctx, r.Message, c.Target); err != nil {
		return err
	}
	if c.Subject.TurnID != 0 {
		if c.Turn, err = f.st.Turn(ctx, c.Subject.TurnID); err != nil {
			return err
		}
	}
	if r.Verb != msg.VerbEdit {
		return nil
	}
	c.Deleted, err = rows.Deleted(ctx, f.st.Reader, r.ChatJID, r.TargetID, r.ID)
	if r.Addressed && c.Subject.Disposition == msg.Observed && !c.Deleted {
		r.Kind = decide.KindMention
	}
	return err
}

// subject returns the row that has the turn of a change's target: an edit that fired, the row derived from the target,
// or itself.
func (f *reader) subject(ctx context.Context, change, target *msg.Message) (*msg.Message, error) {
	fired, err := rows.FiredEdit(ctx, f.st.Reader, change.ChatJID, change.TargetID)
	if err != nil || fired != nil {
		return fired, err
	}
	if target.Disposition != msg.Prefix && target.Disposition != msg.Command {
		return target, nil
	}
	derived, err := f.st.DerivedFrom(ctx, target.ID)
	if err != nil || len(derived) == 0 {
		return target, err
	}
	return derived[len(derived)-1], nil // an edit may have replaced earlier ones
}

// loadForwarded reads about the return address of a row between groups. It needs no answer of routd.
func (f *reader) loadForwarded(ctx context.Context, r *decide.Row) error {
	from := r.ForwardedFrom
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
	r.SetReturn(&decide.Return{Registered: registered, RootExists: root != nil, Fan: fan})
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

// complete reads the facts that depend on routd's answers.
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
	switch r.Kind {
	case decide.KindBallot, decide.KindAnswer, decide.KindLeak, decide.KindBroken:
		return nil
	}
	if err := f.readMembers(ctx, b, r); err != nil || r.Kind == decide.KindChange || r.Kind == decide.KindForwarded {
		return err
	}
	if r.Known {
		r.Pin = decide.FindPin(r, &b.Chat, func(folder string) bool { return f.isGroup(ctx, folder, &err) })
		if err != nil {
			return err
		}
		if r.Pin != nil {
			if r.Pin.Members, err = f.members.forRow(ctx, r.Pin.Folder, r); err != nil {
				return err
			}
		}
	}
	if (r.Kind == decide.KindCommand || r.Pin != nil) && !r.Operator {
		if r.Commands, err = f.commandsOf(ctx, b, r.Sender); err != nil {
			return err
		}
	}
	if r.ThreadID != "" {
		if r.Bound, err = factrows.TopicOfThread(ctx, f.st.Reader, r.ChatJID, r.ThreadID); err != nil {
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
			if r.Home, err = f.members.forRow(ctx, r.Answer.Home, r); err == nil {
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

// leaks reports whether a row holds the open code, other than as an /operator, and makes it one that does.
func (f *reader) leaks(r *decide.Row) bool {
	open := f.facts.Code
	if open == nil {
		return false
	}
	if text, is := r.OperatorCommand(); is && codes.Hash(text) == open.Hash {
		return false
	}
	without, written := codes.Cut(r.Content, open.Hash)
	if _, around := codes.Cut(r.Quote+"\n"+r.SenderName, open.Hash); !written && !around {
		return false
	}
	r.Kind, r.Command, r.Code = decide.KindLeak, nil, &decide.Code{Without: without}
	return true
}

// codeOf returns the facts about the code of an /operator, nil for other rows.
func (f *reader) codeOf(r *decide.Row) *decide.Code {
	text, is := r.OperatorCommand()
	if !is {
		return nil
	}
	code := &decide.Code{Hash: codes.Hash(text), Open: codes.Counts(f.facts.Code, r.Sender, f.now())}
	code.Right = code.Open && code.Hash == f.facts.Code.Hash // of hashes: the time of a comparison tells nothing
	return code
}
