package discordapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
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

// Gateway is where the bot may begin sessions of the gateway, and how many.
type Gateway struct {
	URL  string        // of websockets
	Left int           // sessions that may begin
	Till time.Duration // until there are more
}

// Gateway returns where sessions begin.
func (c *Client) Gateway(ctx context.Context) (Gateway, error) {
	var answer struct {
		URL   string `json:"url"`
		Limit struct {
			Remaining  int   `json:"remaining"`
			ResetAfter int64 `json:"reset_after"` // milliseconds
		} `json:"session_start_limit"`
	}
	err := c.Call(ctx, http.MethodGet, "gateway/bot", nil, &answer)
	return Gateway{answer.URL, answer.Limit.Remaining, time.Duration(answer.Limit.ResetAfter) * time.Millisecond}, err
}

// ArchivedThreads returns the public threads of a channel that were archived before a time, the last archived first,
// and whether there are more. The zero time is now.
func (c *Client) ArchivedThreads(ctx context.Context, channel string, before time.Time) ([]Channel, bool, error) {
	from := ""
	if !before.IsZero() {
		from = before.UTC().Format(time.RFC3339Nano)
	}
	return c.archivedThreads(ctx, "channels/"+channel+"/threads/archived/public", from)
}

// JoinedArchivedThreads returns the archived private threads of a channel in which the bot is and that were made before
// the one with an id, "" for all, the last made first, and whether there are more.
func (c *Client) JoinedArchivedThreads(ctx context.Context, channel, before string) ([]Channel, bool, error) {
	return c.archivedThreads(ctx, "channels/"+channel+"/users/@me/threads/archived/private", before)
}

func (c *Client) archivedThreads(ctx context.Context, path, before string) ([]Channel, bool, error) {
	var page struct {
		Threads []Channel `json:"threads"`
		More    bool      `json:"has_more"`
	}
	path += fmt.Sprintf("?limit=%d", MaxPage)
	if before != "" {
		path += "&before=" + url.QueryEscape(before)
	}
	err := c.Call(ctx, http.MethodGet, path, nil, &page)
	return page.Threads, page.More, err
}

// JoinThread makes the bot a member of a thread, if it is not one.
func (c *Client) JoinThread(ctx context.Context, thread string) error {
	return c.Call(ctx, http.MethodPut, "channels/"+thread+"/thread-members/@me", nil, nil)
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

// Acknowledge answers the press of a button with nothing.
func (c *Client) Acknowledge(ctx context.Context, i *Interaction) error {
	const deferUpdate = 6
	return c.Call(ctx, http.MethodPost, "interactions/"+i.ID+"/"+i.Token+"/callback", Params{"type": deferUpdate}, nil)
}

// Answer answers a command, or the press of a button, with a text that only its user sees.
func (c *Client) Answer(ctx context.Context, i *Interaction, text string) error {
	const message, ephemeral = 4, 1 << 6
	return c.Call(ctx, http.MethodPost, "interactions/"+i.ID+"/"+i.Token+"/callback", Params{
		"type": message, "data": Params{"content": text, "flags": ephemeral},
	}, nil)
}

// Message returns one message of a channel, not decoded.
func (c *Client) Message(ctx context.Context, channel, id string) (m json.RawMessage, err error) {
	err = c.Call(ctx, http.MethodGet, "channels/"+channel+"/messages/"+id, nil, &m)
	return m, err
}

// OptionText is the type of an option that takes a text.
const OptionText = 3

// Command is a slash command. Its options are never null.
type Command struct {
	ID          string   `json:"id,omitempty"`
	Type        int      `json:"type,omitempty"` // CommandSlash, which is the default, or another kind
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Options     []Option `json:"options"`
}

// CommandSlash is the type of commands that users write. Others are menus, and the entry point of an Activity.
const CommandSlash = 1

// Option is an argument of a command.
type Option struct {
	Type        int    `json:"type"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

// RegisterCommands makes the application have some slash commands: one by one, those that it lacks, and those that are
// still as they were offered before. It leaves all others as they are, also one of these names that another program
// made, or changed.
func (c *Client) RegisterCommands(ctx context.Context, application string, commands, offered []Command) error {
	path := "applications/" + application + "/commands"
	var there []Command
	if err := c.Call(ctx, http.MethodGet, path, nil, &there); err != nil {
		return err
	}
	for _, wanted := range commands {
		i := slices.IndexFunc(there, func(other Command) bool {
			return other.Name == wanted.Name && (other.Type == 0 || other.Type == CommandSlash)
		})
		var err error
		switch {
		case i < 0:
			err = c.Call(ctx, http.MethodPost, path, wanted, nil)
		case !there[i].shows(wanted) && slices.ContainsFunc(offered, there[i].shows):
			err = c.Call(ctx, http.MethodPatch, path+"/"+there[i].ID, wanted, nil)
		}
		if err != nil {
			return fmt.Errorf("command %s: %w", wanted.Name, err)
		}
	}
	return nil
}

// shows reports whether users see the command as another one.
func (c Command) shows(other Command) bool {
	return c.Name == other.Name && c.Description == other.Description && slices.Equal(c.Options, other.Options)
}
