// Package outbound cuts outbound rows into calls of the Bot API, and makes those calls.
package outbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strconv"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/chatmove"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/teled/internal/bot"
	"arizuko/teled/internal/telegramapi"
)

// The typing indicator is shown for typingLasts, and shown again typingMargin before that.
const (
	typingLasts  = 5 * time.Second
	typingMargin = time.Second
)

// Sender sends to Telegram. Its exported fields are set once.
type Sender struct {
	adapter.Identity
	API   *telegramapi.Client
	Bot   *bot.Bot
	Data  string // the data folder
	Store *store.Store
	Local bool // the server is run with --local
	Now   func() time.Time
	Log   *slog.Logger

	floods adapter.Floods
	forums adapter.Memo[int64, forum]
}

// Send implements adapter.Platform. The failure of a call that is refused for its form has another one.
func (s *Sender) Send(ctx context.Context, m *msg.Message, p adapter.Part) (platformID string, err error) {
	c := s.closing(p.(call))
	id, err := s.do(ctx, m, c)
	other, remark := c.otherForm(err)
	switch {
	case other != nil:
		f := s.API.Failure(ctx, err)
		f.Other, f.Remark = *other, remark
		return "", f
	case c.method == "stopPoll" && pollGone(err):
		return "", nil
	case telegramapi.RefusedFor(err, notModified):
		return "", nil // the message has this text already
	case c.method == "deleteMessage" && telegramapi.RefusedFor(err, "message to delete not found"):
		return "", nil // it is deleted already
	case telegramapi.RefusedFor(err, "topic_closed"): // General too
		f := s.API.Failure(ctx, err)
		f.Err = fmt.Errorf("the topic is closed, and so is General: reopen one of them or make the bot an "+
			"administrator of the group, then send this with `gated lost resend` (%w)", err)
		return "", f
	case err != nil:
		f := s.API.Failure(ctx, err)
		if !m.Decorates() { // reactions and edits have limits of their own
			f = s.flooded(m, f)
		}
		return "", s.followMigration(ctx, m, f)
	}
	s.taken(m)
	if c.remark != "" {
		return id, &adapter.Remark{Text: c.remark}
	}
	return id, nil
}

// flooded says of a failure whether the account has to wait, not only the chat.
func (s *Sender) flooded(m *msg.Message, f *adapter.Failure) *adapter.Failure {
	chat, _ := telegramapi.CutTopic(m.ChatJID)
	f.Account = f.Account || f.Class == msg.Rate && s.floods.Refused(chat, f.After)
	return f
}

// taken notes that Telegram took a message for a chat.
func (s *Sender) taken(m *msg.Message) {
	chat, _ := telegramapi.CutTopic(m.ChatJID)
	s.floods.Accepted(chat)
}

// minLeft and maxLeft bound the time, from now on, in which Telegram closes a poll by itself: its limits are 5
// and 600 s after the call arrives.
const (
	minLeft = 10 * time.Second
	maxLeft = 590 * time.Second
)

// closing lets Telegram close a poll that is open for a short time: users see how much is left. All others, and
// those that Telegram does not close, are closed by a row.
func (s *Sender) closing(c call) call {
	if c.closes == 0 {
		return c
	}
	if left := time.UnixMilli(c.closes).Sub(s.Now()); left >= minLeft && left <= maxLeft {
		c.params = maps.Clone(c.params)
		c.params["close_date"] = c.closes / 1000
	}
	return c
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
		return chatmove.Move(tx, m.ChatJID, telegramapi.JID(s.Platform, refused.MigrateTo), now)
	})
	if err == nil {
		_, err = chatmove.Finish(ctx, s.Store, now)
	}
	return &adapter.Failure{Class: msg.Transient, Err: errors.Join(f.Err, err)}
}

// pollGone reports whether a poll was not closed because it is closed already, or deleted.
func pollGone(err error) bool {
	return telegramapi.RefusedFor(err, "poll has already been closed") ||
		telegramapi.RefusedFor(err, "message with poll to stop not found")
}

// own makes a call one of the present bot. Where ids of messages are each bot's own, it leaves out the answered message
// and the topic if they are another bot's, and fails for good if the message that the call is about is. mark begins the
// id of a message that the call makes.
func (s *Sender) own(ctx context.Context, m *msg.Message, c call) (_ call, mark string, err error) {
	if !msg.IDsOfBot(m.ChatJID) {
		return c, "", nil
	}
	if mark, err = s.Bot.Mark(ctx); err != nil {
		return c, "", err
	}
	if c.params["message_id"] != nil && c.of.message != mark {
		return c, "", &adapter.Failure{Class: msg.Permanent,
			Err: errors.New("the message is of another bot, which alone can change it")}
	}
	if c.of.reply != mark {
		c = *c.without("reply_parameters")
	}
	if c.params["message_thread_id"] != nil && c.of.topic != mark {
		c = c.without("message_thread_id").beginning(outsideTopic)
	}
	return c, mark, nil
}

// do makes a call for a row and returns the id of the message it made, "" if it made none.
func (s *Sender) do(ctx context.Context, m *msg.Message, c call) (id string, err error) {
	c, mark, err := s.own(ctx, m, c)
	if err != nil {
		return "", err
	}
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
	return mark + strconv.FormatInt(sent.ID, 10), nil
}

// keepPollID stores the id by which votes name the poll of a row. Without it they are not counted, but
// the poll is sent.
func (s *Sender) keepPollID(ctx context.Context, m *msg.Message, id string) {
	err := s.Store.Write(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		return rows.PutPollRef(tx, s.Daemon, id, m.ID)
	})
	if err != nil {
		s.Log.Error("storing the id of a poll failed; its votes will not be counted", "row", m.ID, "chat", m.ChatJID,
			"err", err)
	}
}

// RemoveUndo implements adapter.Undoer. Users see no sign of an edit that changes only the buttons.
func (s *Sender) RemoveUndo(ctx context.Context, m *msg.Message, part adapter.Part, platformID string) error {
	c := call{method: "editMessageReplyMarkup",
		params: telegramapi.Params{"chat_id": part.(call).params["chat_id"]}}.about(platformID)
	if c.params["message_id"] == int64(0) { // of before the chat was moved
		return nil
	}
	_, err := s.do(ctx, m, c)
	if err == nil || telegramapi.RefusedFor(err, notModified) ||
		telegramapi.RefusedFor(err, "message to edit not found") {
		return nil
	}
	return s.API.Failure(ctx, err)
}

// Mark implements adapter.Marker.
func (s *Sender) Mark(p adapter.Part) adapter.Part {
	return p.(call).beginning(adapter.DuplicateMark)
}

// Type implements adapter.Typist.
func (s *Sender) Type(ctx context.Context, in store.Lane, works bool) error {
	if !works { // it expires by itself
		return nil
	}
	address, err := s.addressOf(&msg.Message{ChatJID: in.ChatJID, ThreadID: in.ThreadID})
	if err != nil {
		return err
	}
	if address.params[directTopic] != nil {
		return nil // Telegram shows none there
	}
	if in.ThreadID == "" && !msg.IDsOfBot(in.ChatJID) && s.isForum(ctx, address.params["chat_id"].(int64)) {
		address.params["message_thread_id"] = int64(general) // without it a forum shows nothing
	}
	address, _, err = s.own(ctx, &msg.Message{ChatJID: in.ChatJID}, address)
	if err != nil {
		return err
	}
	address.params["action"] = "typing"
	return s.API.Call(ctx, "sendChatAction", address.params, nil)
}

// TypingFor implements adapter.Typist.
func (s *Sender) TypingFor() time.Duration { return typingLasts - typingMargin }

// Fetch implements adapter.Fetcher.
func (s *Sender) Fetch(ctx context.Context, _ *msg.Message, ref string, w io.Writer) error {
	if err := s.API.Download(ctx, ref, w); err != nil {
		return s.API.Failure(ctx, err)
	}
	return nil
}
