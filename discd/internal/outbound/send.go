// Package outbound cuts outbound rows into calls of Discord's REST API, and makes those calls.
package outbound

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/store"
)

// Discord's codes of refusals that are handled.
const (
	unknownChannel   = 10003
	unknownMessage   = 10008
	invalidForm      = 50035
	unknownEmoji     = 10014
	tooLarge         = 40005
	pollExpired      = 520001
	threadExists     = 160004
	threadArchived   = 50083
	threadLocked     = 160005
	missingAccess    = 50001
	noPermission     = 50013  // permissions are missing
	noPrivate        = 50007  // the user does not accept messages
	noTopLevel       = 50008  // the channel contains only threads
	noUploads        = 400001 // the guild may send no files for now
	historyForbidden = 160002 // a reply in a channel whose history the bot may not read
	referenceField   = "message_reference"
)

// The typing indicator is shown for typingLasts, and shown again typingMargin before that.
const (
	typingLasts  = 10 * time.Second
	typingMargin = 2 * time.Second
)

// Sender sends to Discord. Its fields are set once.
type Sender struct {
	adapter.Identity
	API   *discordapi.Client
	Data  string // the data folder
	Store *store.Store
	Now   func() time.Time

	joined adapter.Memo[string, bool] // threads, since the process began
}

// Send implements adapter.Platform. The failure of a call that is refused for its form or its place has another
// one.
func (s *Sender) Send(ctx context.Context, m *msg.Message, p adapter.Part) (platformID string, err error) {
	c := p.(call)
	id, err := s.do(ctx, m, c)
	if err == nil {
		return id, nil
	}
	other, remark := c.otherForm(err)
	switch {
	case other != nil || m.ThreadID == "":
	case c.sends():
		other, remark, err = s.otherPlace(ctx, m, c, err)
	case c.emoji == "" && c.entry == join && discordapi.RefusedFor(err, threadArchived): // a reaction reopens no thread
		c.entry = unarchive
		other = &c
	}
	switch {
	case other != nil:
		return "", &adapter.Failure{Class: msg.Permanent, Other: *other, Remark: remark, Err: err}
	case c.endsPoll && (discordapi.RefusedFor(err, pollExpired) || discordapi.RefusedFor(err, unknownMessage)):
		return "", nil // it is closed already, or deleted
	case c.method == http.MethodDelete && discordapi.RefusedFor(err, unknownMessage):
		return "", nil // it is deleted already
	}
	return "", discordapi.Failure(c.explain(err, m.ThreadID != ""))
}

// otherForm returns another form of a call that was refused with an error, and a remark about the difference;
// nil if there is none. Each form is tried once.
func (c call) otherForm(refused error) (other *call, remark string) {
	switch {
	case replyRefused(refused) && c.body[referenceField] != nil: // a message that is no reply is better than none
		c.body = maps.Clone(c.body)
		delete(c.body, referenceField)
		return &c, "sent without the reference to the message it answers: " + refused.Error()
	case c.file != nil && discordapi.RefusedFor(refused, tooLarge):
		c = c.instead(tooLargeHere(c.file))
		return &c, "sent without the file: " + refused.Error()
	case c.file != nil && (discordapi.RefusedFor(refused, noPermission) || discordapi.RefusedFor(refused, noUploads)):
		c = c.instead(c.file.Refused("Discord"))
		return &c, "sent without the file: the bot may lack the permission Attach Files: " + refused.Error()
	case c.hasButtons() && formRefused(refused, buttonsField): // the text of a question has numbers
		c = c.withoutButtons()
		return &c, "sent without buttons: " + refused.Error()
	case c.emoji != "" && !c.respelled && discordapi.RefusedFor(refused, unknownEmoji):
		c = c.respell()
		return &c, ""
	}
	return nil, ""
}

func tooLargeHere(f *adapter.File) string {
	return fmt.Sprintf("The file `%s` is larger than Discord takes here.", f.Name)
}

// instead is a call with a notice in place of its file, above its text, which is rendered already.
func (c call) instead(notice string) call {
	text, _ := c.body["content"].(string)
	c.file = nil
	return c.with("content", strings.TrimSpace(render.Discord(notice, noticeRoom-2)[0]+"\n\n"+text))
}

// do prepares the thread of a call, makes the call, and returns the id of the message it made, "" if it
// made none.
func (s *Sender) do(ctx context.Context, m *msg.Message, c call) (id string, err error) {
	if err := s.enter(ctx, m, c); err != nil {
		return "", err
	}
	var files []discordapi.Upload
	if c.file != nil {
		f, err := c.file.Open()
		if err != nil {
			return "", err
		}
		defer f.Close()
		files = append(files, discordapi.Upload{Name: c.file.Name, Data: f})
	}
	var body any
	if c.body != nil {
		body = c.body
	}
	if !c.sends() {
		return "", s.API.Call(ctx, c.method, c.route(), body, nil, files...)
	}
	var made discordapi.Message
	if err = s.API.Call(ctx, c.method, c.route(), body, &made, files...); err == nil && made.ID == "" {
		err = adapter.ErrNoMessage
	}
	return made.ID, err
}

// replyRefused reports whether a message was refused because of the message it replies to.
func replyRefused(err error) bool {
	return discordapi.RefusedFor(err, historyForbidden) || formRefused(err, referenceField)
}

// formRefused reports whether a call was refused because of a field of its body.
func formRefused(err error, field string) bool {
	var refused *discordapi.Error
	return discordapi.RefusedFor(err, invalidForm) && errors.As(err, &refused) &&
		strings.Contains(refused.Message, field)
}

// RemoveUndo implements adapter.Undoer.
func (s *Sender) RemoveUndo(ctx context.Context, _ *msg.Message, part adapter.Part, platformID string) error {
	c := call{method: http.MethodPatch, channel: part.(call).channel, path: "/" + messageID(platformID),
		body: discordapi.Params{}}.withoutButtons()
	if messageID(platformID) == "" { // of before the chat was moved
		return nil
	}
	err := s.API.Call(ctx, c.method, c.route(), c.body, nil)
	if err == nil || discordapi.RefusedFor(err, unknownMessage) || discordapi.RefusedFor(err, unknownChannel) {
		return nil
	}
	return discordapi.Failure(err)
}

// Mark implements adapter.Marker. A file without a text gets the mark as its text. A poll gets it in front of its
// question, which loses its end if both are too long.
func (s *Sender) Mark(p adapter.Part) adapter.Part {
	c := p.(call)
	if poll, ok := c.body["poll"].(discordapi.Poll); ok {
		question := []rune(adapter.DuplicateMark + poll.Question.Text)
		if len(question) > maxQuestion {
			question = append(question[:maxQuestion-1], '…')
		}
		poll.Question.Text = string(question)
		return c.with("poll", poll)
	}
	text, _ := c.body["content"].(string)
	return c.with("content", strings.TrimSpace(adapter.DuplicateMark+text))
}

// Type implements adapter.Typist.
func (s *Sender) Type(ctx context.Context, in store.Lane, works bool) error {
	if !works { // it expires by itself
		return nil
	}
	channel, err := s.channelOf(in.ChatJID, in.ThreadID)
	if err != nil {
		return err
	}
	return s.API.Call(ctx, http.MethodPost, "channels/"+channel+"/typing", nil, nil)
}

// TypingFor implements adapter.Typist.
func (s *Sender) TypingFor() time.Duration { return typingLasts - typingMargin }
