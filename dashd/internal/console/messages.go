package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	maxMessages = 50
	// maxLag bounds the exact count of messages that are not in the search index.
	maxLag = 10_000
	// timeField is how a field of type datetime-local has a time.
	timeField = "2006-01-02T15:04"
)

// list shows messages, filtered by the address.
func (c messagePages) list(r *http.Request) (*shown, error) {
	query := r.URL.Query()
	query.Del(flashParameter)
	filter, wrong, problem := messageFilter(query)
	data := pages.Messages{Filter: filterForm(query), Problem: problem, Wrong: wrong, Now: c.Now().UnixMilli()}
	if query.Has("before") {
		data.Newest = below(r, "before", "")
	}
	t, err := c.table(r.Context())
	if err != nil {
		return nil, err
	}
	for _, g := range t.groups[:min(len(t.groups), maxGroups)] {
		data.Groups = append(data.Groups, g.Folder)
	}
	if problem == "" {
		err = c.listInto(r, &data, filter)
	}
	return &shown{data: data}, err
}

// listInto reads a page of the list.
func (c messagePages) listInto(r *http.Request, data *pages.Messages, filter rows.MessageFilter) error {
	ctx := r.Context()
	if filter.Match != "" {
		lag, err := rows.CountSearchLag(ctx, c.Store, maxLag)
		if err != nil {
			return err
		}
		data.Lag, data.About = lag, lag.Rows >= maxLag
	}
	page, err := rows.ListMessages(ctx, c.Store, filter)
	if errors.Is(err, rows.ErrTooBroad) {
		data.Wrong, data.Problem = "text",
			"The search takes too long: too many messages have these words. Add another word, or type more of one."
		return nil
	}
	if err != nil {
		return err
	}
	if page.Next != 0 {
		data.Next = older(r, page.Next)
	}
	if page.Through != 0 {
		last, err := c.Store.Message(ctx, page.Through)
		if err != nil {
			return err
		}
		if last != nil {
			data.Through = last.ReceivedAt
		}
	}
	data.Lines = page.Rows
	data.Titles, err = c.titlesOf(ctx, page.Rows)
	return err
}

// messageFilter reads the filters of an address. problem says why one is invalid, and wrong is its field.
func messageFilter(query url.Values) (f rows.MessageFilter, wrong, problem string) {
	get := func(name string) string { return strings.TrimSpace(query.Get(name)) }
	f = rows.MessageFilter{
		Chat: get("chat"), Folder: get("group"), Sender: get("sender"), Direction: msg.Direction(get("direction")),
		Disposition: msg.Disposition(get("disposition")), Reason: msg.Reason(get("reason")),
		State: msg.OutState(get("state")), Limit: maxMessages,
	}
	if text := get("text"); text != "" {
		if f.Match = store.SearchQuery(text); f.Match == "" {
			return f, "text", "Write a word to search for: punctuation alone is not indexed."
		}
	}
	for name, at := range map[string]*int64{"since": &f.Since, "until": &f.Until} {
		if text := get(name); text != "" {
			t, err := time.Parse(timeField, text)
			if err != nil {
				return f, name, "Write the time as 2026-05-31T14:00."
			}
			*at = t.UnixMilli()
		}
	}
	before, err := position(query)
	if err != nil {
		return f, "", err.Error()
	}
	f.Before = before
	return f, "", ""
}

// filterForm is the form with the filters of an address.
func filterForm(query url.Values) pages.MessageFilter {
	get := func(name string) string { return plaintext.Line(query.Get(name)) }
	form := pages.MessageFilter{
		Text: get("text"), Chat: get("chat"), Group: get("group"), Sender: get("sender"), Since: get("since"),
		Until:        get("until"),
		Directions:   options(query.Get("direction"), "", "both", "in", "received", "out", "sent"),
		Dispositions: options(query.Get("disposition"), decisions...),
		Reasons:      options(query.Get("reason"), reasons()...),
		State: options(query.Get("state"), "", "any", string(rows.StateWaiting), "queued or being sent", "sent", "sent",
			"failed", "failed", "ambiguous", "may have arrived", "cancelled", "cancelled"),
	}
	var active []string
	for _, name := range []string{"chat", "group", "sender", "direction", "disposition", "reason", "state", "since",
		"until"} {
		if query.Get(name) != "" {
			active = append(active, name)
		}
	}
	form.Active = strings.Join(active, ", ")
	return form
}

// decisions are pairs of value and text.
var decisions = []string{"", "any", string(rows.Undecided), "undecided", string(msg.Routed), "routed: starts a turn",
	string(msg.Observed), "observed", string(msg.Command), "a command", string(msg.Sticky), "pins the chat",
	string(msg.Prefix), "a prefix", string(msg.Dropped), "dropped",
	string(msg.Onboarding), "parked: waits for approval"}

func reasons() []string {
	all := []string{"", "any"}
	for _, r := range msg.Reasons {
		all = append(all, string(r.Code), string(r.Code))
	}
	return all
}

// options makes options of pairs of value and text. A value that is none of them is added.
func options(selected string, pairs ...string) (all []pages.Option) {
	found := false
	for i := 0; i < len(pairs); i += 2 {
		found = found || pairs[i] == selected
		all = append(all, pages.Option{Value: pairs[i], Text: pairs[i+1], Selected: pairs[i] == selected})
	}
	if !found {
		all = append(all, pages.Option{Value: selected, Text: pages.Line(selected), Selected: true})
	}
	return all
}

// titlesOf are the titles of the chats of messages.
func (c *site) titlesOf(ctx context.Context, messages []*msg.Message) (pages.Titles, error) {
	return c.titles(ctx, chatsOf(messages, func(m *msg.Message) string { return m.ChatJID }))
}
