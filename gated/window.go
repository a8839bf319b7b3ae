package main

import (
	"context"
	"net/http"
	"time"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// windowTimeout is how long an undo waits for routd.
const windowTimeout = 5 * time.Second

// endWindow closes a window. One that another group has by now stays.
func endWindow(routd *httpx.Client) func(ctx context.Context, e msg.Engagement) error {
	return func(ctx context.Context, e msg.Engagement) error {
		ctx, cancel := context.WithTimeout(ctx, windowTimeout)
		defer cancel()
		request := routeapi.EngagementRequest{JID: &e.ChatJID, Topic: &e.Place, TTL: new(int64), Caller: e.Folder}
		err := routd.Do(ctx, http.MethodPost, routeapi.EngagementPath, request, nil)
		if apierr.KindOf(err) == apierr.Forbidden {
			return nil
		}
		return err
	}
}
