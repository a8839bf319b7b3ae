package onboarding

import (
	"context"
	"errors"
	"net"
	"net/http"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/routeapi"
)

// RoutdClient is routd over HTTP.
type RoutdClient struct{ *httpx.Client }

// Connect implements Routd.
func (c RoutdClient) Connect(ctx context.Context, a routeapi.Approval) (done routeapi.Approved, err error) {
	err = c.Do(ctx, http.MethodPost, routeapi.ApprovalPath, a, &done)
	if err != nil && changedNothing(err) {
		err = Refused(err)
	}
	return done, err
}

// changedNothing reports whether routd has surely not acted: it was not reached, or has refused. An
// unavailable, or no answer in time, leaves it open.
func changedNothing(err error) bool {
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "dial" {
		return true
	}
	return apierr.KindOf(err) != apierr.Unavailable
}

// Resolve implements Routd.
func (c RoutdClient) Resolve(ctx context.Context, items []routeapi.Item) ([]routeapi.Answer, error) {
	var response routeapi.Response
	err := c.Do(ctx, http.MethodPost, routeapi.Path, routeapi.Request{Items: items}, &response)
	return response.Items, err
}
