package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/egress"
	egressrows "arizuko/pkg/egress/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// requests stores one of each day, up to now.
func (r *fixture) requests(all ...*egress.Receipt) {
	r.t.Helper()
	r.write(func(tx *store.Tx) error {
		for _, e := range all {
			e.Port, e.Folder, e.State, e.EndedAt = 443, "main", egress.Sent, 4000
			e.At = 4000
			if err := egressrows.PutReceipt(tx, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// firstRules are the first rules in words.
func (r *fixture) firstRules(n int) (lines []string) {
	r.t.Helper()
	for _, rule := range storetest.Must(egressrows.Rules(r.t.Context(), r.st.Reader))(r.t)[:n] {
		lines = append(lines, fmt.Sprintf("%d %s by %s", rule.ID, rule, rule.Author))
	}
	return lines
}

func TestEgress_RulesChange_AuditSaysWho(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.write(func(tx *store.Tx) error {
		_, err := tx.PutGroup(&msg.Group{Folder: "acme", Config: []byte("{}")})
		return err
	})
	presets := r.firstRules(2)
	const next = 33 // after the presets
	const rules = "/v1/egress/rules"
	for _, step := range []struct {
		path, body string
		status     int
		words      string
		want       []string // of the first rules
	}{
		{rules, `{"host":"API.github.com","method":"post","path":"/repos/","folder":"acme","action":"inject","secret":"gh"}`, 201, fmt.Sprintf(`"id":%d`, next),
			[]string{fmt.Sprintf("%d acme: POST api.github.com/repos/ → inject gh by api", next), presets[0]}},
		{rules, `{"host":"*","action":"deny","author":"me","id":1,"seq":11}`, 201, fmt.Sprintf(`"id":%d`, next+1),
			[]string{fmt.Sprintf("%d acme: POST api.github.com/repos/ → inject gh by api", next), fmt.Sprintf("%d * → deny by api", next+1), presets[0]}},
		{rules, `{"host":"x","action":"pass","seq":-99}`, 400, "seq -99", nil},
		{rules, `{"host":"x","action":"let"}`, 400, "action", nil},
		{rules, `{"host":"x","action":"pass","folder":"nowhere"}`, 400, "there is no group", nil},
		{rules, `{"hosts":"x"}`, 400, "hosts", nil},
	} {
		before := r.firstRules(3)
		status, answer := r.post(step.path, step.body)
		if status != step.status || !strings.Contains(answer, step.words) {
			t.Errorf("%s %s: %d %s, want %d %s", step.path, step.body, status, answer, step.status, step.words)
		}
		want := step.want
		if want == nil { // refused
			want = before
		}
		if diff := cmp.Diff(want, r.firstRules(len(want))); diff != "" {
			t.Errorf("%s %s: %s", step.path, step.body, diff)
		}
	}
	r.expect(http.MethodDelete, fmt.Sprintf("%s/%d", rules, next+1), 200)
	r.expect(http.MethodDelete, fmt.Sprintf("%s/%d", rules, next+1), 404, "no egress rule")
	if body := r.expect(http.MethodGet, rules, 200); len(body["rules"].([]any)) != int(next) {
		t.Errorf("%d rules", len(body["rules"].([]any)))
	}
	want := []string{
		fmt.Sprintf("5000 api add egress rule %d: acme: POST api.github.com/repos/ → inject gh", next), fmt.Sprintf("5000 api add egress rule %d: * → deny", next+1),
		fmt.Sprintf("5000 api remove egress rule %d: * → deny", next+1),
	}
	if diff := cmp.Diff(want, r.audit()); diff != "" {
		t.Error(diff)
	}
}

func TestEgress_Test_ComparesRecordedRequestsAndChangesNothing(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.requests(&egress.Receipt{Method: "POST", Host: "example.com", Path: "/a"}, &egress.Receipt{Method: "GET", Host: "github.com", Path: "/"})
	want := egress.Comparison{Requests: 2, Changed: 1,
		Examples: []egress.Example{{Was: "ask", Would: "pass", ID: 1, At: 4000, Folder: "main", Request: "POST example.com/a"}}}
	var got egress.Comparison
	if status, answer := r.post("/v1/egress/test", `{"host":"example.com","action":"pass"}`); status != 200 || json.Unmarshal([]byte(answer), &got) != nil {
		t.Errorf("%d %s", status, answer)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for body, want := range map[string]int{`{}`: 400, `{"host":"","action":"pass"}`: 400, `{"host":"x","action":"let"}`: 400, `{"host":"x","action":"pass","seq":-1}`: 400} {
		if status, answer := r.post("/v1/egress/test", body); status != want {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
	if len(r.audit()) != 0 || len(storetest.Must(egressrows.Rules(t.Context(), r.st.Reader))(t)) != 32 {
		t.Error("it changed something")
	}
}

func TestEgress_Receipts_AreFiltered(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	r.requests(&egress.Receipt{Method: "GET", Host: "a.test"}, &egress.Receipt{Method: "GET", Host: "b.test"})
	for query, want := range map[string]int{"": 2, "?host=a.test": 1, "?folder=acme": 0, "?state=sent&days=1": 2, "?state=failed": 0, "?limit=1": 1, "?before=2": 1} {
		if body := r.expect(http.MethodGet, "/v1/egress/receipts"+query, 200); len(body["receipts"].([]any)) != want {
			t.Errorf("%s: %v", query, body)
		}
	}
	for query, words := range map[string]string{"?state=x": "is none of", "?days=0": "days=", "?limit=x": "limit="} {
		r.expect(http.MethodGet, "/v1/egress/receipts"+query, 400, words)
	}
}
