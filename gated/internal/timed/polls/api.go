package polls

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Mount adds POST /v1/polls/{id}/close. The router must check the bearer secret.
func (c *Closer) Mount(r chi.Router) {
	r.Post("/v1/polls/{id}/close", func(w http.ResponseWriter, r *http.Request) {
		if err := c.closeFor(r); err != nil {
			httpx.Error(w, err)
			return
		}
		httpx.JSON(w, http.StatusOK, map[string]msg.PollState{"state": msg.PollClosed})
	})
}

// closeFor closes an open poll for an operator.
func (c *Closer) closeFor(r *http.Request) error {
	id, err := strconv.ParseInt(chi.URLParam(r, "id"), 10, 64)
	if err != nil || id <= 0 {
		return apierr.New(apierr.BadRequest, "%.40q is not the id of a poll", chi.URLParam(r, "id"))
	}
	p, err := rows.Poll(r.Context(), c.Store.Reader, id)
	switch {
	case err != nil:
		return apierr.New(apierr.Unavailable, "the database is not available right now: %w", err)
	case p == nil:
		return apierr.New(apierr.NotFound, "there is no poll %d", id)
	}
	now := c.Now().UnixMilli()
	err = c.Store.Write(r.Context(), func(tx *store.Tx) error {
		if err := rows.ClosePoll(tx, id, now); err != nil {
			return err
		}
		if err := c.Objects.ClosePoll(tx, p.ChatJID, id, now, now); err != nil {
			return err
		}
		return tx.PutAudit(httpx.By(r), "close poll", fmt.Sprintf("%d of %s in %s", id, p.Folder, p.ChatJID), now)
	})
	switch {
	case errors.Is(err, store.ErrStale):
		return apierr.New(apierr.Conflict, "poll %d is closed already", id)
	case err != nil:
		return apierr.New(apierr.Unavailable, "the database is not available right now: %w", err)
	}
	return nil
}
