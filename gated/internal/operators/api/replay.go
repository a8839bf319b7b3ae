package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"arizuko/gated/internal/endpoint"
	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// maxReplays bounds the messages of one request, which are copied in one transaction.
const maxReplays = 200

// replay copies a message: an inbound copy is decided again, an outbound copy of one that failed or was cancelled is
// sent. A message that was replayed already is copied once more only if the request says again=true.
func (a API) replay(r *http.Request) (any, error) {
	id, err := endpoint.ID(r)
	if err != nil {
		return nil, err
	}
	var copied int64
	err = a.Store.Write(context.WithoutCancel(r.Context()), func(tx *store.Tx) (err error) {
		if copied, err = a.copyMessage(tx, id, r.URL.Query().Get("again") == "true"); err != nil {
			return err
		}
		return tx.PutAudit(httpx.By(r), "replay", fmt.Sprintf("message %d as %d", id, copied), a.Now().UnixMilli())
	})
	return map[string]int64{"id": copied}, err
}

// replayed is a message and its copy, or why it has none.
type replayed struct {
	ID      int64  `json:"id"`
	Copy    int64  `json:"copy,omitempty"`
	Skipped string `json:"skipped,omitempty"`
}

// replayAll copies messages of a list. Those that were replayed already, or that cannot be, are left out: the same
// request again copies none.
func (a API) replayAll(r *http.Request) (any, error) {
	request, err := httpx.Decode[struct {
		IDs []int64 `json:"ids"`
	}](r)
	if err != nil {
		return nil, err
	}
	if n := len(request.IDs); n == 0 || n > maxReplays {
		return nil, apierr.New(apierr.BadRequest, "ids has %d messages: 1 to %d are replayed at once", n, maxReplays)
	}
	all := []replayed{}
	err = a.Store.Write(context.WithoutCancel(r.Context()), func(tx *store.Tx) error {
		var done []string
		for _, id := range request.IDs {
			copied, err := a.copyMessage(tx, id, false)
			var refused *apierr.Error
			switch {
			case errors.As(err, &refused):
				all = append(all, replayed{ID: id, Skipped: refused.Message})
			case err != nil:
				return err
			default:
				all = append(all, replayed{ID: id, Copy: copied})
				done = append(done, fmt.Sprint(id))
			}
		}
		if len(done) == 0 {
			return nil
		}
		detail := fmt.Sprintf("%d messages: %s", len(done), strings.Join(done, " "))
		return tx.PutAudit(httpx.By(r), "replay", detail, a.Now().UnixMilli())
	})
	return map[string]any{"messages": all}, err
}

// copyMessage inserts a copy of a message and returns its id. The error is an apierr.Error if there is nothing to copy.
func (a API) copyMessage(tx *store.Tx, id int64, again bool) (int64, error) {
	ctx := context.Background() // in a transaction
	m, err := tx.Message(ctx, id)
	if err != nil {
		return 0, err
	}
	if m == nil {
		return 0, apierr.New(apierr.NotFound, "no message %d", id)
	}
	if m.DerivedFrom != 0 && m.Source == msg.SourcePrefix { // the original has the prefix
		original, err := tx.Message(ctx, m.DerivedFrom)
		if err != nil {
			return 0, err
		}
		if original != nil {
			m = original
		}
	}
	if problem := unreplayable(m); problem != "" {
		return 0, apierr.New(apierr.Conflict, "message %d %s", id, problem)
	}
	before, err := factrows.CopyOf(ctx, tx.Reader, m.ID)
	if err != nil {
		return 0, err
	}
	if before != 0 && !again {
		return 0, apierr.New(apierr.Conflict,
			"message %d was replayed already, as message %d: again=true replays it once more", id, before)
	}
	copied := copyOf(m, a.Now().UnixMilli())
	if _, _, err = tx.PutMessage(copied); err == nil {
		err = tx.UnmarkMessage(m.ID, a.Now().UnixMilli())
	}
	return copied.ID, err
}

func unreplayable(m *msg.Message) string {
	switch {
	case m.Direction == msg.Out && m.OutState != msg.OutFailed && m.OutState != msg.OutCancelled &&
		m.OutState != msg.OutAmbiguous:
		return fmt.Sprintf("is %s: only failed, ambiguous and cancelled messages are sent again", m.OutState)
	case m.Direction == msg.In && m.Disposition == "":
		return "is not decided yet"
	case m.Direction == msg.In && m.Disposition == msg.Onboarding:
		return "waits for its chat to be approved"
	}
	return ""
}

func copyOf(m *msg.Message, now int64) *msg.Message {
	replayed := *m
	replayed.ID, replayed.PlatformID, replayed.DerivedFrom = 0, "", m.ID
	replayed.Timestamp, replayed.ReceivedAt = now, now
	if m.Direction == msg.Out {
		replayed.OutState = msg.OutStateOf(m.ChatJID)
	} else {
		replayed.Source, replayed.TurnID = msg.SourceReplay, 0
	}
	return &replayed
}
