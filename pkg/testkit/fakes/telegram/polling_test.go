package telegram_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"arizuko/pkg/testkit/fakes/internal/fakeservertest"
	"arizuko/pkg/testkit/fakes/telegram"
)

// ids are the ids of the updates of a call, counted from the first one.
func (r *fixture) ids(fields ...any) []int64 {
	r.t.Helper()
	var batch []struct {
		ID int64 `json:"update_id"`
	}
	r.must(&batch, "getUpdates", fields...)
	all := []int64{}
	for _, u := range batch {
		all = append(all, u.ID-firstID)
	}
	return all
}

const firstID = 730_000_001

func same(t *testing.T, got []int64, want ...int64) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("updates %v, want %v", got, want)
	}
}

func TestGetUpdates_Offset(t *testing.T) {
	r := start(t, telegram.Options{})
	alice := r.User("Alice", "alice")
	dm := r.DM(alice)
	for i := range 5 {
		dm.Say(alice, fmt.Sprint(i))
	}
	same(t, r.ids(), 0, 1, 2, 3, 4)
	same(t, r.ids(), 0, 1, 2, 3, 4) // not confirmed
	same(t, r.ids("limit", 2), 0, 1)
	same(t, r.ids("limit", 0), 0, 1, 2, 3, 4)
	same(t, r.ids("offset", firstID+1), 1, 2, 3, 4)
	same(t, r.ids(), 1, 2, 3, 4)
	same(t, r.ids("offset", firstID+5))
	if r.Pending() != 0 {
		t.Errorf("%d updates pending", r.Pending())
	}

	dm.Say(alice, "after another bot's offset")
	same(t, r.ids("offset", firstID+17), 5) // more than ten beyond the end: all that waits
	same(t, r.ids(), 5)
	same(t, r.ids("offset", firstID+16))

	for range 101 {
		dm.Say(alice, "x")
	}
	if n := len(r.ids()); n != 100 {
		t.Errorf("%d updates at once, want 100", n)
	}
}

// direct makes a call without a network, for tests with a fake clock.
func direct(s *telegram.Server, method string, fields ...any) (int, string) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/bot"+s.Token()+"/"+method+"?"+form(fields...).Encode(), nil))
	return w.Code, w.Body.String()
}

func TestGetUpdates_Timeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := telegram.New(telegram.Options{})
		for asked, want := range map[int]time.Duration{7: 7 * time.Second, 600: 50 * time.Second, -1: 0} {
			begin := time.Now()
			if code, body := direct(s, "getUpdates", "timeout", asked); code != 200 || body != `{"ok":true,"result":[]}`+"\n" {
				t.Errorf("%d %s", code, body)
			}
			if took := time.Since(begin); took != want {
				t.Errorf("timeout=%d took %v, want %v", asked, took, want)
			}
		}
	})
}

func TestGetUpdates_Conflicts(t *testing.T) {
	r := start(t, telegram.Options{})
	first := make(chan answer)
	go func() { first <- r.call("getUpdates", "timeout", 50) }()
	if err := r.WaitPolling(r.ctx); err != nil {
		t.Fatal(err)
	}
	second := make(chan answer)
	go func() { second <- r.call("getUpdates", "timeout", 50) }()
	r.refused(<-first, 409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running")

	r.SetWebhook("https://elsewhere.example")
	r.refused(<-second, 409, "Conflict: terminated by setWebhook request")
	const active = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
	r.refuse(409, active, "getUpdates")

	alice := r.User("Alice", "alice")
	r.DM(alice).Say(alice, "x")
	var info map[string]any
	r.must(&info, "getWebhookInfo")
	fakeservertest.Subset(t, info, `{"url":"https://elsewhere.example","has_custom_certificate":false,"pending_update_count":1}`)
	r.must(nil, "deleteWebhook")
	same(t, r.ids(), 0)
}

func TestGetUpdates_AllowedUpdates(t *testing.T) {
	r := start(t, telegram.Options{})
	alice := r.User("Alice", "alice")
	dm := r.DM(alice)
	act := func() int {
		m := dm.Say(alice, "x")
		dm.React(alice, m.ID, "👍")
		dm.Edit(alice, m.ID, "y")
		return len(r.updates())
	}
	if n := act(); n != 2 {
		t.Errorf("by default %d updates, want 2: reactions only when named", n)
	}
	r.must(nil, "getUpdates", "allowed_updates", `["message_reaction"]`)
	if n := act(); n != 1 {
		t.Errorf("%d updates, want the reaction", n)
	}
	r.must(nil, "getUpdates") // without allowed_updates
	if n := act(); n != 1 {
		t.Errorf("%d updates, want the setting kept", n)
	}
	r.must(nil, "getUpdates", "allowed_updates", `[]`)
	if n := act(); n != 2 {
		t.Errorf("%d updates, want the default again", n)
	}
}

func TestGetUpdates_Redelivered_AtAnyOffset(t *testing.T) {
	r := start(t, telegram.Options{})
	alice := r.User("Alice", "alice")
	r.DM(alice).Say(alice, "x")
	same(t, r.ids("offset", firstID+1))
	if n := r.Redeliver(2); n != 1 {
		t.Fatalf("%d to redeliver", n)
	}
	r.DM(alice).Say(alice, "new")
	same(t, r.ids("offset", firstID+1), 0, 1)
	same(t, r.ids("offset", firstID+1), 1)

	id := r.Inject(`"message":"no object"`)
	var batch []json.RawMessage
	r.must(&batch, "getUpdates", "offset", id)
	if want := fmt.Sprintf(`{"update_id":%d,"message":"no object"}`, id); string(batch[0]) != want {
		t.Errorf("got %s, want %s", batch[0], want)
	}
}
