package discordapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// MaxPage is how many messages MessagesAfter returns at most.
const MaxPage = 100

// maxSearch bounds Find, in messages.
const maxSearch = 1000

// ErrUncertain is wrapped by errors of a search that would fail again.
var ErrUncertain = errors.New("the search has no certain result")

// MessagesAfter returns the messages of a channel after the one with an id, the oldest first, in
// whatever order the server has them. They are not decoded, and do not contain the id of their guild.
func (c *Client) MessagesAfter(ctx context.Context, channel, after string) (page []json.RawMessage, err error) {
	err = c.Call(ctx, http.MethodGet, fmt.Sprintf("channels/%s/messages?after=%s&limit=%d", channel, after, MaxPage),
		nil, &page)
	slices.SortFunc(page, func(a, b json.RawMessage) int { return CompareIDs(IDOf(a), IDOf(b)) })
	return page, err
}

// IDOf is the id of an object, "" if it has none.
func IDOf(object json.RawMessage) string {
	var o struct{ ID string }
	_ = json.Unmarshal(object, &o) // a malformed one has no id
	return o.ID
}

// Find returns the id of the first message after the one with an id that matches, "" if it is
// certain that there is none.
func (c *Client) Find(ctx context.Context, channel, after string, matches func(*Message) (bool, error)) (id string,
	err error) {
	seen := 0
	for {
		page, err := c.MessagesAfter(ctx, channel, after)
		if err != nil {
			return "", err
		}
		before := after
		for _, raw := range page {
			if seen++; seen > maxSearch {
				return "", fmt.Errorf("%w: the channel has more than %d messages since", ErrUncertain, maxSearch)
			}
			if id := IDOf(raw); Younger(id, after) {
				after = id
			}
			var m Message
			if json.Unmarshal(raw, &m) != nil {
				continue
			}
			if ok, err := matches(&m); ok || err != nil {
				return m.ID, err
			}
		}
		if len(page) < MaxPage || after == before {
			break
		}
	}
	if seen > 0 {
		return "", nil
	}
	hidden, err := c.appearsEmpty(ctx, channel)
	if err == nil && hidden {
		err = fmt.Errorf("%w: the channel appears empty; the bot may lack the permission Read Message History",
			ErrUncertain)
	}
	return "", err
}

// appearsEmpty reports whether the bot sees no message in a channel. The API does not tell an empty
// channel from one whose history the bot may not read.
func (c *Client) appearsEmpty(ctx context.Context, channel string) (bool, error) {
	var last []Message
	err := c.Call(ctx, http.MethodGet, "channels/"+channel+"/messages?limit=1", nil, &last)
	return len(last) == 0, err
}
