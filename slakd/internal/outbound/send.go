package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/slakd/internal/slackapi"
)

// clockSkew is how far our clock may be ahead of Slack's.
const clockSkew = 5 * time.Minute

// Send implements adapter.Platform.
func (s *slack) Send(ctx context.Context, m *msg.Message, p adapter.Part) (platformID string, err error) {
	c := p.(call)
	if c.ts == "" && c.method == addReaction {
		if c.ts, err = s.firstPart(ctx, m); err != nil {
			return "", slackapi.Failure(err)
		}
	}
	id, err := s.do(ctx, c)
	if err != nil {
		return "", slackapi.Failure(fmt.Errorf("%s: %w", c.method, err))
	}
	return id, nil
}

// firstPart is what the first part of a row became.
func (s *slack) firstPart(ctx context.Context, m *msg.Message) (ts string, err error) {
	parts, err := s.store.Deliveries(ctx, m.ID)
	switch {
	case err != nil:
		return "", &adapter.Failure{Class: msg.Transient, Err: err}
	case len(parts) == 0 || parts[0].PlatformID == "":
		return "", &adapter.Failure{Class: msg.Permanent, Err: errors.New("nobody knows where the text above it is")}
	}
	return parts[0].PlatformID, nil
}

// do makes a call and returns the id of the message it made, "" if it made none.
func (s *slack) do(ctx context.Context, c call) (ts string, err error) {
	text := slackgo.MsgOptionText(c.text, false)
	switch c.method {
	case postMessage:
		_, ts, err = s.api.PostMessageContext(ctx, c.channel, text, slackgo.MsgOptionTS(c.thread),
			slackgo.MsgOptionDisableLinkUnfurl(), slackgo.MsgOptionMetadata(c.tag.Metadata()))
	case updateMessage:
		_, _, _, err = s.api.UpdateMessageContext(ctx, c.channel, c.ts, text)
	case deleteMessage:
		err = s.api.Delete(ctx, c.channel, c.ts)
	case addReaction, removeReaction:
		err = s.api.React(ctx, c.channel, c.ts, c.emoji, c.method == addReaction)
	case uploadFile:
		return s.upload(ctx, c)
	}
	return ts, err
}

// upload sends a file; only the last of the steps that this takes shows it to anybody.
func (s *slack) upload(ctx context.Context, c call) (ts string, err error) {
	f, err := os.Open(c.file.path)
	if err != nil {
		return "", &adapter.Failure{Class: msg.Permanent, Err: errors.New("the file cannot be read any more")}
	}
	defer f.Close()
	return s.api.Upload(ctx, slackapi.Upload{Channel: c.channel, Thread: c.thread, Name: c.file.name, Comment: c.text, Data: f})
}

// Mark implements adapter.Marker.
func (s *slack) Mark(p adapter.Part) adapter.Part {
	const mark = "(possibly sent twice) "
	c := p.(call)
	if marked := mark + c.text; c.text != "" && c.method != updateMessage && utf8.RuneCountInString(marked) <= textMost {
		c.text = marked
	}
	return c
}

// Find implements adapter.Finder. What does no harm twice was never there.
func (s *slack) Find(ctx context.Context, m *msg.Message, p adapter.Part) (platformID string, err error) {
	c := p.(call)
	if c.method != postMessage && c.method != uploadFile {
		return "", nil
	}
	like, err := s.likeness(ctx, c)
	if err == nil {
		platformID, err = s.api.Find(ctx, c.channel, c.thread, m.ReceivedAt/1000-int64(clockSkew/time.Second), like)
	}
	if err != nil {
		return "", slackapi.Failure(fmt.Errorf("looking for it: %w", err))
	}
	return platformID, nil
}

// likeness is how a part is known: by its tag, or, where it is a file, which bears none, by that
// file.
func (s *slack) likeness(ctx context.Context, c call) (func(*slackgo.Message) bool, error) {
	if c.method == postMessage {
		return c.tag.Is, nil
	}
	info, err := os.Stat(c.file.path)
	if err != nil {
		return nil, err
	}
	me, err := s.api.AuthTestContext(ctx)
	if err != nil {
		return nil, err
	}
	return func(m *slackgo.Message) bool { return slackapi.HasFile(m, me.UserID, c.file.name, info.Size()) }, nil
}

// Fetch implements adapter.Fetcher.
func (s *slack) Fetch(ctx context.Context, ref string, w io.Writer) error {
	return s.api.Download(ctx, ref, w)
}
