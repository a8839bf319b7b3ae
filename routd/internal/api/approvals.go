package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
	"arizuko/routd/internal/routing"
	"arizuko/routd/internal/rows"
)

// approve connects a chat to a group, which it makes if there is none. Repeated it changes nothing. A
// chat that has another group is a conflict.
func (a *API) approve(r *http.Request) (*httpx.Answer, error) {
	req, err := httpx.Decode[routeapi.Approval](r)
	if err == nil {
		err = checkApproval(&req)
	}
	if err != nil {
		return nil, err
	}
	var done routeapi.Approved
	err = a.write(r.Context(), func(tx *store.Tx) (err error) {
		if done, err = a.connect(r.Context(), tx, req); err != nil {
			return err
		}
		return a.audit(r).connected(tx, &req, &done)
	})
	if err != nil {
		return nil, err
	}
	a.Log.Info("chat connected", "chat", done.ChatJID, "folder", done.Folder, "user", req.By, "count", len(done.Routes))
	return &httpx.Answer{Status: http.StatusOK, Body: done}, nil
}

// checkApproval returns a bad_request for a chat that no route can name, and sets a missing kind.
func checkApproval(req *routeapi.Approval) (err error) {
	if req.Kind, err = routeapi.CheckChat(req.ChatJID, req.Kind); err == nil {
		err = msg.ValidFolder(req.Folder)
	}
	if err != nil {
		return badRequest(err)
	}
	return nil
}

// connect reads the tables within the transaction, so that no other change comes between.
func (a *API) connect(ctx context.Context, tx *store.Tx, req routeapi.Approval) (done routeapi.Approved, err error) {
	jid, err := tx.Address(ctx, req.ChatJID)
	if err != nil {
		return done, err
	}
	routes, err := tx.Routes(ctx)
	if err != nil {
		return done, err
	}
	groups, err := tx.Groups(ctx)
	if err != nil {
		return done, err
	}
	group := msg.Group{Folder: req.Folder, CreatedAt: a.Now().UnixMilli(), Config: json.RawMessage(`{}`)}
	table := routing.New(routes, append(groups, group), msg.Impulse{})
	c, err := table.Connect(jid, req.Kind, req.Folder)
	var connected *routing.ConnectedError
	switch {
	case errors.As(err, &connected):
		return done, apierr.New(apierr.Conflict, "%w", err)
	case err != nil:
		return done, err
	}
	done = routeapi.Approved{ChatJID: jid, Folder: req.Folder, Routes: c.Routes, Shared: c.Shared}
	if done.Routes == nil {
		done.Routes = []msg.Route{} // [] rather than null
	}
	done.Created, err = rows.ConnectChat(tx, &group, done.Routes, c.Before)
	return done, err
}
