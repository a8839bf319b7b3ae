package discordapi

import (
	"context"
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

// Application is the application that the bot belongs to.
func (c *Client) Application(ctx context.Context) (a Application, err error) {
	err = c.Call(ctx, http.MethodGet, "applications/@me", nil, &a)
	return a, err
}

// SessionsLeft is how many gateway sessions the bot may begin, and until when.
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

// MaxVoters is how many voters Voters returns at most.
const MaxVoters = 100

// Voters returns the users who voted for an answer of a poll, by id, after the one with an id, "" for
// the first.
func (c *Client) Voters(ctx context.Context, channel, message string, answer int, after string) ([]User, error) {
	var page struct {
		Users []User `json:"users"`
	}
	path := fmt.Sprintf("channels/%s/polls/%s/answers/%d?limit=%d", channel, message, answer, MaxVoters)
	if after != "" {
		path += "&after=" + after
	}
	err := c.Call(ctx, http.MethodGet, path, nil, &page)
	return page.Users, err
}

// Answer answers a command with a text that only its user sees.
func (c *Client) Answer(ctx context.Context, i *Interaction, text string) error {
	const message, ephemeral = 4, 1 << 6
	return c.Call(ctx, http.MethodPost, "interactions/"+i.ID+"/"+i.Token+"/callback", Params{
		"type": message, "data": Params{"content": text, "flags": ephemeral},
	}, nil)
}

// OptionText is the type of an option that takes a text.
const OptionText = 3

// Command is a slash command. Its options are never null.
type Command struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Options     []Option `json:"options"`
}

// Option is an argument of a command.
type Option struct {
	Type        int    `json:"type"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

// RegisterCommands replaces the application's commands, unless they are registered already.
func (c *Client) RegisterCommands(ctx context.Context, application string, commands []Command) error {
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
