package webchat

import (
	"context"
	"crypto/rand"
	"net/http"

	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

// undoMS returns for how long a row has an Undo button, in ms.
func (c *Chat) undoMS(ctx context.Context, m *msg.Message) (int64, error) {
	now := c.Shell.Now().UnixMilli()
	until, err := factrows.UndoUntil(ctx, c.Store.Reader, m, now)
	return max(until-now, 0), err
}

// undo is the request of a page.
type undo struct {
	TurnID int64 `json:"turn_id"`
}

// Undo stores that the Undo button of a turn was pressed. Unlike an /undo, the press names the turn: it may come too
// late.
func (c *Chat) Undo(w http.ResponseWriter, r *http.Request, g *msg.Group) error {
	pressed, err := httpx.Decode[undo](r)
	if err != nil {
		return err
	}
	t, err := factrows.Undoable(r.Context(), c.Store.Reader, JID(g.Folder), pressed.TurnID, c.Shell.Now().UnixMilli())
	switch {
	case err != nil:
		return err
	case t == nil:
		return apierr.New(apierr.Conflict, "the button is too old; /undo takes back the last turn")
	case t.UndoneAt != 0:
		return apierr.New(apierr.Conflict, "turn %d is taken back already", t.ID)
	}
	press := msg.Press{Undo: t.ID, Text: msg.UndoLabel}
	return c.accept(w, r, g, &msg.Message{PlatformID: "u:" + rand.Text(), Verb: msg.VerbAnswer, Content: press.JSON(),
		Topic: t.Place}, "the undo could not be stored; try again")
}
