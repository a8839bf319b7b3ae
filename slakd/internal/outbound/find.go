package outbound

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/slakd/internal/slackapi"
)

const (
	// maxClockSkew is how far our clock may have been ahead of Slack's when a row was stored: some hours after
	// a wrong time zone, or a dead battery, was corrected. Pages begin with the latest message.
	maxClockSkew = 3 * time.Hour
)

// Find implements adapter.Finder. It finds the part in each form in which it may have been sent: in its thread or in
// the channel, with its file or a text in place of it, with and without the mark of a copy. A search that Slack's rate
// limits end goes on with the next call.
func (s *Sender) Find(ctx context.Context, m *msg.Message, p adapter.Part) (platformID string, err error) {
	c := p.(call)
	me, err := s.API.AuthTestContext(ctx)
	if err != nil {
		return "", slackapi.Failure(fmt.Errorf("search: %w", err))
	}
	key := fmt.Sprint(m.ID, " ", c.tag.Part)
	found := s.searches.Get(key)
	if found == nil {
		found = newSearch(m, c)
		s.searches.Put(key, found)
	}
	examine := func(sent *slackapi.Posted) bool {
		if own := sent.User == me.UserID || sent.BotID != "" && sent.BotID == me.BotID; own {
			found.examine(ctx, s, m, c, sent)
		}
		return found.ts == ""
	}
	for len(found.left) > 0 && found.ts == "" {
		in := &found.left[0]
		whole, err := s.API.Find(ctx, in, examine)
		switch {
		case in.Thread != "" && slices.Contains(threadCodes(),
			slackapi.Code(err)): // nothing is in a thread that is gone
		case err != nil:
			return "", slackapi.Failure(fmt.Errorf("search: %w", err))
		case !whole:
			found.cut = true
		}
		found.left = found.left[1:]
	}
	s.searches.Delete(key)
	return found.result()
}

// search is a search for a part, with its findings so far among the bot's own messages.
type search struct {
	left []slackapi.Search // the places that are still to be searched
	cut  bool              // a place has more messages than are searched
	ts   string            // of the part
	// tagged and untagged say whether a message with a tag was seen, and one that should have one. sameText
	// is one of those with the same text, "" for none.
	tagged, untagged bool
	sameText         string
}

// newSearch searches in the thread of a part, and in the channel, where the part goes if Slack refuses the thread.
func newSearch(m *msg.Message, c call) *search {
	channel := slackapi.Search{Channel: c.channel, Since: m.ReceivedAt/1000 - int64(maxClockSkew/time.Second)}
	if c.thread == "" {
		return &search{left: []slackapi.Search{channel}}
	}
	thread := channel
	thread.Thread = c.thread
	return &search{left: []slackapi.Search{thread, channel}}
}

// examine recognizes the message of a call by its tag, or by its file, since files have no tag. Where messages come
// without tags the text decides.
func (f *search) examine(ctx context.Context, s *Sender, m *msg.Message, c call, sent *slackapi.Posted) {
	switch {
	case c.tag.Is(sent):
		f.ts = sent.TS
	case c.method == uploadFile && sent.HasFile(c.file.Name, c.file.Size):
		if s.isUnknown(ctx, m.ChatJID, sent.TS) {
			f.ts = sent.TS
		}
	case sent.Metadata.EventType != "":
		f.tagged = true
	case sent.Subtype == "" || sent.Subtype == "bot_message":
		f.untagged = f.untagged || c.method == postMessage // a file is never missed
		if f.sameText == "" && c.reads(sent.Text) && s.isUnknown(ctx, m.ChatJID, sent.TS) {
			f.sameText = sent.TS
		}
	}
}

// isUnknown reports whether a message is of no outbound row: one that is cannot be the part that is searched for.
func (s *Sender) isUnknown(ctx context.Context, jid, platformID string) bool {
	other, err := s.Store.MessageByPlatformID(ctx, jid, platformID)
	return err == nil && (other == nil || other.Direction != msg.Out)
}

// result is the id of the part, "" if it never arrived. Where no message has a tag, tags prove nothing: a
// server, or a token without the scope metadata.message:read, gives none. Then the text decides, and without
// a message of the same text it cannot be found out whether the part arrived.
func (f *search) result() (platformID string, err error) {
	switch {
	case f.ts != "":
		return f.ts, nil
	case !f.tagged && f.sameText != "":
		return f.sameText, nil
	case !f.tagged && f.untagged:
		err = errors.New("messages come without metadata: add the scope metadata.message:read")
	case f.cut:
		err = errors.New("too many messages to search")
	default:
		return "", nil
	}
	return "", &adapter.Failure{Class: msg.Permanent, Err: fmt.Errorf("search: %w", err)}
}

// reads reports whether a text may be that of a form of the call.
func (c call) reads(text string) bool {
	text = comparable(text)
	unmarked := strings.TrimSpace(strings.TrimPrefix(text, strings.TrimSpace(adapter.DuplicateMark)))
	if c.method == uploadFile {
		return strings.HasPrefix(unmarked, comparable(c.refusedFile()))
	}
	want := comparable(c.text)
	return text == want || unmarked == want
}

// comparable is a text without the brackets that Slack adds around links.
func comparable(text string) string { return strings.NewReplacer("<", "", ">", "").Replace(text) }
