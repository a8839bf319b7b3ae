package outbound

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"unicode/utf8"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// entry is how a thread is prepared for a call.
type entry int

const (
	join      entry = iota // the bot becomes a member, unless it is one
	open                   // the thread of a fork is created at a message
	unarchive              // the thread is taken out of the archive
	leave                  // nothing: the message goes to the channel in place of the thread
)

// maxThreadName bounds a thread's name, in characters. Topics are ASCII.
const maxThreadName = 100

// enter prepares the thread for a call that sends there, or that changes a message in an archived one.
func (s *Sender) enter(ctx context.Context, m *msg.Message, c call) error {
	if m.ThreadID == "" || !c.sends() && c.entry != unarchive {
		return nil
	}
	switch c.entry {
	case join:
		// Without it the bot may not hear the answers. A thread that it cannot join may take its message.
		if !s.joined.Put(m.ThreadID, true) {
			_ = s.API.JoinThread(ctx, m.ThreadID)
		}
	case open:
		return s.openThread(ctx, m)
	case unarchive:
		if err := s.API.Call(ctx, http.MethodPatch, "channels/"+m.ThreadID, discordapi.Params{"archived": false},
			nil); err != nil {
			return fmt.Errorf("take the thread out of the archive: %w", err)
		}
	}
	return nil
}

// otherPlace returns a call that was refused for its thread, with another entry, or else for the
// channel of the thread, and a remark about that; nil and why, if there is no other place.
func (s *Sender) otherPlace(ctx context.Context, m *msg.Message, c call, refused error) (*call, string, error) {
	gone := discordapi.RefusedFor(refused, unknownChannel)
	closed := discordapi.RefusedFor(refused, threadArchived) || discordapi.RefusedFor(refused, threadLocked)
	switch {
	case c.entry == leave:
		return nil, "", refused
	case errors.Is(refused, errNotOpened) && discordapi.Failure(refused).Class == msg.Permanent:
		return s.withoutThread(ctx, m, c, refused)
	case gone && c.entry == join:
		fork, err := s.Store.ForkOfThread(ctx, m.ChatJID, m.ThreadID)
		if err != nil {
			return nil, "", err
		}
		if fork != nil {
			c.entry = open
			return &c, "", refused
		}
	case c.entry == join && discordapi.RefusedFor(refused, threadArchived):
		c.entry = unarchive
		return &c, "", refused
	case c.entry == unarchive && discordapi.RefusedFor(refused, noPermission):
		closed = true
	}
	if !gone && !closed {
		return nil, "", refused
	}
	note, why := "(<#"+m.ThreadID+"> is closed)", "the thread is closed"
	if gone {
		note, why = threadGone, "the thread is gone"
	}
	moved, ok := s.toChannel(m, c, note)
	if !ok {
		return nil, "", refused
	}
	return &moved, "sent to the channel: " + why + ": " + refused.Error(), refused
}

// The beginnings of messages that are in the channel in place of their thread.
const (
	threadGone     = "(the thread is gone)"
	threadUnopened = "(the thread could not be opened)"
)

// notes are all that a message to a thread may say in its channel.
func notes(m *msg.Message) []string {
	return []string{threadGone, threadUnopened, "(<#" + m.ThreadID + "> is closed)"}
}

// withoutThread returns a call for the thread of a fork, which Discord does not create, as one for its channel. The
// message at which it would begin was deleted, for example. The fork is over, since the answers of users are in the
// channel.
func (s *Sender) withoutThread(ctx context.Context, m *msg.Message, c call, refused error) (*call, string, error) {
	moved, ok := s.toChannel(m, c, threadUnopened)
	if !ok {
		return nil, "", refused
	}
	fork, err := s.Store.ForkOfThread(ctx, m.ChatJID, m.ThreadID)
	if err == nil && fork != nil {
		err = s.Store.Write(ctx, func(tx *store.Tx) error {
			return rows.AbandonFork(tx, fork, "What you wrote there is in the channel.", s.Now().UnixMilli())
		})
	}
	if err != nil {
		return nil, "", err
	}
	return &moved, "sent to the channel: the thread could not be opened: " + refused.Error(), refused
}

// toChannel returns a call for a thread as one for its channel. The message says so by a note, if it is not too long
// then.
func (s *Sender) toChannel(m *msg.Message, c call, note string) (moved call, ok bool) {
	channel, err := s.channelOf(m.ChatJID, "")
	if err != nil {
		return c, false
	}
	c.entry, c.channel = leave, channel
	c.body = maps.Clone(c.body)
	delete(c.body, referenceField) // the message that it answers is in the thread
	text, _ := c.body["content"].(string)
	if noted := strings.TrimSpace(note + " " + text); c.body["poll"] == nil &&
		utf8.RuneCountInString(noted) <= maxText {
		c.body["content"] = noted
	}
	return c, true
}

// openThread creates the thread of a fork at the message whose id it has. A thread that exists already is no error.
func (s *Sender) openThread(ctx context.Context, m *msg.Message) error {
	fork, err := s.Store.ForkOfThread(ctx, m.ChatJID, m.ThreadID)
	if err != nil || fork == nil {
		return err
	}
	channel, err := s.channelOf(m.ChatJID, "")
	if err != nil {
		return err
	}
	name := strings.ReplaceAll(strings.TrimPrefix(fork.Topic, msg.TopicSigil), msg.TopicSigil, " ")
	path := "channels/" + channel + "/messages/" + m.ThreadID + "/threads"
	err = s.API.Call(ctx, http.MethodPost, path, discordapi.Params{"name": name[:min(len(name), maxThreadName)]}, nil)
	if err != nil && !discordapi.RefusedFor(err, threadExists) {
		return fmt.Errorf("%w %s: %w", errNotOpened, m.ThreadID, err)
	}
	return nil
}

var errNotOpened = errors.New("create a thread at message")

// explain names the permissions that a call needs, if it was refused for want of one.
func (c call) explain(refused error, inThread bool) error {
	switch {
	case discordapi.RefusedFor(refused, noPrivate):
		return fmt.Errorf("the user does not accept private messages, or has blocked the bot: %w", refused)
	case discordapi.RefusedFor(refused, noTopLevel):
		return fmt.Errorf("the channel is a forum, or of another kind that takes no messages outside of "+
			"its threads: %w",
			refused)
	case !discordapi.RefusedFor(refused, noPermission) && !discordapi.RefusedFor(refused, missingAccess):
		return refused
	}
	needs := "View Channel, Send Messages"
	if inThread {
		needs = "View Channel, Send Messages in Threads"
	}
	switch {
	case c.emoji != "":
		needs = "View Channel, Read Message History, Add Reactions"
	case c.file != nil:
		needs += ", Attach Files"
	case c.body["poll"] != nil:
		needs += ", Create Polls"
	}
	return fmt.Errorf("the bot lacks one of the permissions %s: %w", needs, refused)
}
