package api

import (
	"errors"
	"net/http"

	"arizuko/gated/internal/codes"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/store"
)

// makeOperatorCode makes the one-time code by which a user becomes an operator. The one before ends.
func (a API) makeOperatorCode(r *http.Request) (any, error) {
	code, now := codes.New(), a.Now().UnixMilli()
	stored := &rows.OperatorCode{Hash: codes.Hash(code), By: httpx.By(r), ExpiresAt: now + codes.Life.Milliseconds()}
	err := a.Store.Write(r.Context(), func(tx *store.Tx) error { return rows.PutOperatorCode(tx, stored, now) })
	return map[string]any{"code": code, "expires_at": stored.ExpiresAt}, err
}

// removeOperator removes an operator who was made by a code. Those of OPERATORS stay.
func (a API) removeOperator(r *http.Request) (any, error) {
	body, err := httpx.Decode[struct {
		Sender string `json:"sender"`
	}](r)
	if err != nil {
		return nil, err
	}
	err = a.Store.Write(r.Context(), func(tx *store.Tx) error {
		return rows.RemoveOperator(tx, body.Sender, httpx.By(r), a.Now().UnixMilli())
	})
	if errors.Is(err, store.ErrStale) {
		err = apierr.New(apierr.NotFound, "%.80q did not become an operator by a code", body.Sender)
	}
	return map[string]string{"removed": body.Sender}, err
}
