// Package outbound cuts outbound rows into calls of the Bot API, and makes those calls.
package outbound

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"strconv"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/store"
	"arizuko/teled/internal/telegramapi"
)

// The typing indicator is shown for typingLasts, and shown again typingMargin before that.
const (
	typingLasts  = 5 * time.Second
	typingMargin = time.Second
)

// Sender sends to Telegram. Its fields are set once.
type Sender struct {
	API   *telegramapi.Client
	Data  string // the data folder
	Store *store.Store
	Now   func() time.Time
	Log   *slog.Logger
}

// Send implements adapter.Platform. A call that is refused for its form is made in another one.
func (s *Sender) Send(ctx context.Context, m *msg.Message, p adapter.Part) (platformID string, err error) {
	c := p.(call)
	id, err := s.do(ctx, m, c)
	for other, ok := c.otherForm(err); ok; other, ok = c.otherForm(err) {
		c = other
		id, err = s.do(ctx, m, c)
	}
	switch {
	case c.method == "stopPoll" && pollGone(err):
		return "", nil
	case telegramapi.RefusedFor(err, "message is not modified"):
		return "", nil // the message has this text already
	case c.method == "deleteMessage" && telegramapi.RefusedFor(err, "message to delete not found"):
		return "", nil // it is deleted already
	case err != nil:
		return "", s.followMigration(ctx, m, telegramapi.Failure(err))
	case c.remark != "":
		return id, &adapter.Remark{Text: c.remark}
	}
	return id, nil
}

// followMigration moves a chat, with the row that could not be sent there, if the chat has become a
// supergroup.
func (s *Sender) followMigration(ctx context.Context, m *msg.Message, f *adapter.Failure) error {
	var refused *telegramapi.Error
	if !errors.As(f.Err, &refused) || refused.MigrateTo == 0 {
		return f
	}
	now := s.Now().UnixMilli()
	err := s.Store.Write(ctx, func(tx *store.Tx) error {
		return tx.MoveChat(m.ChatJID, telegramapi.JID(refused.MigrateTo), now)
	})
	if err == nil {
		_, err = s.Store.FinishMoves(ctx, now)
	}
	return &adapter.Failure{Class: msg.Transient, Err: errors.Join(f.Err, err)}
}

// pollGone reports whether a poll was not closed because it is closed already, or deleted.
func pollGone(err error) bool {
	return telegramapi.RefusedFor(err, "poll has already been closed") || telegramapi.RefusedFor(err, "message with poll to stop not found")
}

// do makes a call for a row and returns the id of the message it made, "" if it made none.
func (s *Sender) do(ctx context.Context, m *msg.Message, c call) (id string, err error) {
	var files []telegramapi.Upload
	if c.file != nil {
		f, err := c.file.Open()
		if err != nil {
			return "", err
		}
		defer f.Close()
		files = append(files, telegramapi.Upload{Field: c.field, Name: c.file.Name, Data: f})
	}
	if !c.sends() {
		return "", s.API.Call(ctx, c.method, c.params, nil, files...)
	}
	var sent struct {
		ID   int64             `json:"message_id"`
		Poll *telegramapi.Poll `json:"poll"`
	}
	if err = s.API.Call(ctx, c.method, c.params, &sent, files...); err != nil {
		return "", err
	}
	if sent.Poll != nil && sent.Poll.ID != "" {
		s.keepPollID(ctx, m, sent.Poll.ID)
	}
	return strconv.FormatInt(sent.ID, 10), nil
}

// keepPollID stores the id by which votes name the poll of a row. Without it they are not counted, but
// the poll is sent.
func (s *Sender) keepPollID(ctx context.Context, m *msg.Message, id string) {
	err := s.Store.Write(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		return tx.PutPollRef(msg.DaemonOf(m.ChatJID), id, m.ID)
	})
	if err != nil {
		s.Log.Error("storing the id of a poll failed; its votes will not be counted", "row", m.ID, "chat", m.ChatJID, "err", err)
	}
}

// Mark implements adapter.Marker.
func (s *Sender) Mark(p adapter.Part) adapter.Part {
	c := p.(call)
	text, _ := c.params[c.text].(string)
	limit := maxText
	if c.method == "sendPoll" {
		limit = maxPoll
	}
	if marked, shift := adapter.MarkDuplicate(text, limit, render.UTF16Len); shift > 0 {
		c.params = maps.Clone(c.params)
		c.params[c.text] = marked
		shiftEntities(c.params, shift)
	}
	return c
}

// Type implements adapter.Typist.
func (s *Sender) Type(ctx context.Context, in store.Lane) error {
	address, err := addressOf(&msg.Message{ChatJID: in.ChatJID, ThreadID: in.ThreadID})
	if err != nil {
		return err
	}
	address["action"] = "typing"
	return s.API.Call(ctx, "sendChatAction", address, nil)
}

// TypingFor implements adapter.Typist.
func (s *Sender) TypingFor() time.Duration { return typingLasts - typingMargin }

// Fetch implements adapter.Fetcher.
func (s *Sender) Fetch(ctx context.Context, ref string, w io.Writer) error {
	if err := s.API.Download(ctx, ref, w); err != nil {
		return telegramapi.Failure(err)
	}
	return nil
}
