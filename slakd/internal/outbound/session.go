package outbound

import (
	"context"
	"errors"
	"slices"
	"strings"

	"arizuko/pkg/adapter/rows"

	slackgo "github.com/slack-go/slack"

	"arizuko/pkg/store"
	"arizuko/slakd/internal/slackapi"
)

// Where the app is an agent, Slack shows a button that stops it in each thread whose session is processing. A session
// is recorded before it begins, like a mark, so that it ends after a crash.

// sessionPrefix begins the keys of the cursors that record sessions: chat and thread follow.
const sessionPrefix = "session "

// beginSession makes the session of a thread show that agents work, unless it does.
func (s *Sender) beginSession(ctx context.Context, in store.Lane) error {
	if in.ThreadID == "" || s.noSessions.Load() || s.sessions.Get(in) {
		return nil
	}
	key := sessionPrefix + in.ChatJID + " " + in.ThreadID
	if err := s.Store.Write(ctx, func(tx *store.Tx) error { return tx.PutCursor(s.Daemon, key, "") }); err != nil {
		return err
	}
	err := s.setSession(ctx, in, slackgo.AgentSessionStatusProcessing)
	if err == nil {
		s.sessions.Put(in, true)
		return nil
	}
	if !isPermanent(err) {
		return err
	}
	s.refuseSession(in, slackapi.Code(err))
	return s.Store.Write(ctx, func(tx *store.Tx) error { return tx.DeleteCursor(s.Daemon, key) })
}

// endSession makes the session of a thread show that no agent works any more, if it may show that one does.
func (s *Sender) endSession(ctx context.Context, in store.Lane) error {
	key := sessionPrefix + in.ChatJID + " " + in.ThreadID
	recorded, err := s.Store.DaemonCursors(ctx, s.Daemon, key)
	if err != nil {
		return err
	}
	if _, is := recorded[key]; !is {
		return nil
	}
	if err := s.setSession(ctx, in, slackgo.AgentSessionStatusActive); err != nil && !isPermanent(err) {
		return err
	}
	s.sessions.Delete(in)
	return s.Store.Write(ctx, func(tx *store.Tx) error { return tx.DeleteCursor(s.Daemon, key) })
}

// endStaleSessions ends those that a crash, or a failed call, has left.
func (s *Sender) endStaleSessions(ctx context.Context) error {
	recorded, err := s.Store.DaemonCursors(ctx, s.Daemon, sessionPrefix)
	if err != nil || len(recorded) == 0 {
		return err
	}
	working, err := rows.ActiveLanes(ctx, s.Store.Reader, s.Platform)
	if err != nil {
		return err
	}
	for key := range recorded {
		chat, thread, _ := strings.Cut(strings.TrimPrefix(key, sessionPrefix), " ")
		if in := (store.Lane{ChatJID: chat, ThreadID: thread}); !slices.Contains(working, in) {
			err = errors.Join(err, s.endSession(ctx, in))
		}
	}
	return err
}

func (s *Sender) setSession(ctx context.Context, in store.Lane, status string) error {
	_, err := s.API.SetAgentSessionStatusContext(ctx, slackgo.AgentSessionSetStatusParameters{
		Status: status, ChannelID: channel(in.ChatJID), ThreadTS: in.ThreadID,
	})
	return err
}

// refuseSession remembers that there is no session in a thread, or that the app is no agent.
func (s *Sender) refuseSession(in store.Lane, code string) {
	if slices.Contains(append(threadCodes(), "channel_not_found", "not_in_channel", "is_archived",
		"channel_type_not_supported"), code) {
		s.sessions.Put(in, true)
		return
	}
	s.noSessions.Store(true)
}
