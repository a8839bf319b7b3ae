package webchat

import (
	"crypto/rand"
	"net/http"
	"slices"
	"time"

	"arizuko/dashd/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

// undoTimeout is for how long the button Undo is under an answer, in ms.
const undoTimeout = int64(10 * time.Minute / time.Millisecond)

// undoable is a turn that the button takes back.
type undoable struct {
	TurnID int64  `json:"turn_id"`
	Topic  string `json:"topic"`
	LeftMS int64  `json:"left_ms,omitempty"` // until the button goes
}

func (c *Chat) undoable(r *http.Request, g *msg.Group) (all []undoable, err error) {
	now := c.Shell.Now().UnixMilli()
	turns, err := rows.WebUndoable(r.Context(), c.Store.Reader, JID(g.Folder), now-undoTimeout)
	for _, t := range turns {
		all = append(all, undoable{t.TurnID, t.Place, t.EndedAt + undoTimeout - now})
	}
	return all, err
}

// Undoable answers with the turns that have a button to take them back: at most one of each topic.
func (c *Chat) Undoable(w http.ResponseWriter, r *http.Request, g *msg.Group) error {
	turns, err := c.undoable(r, g)
	if err != nil {
		return err
	}
	httpx.JSON(w, http.StatusOK, map[string]any{"turns": append([]undoable{}, turns...)}) // never null in JSON
	return nil
}

// Undo stores that the button of a turn was pressed. Unlike an /undo, the press names the turn: it may come too late.
func (c *Chat) Undo(w http.ResponseWriter, r *http.Request, g *msg.Group) error {
	pressed, err := httpx.Decode[undoable](r)
	if err != nil {
		return err
	}
	turns, err := c.undoable(r, g)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(turns, func(t undoable) bool { return t.TurnID == pressed.TurnID })
	if i < 0 {
		return apierr.New(apierr.Conflict, "there is no button for turn %d any more; /undo takes back the last turn",
			pressed.TurnID)
	}
	press := msg.Press{Undo: pressed.TurnID, Text: msg.UndoLabel}
	return c.accept(w, r, g, &msg.Message{PlatformID: "u:" + rand.Text(), Verb: msg.VerbAnswer, Content: press.JSON(),
		Topic: turns[i].Topic}, "the undo could not be stored; try again")
}
