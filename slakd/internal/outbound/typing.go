package outbound

import (
	"context"
	"errors"
	"strings"
	"time"

	"arizuko/pkg/adapter/rows"

	slackgo "github.com/slack-go/slack"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/slakd/internal/slackapi"
)

// Slack shows no typing indicator for bots. In an assistant's pane slakd sets a status. Elsewhere, as in a thread of a
// direct message that Slack accepts no status for, it marks the messages that agents work on with a reaction.
const (
	// status is shown in a pane. Slack removes it with the answer, or after two minutes.
	status = "is thinking…"
	// markEmoji is the reaction.
	markEmoji = "eyes"
	// markPrefix begins the keys of the cursors that record the marked messages: chat, thread and
	// message follow.
	markPrefix = "mark "
	// typingLasts is how soon the next message is marked when one turn follows another.
	typingLasts = 5 * time.Second
)

// Type implements adapter.Typist.
func (s *Sender) Type(ctx context.Context, in store.Lane, works bool) error {
	session := s.endSession
	if works {
		session = s.beginSession
	}
	return errors.Join(s.showWorking(ctx, in, works), session(ctx, in))
}

// TypingFor implements adapter.Typist.
func (s *Sender) TypingFor() time.Duration { return typingLasts }

// showWorking shows that agents work in a thread of a chat, or no longer.
func (s *Sender) showWorking(ctx context.Context, in store.Lane, working bool) error {
	if msg.KindOfJID(in.ChatJID) != msg.ChatDM || in.ThreadID == "" || s.noStatus.Get(in) {
		return s.updateMarks(ctx, in)
	}
	text := map[bool]string{true: status}[working]
	err := s.API.SetAssistantThreadsStatusContext(ctx, slackgo.AssistantThreadsSetStatusParameters{
		ChannelID: channel(in.ChatJID), ThreadTS: in.ThreadID, Status: text,
	})
	if isPermanent(err) {
		s.noStatus.Put(in, true)
		return s.updateMarks(ctx, in)
	}
	return err
}

// RemoveStaleMarks removes the marks that a crash, or a failed call, has left, and ends the sessions.
func (s *Sender) RemoveStaleMarks(ctx context.Context) error {
	recorded, err := s.Store.DaemonCursors(ctx, s.Daemon, markPrefix)
	if err != nil {
		return err
	}
	for key := range recorded {
		if fields := strings.Split(strings.TrimPrefix(key, markPrefix), " "); len(fields) == 3 {
			err = errors.Join(err, s.updateMarks(ctx, store.Lane{ChatJID: fields[0], ThreadID: fields[1]}))
		}
	}
	return errors.Join(err, s.endStaleSessions(ctx))
}

// updateMarks marks the messages that agents work on in a thread of a chat, and no others. Each mark is
// recorded before it is set, so that it can be removed after a crash.
func (s *Sender) updateMarks(ctx context.Context, in store.Lane) error {
	ids, err := rows.ActiveTriggers(ctx, s.Store.Reader, in)
	if err != nil {
		return err
	}
	keys := markPrefix + in.ChatJID + " " + in.ThreadID + " "
	marked, err := s.Store.DaemonCursors(ctx, s.Daemon, keys)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, id := range ids {
		if ts := slackapi.MessageTS(id); ts != "" {
			wanted[keys+ts] = true
		}
	}
	for key := range wanted {
		if _, is := marked[key]; !is {
			err = errors.Join(err, s.addMark(ctx, in, key))
		}
	}
	for key := range marked {
		if !wanted[key] {
			err = errors.Join(err, s.removeMark(ctx, in, key))
		}
	}
	return err
}

func (s *Sender) addMark(ctx context.Context, in store.Lane, key string) error {
	if err := s.Store.Write(ctx, func(tx *store.Tx) error { return tx.PutCursor(s.Daemon, key, "") }); err != nil {
		return err
	}
	return s.API.React(ctx, channel(in.ChatJID), message(key), markEmoji, true)
}

// removeMark deletes the record of a mark once the mark is removed, or can never be.
func (s *Sender) removeMark(ctx context.Context, in store.Lane, key string) error {
	if err := s.API.React(ctx, channel(in.ChatJID), message(key), markEmoji, false); err != nil && !isPermanent(err) {
		return err
	}
	return s.Store.Write(ctx, func(tx *store.Tx) error { return tx.DeleteCursor(s.Daemon, key) })
}

// worksOn reports whether a call would remove the mark of a message that agents work on: the one for a message that
// waited is the same reaction. It goes when the work ends.
func (s *Sender) worksOn(ctx context.Context, m *msg.Message, c call) (bool, error) {
	if c.method != removeReaction || c.emoji != markEmoji {
		return false, nil
	}
	key := markPrefix + m.ChatJID + " " + m.ThreadID + " " + c.ts
	marked, err := s.Store.DaemonCursors(ctx, s.Daemon, key)
	if err != nil {
		return false, &adapter.Failure{Class: msg.Transient, Err: err}
	}
	_, is := marked[key]
	return is, nil
}

func isPermanent(err error) bool { return err != nil && slackapi.Failure(err).Class == msg.Permanent }

func channel(jid string) string {
	_, channel := msg.SplitJID(jid)
	return channel
}

func message(key string) string { return key[strings.LastIndex(key, " ")+1:] }
