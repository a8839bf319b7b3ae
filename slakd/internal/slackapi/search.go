package slackapi

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/slack-go/slack"
)

// maxSearchPages bounds the pages of a search.
const maxSearchPages = 50

// Posted is a message of the history, as far as a search needs it.
type Posted struct {
	TS, Subtype, User, BotID, Text string
	Metadata                       slack.SlackMetadata
	Files                          []PostedFile
}

// PostedFile is a file of a Posted.
type PostedFile struct {
	Name string `json:"name"`
	Size int64  `json:"size"` // bytes
}

// posted decodes each field by itself: an odd one leaves the others as they are.
func posted(raw json.RawMessage) *Posted {
	m, fields, files := &Posted{}, map[string]json.RawMessage{}, []json.RawMessage(nil)
	_ = json.Unmarshal(raw, &fields)
	for name, into := range map[string]any{
		"ts": &m.TS, "subtype": &m.Subtype, "user": &m.User, "bot_id": &m.BotID, "text": &m.Text,
		"metadata": &m.Metadata, "files": &files,
	} {
		_ = json.Unmarshal(fields[name], into)
	}
	for _, file := range files {
		var f PostedFile
		_ = json.Unmarshal(file, &f)
		m.Files = append(m.Files, f)
	}
	return m
}

// Search is a search among the messages of a channel, or of a thread of it. A call that fails leaves it at
// the page that could not be read.
type Search struct {
	Channel, Thread string
	Since           int64 // unix seconds

	cursor string
	pages  int
}

// Find calls examine with each message until that returns false. Whole says whether it has seen all: a
// search ends after some pages. Rate limits are obeyed as far as ctx allows.
func (c *Client) Find(ctx context.Context, s *Search, examine func(*Posted) bool) (whole bool, err error) {
	w := Window{Oldest: strconv.FormatInt(s.Since, 10)}
	for s.pages < maxSearchPages {
		var page Page
		err := c.Patiently(ctx, func() (err error) {
			if s.Thread == "" {
				page, err = c.History(ctx, s.Channel, w, s.cursor)
			} else {
				page, err = c.Replies(ctx, s.Channel, s.Thread, w, s.cursor)
			}
			return err
		})
		if err != nil {
			return false, err
		}
		for _, raw := range page.Messages {
			if !examine(posted(raw)) {
				return true, nil
			}
		}
		if s.pages++; page.Next == "" {
			return true, nil
		}
		s.cursor = page.Next
	}
	return false, nil
}
