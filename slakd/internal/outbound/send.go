// Package outbound cuts outbound rows into calls of Slack's Web API, makes those calls, and shows
// where agents work.
package outbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/slakd/internal/slackapi"
)

// Sender sends to Slack. Its fields are set once.
type Sender struct {
	API    *slackapi.Client
	Data   string // the data folder
	Store  *store.Store
	Daemon string // owns the cursors of the marked messages
}

// Send implements adapter.Platform.
func (s *Sender) Send(ctx context.Context, m *msg.Message, p adapter.Part) (platformID string, err error) {
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

// firstPart is the ts of the first part of a row.
func (s *Sender) firstPart(ctx context.Context, m *msg.Message) (ts string, err error) {
	parts, err := s.Store.Deliveries(ctx, m.ID)
	switch {
	case err != nil:
		return "", &adapter.Failure{Class: msg.Transient, Err: err}
	case len(parts) == 0 || parts[0].PlatformID == "":
		return "", &adapter.Failure{Class: msg.Permanent, Err: errors.New("the id of the poll's text is not known")}
	}
	return parts[0].PlatformID, nil
}

// do makes a call and returns the id of the message it made, "" if it made none.
func (s *Sender) do(ctx context.Context, c call) (ts string, err error) {
	text := slackgo.MsgOptionText(c.text, false)
	switch c.method {
	case postMessage:
		_, ts, err = s.API.PostMessageContext(ctx, c.channel, text, slackgo.MsgOptionTS(c.thread),
			slackgo.MsgOptionDisableLinkUnfurl(), slackgo.MsgOptionMetadata(c.tag.Metadata()))
	case updateMessage:
		_, _, _, err = s.API.UpdateMessageContext(ctx, c.channel, c.ts, text)
	case deleteMessage:
		err = s.API.Delete(ctx, c.channel, c.ts)
	case addReaction, removeReaction:
		err = s.API.React(ctx, c.channel, c.ts, c.emoji, c.method == addReaction)
	case uploadFile:
		return s.upload(ctx, c)
	}
	return ts, err
}

// upload sends a file, which takes three calls; only the last of them shows it to users.
func (s *Sender) upload(ctx context.Context, c call) (ts string, err error) {
	f, err := c.file.Open()
	if err != nil {
		return "", err
	}
	defer f.Close()
	return s.API.Upload(ctx, slackapi.Upload{Channel: c.channel, Thread: c.thread, Name: c.file.Name, Comment: c.text, Data: f})
}

// Mark implements adapter.Marker.
func (s *Sender) Mark(p adapter.Part) adapter.Part {
	c := p.(call)
	if c.sends() {
		c.text, _ = adapter.MarkDuplicate(c.text, maxText, utf8.RuneCountInString)
	}
	return c
}

// Fetch implements adapter.Fetcher.
func (s *Sender) Fetch(ctx context.Context, ref string, w io.Writer) error {
	return s.API.Download(ctx, ref, w)
}
