package webchat

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"strconv"

	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

// poll is the part of a poll that a page needs to vote.
type poll struct {
	Options  []string `json:"options"`
	Multiple bool     `json:"multiple"`
	Chosen   []int    `json:"chosen,omitempty"` // by the user who asks
}

// poll returns the text of a row that is a poll, or the end of one, and the poll if users may vote;
// the content of other rows. A page shows the options of a poll that users may vote in by their fields.
func (c *Chat) poll(ctx context.Context, m *msg.Message, as form) (text string, open *poll, err error) {
	if m.Direction != msg.Out || m.Kind != msg.KindPoll {
		return m.Content, nil, nil
	}
	p, err := msg.ParsePoll(m.Content)
	if err != nil {
		return m.Content, nil, nil //nolint:nilerr // the row of another program, which is shown as text
	}
	if m.TargetID == "" && p.Result == nil {
		open = &poll{Options: p.Options, Multiple: p.Multiple}
		if open.Chosen, err = c.chosen(ctx, m, as.voter); err != nil {
			return "", nil, err
		}
		if as.page {
			p.Options = nil
		}
	}
	return p.Text(func(option int) string { return strconv.Itoa(option) + "\\." }), open, nil
}

// chosen returns the options that a voter has chosen in the poll of a row.
func (c *Chat) chosen(ctx context.Context, m *msg.Message, voter string) ([]int, error) {
	p, err := factrows.PollOfMessage(ctx, c.Store.Reader, m.ID)
	if err != nil || p == nil {
		return nil, err
	}
	target := msg.Message{ChatJID: m.ChatJID, PlatformID: strconv.FormatInt(m.ID, 10)} // as in Vote
	votes, err := factrows.PollVotesStored(ctx, c.Store.Reader, p.ID, &target)
	return votes[voter].Options, err
}

// vote is the request of a page.
type vote struct {
	ID      int64 `json:"id"`      // of the poll's message
	Options []int `json:"options"` // numbers from 1: all that the user chooses now, none to withdraw
}

// Vote stores a vote of a page in a poll.
func (c *Chat) Vote(w http.ResponseWriter, r *http.Request, g *msg.Group) error {
	v, err := httpx.Decode[vote](r)
	if err != nil {
		return err
	}
	if err := c.checkVote(r, g, v); err != nil {
		return err
	}
	content := msg.Vote{Options: v.Options}
	return c.accept(w, r, g, &msg.Message{PlatformID: "v:" + rand.Text(), Verb: msg.VerbVote, Content: content.JSON(),
		TargetID: strconv.FormatInt(v.ID, 10)}, "the vote could not be stored; vote again")
}

func (c *Chat) checkVote(r *http.Request, g *msg.Group, v vote) error {
	p, err := factrows.PollOfMessage(r.Context(), c.Store.Reader, v.ID)
	if err != nil {
		return err
	}
	choice := msg.Vote{Options: v.Options}
	switch {
	case p == nil || p.ChatJID != JID(g.Folder):
		return apierr.New(apierr.NotFound, "id: no message of this chat is a poll with that id")
	case p.State != msg.PollOpen:
		return apierr.New(apierr.Conflict, "the poll is closed")
	case !choice.Fits(len(p.Poll.Options)) ||
		len(slices.Compact(slices.Sorted(slices.Values(v.Options)))) != len(v.Options):
		return apierr.New(apierr.BadRequest, "options: must be different numbers from 1 to %d", len(p.Poll.Options))
	case !p.Poll.Multiple && len(v.Options) > 1:
		return apierr.New(apierr.BadRequest, "options: the poll takes one option")
	}
	return nil
}

// question is the part of an agent's question that a page needs to answer it.
type question struct {
	Options []string `json:"options"`
}

// openQuestion returns the question that a row shows, nil for none, and for one that has ended.
func (c *Chat) openQuestion(ctx context.Context, m *msg.Message) (*question, error) {
	if m.Direction != msg.Out || m.Kind != msg.KindMessage || m.TurnID == 0 ||
		m.Source != msg.SourceTool && m.Source != msg.SourceNotice {
		return nil, nil
	}
	a, err := c.Store.AskOfMessage(ctx, m.ID)
	if err != nil || a == nil || a.State != msg.AskOpen {
		return nil, err
	}
	return &question{Options: a.Options}, nil
}

// answer is the request of a page.
type answer struct {
	ID     int64 `json:"id"`     // of the question's message
	Option int   `json:"option"` // from 1
}

// Answer stores an answer of a page to a question of an agent. Gated decides it.
func (c *Chat) Answer(w http.ResponseWriter, r *http.Request, g *msg.Group) error {
	given, err := httpx.Decode[answer](r)
	if err != nil {
		return err
	}
	a, err := c.checkAnswer(r, g, given)
	if err != nil {
		return err
	}
	press := msg.Press{Ask: a.ID, Option: given.Option, Text: a.Options[given.Option-1]}
	return c.accept(w, r, g, &msg.Message{PlatformID: "a:" + rand.Text(), Verb: msg.VerbAnswer, Content: press.JSON(),
		TargetID: strconv.FormatInt(given.ID, 10)}, "the answer could not be stored; choose again")
}

func (c *Chat) checkAnswer(r *http.Request, g *msg.Group, given answer) (*msg.Ask, error) {
	row, err := c.Store.Message(r.Context(), given.ID)
	if err != nil {
		return nil, err
	}
	a, err := c.Store.AskOfMessage(r.Context(), given.ID)
	switch {
	case err != nil:
		return nil, err
	case row == nil || a == nil || row.ChatJID != JID(g.Folder):
		return nil, apierr.New(apierr.NotFound, "id: no message of this chat is a question with that id")
	}
	sender, _ := c.Sender(r)
	switch a.Judge(sender, false, given.Option, c.Shell.Now().UnixMilli()) {
	case msg.ReasonChoiceUnknown:
		return nil, apierr.New(apierr.BadRequest, "option: must be a number from 1 to %d", len(a.Options))
	case msg.ReasonChoiceDenied:
		return nil, apierr.New(apierr.Forbidden, "%s", a.Who.Only())
	case msg.ReasonChoiceLate:
		return nil, apierr.New(apierr.Conflict, "the question is closed")
	}
	return a, nil
}
