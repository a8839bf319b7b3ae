package slackapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// maxAnswer bounds the answer to a call, in bytes.
const maxAnswer = 32 << 20

// Window is a range of ids of messages, without its ends; "" is no end.
type Window struct{ Oldest, Latest string }

// Page is a page of messages as Slack sent them: those of a channel newest first, those of a thread oldest
// first, after the thread's first message, which begins each page.
type Page struct {
	Messages []json.RawMessage
	Next     string // the cursor of the next page, "" for none
}

// noEnd is a time that no message has, in place of no end: where only the oldest is given, some of Slack's
// documentation has the page that is closest to it come first.
const noEnd = "9999999999.000000"

// History returns a page of the messages of a channel that are not only in threads. Slack shortens pages
// for some apps.
func (c *Client) History(ctx context.Context, channel string, w Window, cursor string) (Page, error) {
	w.Latest = cmp.Or(w.Latest, noEnd)
	return c.page(ctx, "conversations.history", url.Values{"channel": {channel}}, w, cursor)
}

// Replies returns a page of the messages of a thread.
func (c *Client) Replies(ctx context.Context, channel, thread string, w Window, cursor string) (Page, error) {
	return c.page(ctx, "conversations.replies", url.Values{"channel": {channel}, "ts": {thread}}, w, cursor)
}

func (c *Client) page(ctx context.Context, method string, params url.Values, w Window, cursor string) (Page, error) {
	params.Set("limit", strconv.Itoa(pageSize))
	params.Set("include_all_metadata", "true")
	for name, value := range map[string]string{"oldest": w.Oldest, "latest": w.Latest, "cursor": cursor} {
		if value != "" {
			params.Set(name, value)
		}
	}
	var answer struct {
		Messages []json.RawMessage      `json:"messages"`
		Metadata slack.ResponseMetadata `json:"response_metadata"`
	}
	err := c.call(ctx, method, params, &answer)
	return Page{answer.Messages, answer.Metadata.Cursor}, err
}

// Reactions returns a message as Slack sends it with all users of its reactions.
func (c *Client) Reactions(ctx context.Context, channel, ts string) (json.RawMessage, error) {
	var answer struct {
		Message json.RawMessage `json:"message"`
	}
	err := c.call(ctx, "reactions.get", url.Values{"channel": {channel}, "timestamp": {ts}, "full": {"true"}}, &answer)
	return answer.Message, err
}

// Conversation is one that the bot is in.
type Conversation struct {
	ID       string `json:"id"`
	IsMember bool   `json:"is_member"` // of a channel
	IsIM     bool   `json:"is_im"`
	IsMpIM   bool   `json:"is_mpim"`
}

// conversationTypes are listed by one call each, since a missing scope refuses the whole call.
func conversationTypes() []string {
	return []string{"im", "mpim", "private_channel", "public_channel"}
}

// Conversations lists all conversations that the bot is in. Types that Slack refuses to list, for example because a
// scope is missing, are left out, and refused has the last reason.
func (c *Client) Conversations(ctx context.Context) (all []Conversation, refused, err error) {
	for _, kind := range conversationTypes() {
		found, err := c.conversationsOf(ctx, "users.conversations", kind)
		if Code(err) == "unknown_method" || Code(err) == "method_not_found" { // of a server that is not Slack
			found, err = c.conversationsOf(ctx, "conversations.list", kind)
		}
		switch {
		case err != nil && Failure(err).Class == msg.Permanent:
			refused = fmt.Errorf("conversations of type %s: %w", kind, Explain(err))
		case err != nil:
			return nil, nil, err
		}
		all = append(all, found...)
	}
	return all, refused, nil
}

// conversationsOf lists the conversations of a type, also those that are listed before an error.
func (c *Client) conversationsOf(ctx context.Context, method, kind string) (all []Conversation, err error) {
	params := url.Values{"types": {kind}, "limit": {strconv.Itoa(pageSize)}, "exclude_archived": {"true"}}
	for {
		var answer struct {
			Channels []json.RawMessage      `json:"channels"`
			Metadata slack.ResponseMetadata `json:"response_metadata"`
		}
		if err := c.Patiently(ctx, func() error { return c.call(ctx, method, params, &answer) }); err != nil {
			return all, err
		}
		for _, raw := range answer.Channels {
			var found Conversation
			_ = json.Unmarshal(raw, &found) // an odd one is left as far as it can be read
			if found.ID != "" && (method == "users.conversations" || found.IsMember || found.IsIM || found.IsMpIM) {
				all = append(all, found)
			}
		}
		if answer.Metadata.Cursor == "" || len(answer.Channels) == 0 {
			return all, nil
		}
		params.Set("cursor", answer.Metadata.Cursor)
	}
}

// Patiently repeats a call that Slack's rate limits refuse when Slack allows it, unless ctx ends before.
func (c *Client) Patiently(ctx context.Context, call func() error) error {
	for {
		err := call()
		wait, limited := RetryAfter(err)
		if !limited {
			return err
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
			return err
		}
		adapter.Pause(ctx, wait)
		if ctx.Err() != nil {
			return err
		}
	}
}

// call calls a method whose answer the library would decode too strictly. Its errors are those of the
// library.
func (c *Client) call(ctx context.Context, method string, params url.Values, answer any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+method, strings.NewReader(params.Encode()))
	if err != nil {
		return fmt.Errorf("invalid URL of %s", method)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer "+c.token)
	res, err := doer{c.http}.Do(req)
	if err != nil {
		return adapter.TransportError(err)
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusTooManyRequests:
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		return &slack.RateLimitedError{RetryAfter: time.Duration(max(seconds, 1)) * time.Second}
	case res.StatusCode != http.StatusOK:
		return slack.StatusCodeError{Code: res.StatusCode, Status: res.Status}
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return err
	}
	var outcome slack.SlackResponse
	if err := json.Unmarshal(body, &outcome); err != nil {
		return fmt.Errorf("Slack's answer is not one of its API: %w", err)
	}
	if !outcome.Ok {
		return slack.SlackErrorResponse{Err: outcome.Error, Needed: outcome.Needed, Provided: outcome.Provided}
	}
	return json.Unmarshal(body, answer)
}
