package console

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"arizuko/dashd/internal/pages"
	"arizuko/dashd/internal/rows"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/apierr"
	"arizuko/pkg/config"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/why"
)

const (
	maxMessages = 50
	// maxLag bounds the exact count of messages that are not in the search index.
	maxLag = 10_000
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
	data.Groups = t.groups[:min(len(t.groups), maxGroups)]
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
	if data.Ends, err = factrows.TurnEnds(ctx, c.Store, page.Rows); err != nil {
		return err
	}
	data.Titles, err = c.titlesOf(ctx, page.Rows)
	return err
}

// messageFilter reads the filters of an address. problem says why one is invalid, and wrong is its field.
func messageFilter(query url.Values) (f rows.MessageFilter, wrong, problem string) {
	get := func(name string) string { return strings.TrimSpace(query.Get(name)) }
	f = rows.MessageFilter{
		Chat: get("chat"), Folder: get("group"), Sender: get("sender"), Direction: msg.Direction(get("direction")),
		Disposition: msg.Disposition(get("disposition")), Reason: msg.Reason(get("reason")),
		State: msg.OutState(get("state")), Limit: maxMessages, Signs: get("signs") != "",
	}
	if text := get("text"); text != "" {
		if f.Match = store.SearchQuery(text); f.Match == "" {
			return f, "text", "Write a word to search for: punctuation alone is not indexed."
		}
	}
	if f.Since, f.Until, wrong = between(query); wrong != "" {
		return f, wrong, wrongTime
	}
	before, err := position(query)
	if err != nil {
		return f, "", err.Error()
	}
	f.Before = before
	return f, "", ""
}

// wrongTime is the problem of a time that cannot be read.
const wrongTime = "Write the time as 2026-05-31T14:00."

// between reads the times of an address, in unix ms, 0 for none. wrong is the parameter that is no time.
func between(query url.Values) (since, until int64, wrong string) {
	for name, at := range map[string]*int64{"since": &since, "until": &until} {
		if text := strings.TrimSpace(query.Get(name)); text != "" {
			t, err := time.Parse(pages.TimeField, text)
			if err != nil {
				wrong = name
				continue
			}
			*at = t.UnixMilli()
		}
	}
	return since, until, wrong
}

// filterForm is the form with the filters of an address.
func filterForm(query url.Values) pages.MessageFilter {
	get := func(name string) string { return plaintext.Line(query.Get(name)) }
	form := pages.MessageFilter{
		Text: get("text"), Chat: get("chat"), Group: get("group"), Sender: get("sender"), Since: get("since"),
		Until:        get("until"),
		Signs:        get("signs") != "",
		Directions:   options(query.Get("direction"), "", "both", "in", "received", "out", "sent"),
		Dispositions: options(query.Get("disposition"), dispositions()...),
		Reasons:      options(query.Get("reason"), reasons()...),
		State: options(query.Get("state"), "", "any", string(rows.StateWaiting), "queued or being sent", "sent", "sent",
			"failed", "failed", "ambiguous", "may have arrived", "cancelled", "cancelled"),
	}
	var active []string
	for _, name := range []string{"chat", "group", "sender", "direction", "disposition", "reason", "state", "signs",
		"since", "until"} {
		if query.Get(name) != "" {
			active = append(active, name)
		}
	}
	form.Active = strings.Join(active, ", ")
	return form
}

// dispositions are pairs of value and text.
func dispositions() []string {
	all := []string{"", "any", string(rows.Undecided), msg.Disposition("").Words()}
	for _, d := range []msg.Disposition{msg.Routed, msg.Observed, msg.Command, msg.Sticky, msg.Prefix, msg.Dropped,
		msg.Onboarding} {
		all = append(all, string(d), d.Words())
	}
	return all
}

func reasons() []string {
	all := []string{"", "any"}
	for _, r := range msg.Reasons {
		all = append(all, string(r.Code), r.Code.Words())
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

const (
	// maxSteps bounds the steps of a page, the newest ones: a message of a thousand parts has as many.
	maxSteps = 300
	maxNear  = 50
)

// show shows the path of one message.
func (c messagePages) show(r *http.Request) (*shown, error) {
	id, err := idOf(chi.URLParam(r, "id"), "message")
	if err != nil {
		return nil, err
	}
	path, err := why.Read(r.Context(), c.Store, id)
	if errors.Is(err, why.ErrNoMessage) {
		return nil, apierr.New(apierr.NotFound, "There is no message %d: it was deleted by retention, or never stored.",
			id)
	}
	if err != nil {
		return nil, err
	}
	data, err := c.explained(r.Context(), path)
	return &shown{title: fmt.Sprintf("Message %d", id), data: data}, err
}

// explained makes the page of a path.
func (c messagePages) explained(ctx context.Context, p *why.Path) (pages.Why, error) {
	m, now := p.Asked, c.Now()
	data := pages.Why{Path: p, Now: now.UnixMilli(), Replay: replayable(m), Near: near(p)}
	var err error
	if data.Titles, err = c.titlesOf(ctx, []*msg.Message{m}); err != nil {
		return data, err
	}
	if err := factrows.FillTranscripts(ctx, c.Store, []*msg.Message{m}); err != nil {
		return data, err
	}
	if data.Change, err = factrows.LastChange(ctx, c.Store, m.ID, math.MaxInt64); err != nil {
		return data, err
	}
	p.Daemons.Ask(ctx, config.Base{Data: c.Data}, data.Now)
	steps := why.Steps(p)
	data.Steps, data.Took = steps[max(0, len(steps)-maxSteps):], why.Took(p, steps)
	data.Open = why.StillOpen(p, now)
	data.Copy, err = factrows.CopyOf(ctx, c.Store, m.ID)
	return data, err
}

func turnPath(id int64) string { return fmt.Sprintf("/turns/%d", id) }

// near are the other messages of a path.
func near(p *why.Path) (all []pages.NearMessage) {
	self := p.Asked.ID
	add := func(m *msg.Message, relation string) {
		known := slices.ContainsFunc(all, func(n pages.NearMessage) bool { return n.ID == m.ID })
		if m.ID != self && !known && len(all) < maxNear {
			all = append(all, pages.NearMessage{Message: m, Relation: relation})
		}
	}
	for _, m := range p.Rows {
		switch {
		case m.ForwardedFrom != nil:
			add(m, "between groups")
		case m.Source == msg.SourceReplay:
			add(m, fmt.Sprintf("a replay of message %d", m.DerivedFrom))
		case m.DerivedFrom != 0:
			add(m, fmt.Sprintf("derived from message %d", m.DerivedFrom))
		default:
			add(m, "received")
		}
	}
	for _, t := range p.Turns {
		for _, r := range t.Replies {
			add(r.Message, fmt.Sprintf("an answer of turn %d", t.ID))
		}
		for _, m := range t.Batch {
			add(m, fmt.Sprintf("received, of turn %d", t.ID))
		}
		for _, a := range t.Asks {
			for _, m := range a.Presses {
				add(m, fmt.Sprintf("a press of a button of question %d", a.ID))
			}
		}
	}
	for _, r := range p.Replies {
		add(r.Message, "an answer of the gateway")
	}
	return all
}

// replayable reports whether gated makes a copy of a message: one that was not delivered, or that is decided.
func replayable(m *msg.Message) bool {
	if m.Direction == msg.Out {
		return m.OutState == msg.OutFailed || m.OutState == msg.OutAmbiguous || m.OutState == msg.OutCancelled
	}
	return m.Disposition != "" && m.Disposition != msg.Onboarding
}

// replay asks gated to copy a message. A message that has a copy is copied once more only if the form says so.
func (c messagePages) replay(r *http.Request) (next, notice string, err error) {
	id, err := idOf(chi.URLParam(r, "id"), "message")
	if err != nil {
		return "/messages", "", err
	}
	next = fmt.Sprintf("/messages/%d", id)
	path := fmt.Sprintf("/v1/messages/%d/replay", id)
	if r.PostForm.Get("again") == "true" && r.PostForm.Get("sure") == "yes" {
		path += "?again=true"
	}
	var copied struct {
		ID int64 `json:"id"`
	}
	if err := c.ask(r.Context(), "gated", http.MethodPost, path, nil, &copied); err != nil {
		if apierr.KindOf(err) == apierr.Conflict {
			err = apierr.New(apierr.Conflict, "%s", strings.ReplaceAll(err.Error(), "again=true replays it once more",
				"confirm below to replay it once more"))
		}
		return next, "", err
	}
	return fmt.Sprintf("/messages/%d", copied.ID), fmt.Sprintf("This is the copy of message %d.", id), nil
}
