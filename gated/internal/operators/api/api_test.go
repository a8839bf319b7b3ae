package api

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"arizuko/gated/internal/rows"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

const secret = "s3cret"

// agents records the calls of the API.
type agents struct {
	cancelled, retried []*msg.Turn
	asksEnded, revived int
	drained            []int64
}

func (a *agents) Cancel(turns ...*msg.Turn) { a.cancelled = append(a.cancelled, turns...) }
func (a *agents) Retry(t *msg.Turn)         { a.retried = append(a.retried, t) }
func (a *agents) AskEnded()                 { a.asksEnded++ }
func (a *agents) Revived()                  { a.revived++ }
func (a *agents) Drain(run int64)           { a.drained = append(a.drained, run) }

type fixture struct {
	t       *testing.T
	st      *store.Store
	db      *sql.DB // what the store has no reader for
	agents  *agents
	handler http.Handler
}

func newFixture(t *testing.T) *fixture {
	path := storetest.Path(t)
	db := storetest.Must(sql.Open("sqlite3", "file:"+path+"?mode=ro"))(t)
	t.Cleanup(func() { db.Close() })
	r := &fixture{t: t, st: storetest.OpenAt(t, path, nil), db: db, agents: &agents{}}
	router := httpx.NewRouter(slog.New(slog.DiscardHandler), nil)
	API{Store: r.st, Agents: r.agents, Context: func(_ context.Context, id int64) (string, error) { return fmt.Sprintf("prompt of %d", id), nil }, Now: func() time.Time { return time.UnixMilli(5000) }}.Mount(router.With(httpx.Bearer(secret)))
	r.handler = router
	return r
}

// call sends a request with the secret and decodes the answer.
func (r *fixture) call(method, path string) (status int, body map[string]any) {
	r.t.Helper()
	req := httptest.NewRequest(method, path, nil)
	req.Header.Set("Authorization", "Bearer "+secret)
	rec := httptest.NewRecorder()
	r.handler.ServeHTTP(rec, req)
	if err := json.Unmarshal(rec.Body.Bytes(), &body); err != nil {
		r.t.Fatalf("%s %s answered %q: %v", method, path, rec.Body, err)
	}
	return rec.Code, body
}

// expect checks the status, and the words of an error.
func (r *fixture) expect(method, path string, status int, words ...string) map[string]any {
	r.t.Helper()
	got, body := r.call(method, path)
	if got != status {
		r.t.Fatalf("%s %s: %d %v, want %d", method, path, got, body, status)
	}
	for _, w := range words {
		if message, _ := body["error"].(map[string]any)["message"].(string); !strings.Contains(message, w) {
			r.t.Errorf("%s %s: %q does not say %q", method, path, message, w)
		}
	}
	return body
}

func (r *fixture) write(fn func(*store.Tx) error) {
	r.t.Helper()
	if err := r.st.Write(context.Background(), fn); err != nil {
		r.t.Fatal(err)
	}
}

// turn stores a turn of a chat in a state.
func (r *fixture) turn(chat string, state msg.TurnState) *msg.Turn {
	r.t.Helper()
	t := &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: chat, Topic: chat, CreatedAt: 1000}
	r.write(func(tx *store.Tx) error {
		m := &msg.Message{ChatJID: chat, Direction: msg.In, Content: "hi"}
		if _, _, err := tx.PutMessage(m); err != nil {
			return err
		}
		t.TriggerMessageID = m.ID
		_, err := rows.PutTurn(tx, t, 0)
		return err
	})
	r.move(t, state)
	return t
}

func (r *fixture) move(t *msg.Turn, state msg.TurnState) {
	r.t.Helper()
	r.write(func(tx *store.Tx) error {
		switch state {
		case msg.TurnDone, msg.TurnFailed:
			return rows.FinishTurn(tx, t, state, msg.ReasonAgentError, "", 2000)
		case msg.TurnCancelled:
			return rows.CancelTurn(tx, t.ID, msg.ReasonCancelled, 2000)
		case msg.TurnRunning:
			return rows.StartRun(tx, &msg.Run{Folder: t.Folder, Topic: t.Topic, ChatJID: t.ChatJID, Runtime: "process", StartedAt: 1500}, t.ID)
		}
		return nil
	})
}

// stored is the turn as it is now.
func (r *fixture) stored(t *msg.Turn) *msg.Turn {
	r.t.Helper()
	now := storetest.Must(r.st.Turn(r.t.Context(), t.ID))(r.t)
	return now
}

func TestList(t *testing.T) {
	r := newFixture(t)
	if body := r.expect("GET", "/v1/turns", 200); len(body["turns"].([]any)) != 0 {
		t.Errorf("turns of an empty table: %v", body)
	}
	r.turn("telegram:1", msg.TurnQueued)
	r.turn("telegram:2", msg.TurnDone)
	r.turn("telegram:2", msg.TurnQueued)
	tests := []struct {
		query string
		want  []float64 // newest first
	}{
		{"", []float64{3, 2, 1}},
		{"?state=queued", []float64{3, 1}},
		{"?chat=telegram:2", []float64{3, 2}},
		{"?chat=telegram%3A2&state=done", []float64{2}},
		{"?state=running", nil},
		{"?chat=unknown:1", nil},
	}
	for _, tt := range tests {
		var got []float64
		for _, turn := range r.expect("GET", "/v1/turns"+tt.query, 200)["turns"].([]any) {
			got = append(got, turn.(map[string]any)["id"].(float64))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.query, diff)
		}
	}
	r.expect("GET", "/v1/turns?state=asleep", 400, "asleep", "queued")
}

func TestList_IsBounded(t *testing.T) {
	r := newFixture(t)
	for i := range listLimit + 1 {
		r.turn(fmt.Sprintf("telegram:%d", i), msg.TurnDone)
	}
	if n := len(r.expect("GET", "/v1/turns", 200)["turns"].([]any)); n != listLimit {
		t.Errorf("%d turns", n)
	}
}

func TestShow(t *testing.T) {
	r := newFixture(t)
	r.turn("telegram:1", msg.TurnQueued)
	got := r.expect("GET", "/v1/turns/1", 200)
	for field, want := range map[string]any{"id": 1.0, "state": "queued", "chat_jid": "telegram:1", "folder": "main", "attempts": 0.0} {
		if got[field] != want {
			t.Errorf("%s is %v, want %v", field, got[field], want)
		}
	}
	r.expect("GET", "/v1/turns/7", 404, "7")
}

func TestContext(t *testing.T) {
	r := newFixture(t)
	queued, running := r.turn("telegram:1", msg.TurnQueued), r.turn("telegram:2", msg.TurnRunning)
	r.expect("GET", fmt.Sprintf("/v1/turns/%d/context", queued.ID), 409, "has not started")
	if body := r.expect("GET", fmt.Sprintf("/v1/turns/%d/context", running.ID), 200); body["prompt"] != fmt.Sprintf("prompt of %d", running.ID) {
		t.Errorf("%v", body)
	}
}

// audit is the log of changes, oldest first.
func (r *fixture) audit() (all []string) {
	r.t.Helper()
	rows := storetest.Must(r.db.Query(`SELECT at || ' ' || who || ' ' || what || ' ' || detail FROM audit ORDER BY id`))(r.t)
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			r.t.Fatal(err)
		}
		all = append(all, line)
	}
	if err := rows.Err(); err != nil {
		r.t.Fatal(err)
	}
	return all
}

func TestChanges_AreRecorded(t *testing.T) {
	r := newFixture(t)
	turn := r.turn("telegram:1", msg.TurnQueued)
	r.expect("POST", "/v1/turns/1/cancel", 202)
	r.expect("POST", "/v1/turns/1/cancel", 409)
	r.expect("POST", "/v1/turns/1/retry", 202)
	got := r.audit()
	want := []string{fmt.Sprintf("5000 api cancel turn %d of main in telegram:1", turn.ID), fmt.Sprintf("5000 api retry turn %d of main in telegram:1", turn.ID)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRetry(t *testing.T) {
	for _, state := range []msg.TurnState{msg.TurnFailed, msg.TurnCancelled} {
		r := newFixture(t)
		turn := r.turn("telegram:1", state)
		if body := r.expect("POST", "/v1/turns/1/retry", 202); body["state"] != "queued" {
			t.Errorf("answer %v", body)
		}
		if diff := cmp.Diff([]*msg.Turn{r.stored(turn)}, r.agents.retried); diff != "" || r.agents.retried[0].State != msg.TurnQueued {
			t.Errorf("retried (-want +got):\n%s", diff)
		}
	}
	t.Run("of a turn in backoff", func(t *testing.T) {
		r := newFixture(t)
		turn := r.turn("telegram:1", msg.TurnQueued)
		r.write(func(tx *store.Tx) error {
			return rows.RequeueTurn(tx, turn.ID, rows.Requeue{Attempt: true, WaitsFor: msg.WaitsRetry, Problem: "broken", NotBefore: 1 << 50})
		})
		r.expect("POST", "/v1/turns/1/retry", 202)
		if now := r.stored(turn); now.NotBefore != 0 || now.Attempts != 0 || len(r.agents.retried) != 1 {
			t.Errorf("turn %+v", now)
		}
	})
	for _, state := range []msg.TurnState{msg.TurnQueued, msg.TurnRunning, msg.TurnDone} {
		r := newFixture(t)
		r.turn("telegram:1", state)
		r.expect("POST", "/v1/turns/1/retry", 409, string(state))
		if len(r.agents.retried) != 0 {
			t.Errorf("a turn that is %s was retried", state)
		}
	}
}

// A group that has asked the one above hears that it gets no answer.
func TestCancel_Escalation_TellsTheAsker(t *testing.T) {
	r := newFixture(t)
	request := &msg.Message{ChatJID: "group:main", Direction: msg.In, Content: "may I?", ForwardedFrom: &msg.ReturnAddress{
		Kind: msg.Escalation, TurnID: 7, RootTurnID: 7, Depth: 1, Folder: "main/eng", ChatJID: "slack:C1"}}
	r.write(func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(request); err != nil {
			return err
		}
		_, err := rows.PutTurn(tx, &msg.Turn{Kind: msg.Delegated, Folder: "main", ChatJID: "group:main",
			Topic: msg.DelegatedTopic(request.ID), TriggerMessageID: request.ID, CreatedAt: 1000}, 0)
		return err
	})
	r.expect("POST", "/v1/turns/1/cancel", 202)
	answer, err := rows.Undecided(t.Context(), r.st.Reader, "group:main/eng", 0, 10)
	if err != nil || len(answer) != 1 || answer[0].Content != "(No answer: an operator has cancelled this.)" {
		t.Errorf("the asker gets %+v, %v", answer, err)
	}
}

func TestCancel(t *testing.T) {
	for _, state := range []msg.TurnState{msg.TurnQueued, msg.TurnRunning} {
		r := newFixture(t)
		turn := r.turn("telegram:1", state)
		before := r.stored(turn)
		if body := r.expect("POST", "/v1/turns/1/cancel", 202); body["state"] != "cancelled" || body["reason"] != "cancelled" {
			t.Errorf("answer %v", body)
		}
		if now := r.stored(turn); now.State != msg.TurnCancelled || now.EndedAt != 5000 {
			t.Errorf("turn %+v", now)
		}
		// The agents have to know what it was doing.
		if diff := cmp.Diff([]*msg.Turn{before}, r.agents.cancelled); diff != "" {
			t.Errorf("cancelled (-want +got):\n%s", diff)
		}
		r.expect("POST", "/v1/turns/1/cancel", 409, "cancelled", "ended already")
	}
	for _, state := range []msg.TurnState{msg.TurnDone, msg.TurnFailed} {
		r := newFixture(t)
		r.turn("telegram:1", state)
		r.expect("POST", "/v1/turns/1/cancel", 409, string(state))
		if len(r.agents.cancelled) != 0 {
			t.Errorf("a turn that is %s was cancelled", state)
		}
	}
}

func TestReplay_InboundMessage(t *testing.T) {
	r := newFixture(t)
	m := &msg.Message{
		ChatJID: "telegram:1", PlatformID: "77", Direction: msg.In, Sender: "telegram:5", SenderName: "bob", Verb: msg.VerbMention,
		Content: "hello", Topic: "#x", ThreadID: "9", ReplyToID: "70", Timestamp: 1, ReceivedAt: 2, Source: "teled", Addressed: true,
		Attachments: []msg.Attachment{{Path: "media/a", Name: "a"}},
	}
	r.write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(m); return err })
	r.expect("POST", "/v1/messages/1/replay", 409, "not decided")
	r.decide(m, msg.Onboarding)
	r.expect("POST", "/v1/messages/1/replay", 409, "approved")

	r = newFixture(t)
	r.write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(m); return err })
	r.decide(m, msg.Dropped)
	id := int64(r.expect("POST", "/v1/messages/1/replay", 202)["id"].(float64))
	want := *m
	want.ID, want.PlatformID, want.DerivedFrom, want.Source = id, "", m.ID, msg.SourceReplay
	want.Kind, want.Timestamp, want.ReceivedAt = msg.KindMessage, 5000, 5000
	if diff := cmp.Diff(&want, r.message(id)); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
	if chats, err := rows.UndecidedChats(t.Context(), r.st.Reader); err != nil || len(chats) != 1 {
		t.Errorf("undecided: %v, %v", chats, err)
	}
}

func (r *fixture) decide(m *msg.Message, d msg.Disposition) {
	r.t.Helper()
	r.write(func(tx *store.Tx) error {
		return tx.Decide(m.ID, store.Decision{Disposition: d, Reason: msg.ReasonNoRoute, Topic: m.Topic, ThreadID: m.ThreadID}, 3)
	})
}

func (r *fixture) message(id int64) *msg.Message {
	r.t.Helper()
	m := storetest.Must(r.st.Message(r.t.Context(), id))(r.t)
	return m
}

func TestReplay_OutboundMessage(t *testing.T) {
	for state, status := range map[msg.OutState]int{
		msg.OutQueued: 409, msg.OutSending: 409, msg.OutSent: 409, msg.OutFailed: 202, msg.OutCancelled: 202, msg.OutAmbiguous: 202,
	} {
		t.Run(string(state), func(t *testing.T) {
			r := newFixture(t)
			m := &msg.Message{
				ChatJID: "telegram:1", PlatformID: "77", Direction: msg.Out, Sender: "agent:main", IsBot: true, Content: "hello",
				ThreadID: "9", ReplyToID: "70", Timestamp: 1, ReceivedAt: 2, Source: msg.SourceAgent, OutState: state,
			}
			r.write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(m); return err })
			body := r.expect("POST", "/v1/messages/1/replay", status)
			if status != 202 {
				return
			}
			want := *m
			want.ID, want.PlatformID, want.DerivedFrom, want.OutState = int64(body["id"].(float64)), "", m.ID, msg.OutQueued
			want.Timestamp, want.ReceivedAt = 5000, 5000
			if diff := cmp.Diff(&want, r.message(want.ID)); diff != "" {
				t.Errorf("copy (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnknownIDs_AreNotFound(t *testing.T) {
	r := newFixture(t)
	for _, path := range []string{"/v1/turns/7/retry", "/v1/turns/7/cancel", "/v1/messages/7/replay"} {
		r.expect("POST", path, 404, "7")
	}
	for _, id := range []string{"0", "-1", "x", "1e3", "99999999999999999999"} {
		for _, path := range []string{"/v1/turns/%s/retry", "/v1/turns/%s/cancel", "/v1/messages/%s/replay"} {
			r.expect("POST", fmt.Sprintf(path, id), 400, id)
		}
		r.expect("GET", "/v1/turns/"+id, 400, id)
	}
}

func TestSecret_IsRequired(t *testing.T) {
	r := newFixture(t)
	turn := r.turn("telegram:1", msg.TurnQueued)
	for _, authorization := range []string{"", "Bearer wrong", "Basic " + secret, secret} {
		for _, call := range []string{
			"GET /v1/turns", "GET /v1/turns/1", "POST /v1/turns/1/retry", "POST /v1/turns/1/cancel", "POST /v1/messages/1/replay", "POST /v1/messages/replay", "GET /v1/messages/lost",
		} {
			method, path, _ := strings.Cut(call, " ")
			req := httptest.NewRequest(method, path, nil)
			if authorization != "" {
				req.Header.Set("Authorization", authorization)
			}
			rec := httptest.NewRecorder()
			r.handler.ServeHTTP(rec, req)
			if rec.Code != 401 || !strings.Contains(rec.Body.String(), `"kind":"unauthorized"`) {
				t.Errorf("%s with %q: %d %s", call, authorization, rec.Code, rec.Body)
			}
		}
	}
	if now := r.stored(turn); now.State != msg.TurnQueued {
		t.Errorf("turn %+v", now)
	}
}

func TestStore_Closed_IsUnavailable(t *testing.T) {
	r := newFixture(t)
	r.turn("telegram:1", msg.TurnFailed)
	if err := r.st.Close(); err != nil {
		t.Fatal(err)
	}
	r.expect("GET", "/v1/turns", 503, "database")
	r.expect("POST", "/v1/turns/1/retry", 503, "database")
	r.expect("POST", "/v1/messages/1/replay", 503, "database")
}

func TestLost_ListsFailedRowsAndTheirCopies(t *testing.T) {
	r := newFixture(t)
	if rows := r.expect("GET", "/v1/messages/lost", 200)["messages"].([]any); len(rows) != 0 {
		t.Errorf("%v", rows)
	}
	m := &msg.Message{ChatJID: "telegram:1", Direction: msg.Out, OutState: msg.OutQueued, Content: "hello", ReceivedAt: 4000, Source: msg.SourceAgent}
	r.write(func(tx *store.Tx) error {
		_, _, err := tx.PutMessage(m)
		if err == nil {
			err = tx.ClaimOutbound(m.ID, 1, 4000)
		}
		if err == nil {
			err = tx.PutDelivery(store.Delivery{MessageID: m.ID, State: msg.OutFailed, ErrorClass: msg.Permanent, Error: "no such chat"}, 4000)
		}
		if err == nil {
			err = tx.SettleOutbound(m.ID, msg.OutFailed, "")
		}
		return err
	})
	copied := r.expect("POST", "/v1/messages/1/replay", 202)["id"].(float64)
	rows := r.expect("GET", "/v1/messages/lost?chat=telegram:1&since=24h", 200)["messages"].([]any)
	if len(rows) != 1 {
		t.Fatalf("%v", rows)
	}
	if row := rows[0].(map[string]any); row["id"] != 1.0 || row["state"] != "failed" || row["error"] != "no such chat" || row["copy_id"] != copied {
		t.Errorf("%v", row)
	}
	if rows := r.expect("GET", "/v1/messages/lost?chat=telegram:2", 200)["messages"].([]any); len(rows) != 0 {
		t.Errorf("of another chat: %v", rows)
	}
	r.expect("GET", "/v1/messages/lost?since=yesterday", 400, "duration")
}
