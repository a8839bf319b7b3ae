package adapter

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/chatmove"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// maxRefusals is how often the database may refuse an event before it is skipped. The tries fit into
// the 2.5 s in which slakd answers a post.
const maxRefusals = 3

// Inbound has events that an adapter has read and stores in one transaction, before it acknowledges
// anything to the platform.
type Inbound struct {
	Messages []*msg.Message
	// Quoted are posts that the platform sent along: those that a message answers, quotes or forwards, earlier ones of
	// its thread, or the one that a thread was made from. If Options.Bots accepts none of the messages that they came
	// with, they are left out. Those whose platform ids are unknown in their chats are stored before Messages, as
	// rows that start nothing: observed, with the reason quoted. A bot's post is stored whatever Options.Bots says,
	// with IsBot; the bot's own too.
	Quoted  []*msg.Message
	Admins  []Admin    // of the chats, as far as the platform has said so with the events
	Chats   []msg.Chat // their pins are not changed
	Threads []msg.Thread
	Moved   *Moved  // a chat has another address now
	Cursor  *Cursor // how far the platform has been read, nil to leave it
}

// Admin says whether a sender administers a chat.
type Admin struct {
	ChatJID, Sender string
	Is              bool
}

// Moved is a chat's old address and its new one.
type Moved struct{ From, To string }

// Cursor is a daemon's own bookmark; the value "" removes it.
type Cursor struct{ Key, Value string }

// Receive stores events; each message then has its row id. Messages of bots that Options.Bots
// excludes are not stored. Direction, source and receiving time are filled in, the timestamp if it
// is missing, and so is the thread of a reaction, an edit or a deletion if its target is in one. A
// message that is stored already changes nothing, and takes the id of its row.
func (s *Shell) Receive(ctx context.Context, in Inbound) error {
	now := s.Now().UnixMilli()
	came := len(in.Messages)
	if in.Messages = s.accepted(in.Messages); came > 0 && len(in.Messages) == 0 {
		in.Quoted = nil
	}
	// one without a platform id cannot be recognised when it comes again
	in.Quoted = slices.DeleteFunc(slices.Clone(in.Quoted), func(m *msg.Message) bool { return m.PlatformID == "" })
	for _, m := range slices.Concat(in.Quoted, in.Messages) {
		m.Direction, m.Source, m.ReceivedAt = msg.In, s.Daemon, now
		if m.Timestamp == 0 {
			m.Timestamp = now
		}
	}
	s.Heartbeat.Event()
	failpoint.At(failpoint.Received)

	fresh := make([]bool, len(in.Messages))
	write := func(tx *store.Tx) error { return in.write(ctx, tx, s.Daemon, now, fresh) }
	err := s.Store.WriteIn(ctx, in.scope(s.Daemon), write)
	if err == nil {
		for i, m := range in.Messages {
			if fresh[i] {
				s.counters.arrived(m.Timestamp, now)
			}
		}
		s.logReceived(ctx, in.Messages, fresh)
	}
	return err
}

// accepted returns the messages that Options.Bots does not exclude. The caller's slice stays as it is.
func (s *Shell) accepted(messages []*msg.Message) []*msg.Message {
	wanted := slices.DeleteFunc(slices.Clone(messages), func(m *msg.Message) bool { return !s.Bots.Accepts(m) })
	s.counters.ofBots.Add(float64(len(messages) - len(wanted)))
	return wanted
}

// scope is what write touches.
func (in *Inbound) scope(daemon string) store.Scope {
	if in.Moved != nil {
		return nil
	}
	scope := store.Scope{}
	if in.Cursor != nil { // first: the events of a feed share their commits
		scope = append(scope, "cursors/"+daemon)
	}
	for _, m := range slices.Concat(in.Quoted, in.Messages) {
		scope = append(scope, m.ChatJID)
	}
	for _, c := range in.Chats {
		scope = append(scope, c.JID)
	}
	for _, t := range in.Threads {
		scope = append(scope, t.ChatJID)
	}
	return scope
}

// write stores everything. fresh[i] reports whether message i is new.
func (in *Inbound) write(ctx context.Context, tx *store.Tx, daemon string, now int64, fresh []bool) (err error) {
	if in.Moved != nil {
		if err := chatmove.Move(tx, in.Moved.From, in.Moved.To, now); err != nil {
			return err
		}
	}
	for _, c := range in.Chats {
		if err := tx.PutChat(c.JID, c.Kind, c.Title, now); err != nil {
			return err
		}
	}
	if err := in.writeAdmins(tx); err != nil {
		return err
	}
	for _, t := range in.Threads {
		if err := tx.PutThread(t); err != nil {
			return err
		}
	}
	for _, m := range in.Quoted {
		if _, err := rows.PutQuoted(tx, m); err != nil {
			return err
		}
	}
	for i, m := range in.Messages {
		if err := followTarget(ctx, tx, m); err != nil {
			return err
		}
		if _, fresh[i], err = tx.PutMessage(m); err != nil {
			return err
		}
	}
	return in.Cursor.Write(tx, daemon)
}

func (in *Inbound) writeAdmins(tx *store.Tx) error {
	for _, a := range in.Admins {
		if err := tx.PutAdmin(a.ChatJID, a.Sender, a.Is); err != nil {
			return err
		}
	}
	return nil
}

// Write stores a bookmark; nil is none.
func (c *Cursor) Write(tx *store.Tx, daemon string) error {
	switch {
	case c == nil:
		return nil
	case c.Value == "":
		return tx.DeleteCursor(daemon, c.Key)
	}
	return tx.PutCursor(daemon, c.Key, c.Value)
}

// followTarget puts a row into the thread of its target: of some events platforms name only the
// chat.
func followTarget(ctx context.Context, tx *store.Tx, m *msg.Message) error {
	if m.TargetID == "" || m.ThreadID != "" {
		return nil
	}
	target, err := tx.MessageByPlatformID(ctx, m.ChatJID, m.TargetID)
	if err == nil && target != nil && target.ThreadID != "" {
		m.ThreadID, m.Topic = target.ThreadID, target.ThreadID
	}
	return err
}

func (s *Shell) logReceived(ctx context.Context, messages []*msg.Message, fresh []bool) {
	if !s.Log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	for i, m := range messages {
		log := s.Log.With("row", m.ID, "chat", m.ChatJID, "thread", m.ThreadID, "verb", m.Verb)
		if fresh[i] {
			log.Debug("event stored")
		} else {
			log.Debug("duplicate event ignored")
		}
	}
}

// ReceiveAlways is Receive, retried until it succeeds. Of an event that the database refuses only the
// cursor is stored, so that later events do not wait for it. Its only error is ctx.Err().
func (s *Shell) ReceiveAlways(ctx context.Context, in Inbound) error {
	refusals := 0
	return s.Retry(ctx, "storing event failed; retrying", func() error {
		err := s.Receive(ctx, in)
		if !errors.Is(err, store.ErrRefused) {
			return err
		}
		only := func(tx *store.Tx) error { return in.Cursor.Write(tx, s.Daemon) }
		if refusals++; refusals < maxRefusals || s.Store.Write(ctx, only) != nil {
			return err // a cursor that is refused too is not the event's fault
		}
		s.counters.undecoded.Inc()
		s.Log.Error("event refused by the database skipped", "event", in.event(), "count", refusals, "err",
			s.Redact(err.Error()))
		return nil
	})
}

// event names the event for the log.
func (in *Inbound) event() string {
	switch {
	case len(in.Messages) > 0:
		return in.Messages[0].ChatJID + " " + in.Messages[0].PlatformID
	case len(in.Chats) > 0:
		return in.Chats[0].JID
	case in.Cursor != nil:
		return in.Cursor.Key + " " + in.Cursor.Value
	}
	return ""
}

// Retry calls do until it succeeds or ctx ends, and logs message with each error. Its only error is ctx.Err().
func (s *Shell) Retry(ctx context.Context, message string, do func() error) error {
	for {
		err := do()
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		s.Log.Error(message, "wait", retryDelay, "err", err) //nolint:sloglint // a constant of each caller
		Pause(ctx, retryDelay)
	}
}

// Decode calls decode, which makes rows of an event, and reports whether that succeeded. If it fails
// or panics, the event is skipped as by SkipUndecoded.
func (s *Shell) Decode(event string, decode func() error) bool {
	err := func() (err error) {
		defer s.recoverPanic("decoding", &err, "event", event)
		return decode()
	}()
	if err != nil {
		s.SkipUndecoded(event, err)
	}
	return err == nil
}

// SkipUndecoded counts and logs an event that cannot be decoded. The caller goes on with the next.
func (s *Shell) SkipUndecoded(event string, err error) {
	s.counters.undecoded.Inc()
	s.Log.Error("undecodable event skipped", "event", event, "err", s.Redact(err.Error()))
}
