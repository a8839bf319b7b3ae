package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"arizuko/dashd/internal/pages"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/apierr"
	"arizuko/pkg/config"
	"arizuko/pkg/msg"
	"arizuko/pkg/why"
)

const (
	// maxShownText is how much of a message the page shows, in characters.
	maxShownText = 4000
	// maxSteps bounds the steps of a page, the newest ones: a message of a thousand parts has as many.
	maxSteps = 300
	maxNear  = 50
)

// why shows what became of one message.
func (c *Console) why(r *http.Request) (*shown, error) {
	id, err := rowID(chi.URLParam(r, "id"))
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
	return &shown{title: fmt.Sprintf("Message %d", id), template: "why.html", data: data,
		up: []pages.Link{{Path: "/messages", Text: "Messages"}}}, err
}

func rowID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		return 0, apierr.New(apierr.BadRequest, "The address has no number of a message.")
	}
	return id, nil
}

// explained makes the page of a path.
func (c *Console) explained(ctx context.Context, p *why.Path) (pages.Why, error) {
	m := p.Asked
	data := pages.Why{ID: m.ID, Out: m.Direction == msg.Out, Now: c.Now().UnixMilli()}
	lines, err := c.messageLines(ctx, []*msg.Message{m})
	if err != nil {
		return data, err
	}
	data.Fields = messageFields(p, lines[0])
	data.Text, data.Cut = c.wholeText(contentOf(m))
	if data.Heard, err = c.heard(ctx, m); err != nil {
		return data, err
	}
	change, err := c.Store.LastChange(ctx, m.ID, maxRowID)
	if err != nil {
		return data, err
	}
	switch {
	case change != nil && change.Deleted:
		data.Change = "It was deleted since on its platform, or is to be."
	case change != nil:
		text, _ := c.wholeText(change.Content)
		data.Change = "It was edited since, to: " + text
	}
	p.Daemons.Ask(ctx, config.Base{Data: c.Data}, data.Now)
	steps := why.Steps(p)
	if took := why.Took(p, steps); took != 0 {
		data.Took = took.String()
	}
	data.Steps = c.stepLines(steps[max(0, len(steps)-maxSteps):])
	for _, o := range why.StillOpen(p, c.Now()) {
		data.Open = append(data.Open, pages.WhyOpen{Text: c.hide(plaintext.Line(cmp.Or(o.Page.Fix, o.Text))),
			Owner: plaintext.Line(o.Owner), Links: links(m.ID, o.Row, o.Turn, nil), Page: o.Page})
	}
	if p.Request != nil {
		data.Request = p.Request.Code
	}
	data.Near = c.near(p)
	data.Replay, err = c.replayForm(ctx, m)
	return data, err
}

// heard are the transcripts of a message's audio files.
func (c *Console) heard(ctx context.Context, m *msg.Message) (all []pages.Heard, err error) {
	if err := c.Store.FillTranscripts(ctx, []*msg.Message{m}); err != nil {
		return nil, err
	}
	for i := range m.Attachments {
		t := m.Attachments[i].Transcript
		if t == nil {
			continue
		}
		h := pages.Heard{File: Excerpt(plaintext.Line(m.Attachments[i].Name)), Problem: plaintext.Line(t.Error)}
		h.Text, h.Cut = c.wholeText(t.Text)
		all = append(all, h)
	}
	return all, nil
}

// maxRowID is after all changes of a message.
const maxRowID = 1<<63 - 1

// wholeText is the text of a message with its lines, up to a limit.
func (c *Console) wholeText(content string) (text string, cut bool) {
	runes := []rune(content[:min(len(content), 4*(maxShownText+1))])
	if cut = len(runes) > maxShownText; cut {
		runes = runes[:maxShownText]
	}
	lines := strings.Split(string(runes), "\n")
	for i, line := range lines {
		lines[i] = plaintext.Line(line)
	}
	return c.hide(strings.TrimSpace(strings.Join(lines, "\n"))), cut
}

// messageFields are the facts about a message: its place, its turns, and the fields that `gated why` prints, too.
func messageFields(p *why.Path, line pages.MessageLine) (all []pages.Field) {
	m := p.Asked
	add := func(name, text, path string) {
		if text = Excerpt(plaintext.Line(text)); text != "" {
			all = append(all, pages.Field{Name: name, Text: text, Path: path})
		}
	}
	direction := "received"
	if line.Out {
		direction = "sent"
	}
	state, _ := stateOf(m)
	add("State", direction+": "+state, "")
	add("Chat", line.Place(), line.ChatPath())
	if line.Title != "" {
		add("Address", m.ChatJID, "")
	}
	if m.SenderName != "" {
		add("From", m.SenderName, "")
	}
	add("Sender", m.Sender, senderPath(m))
	add("Kind", kindOf(m), "")
	if m.Timestamp != 0 && m.Direction == msg.In {
		add("Sent, by the platform's clock", time.UnixMilli(m.Timestamp).Format(whyDay+" "+whyTime+" MST"), "")
	}
	if line.Group != "" {
		add("Group", line.Group, "/groups/"+line.Group)
	}
	for _, t := range p.Turns {
		name := fmt.Sprintf("Turn %d", t.ID)
		text := fmt.Sprintf("%s, group %s", t.State, t.Folder)
		if t.Topic != "" {
			text += ", topic " + t.Topic
		} else {
			text += ", without a topic"
		}
		add(name, text, turnPath(t.ID))
	}
	for _, f := range p.Fields() {
		path := originPath(f.From)
		if f.Turn != 0 {
			path = turnPath(f.Turn)
		}
		add(strings.ToUpper(f.Name[:1])+f.Name[1:], f.Text, path)
	}
	return all
}

func turnPath(id int64) string { return fmt.Sprintf("/turns/%d", id) }

func senderPath(m *msg.Message) string {
	if m.Sender == "" {
		return ""
	}
	query := url.Values{"sender": {m.Sender}}
	if m.Direction == msg.Out {
		query.Set("direction", string(msg.Out))
	}
	return "/messages?" + query.Encode()
}

func originPath(o *why.Origin) string {
	switch {
	case o == nil:
	case o.Reminder != 0:
		return "/reminders"
	case o.Poll != 0:
		return "/polls"
	case o.Turn != 0:
		return turnPath(o.Turn)
	}
	return ""
}

// Layouts of times, in the zone of dashd.
const (
	whyDay  = "2006-01-02"
	whyTime = "15:04:05.000"
)

func (c *Console) stepLines(steps []why.Step) []pages.WhyStep {
	all := make([]pages.WhyStep, len(steps))
	day := ""
	for i, s := range steps {
		at := time.UnixMilli(s.At)
		all[i] = pages.WhyStep{
			Time: at.Format(whyTime), Text: c.hide(plaintext.Line(s.Text)), Reason: string(s.Reason),
			Owner: plaintext.Line(s.Owner),
			Links: links(0, s.Row, s.Turn, s.From), Main: s.Main,
		}
		if d := at.Format(whyDay + " MST"); d != day {
			all[i].Day, day = d, d
		}
		if i > 0 {
			all[i].After = s.After.String()
		}
	}
	return all
}

// links lead to what a step is about, but for the message self.
func links(self, row, turn int64, from *why.Origin) (all []pages.Link) {
	if row != 0 && row != self {
		all = append(all, pages.Link{Path: fmt.Sprintf("/messages/%d", row), Text: fmt.Sprintf("message %d", row)})
	}
	if turn != 0 {
		all = append(all, pages.Link{Path: turnPath(turn), Text: fmt.Sprintf("turn %d", turn)})
	}
	if from != nil && from.Turn == 0 {
		if path := originPath(from); path != "" {
			all = append(all, pages.Link{Path: path, Text: path[1:]})
		}
	}
	return all
}

// near are the other messages of a path.
func (c *Console) near(p *why.Path) (all []pages.NearMessage) {
	self := p.Asked.ID
	add := func(m *msg.Message, relation string) {
		known := slices.ContainsFunc(all, func(n pages.NearMessage) bool { return n.ID == m.ID })
		if m.ID != self && !known && len(all) < maxNear {
			all = append(all, pages.NearMessage{ID: m.ID, Relation: relation, Place: plaintext.Line(m.ChatJID),
				Text: c.hide(Excerpt(plaintext.Line(contentOf(m))))})
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
		for _, id := range t.Batch {
			add(&msg.Message{ID: id, ChatJID: t.ChatJID}, fmt.Sprintf("received, of turn %d", t.ID))
		}
	}
	for _, t := range p.Turns {
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

// replayForm is the form that replays a message, nil if gated would refuse it.
func (c *Console) replayForm(ctx context.Context, m *msg.Message) (*pages.ReplayForm, error) {
	if !replayable(m) {
		return nil, nil
	}
	copied, err := c.Store.CopyOf(ctx, m.ID)
	return &pages.ReplayForm{ID: m.ID, Out: m.Direction == msg.Out, Chat: plaintext.Line(m.ChatJID), Copy: copied}, err
}

// replayable reports whether gated makes a copy of a message: one that was not delivered, or that is decided.
func replayable(m *msg.Message) bool {
	if m.Direction == msg.Out {
		return m.OutState == msg.OutFailed || m.OutState == msg.OutAmbiguous || m.OutState == msg.OutCancelled
	}
	return m.Disposition != "" && m.Disposition != msg.Onboarding
}

// replayOne lets gated copy a message. A message that has a copy is copied once more only if the form says so.
func (c *Console) replayOne(r *http.Request) (next, notice string, err error) {
	id, err := rowID(chi.URLParam(r, "id"))
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
	if err := ask(r.Context(), c.Gated, "gated", http.MethodPost, path, nil, &copied); err != nil {
		if apierr.KindOf(err) == apierr.Conflict {
			err = apierr.New(apierr.Conflict, "%s", strings.ReplaceAll(err.Error(), "again=true replays it once more",
				"confirm below to replay it once more"))
		}
		return next, "", err
	}
	return fmt.Sprintf("/messages/%d", copied.ID), fmt.Sprintf("This is the copy of message %d.", id), nil
}
