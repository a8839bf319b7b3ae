// Package typing shows where agents work: by a status in an assistant's pane, elsewhere by a
// reaction to the messages that they work on.
package typing

import (
	"context"
	"errors"
	"strings"

	"github.com/slack-go/slack"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/slakd/internal/slackapi"
)

const (
	// Status is what stands in a pane. Slack takes it away with the answer, or after two minutes.
	Status = "is thinking…"
	// Mark is the reaction.
	Mark = "eyes"
	// prefix begins the cursors that say which messages bear the mark; chat, thread and message
	// follow.
	prefix = "mark "
)

// Signs shows and takes away. It is safe for concurrent use.
type Signs struct {
	API    *slackapi.Client
	Store  *store.Store
	Daemon string // whose cursors say which messages bear the mark
}

// Show shows that agents work in a thread of a chat, or that they do no longer.
func (s Signs) Show(ctx context.Context, in store.Lane, working bool) error {
	if msg.KindOfJID(in.ChatJID) != msg.ChatDM || in.ThreadID == "" {
		return s.mark(ctx, in)
	}
	status := map[bool]string{true: Status}[working]
	err := s.API.SetAssistantThreadsStatusContext(ctx, slack.AssistantThreadsSetStatusParameters{
		ChannelID: channel(in.ChatJID), ThreadTS: in.ThreadID, Status: status,
	})
	if !working && isPermanent(err) { // it was never shown
		return nil
	}
	return err
}

// Sweep takes away the marks that were left behind: by a crash, or because Slack could not be
// reached.
func (s Signs) Sweep(ctx context.Context) error {
	left, err := s.Store.DaemonCursors(ctx, s.Daemon, prefix)
	if err != nil {
		return err
	}
	for key := range left {
		if fields := strings.Split(strings.TrimPrefix(key, prefix), " "); len(fields) == 3 {
			err = errors.Join(err, s.mark(ctx, store.Lane{ChatJID: fields[0], ThreadID: fields[1]}))
		}
	}
	return err
}

// mark has the messages that agents work on in a thread of a chat bear the mark, and no others.
// Each is written down before it bears it, so that a crash leaves none behind for ever.
func (s Signs) mark(ctx context.Context, in store.Lane) error {
	ids, err := s.Store.ActiveTriggers(ctx, in)
	if err != nil {
		return err
	}
	place := prefix + in.ChatJID + " " + in.ThreadID + " "
	marked, err := s.Store.DaemonCursors(ctx, s.Daemon, place)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, id := range ids {
		if ts := slackapi.MessageTS(id); ts != "" {
			wanted[place+ts] = true
		}
	}
	for key := range wanted {
		if _, is := marked[key]; !is {
			err = errors.Join(err, s.add(ctx, in, key))
		}
	}
	for key := range marked {
		if !wanted[key] {
			err = errors.Join(err, s.remove(ctx, in, key))
		}
	}
	return err
}

func (s Signs) add(ctx context.Context, in store.Lane, key string) error {
	if err := s.Store.Write(ctx, func(tx *store.Tx) error { return tx.PutCursor(s.Daemon, key, "") }); err != nil {
		return err
	}
	return s.API.React(ctx, channel(in.ChatJID), message(key), Mark, true)
}

// remove forgets a mark once it is gone, or can never be taken away.
func (s Signs) remove(ctx context.Context, in store.Lane, key string) error {
	if err := s.API.React(ctx, channel(in.ChatJID), message(key), Mark, false); err != nil && !isPermanent(err) {
		return err
	}
	return s.Store.Write(ctx, func(tx *store.Tx) error { return tx.DeleteCursor(s.Daemon, key) })
}

func isPermanent(err error) bool { return err != nil && slackapi.Failure(err).Class == msg.Permanent }

func channel(jid string) string {
	_, channel := msg.SplitJID(jid)
	return channel
}

func message(key string) string { return key[strings.LastIndex(key, " ")+1:] }
