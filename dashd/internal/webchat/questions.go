package webchat

import (
	"context"
	"crypto/rand"
	"net/http"
	"strconv"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

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
