// Package outbound cuts outbound rows into calls of Discord's REST API, and makes those calls.
package outbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

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
	API   *discordapi.Client
	Data  string // the data folder
	Store *store.Store
	Now   func() time.Time
}

// Send implements adapter.Platform. A call that is refused for its form is made in another one.
// A thread that a fork of the topic has at a message is created with its first part.
func (s *Sender) Send(ctx context.Context, m *msg.Message, p adapter.Part) (platformID string, err error) {
	c := p.(call)
	id, err := s.do(ctx, c)
	if c.sends() && m.ThreadID != "" && discordapi.RefusedFor(err, unknownChannel) {
		if err = s.openThread(ctx, m, err); err == nil {
			id, err = s.do(ctx, c)
		}
	}
	for other, ok := c.otherForm(err); ok; other, ok = c.otherForm(err) {
		c = other
		id, err = s.do(ctx, c)
	}
	switch {
	case c.endsPoll && (discordapi.RefusedFor(err, pollExpired) || discordapi.RefusedFor(err, unknownMessage)):
		return "", nil // it is closed already, or deleted
	case c.method == http.MethodDelete && discordapi.RefusedFor(err, unknownMessage):
		return "", nil // it is deleted already
	case err != nil:
		return "", discordapi.Failure(err)
	case c.remark != "":
		return id, &adapter.Remark{Text: c.remark}
	}
	return id, nil
}

// otherForm returns another form of a call that was refused with an error, and whether there is one. Each form is
// tried once.
func (c call) otherForm(refused error) (other call, ok bool) {
	switch {
	case replyRefused(refused) && c.body[referenceField] != nil: // a message that is no reply is better than none
		c.body = maps.Clone(c.body)
		delete(c.body, referenceField)
		c.remark = "sent without the reference to the message it answers: " + refused.Error()
		return c, true
	case c.file != nil && discordapi.RefusedFor(refused, tooLarge):
		text, _ := c.body["content"].(string)
		text = strings.TrimSpace(fmt.Sprintf("The file `%s` is larger than Discord takes here.\n\n%s", c.file.Name, text))
		c.file, c.remark = nil, "sent without the file: "+refused.Error()
		return c.with("content", firstText(text)), true
	case c.emoji != "" && !c.respelled && discordapi.RefusedFor(refused, unknownEmoji):
		return c.respell(), true
	}
	return c, false
}

// firstText is as much of a text as one message takes.
func firstText(text string) string {
	if parts := render.Discord(text, maxText); len(parts) > 0 {
		return parts[0]
	}
	return text
}

// do makes a call and returns the id of the message it made, "" if it made none.
func (s *Sender) do(ctx context.Context, c call) (id string, err error) {
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
	err = s.API.Call(ctx, c.method, c.route(), body, &made, files...)
	return made.ID, err
}

// replyRefused reports whether a message was refused because of the message it replies to.
func replyRefused(err error) bool {
	var refused *discordapi.Error
	return discordapi.RefusedFor(err, historyForbidden) ||
		discordapi.RefusedFor(err, invalidForm) && errors.As(err, &refused) && strings.Contains(refused.Message, referenceField)
}

// Mark implements adapter.Marker.
func (s *Sender) Mark(p adapter.Part) adapter.Part {
	c := p.(call)
	text, _ := c.body["content"].(string)
	if marked, shift := adapter.MarkDuplicate(text, maxText, utf8.RuneCountInString); c.sends() && shift > 0 {
		return c.with("content", marked)
	}
	return c
}

// Type implements adapter.Typist.
func (s *Sender) Type(ctx context.Context, in store.Lane) error {
	channel, err := channelOf(in.ChatJID, in.ThreadID)
	if err != nil {
		return err
	}
	return s.API.Call(ctx, http.MethodPost, "channels/"+channel+"/typing", nil, nil)
}

// TypingFor implements adapter.Typist.
func (s *Sender) TypingFor() time.Duration { return typingLasts - typingMargin }

// Fetch implements adapter.Fetcher.
func (s *Sender) Fetch(ctx context.Context, ref string, w io.Writer) error {
	return s.API.Download(ctx, ref, w)
}
