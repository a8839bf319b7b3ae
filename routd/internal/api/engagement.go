package api

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
	"arizuko/routd/internal/engagement"
)

// maxEngagement is longer than any group should answer everything.
const maxEngagement = 30 * 24 * time.Hour

// answerOf leaves out a window that was ended on request or by a pin; an expired one shows until
// when it was open.
func answerOf(e *msg.Engagement, pinnedAt int64) routeapi.Engagement {
	answer := routeapi.Engagement{
		JID: e.ChatJID, Topic: e.Place, LastReply: orNull(e.LastReply), EndedAt: orNull(e.EndedAt),
	}
	if e.Open(e.Until-1, pinnedAt) {
		answer.Folder, answer.Until = orNull(e.Folder), orNull(e.Until)
	}
	return answer
}

func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// getEngagement answers with one place, or, without topic, with the places of a chat: which group
// holds a window there, and until when.
func (a *API) getEngagement(r *http.Request) (*httpx.Answer, error) {
	query := r.URL.Query()
	jid := query.Get("jid")
	if err := checkJID(jid); err != nil {
		return nil, err
	}
	if query.Has("topic") {
		s, err := a.Engagement.State(r.Context(), jid, query.Get("topic"))
		if err != nil {
			return nil, a.unreadable(err)
		}
		return &httpx.Answer{Status: http.StatusOK, Body: answerOf(&s.Engagement, s.PinnedAt)}, nil
	}
	all, err := a.Engagement.States(r.Context(), jid)
	if err != nil {
		return nil, a.unreadable(err)
	}
	slices.SortFunc(all, func(a, b *engagement.State) int { return cmp.Compare(a.Place, b.Place) })
	answers := make([]routeapi.Engagement, len(all)) // [] rather than null
	for i, s := range all {
		answers[i] = answerOf(&s.Engagement, s.PinnedAt)
	}
	return &httpx.Answer{Status: http.StatusOK, Body: map[string][]routeapi.Engagement{"engagement": answers}}, nil
}

// engage opens or ends a window.
func (a *API) engage(r *http.Request) (*httpx.Answer, error) {
	request, err := httpx.Decode[routeapi.EngagementRequest](r)
	if err != nil {
		return nil, err
	}
	ttl := a.TTL
	if request.TTL != nil {
		ttl = time.Duration(min(max(*request.TTL, 0), int64(maxEngagement/time.Second))) * time.Second
	}
	if err := a.checkEngagement(&request, ttl); err != nil {
		return nil, err
	}
	by := a.audit(r)
	// Before the transaction, which other writers wait for.
	routed := request.Caller == "" || a.Loader.Table().Routed(*request.JID, request.Sender, request.Caller)
	e, err := a.Engagement.Engage(r.Context(), *request.JID, *request.Topic, request.Folder, ttl,
		func(tx *store.Tx, s *engagement.State) error {
			if err := a.mayEngage(&request, s, routed); err != nil {
				return err
			}
			return by.engagement(tx, &request, ttl, s.Engaged(by.now))
		})
	if err != nil {
		return nil, retryable(err)
	}
	// a window just opened is newer than any pin
	return &httpx.Answer{Status: http.StatusOK, Body: answerOf(&e, 0)}, nil
}

func checkJID(jid string) error {
	if platform, room := msg.SplitJID(jid); platform == "" || room == "" {
		return apierr.New(apierr.BadRequest, "jid %.80q is not platform:room", jid)
	}
	return nil
}

func (a *API) checkEngagement(request *routeapi.EngagementRequest, ttl time.Duration) error {
	if request.JID == nil || request.Topic == nil {
		return apierr.New(apierr.BadRequest, `jid and topic are required; the chat's default place is the topic ""`)
	}
	if err := checkJID(*request.JID); err != nil {
		return err
	}
	if ttl > 0 && !a.Loader.Table().Has(request.Folder) {
		return apierr.New(apierr.BadRequest, "folder %.80q is not registered", request.Folder)
	}
	return nil
}

// mayEngage allows operators everything. A group must hold the window, or a route must lead from
// the chat to it or below it; and it may engage only itself and groups below it.
func (a *API) mayEngage(request *routeapi.EngagementRequest, s *engagement.State, routed bool) error {
	caller := request.Caller
	if caller == "" {
		return nil
	}
	if request.Folder != "" && !msg.Within(request.Folder, caller) {
		return apierr.New(apierr.Forbidden, "group %s may engage itself and groups below it, not %.80s", caller,
			request.Folder)
	}
	if routed || s.Engaged(a.Now().UnixMilli()) == caller {
		return nil
	}
	return apierr.New(apierr.Forbidden,
		"no route leads from %s to group %s or one below it, and it is not engaged there", *request.JID, caller)
}
