package discordapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Me is the bot.
func (c *Client) Me(ctx context.Context) (me User, err error) {
	err = c.Call(ctx, http.MethodGet, "users/@me", nil, &me)
	return me, err
}

// Application is what the bot belongs to.
func (c *Client) Application(ctx context.Context) (a Application, err error) {
	err = c.Call(ctx, http.MethodGet, "applications/@me", nil, &a)
	return a, err
}

// SessionsLeft is how many sessions of the gateway the bot may begin before some time has passed.
func (c *Client) SessionsLeft(ctx context.Context) (n int, until time.Duration, err error) {
	var gateway struct {
		Limit struct {
			Remaining  int   `json:"remaining"`
			ResetAfter int64 `json:"reset_after"` // milliseconds
		} `json:"session_start_limit"`
	}
	err = c.Call(ctx, http.MethodGet, "gateway/bot", nil, &gateway)
	return gateway.Limit.Remaining, time.Duration(gateway.Limit.ResetAfter) * time.Millisecond, err
}

// PageMost is how many messages Said gives at once.
const PageMost = 100

// Said is what was said in a channel after the message with an id, the oldest first. An undecoded
// message tells nothing of its guild.
func (c *Client) Said(ctx context.Context, channel, after string) (page []json.RawMessage, err error) {
	err = c.Call(ctx, http.MethodGet, fmt.Sprintf("channels/%s/messages?after=%s&limit=%d", channel, after, PageMost), nil, &page)
	slices.Reverse(page) // the API begins with the latest of them
	return page, err
}

// SaysNothing reports whether nothing is to be seen in a channel. Whether nothing was said there, or
// the bot lacks the permission to read what was, the API does not tell.
func (c *Client) SaysNothing(ctx context.Context, channel string) (bool, error) {
	var last []Message
	err := c.Call(ctx, http.MethodGet, "channels/"+channel+"/messages?limit=1", nil, &last)
	return len(last) == 0, err
}

// Answer says something to who gave a command, which nobody else sees.
func (c *Client) Answer(ctx context.Context, i *Interaction, text string) error {
	const message, ephemeral = 4, 1 << 6
	return c.Call(ctx, http.MethodPost, "interactions/"+i.ID+"/"+i.Token+"/callback", Params{
		"type": message, "data": Params{"content": text, "flags": ephemeral},
	}, nil)
}

// OptionText is the kind of option that takes a text.
const OptionText = 3

// Command is a slash command on offer. Its options are never null.
type Command struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Options     []Option `json:"options"`
}

// Option is something to be given with a command.
type Option struct {
	Type        int    `json:"type"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Offer has Discord offer commands in place of all others, unless it does.
func (c *Client) Offer(ctx context.Context, application string, commands []Command) error {
	path := "applications/" + application + "/commands"
	var there []Command
	if err := c.Call(ctx, http.MethodGet, path, nil, &there); err != nil {
		return err
	}
	same := func(a, b Command) bool {
		return a.Name == b.Name && a.Description == b.Description && slices.Equal(a.Options, b.Options)
	}
	missing := slices.ContainsFunc(commands, func(c Command) bool {
		return !slices.ContainsFunc(there, func(other Command) bool { return same(c, other) })
	})
	if !missing && len(there) == len(commands) {
		return nil
	}
	return c.Call(ctx, http.MethodPut, path, commands, nil)
}
