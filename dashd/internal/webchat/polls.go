package webchat

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"strconv"

	"arizuko/pkg/apierr"
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
	p, err := c.Store.PollOfMessage(ctx, m.ID)
	if err != nil || p == nil {
		return nil, err
	}
	target := msg.Message{ChatJID: m.ChatJID, PlatformID: strconv.FormatInt(m.ID, 10)} // as in Vote
	votes, err := c.Store.PollVotesStored(ctx, p.ID, &target)
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
	p, err := c.Store.PollOfMessage(r.Context(), v.ID)
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
