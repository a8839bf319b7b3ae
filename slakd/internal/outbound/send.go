// Package outbound cuts outbound rows into calls of Slack's Web API, makes those calls, and shows
// where agents work.
package outbound

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"

	slackgo "github.com/slack-go/slack"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/slakd/internal/inbound"
	"arizuko/slakd/internal/slackapi"
)

// Sender sends to Slack. Its fields are set once.
type Sender struct {
	adapter.Identity
	API   *slackapi.Client
	Data  string // the data folder
	Store *store.Store
	Log   *slog.Logger

	floods     adapter.Floods
	previews   previews
	searches   adapter.Memo[string, *search]  // those that have not ended, by part
	noStatus   adapter.Memo[store.Lane, bool] // threads in which Slack accepts no status, which it then never does
	sessions   adapter.Memo[store.Lane, bool] // threads whose session shows that agents work, or that have none
	noSessions atomic.Bool                    // the app is no agent
}

// Send implements adapter.Platform.
func (s *Sender) Send(ctx context.Context, m *msg.Message, p adapter.Part) (platformID string, err error) {
	c := p.(call)
	if worksOn, err := s.worksOn(ctx, m, c); err != nil || worksOn {
		return "", err
	}
	id, err := s.do(ctx, c)
	switch {
	case err != nil:
		f := *slackapi.Failure(fmt.Errorf("%s: %w", c.method, err))
		f.Other, f.Remark = otherForm(c, err)
		if f.Class == msg.Rate && c.sends() { // posts have a limit in each channel, and one in the workspace
			f.Account = f.Account || s.floods.Refused(c.channel, f.After)
		}
		return "", &f
	case c.sends():
		s.floods.Accepted(c.channel)
	}
	return id, nil
}

// do makes a call and returns the id of the message it made, "" if it made none.
func (s *Sender) do(ctx context.Context, c call) (ts string, err error) {
	if c.takesOver {
		return s.takeOver(ctx, c)
	}
	text := slackgo.MsgOptionCompose(slackgo.MsgOptionText(c.text, false), c.below())
	switch c.method {
	case postMessage:
		_, ts, err = s.API.PostMessageContext(ctx, c.channel, text, slackgo.MsgOptionTS(c.thread),
			noLinkPreviews(), slackgo.MsgOptionMetadata(c.tag.Metadata()))
		if err == nil && ts == "" {
			err = adapter.ErrNoMessage
		}
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

// below are the buttons below a text. An edit takes away those that its message had.
func (c call) below() slackgo.MsgOption {
	var all []slackgo.MsgOption
	if c.method == updateMessage {
		all = append(all, slackapi.WithoutBlocks(), slackapi.WithoutAttachments())
	}
	if len(c.buttons) > 0 {
		all = append(all, slackapi.WithButtons(c.text, c.buttons))
	}
	if c.undo != 0 {
		all = append(all, slackapi.Below(slackapi.Button{Label: msg.UndoLabel, Data: msg.UndoData(c.undo)}))
	}
	return slackgo.MsgOptionCompose(all...)
}

// noLinkPreviews is the choice of a new message; its edits keep it.
func noLinkPreviews() slackgo.MsgOption {
	return slackgo.MsgOptionCompose(slackgo.MsgOptionDisableLinkUnfurl(), slackgo.MsgOptionDisableMediaUnfurl())
}

// upload sends a file, which takes three calls; only the last of them shows it to users.
func (s *Sender) upload(ctx context.Context, c call) (ts string, err error) {
	f, err := c.file.Open()
	if err != nil {
		return "", err
	}
	defer f.Close()
	return s.API.Upload(ctx, slackapi.Upload{Channel: c.channel, Thread: c.thread, Name: c.file.Name, Comment: c.text,
		Data: f})
}

// RemoveUndo implements adapter.Undoer.
func (s *Sender) RemoveUndo(ctx context.Context, _ *msg.Message, part adapter.Part, platformID string) error {
	c, ts := part.(call), slackapi.MessageTS(platformID)
	if ts == "" { // of before the chat was moved
		return nil
	}
	_, _, _, err := s.API.UpdateMessageContext(ctx, c.channel, ts, slackgo.MsgOptionText(c.text, false),
		slackapi.WithoutAttachments())
	if err == nil || slackapi.Code(err) == slackapi.MessageGone {
		return nil
	}
	return slackapi.Failure(fmt.Errorf("removing a button: %w", err))
}

// Mark implements adapter.Marker. A file without a text gets the mark as its comment.
func (s *Sender) Mark(p adapter.Part) adapter.Part {
	c := p.(call)
	c.text = strings.TrimSpace(adapter.DuplicateMark + c.text)
	return c
}

// Fetch implements adapter.Fetcher.
func (s *Sender) Fetch(ctx context.Context, _ *msg.Message, ref string, w io.Writer) error {
	if id, is := strings.CutPrefix(ref, inbound.FilePrefix); is {
		url, err := s.API.FileURL(ctx, id)
		if err != nil {
			return err
		}
		ref = url
	}
	return s.API.Download(ctx, ref, w)
}
