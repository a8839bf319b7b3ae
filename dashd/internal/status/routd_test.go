package status

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

// Requests for more than the home would claim engagement.
func TestChat_Routd_AskedForHomeOnly(t *testing.T) {
	r := newFixture(t)
	r.write(func(tx *store.Tx) error { return tx.PutChat(tele, msg.ChatDM, "Ann", now) })
	r.pin(tele, "main", "", 0)
	asked := func(at Where) routeapi.Item {
		r.asked = nil
		if r.chat(at); len(r.asked) != 1 {
			t.Fatalf("asked %+v", r.asked)
		}
		return r.asked[0]
	}
	item := asked(Where{ChatJID: tele, ThreadID: "7", Sender: "telegram:42", SenderName: "Ann"})
	if !item.HomeOnly || item.ChatJID != tele || item.ThreadID != "7" || item.Kind != msg.ChatDM || item.StickyGroup != "main" ||
		item.Sender != "telegram:42" || item.SenderName != "Ann" {
		t.Errorf("asked %+v", item)
	}
	if item := asked(Where{ChatJID: tele}); item.Sender != tele {
		t.Errorf("the user of a direct message is %q", item.Sender)
	}
}

func TestChat_RoutdDown_LastKnownGroup(t *testing.T) {
	for _, tc := range []struct {
		name, chat string
		seed       func(*fixture)
		want       string
	}{
		{"the address names a group", web, nil, "main"},
		{"the address names none", "web:gone", nil, ""},
		{"the pin", web, func(r *fixture) { r.group("acme"); r.pin(web, "acme", "", 0) }, "acme"},
		{"a pin to nothing", web, func(r *fixture) { r.pin(web, "gone", "", 0) }, "main"},
		{"the last group", tele, func(r *fixture) { r.answered(tele, "s", minute) }, "main"},
		{"nothing is known", tele, func(r *fixture) { r.answered(other, "s", minute) }, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newFixture(t)
			r.healthy()
			r.down.Store(true)
			if tc.seed != nil {
				tc.seed(r)
			}
			got := r.chat(Where{ChatJID: tc.chat})
			if show(got.Group) != orText(tc.want) {
				t.Errorf("group %s, want %q", show(got.Group), tc.want)
			}
			first, want := strings.SplitN(got.Text, "\n", 2)[0], "routd is not answering: the group is the last one known."
			if tc.want == "" {
				want = "routd is not answering."
			}
			if first != want || strings.Contains(got.Text, "Healthy: ") == (tc.want == "") || strings.Contains(got.Text, ", routd") {
				t.Errorf("text %q", got.Text)
			}
			if unknown := strings.Contains(got.Text, "Group: not known"); unknown != (tc.want == "") {
				t.Errorf("text %q", got.Text)
			}
			if strings.Contains(r.log.String(), secret) {
				t.Error("the log has the secret")
			}
		})
	}
}

// hanging never answers, and records its deadline.
type hanging struct{ limit time.Duration }

func (h *hanging) RoundTrip(req *http.Request) (*http.Response, error) {
	if deadline, ok := req.Context().Deadline(); ok {
		h.limit = time.Until(deadline)
	}
	return nil, context.DeadlineExceeded
}

func TestChat_RoutdHangs_TimesOut(t *testing.T) {
	r, transport := newFixture(t), &hanging{}
	r.status.Routd = &httpx.Client{Base: "http://routd", HTTP: &http.Client{Transport: transport}}
	if got := show(r.chat(Where{ChatJID: web}).Group); got != "main" {
		t.Errorf("group %s", got)
	}
	if transport.limit <= 0 || transport.limit > time.Second {
		t.Errorf("routd is given %v", transport.limit)
	}
}
