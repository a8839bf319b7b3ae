package api_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"arizuko/gated/gatedtest"

	"arizuko/pkg/apierr"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

// After the store is closed nothing counts as a bug: the client tries again.
func TestAPI_StoreClosed_Unavailable(t *testing.T) {
	f := newFixture(t)
	f.must(t, 201, "POST", "/v1/groups", `{"folder":"acme"}`)
	if err := f.st.Close(); err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{
		`POST /v1/resolve {"items":[{"id":1,"chat_jid":"telegram:1"}]}`, `POST /v1/resolve {"items":[]}`,
		`GET /v1/routes `, `POST /v1/routes {"target":"acme"}`, `PUT /v1/routes/1 {"target":"acme"}`, `DELETE /v1/routes/1 `,
		`POST /v1/routes/test {"chat_jid":"telegram:1"}`,
		`GET /v1/groups `, `POST /v1/groups {"folder":"ops"}`, `GET /v1/groups/acme `, `PUT /v1/groups/acme {}`, `DELETE /v1/groups/acme `,
		`GET /v1/engagement?jid=telegram:1 `, `GET /v1/engagement?jid=telegram:1&topic= `,
		`POST /v1/engagement {"jid":"telegram:1","topic":"","folder":"acme"}`,
		`POST /v1/engagement {"jid":"telegram:1","topic":"","ttl_seconds":0}`,
	} {
		parts := strings.SplitN(call, " ", 3)
		f.must(t, 503, parts[0], parts[1], parts[2])
		f.refused(t, apierr.Unavailable, "", parts[0], parts[1], parts[2])
	}
}

// While another process holds the write lock, questions are answered from the deliveries.
func TestAPI_DatabaseLocked_QuestionsAnswered(t *testing.T) {
	f := newFixture(t)
	f.must(t, 201, "POST", "/v1/groups", `{"folder":"acme"}`)
	mention := &msg.Message{ChatJID: "telegram:-1", Direction: msg.In, Verb: msg.VerbMention, ReceivedAt: 10}
	reply := &msg.Message{ChatJID: "telegram:-1", Direction: msg.Out, Source: msg.SourceAgent, OutState: msg.OutQueued}
	err := f.st.Write(t.Context(), func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(mention); err != nil {
			return err
		}
		turn := &msg.Turn{Kind: msg.Conversation, Folder: "acme", ChatJID: "telegram:-1", TriggerMessageID: mention.ID, ClaimsEngagement: true}
		if _, err := gatedtest.PutTurn(tx, turn, 0); err != nil {
			return err
		}
		if err := gatedtest.FinishTurn(tx, turn, msg.TurnDone, msg.ReasonAnswered, "", 15); err != nil {
			return err
		}
		reply.TurnID = turn.ID
		if _, _, err := tx.PutMessage(reply); err != nil {
			return err
		}
		if err := tx.ClaimOutbound(reply.ID, 1, 20); err != nil {
			return err
		}
		return tx.PutDelivery(store.Delivery{MessageID: reply.ID, State: msg.OutSent}, 20)
	})
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite3", f.path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	got := f.resolve(t, routeapi.Item{ID: 1, ChatJID: "telegram:-1", ReceivedAt: 20 + ttl.Milliseconds() - 1})
	if got.Folder != "acme" || !got.Engaged {
		t.Errorf("%+v", got)
	}
	want := fmt.Sprintf(`{"jid":"telegram:-1","topic":"","folder":"acme","engaged_until":%d,"last_reply_id":%d,"ended_at":null}`,
		20+ttl.Milliseconds(), reply.ID)
	equal(t, want, f.must(t, 200, "GET", "/v1/engagement?jid=telegram:-1&topic=", ""))
	equal(t, `{"engagement":[`+want+`]}`, f.must(t, 200, "GET", "/v1/engagement?jid=telegram:-1", ""))
}

func TestResolve_ContextEnded_SaysHowFar(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", routeapi.Path, strings.NewReader(`{"items":[{"id":1,"chat_jid":"a:b"}]}`)))
	if w.Code != 503 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestResolve_LongFields_ItemsRefused(t *testing.T) {
	f := newFixture(t)
	long := strings.Repeat("x", routeapi.MaxField+1)
	items := []routeapi.Item{
		{ID: 1, ChatJID: "telegram:" + long}, {ID: 2, ChatJID: "telegram:1", SenderName: long},
		{ID: 3, ChatJID: "telegram:1", Topic: long}, {ID: 4, ChatJID: "telegram:1", SenderName: long[1:]},
	}
	body, err := json.Marshal(routeapi.Request{Items: items})
	if err != nil {
		t.Fatal(err)
	}
	var response routeapi.Response
	if err := json.Unmarshal([]byte(f.must(t, 200, "POST", routeapi.Path, string(body))), &response); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"chat_jid has 4106 bytes, at most 4096", "sender_name has 4097 bytes", "topic has 4097 bytes", ""} {
		if got := response.Items[i].Error; (got == "") != (want == "") || !strings.HasPrefix(got, want) {
			t.Errorf("item %d: %q, want %q", i+1, got, want)
		}
	}
}
