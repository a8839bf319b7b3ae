package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"arizuko/discd/internal/discordapi"
	"arizuko/discd/internal/history"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Discord's codes of refusals that are met.
const (
	unknownMessage  = 10008
	invalidForm     = 50035
	historyUnseen   = 160002 // one may not reply where one may not read
	referenceFailed = "message_reference"
)

const (
	// nonceHolds is how long a part that is sent again with its nonce is the part that was sent
	// before. Discord says: some minutes.
	nonceHolds = 2 * time.Minute
	// clockSlack is how far our clock may be ahead of Discord's.
	clockSlack = time.Minute
)

// Send implements adapter.Platform.
func (d *discord) Send(ctx context.Context, _ *msg.Message, p adapter.Part) (platformID string, err error) {
	c := p.(call)
	id, err := d.do(ctx, c)
	var remark error
	if unanswerable(err) && c.body["message_reference"] != nil { // better beside it than not at all
		remark = &adapter.Remark{Text: "sent without naming what it answers: " + err.Error()}
		c.body = maps.Clone(c.body)
		delete(c.body, "message_reference")
		id, err = d.do(ctx, c)
	}
	switch {
	case err == nil:
		return id, remark
	case c.method == http.MethodDelete && refusedFor(err, unknownMessage):
		return "", nil // it is gone already
	}
	return "", failure(err)
}

// do makes a call and returns the id of the message it made, "" if it made none.
func (d *discord) do(ctx context.Context, c call) (id string, err error) {
	var files []discordapi.Upload
	if c.file != nil {
		f, err := os.Open(c.file.path)
		if err != nil {
			return "", &adapter.Failure{Class: msg.Permanent, Err: errors.New("the file cannot be read any more")}
		}
		defer f.Close()
		files = append(files, discordapi.Upload{Name: c.file.name, Data: f})
	}
	var body any
	if c.body != nil {
		body = c.body
	}
	if !c.makes() {
		return "", d.api.Call(ctx, c.method, c.route(), body, nil, files...)
	}
	var made discordapi.Message
	err = d.api.Call(ctx, c.method, c.route(), body, &made, files...)
	return made.ID, err
}

// Find implements adapter.Finder. While Discord knows the nonce, sending the part again is asking
// for it. Later it is looked for in the channel.
func (d *discord) Find(ctx context.Context, m *msg.Message, p adapter.Part) (platformID string, err error) {
	c := p.(call)
	if !c.makes() { // done twice is done once
		return "", nil
	}
	if age := d.now().Sub(time.UnixMilli(m.ReceivedAt)); age < 0 || age >= nonceHolds { // it was sent no earlier
		return d.search(ctx, m, c)
	}
	id, err := d.Send(ctx, m, p)
	var f *adapter.Failure
	var remark *adapter.Remark
	switch {
	case errors.As(err, &f) && f.Class == msg.Permanent:
		return "", nil // it is not taken, and Send says why
	case errors.As(err, &remark):
		return id, nil
	}
	return id, err
}

// search looks for a message of ours that says what a part says, and that is no other part. Its
// failure is permanent where nobody can ever tell.
func (d *discord) search(ctx context.Context, m *msg.Message, c call) (platformID string, err error) {
	me, err := d.api.Me(ctx)
	if err != nil {
		return "", failure(err)
	}
	since := history.Gap{Channel: c.channel, After: discordapi.SnowflakeAt(m.ReceivedAt - clockSlack.Milliseconds())}
	id, err := history.Search(ctx, d.api, since, func(sent *discordapi.Message) (bool, error) {
		if sent.Author == nil || sent.Author.ID != me.ID || !c.says(sent) {
			return false, nil
		}
		other, err := d.store.MessageByPlatformID(ctx, m.ChatJID, sent.ID)
		return other == nil, err
	})
	switch {
	case errors.Is(err, history.ErrUncertain):
		return "", &adapter.Failure{Class: msg.Permanent, Err: err}
	case err != nil:
		return "", failure(err)
	}
	return id, nil
}

// says reports whether a message is what a call makes.
func (c call) says(sent *discordapi.Message) bool {
	content, _ := c.body["content"].(string)
	poll, _ := c.body["poll"].(discordapi.Poll)
	question := discordapi.PollMedia{}
	if sent.Poll != nil {
		question = sent.Poll.Question
	}
	return strings.TrimSpace(sent.Content) == strings.TrimSpace(content) && question == poll.Question &&
		(c.file != nil) == (len(sent.Attachments) > 0)
}

// Mark implements adapter.Marker.
func (d *discord) Mark(p adapter.Part) adapter.Part {
	const mark = "(possibly sent twice) "
	c := p.(call)
	text, says := c.body["content"].(string)
	if marked := mark + text; says && c.makes() && utf8.RuneCountInString(marked) <= textMost {
		return c.with("content", marked)
	}
	return c
}

// Type implements adapter.Typist.
func (d *discord) Type(ctx context.Context, in store.Lane) error {
	channel, err := channelOf(in.ChatJID, in.ThreadID)
	if err != nil {
		return err
	}
	return d.api.Call(ctx, http.MethodPost, "channels/"+channel+"/typing", nil, nil)
}

// TypingFor implements adapter.Typist.
func (d *discord) TypingFor() time.Duration { return typingLasts - typingMargin }

// Fetch implements adapter.Fetcher.
func (d *discord) Fetch(ctx context.Context, ref string, w io.Writer) error {
	return d.api.Download(ctx, ref, w)
}

// unanswerable says whether a message was refused for what it replies to.
func unanswerable(err error) bool {
	var refused *discordapi.Error
	return refusedFor(err, historyUnseen) ||
		refusedFor(err, invalidForm) && errors.As(err, &refused) && strings.Contains(refused.Message, referenceFailed)
}

func refusedFor(err error, code int) bool {
	var refused *discordapi.Error
	return errors.As(err, &refused) && refused.Code == code
}

// failure says what kind of failure a call's error is. What neither the API refused nor never
// reached it may have been done.
func failure(err error) *adapter.Failure {
	var given *adapter.Failure
	var refused *discordapi.Error
	switch {
	case errors.As(err, &given):
		return given
	case errors.Is(err, discordapi.ErrUnsent):
		return &adapter.Failure{Class: msg.Transient, Err: err}
	case !errors.As(err, &refused):
		return &adapter.Failure{Class: msg.Ambiguous, Err: err}
	}
	f := &adapter.Failure{Class: msg.Permanent, After: refused.RetryAfter, Err: err}
	switch refused.Status {
	case http.StatusTooManyRequests:
		f.Class = msg.Rate
	case http.StatusUnauthorized:
		f.Class = msg.Auth
	}
	if refused.Status >= http.StatusInternalServerError {
		f.Class = msg.Ambiguous
	}
	return f
}
