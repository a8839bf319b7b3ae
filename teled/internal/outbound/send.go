package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/teled/internal/telegramapi"
)

// Send implements adapter.Platform.
func (t *telegram) Send(ctx context.Context, m *msg.Message, p adapter.Part) (platformID string, err error) {
	c := p.(call)
	id, err := t.do(ctx, c)
	if c.plain != "" && badEntities(err) { // better plain than not at all
		remark := &adapter.Remark{Text: "sent without its formatting: " + err.Error()}
		c.params = maps.Clone(c.params)
		delete(c.params, "entities")
		delete(c.params, "caption_entities")
		if id, err = t.do(ctx, c); err == nil {
			err = remark
		}
	}
	if unmodified(err) {
		return "", nil // it says so already
	}
	if remark := new(adapter.Remark); err == nil || errors.As(err, &remark) {
		return id, err
	}
	return "", t.follow(ctx, m, failure(err))
}

// follow moves the chat of a row that could not be sent because the chat has become a
// supergroup; the row goes with it.
func (t *telegram) follow(ctx context.Context, m *msg.Message, f *adapter.Failure) error {
	var refused *telegramapi.Error
	if !errors.As(f.Err, &refused) || refused.MigrateTo == 0 {
		return f
	}
	err := t.move(ctx, m.ChatJID, telegramapi.JID(refused.MigrateTo))
	return &adapter.Failure{Class: msg.Transient, Err: errors.Join(f.Err, err)}
}

// do makes a call and returns the id of the message it made, "" if it made none.
func (t *telegram) do(ctx context.Context, c call) (id string, err error) {
	var files []telegramapi.Upload
	if c.file != nil {
		f, err := os.Open(c.file.path)
		if err != nil {
			return "", &adapter.Failure{Class: msg.Permanent, Err: errors.New("the file cannot be read any more")}
		}
		defer f.Close()
		files = append(files, telegramapi.Upload{Field: c.file.field, Name: c.file.name, Data: f})
	}
	if !strings.HasPrefix(c.method, "send") {
		return "", t.api.Call(ctx, c.method, c.params, nil, files...)
	}
	var sent struct {
		ID int64 `json:"message_id"`
	}
	err = t.api.Call(ctx, c.method, c.params, &sent, files...)
	return strconv.FormatInt(sent.ID, 10), err
}

// Mark implements adapter.Marker.
func (t *telegram) Mark(p adapter.Part) adapter.Part {
	const mark = "(possibly sent twice) "
	c := p.(call)
	if c.plain == "" {
		return c
	}
	c.params = maps.Clone(c.params)
	text, _ := c.params[c.plain].(string)
	if marked := mark + text; utf16Len(marked) <= textMost {
		c.params[c.plain] = marked
		shift(c.params, len(mark))
	}
	return c
}

// Type implements adapter.Typist.
func (t *telegram) Type(ctx context.Context, in store.Lane) error {
	address, err := t.address(&msg.Message{ChatJID: in.ChatJID, ThreadID: in.ThreadID})
	if err != nil {
		return err
	}
	address["action"] = "typing"
	return t.api.Call(ctx, "sendChatAction", address, nil)
}

// TypingFor implements adapter.Typist.
func (t *telegram) TypingFor() time.Duration { return typingLasts - time.Second }

// Fetch implements adapter.Fetcher.
func (t *telegram) Fetch(ctx context.Context, ref string, w io.Writer) error {
	return t.api.Download(ctx, ref, w)
}

// badEntities says whether a text was refused for its formatting.
func badEntities(err error) bool { return refusedFor(err, "entit") }

// unmodified says whether an edit was refused because it changes nothing.
func unmodified(err error) bool { return refusedFor(err, "message is not modified") }

func refusedFor(err error, what string) bool {
	var refused *telegramapi.Error
	return errors.As(err, &refused) && refused.Code == http.StatusBadRequest &&
		strings.Contains(strings.ToLower(refused.Description), what)
}

// failure says what kind of failure a call's error is. What neither the API refused nor never
// reached it may have been done.
func failure(err error) *adapter.Failure {
	var given *adapter.Failure
	var refused *telegramapi.Error
	switch {
	case errors.As(err, &given):
		return given
	case errors.Is(err, telegramapi.ErrUnsent):
		return &adapter.Failure{Class: msg.Transient, Err: err}
	case !errors.As(err, &refused):
		return &adapter.Failure{Class: msg.Ambiguous, Err: err}
	}
	f := &adapter.Failure{Class: msg.Permanent, After: refused.RetryAfter, Err: err}
	switch refused.Code {
	case http.StatusTooManyRequests:
		f.Class = msg.Rate
	case http.StatusUnauthorized, http.StatusNotFound: // of a token that is no longer valid, or never was
		f.Class = msg.Auth
	}
	if refused.Code >= http.StatusInternalServerError {
		f.Class = msg.Ambiguous
	}
	return f
}
