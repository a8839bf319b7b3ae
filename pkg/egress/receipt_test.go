package egress

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReceipt_String_SaysWhatHasBecomeOfIt(t *testing.T) {
	t.Parallel()
	post := Receipt{Method: "POST", Host: "api.github.com", Port: 443, Path: "/repos/x?q", BytesOut: 412}
	const request = "POST api.github.com/repos/x?q (412 bytes) → "
	for _, tt := range []struct {
		change func(*Receipt)
		want   string
	}{
		{func(r *Receipt) { r.State, r.AskID = Asked, 7 }, request + "waits for an answer"},
		{func(r *Receipt) { r.State = Sending }, request + "being sent"},
		{func(r *Receipt) { r.State, r.By = Sending, "telegram:42" }, request + "being sent, allowed by telegram:42"},
		{func(r *Receipt) { r.State, r.EndedAt = Sending, 9 }, request + "may have been sent: the proxy ended meanwhile"},
		{func(r *Receipt) { r.State, r.Status, r.By, r.EndedAt = Sent, 201, "telegram:42", 9 }, request + "201, allowed by telegram:42"},
		{func(r *Receipt) { r.State, r.Status, r.Secret, r.EndedAt = Sent, 200, "github", 9 }, request + "200, with the secret github"},
		{func(r *Receipt) { r.State, r.Reason, r.EndedAt = Refused, "no rule, and no approver", 9 }, request + "refused: no rule, and no approver"},
		{func(r *Receipt) { r.State, r.Rule, r.EndedAt = Refused, "* → deny", 9 }, request + "refused: * → deny"},
		{func(r *Receipt) { r.State, r.By, r.EndedAt = Refused, "telegram:42", 9 }, request + "refused by telegram:42"},
		{func(r *Receipt) {
			r.State, r.Status, r.Secret, r.RuleID, r.Rule = Sent, 200, "github", 7, "api.github.com → inject github"
		}, request + "200, with the secret github, rule 7 (api.github.com → inject github)"},
		{func(r *Receipt) { r.State, r.By, r.RuleID, r.Rule = Refused, "telegram:42", 7, "* → ask" }, request + "refused by telegram:42"},
		{func(r *Receipt) { r.State, r.RuleID, r.Rule = Asked, 7, "* → ask" }, request + "waits for an answer"},
		{func(r *Receipt) { r.State, r.Reason, r.EndedAt = Failed, "no such host", 9 }, request + "failed: no such host"},
		{func(r *Receipt) {
			*r = Receipt{Method: Connect, Host: "example.com", Port: 8443, State: Sent, EndedAt: 9}
		}, "CONNECT example.com:8443 → sent"},
	} {
		r := post
		tt.change(&r)
		if got := r.String(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

func TestWith(t *testing.T) {
	t.Parallel()
	all := Rules{{ID: 1, Seq: 10}, {ID: 2, Seq: 20}, {ID: 3, Seq: 20}}
	for seq, want := range map[int64][]int64{0: {9, 1, 2, 3}, 10: {9, 1, 2, 3}, 11: {1, 9, 2, 3}, 20: {1, 9, 2, 3}, 21: {1, 2, 3, 9}} {
		var ids []int64
		for _, r := range all.With(&Rule{ID: 9, Seq: seq}) {
			ids = append(ids, r.ID)
		}
		if diff := cmp.Diff(want, ids); diff != "" || len(all) != 3 {
			t.Errorf("at %d: %s", seq, diff)
		}
	}
}

func TestCompare_DraftRule_CountsRequestsDecidedOtherwise(t *testing.T) {
	t.Parallel()
	now := Rules{{ID: 1, Host: "github.com", Method: "GET", Action: Pass}, {ID: 2, Host: "pypi.org", Action: Pass}}
	draft := now.With(&Rule{Host: "github.com", Path: "/acme/", Action: Inject, Secret: "gh"})
	got := now.Compare(draft, []*Receipt{
		{ID: 6, Host: "github.com", Port: 443, Method: "POST", Path: "/acme/x?token", Folder: "main", At: 60},
		{ID: 5, Host: "github.com", Port: 443, Method: "GET", Path: "/acme/x"},
		{ID: 4, Host: "github.com", Port: 443, Method: "GET", Path: "/acme/y"},
		{ID: 3, Host: "github.com", Port: 443, Method: "GET", Path: "/"},
		{ID: 2, Host: "pypi.org", Port: 443, Method: Connect},
		{ID: 1, Host: "github.com", Port: 443, Method: Connect},
	}, 2)
	want := &Comparison{Requests: 6, Changed: 3, Examples: []Example{
		{6, 60, "main", "POST github.com/acme/x?token", "ask", "inject gh"}, {5, 0, "", "GET github.com/acme/x", "pass", "inject gh"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
