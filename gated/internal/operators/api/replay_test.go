package api

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"arizuko/gated/internal/rows"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// post sends a body as JSON for an operator and returns the status and the answer.
func (r *fixture) post(path, body string) (int, string) {
	r.t.Helper()
	req := httptest.NewRequest("POST", path, strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer "+secret)
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	r.handler.ServeHTTP(rec, req)
	return rec.Code, rec.Body.String()
}

// failed stores messages that were not delivered.
func (r *fixture) failed(n int) {
	r.t.Helper()
	r.write(func(tx *store.Tx) error {
		for range n {
			m := &msg.Message{ChatJID: "telegram:1", Direction: msg.Out, OutState: msg.OutFailed, Content: "hello", ReceivedAt: 1, Source: msg.SourceAgent}
			if _, _, err := tx.PutMessage(m); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestReplay_Twice_NeedsASecondConfirmation(t *testing.T) {
	r := newFixture(t)
	r.failed(1)
	first := r.expect("POST", "/v1/messages/1/replay", 202)["id"].(float64)
	r.expect("POST", "/v1/messages/1/replay", 409, fmt.Sprintf("message 1 was replayed already, as message %d", int(first)))
	r.expect("POST", "/v1/messages/1/replay?again=yes", 409, "replayed already")
	second := r.expect("POST", "/v1/messages/1/replay?again=true", 202)["id"].(float64)
	r.expect("POST", "/v1/messages/1/replay", 409, fmt.Sprintf("as message %d", int(second)))
	want := []string{fmt.Sprintf("5000 api replay message 1 as %d", int(first)), fmt.Sprintf("5000 api replay message 1 as %d", int(second))}
	if diff := cmp.Diff(want, r.audit()); diff != "" {
		t.Errorf("audit (-want +got):\n%s", diff)
	}
}

func TestReplay_NoticeOfALostAnswer_IsNoCopy(t *testing.T) {
	r := newFixture(t)
	r.failed(1)
	r.write(func(tx *store.Tx) error {
		_, err := rows.PutLossNotice(tx, &rows.Lost{ID: 1, ChatJID: "telegram:1"}, "lost", 3)
		return err
	})
	r.expect("POST", "/v1/messages/1/replay", 202)
}

func TestReplayAll_Twice_SendsNothingTwice(t *testing.T) {
	r := newFixture(t)
	r.failed(3)
	r.write(func(tx *store.Tx) error {
		_, _, err := tx.PutMessage(&msg.Message{ChatJID: "telegram:1", Direction: msg.Out, OutState: msg.OutSent, ReceivedAt: 1})
		return err
	})
	var answers [2]struct{ Messages []replayed }
	for i := range answers {
		status, body := r.post("/v1/messages/replay", `{"ids":[1,2,3,4,99,2]}`)
		if err := json.Unmarshal([]byte(body), &answers[i]); err != nil || status != 202 {
			t.Fatal(status, body, err)
		}
	}
	var copies []int64
	for i, m := range answers[0].Messages {
		if m.ID != []int64{1, 2, 3, 4, 99, 2}[i] || (m.Copy == 0) == (m.Skipped == "") {
			t.Errorf("message %d: %+v", i, m)
		}
		if m.Copy != 0 {
			copies = append(copies, m.Copy)
		}
	}
	if len(copies) != 3 || slices.ContainsFunc(answers[1].Messages, func(m replayed) bool { return m.Copy != 0 }) {
		t.Errorf("first %+v, then %+v", answers[0], answers[1])
	}
	if last, err := r.st.LastMessageID(t.Context()); err != nil || last != 7 {
		t.Errorf("%d rows, %v", last, err)
	}
	if diff := cmp.Diff([]string{"5000 api replay 3 messages: 1 2 3"}, r.audit()); diff != "" {
		t.Errorf("audit (-want +got):\n%s", diff)
	}
}

func TestReplayAll_BadLists_AreRefused(t *testing.T) {
	r := newFixture(t)
	for _, body := range []string{"", "{}", `{"ids":[]}`, `{"ids":["x"]}`, fmt.Sprintf(`{"ids":[%s1]}`, strings.Repeat("1,", 200))} {
		if status, answer := r.post("/v1/messages/replay", body); status != 400 {
			t.Errorf("%.40s: %d %s", body, status, answer)
		}
	}
}
