package scenarios

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
)

// hook is the daemon of a route. answer is its response to the nth request, counted from 1.
type hook struct {
	*httptest.Server
	mu     sync.Mutex
	texts  []string
	routes []int64
}

func newHook(t *testing.T, answer func(n int, text string) (status int, body string)) *hook {
	h := &hook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
			RouteID int64 `json:"route_id"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.texts, h.routes = append(h.texts, in.Message.Content), append(h.routes, in.RouteID)
		status, body := answer(len(h.texts), in.Message.Content)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(h.Close)
	return h
}

func TestTargets_Daemon_GetsRowAndReplies(t *testing.T) {
	h := newHook(t, func(n int, text string) (int, string) {
		switch {
		case text == "quietly":
			return http.StatusNoContent, ""
		case n == 1:
			return http.StatusServiceUnavailable, ""
		}
		return http.StatusAccepted, `{"reply":"taken: ` + text + `"}`
	})
	f := start(t, harness.Options{Env: []string{"DAEMONS=tickets=" + h.URL + "/hook"}})
	route := f.AddRoute("platform=discord", "daemon:tickets")
	row := f.Say("discord:5", "printer on fire")
	f.WantReply(row, "taken: printer on fire")
	if m := f.WantDecision(row, msg.Routed, msg.ReasonDaemon); m.RoutedTo != "daemon:tickets" || m.TurnID != 0 {
		t.Errorf("row %+v", m)
	}
	f.WantDecision(f.Say("discord:5", "quietly"), msg.Routed, msg.ReasonDaemon)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.texts) != 3 || h.routes[0] != route {
		t.Errorf("the daemon got %q by routes %v", h.texts, h.routes)
	}
	if out := f.Outbound("discord:5"); len(out) != 1 {
		t.Errorf("replies %+v", out)
	}
}

func TestTargets_GatedKilledDuringRequest_IsRepeated(t *testing.T) {
	release := make(chan struct{})
	h := newHook(t, func(n int, text string) (int, string) {
		if n == 1 {
			<-release
		}
		return http.StatusOK, `{"reply":"done"}`
	})
	f := start(t, harness.Options{Env: []string{"DAEMONS=tickets=" + h.URL}})
	f.AddRoute("platform=discord", "daemon:tickets")
	row := f.Say("discord:5", "printer on fire")
	// The first request holds the lock of the hook, so the test cannot wait until released.
	waitScanned(f)
	f.Kill(harness.Gated)
	close(release)
	f.Restart(harness.Gated)
	f.WantReply(row, "done")
	f.WantDecision(row, msg.Routed, msg.ReasonDaemon)
}

func TestUnroutedChat_Rows_WaitForRoute(t *testing.T) {
	add := map[string]func(*harness.Fixture){
		"by HTTP": func(f *harness.Fixture) { f.AddRoute("platform=discord", "main") },
		"by SQL": func(f *harness.Fixture) {
			f.Exec(`INSERT INTO routes (match, target) VALUES ('platform=discord', 'main')`)
		},
	}
	for name, route := range add {
		t.Run(name, func(t *testing.T) {
			f := start(t, harness.Options{})
			dm := f.Put(texts("discord:dm-5", "hello?", "anyone there?")...)
			call := f.Put(msg.Message{ChatJID: "discord:77", Verb: msg.VerbMention, Content: "are you there?"})[0]
			f.WantDecision(f.Say("discord:77", "chatter"), msg.Dropped, msg.ReasonNoRoute)
			f.WantReply(f.Say("discord:dm-5", "/ping"), "pong")
			waitScanned(f)
			for _, id := range append(dm, call) {
				if m := f.Row(id); m.Disposition != "" {
					t.Fatalf("%q is decided: %s/%s", m.Content, m.Disposition, m.Reason)
				}
			}
			f.WantReply(f.Say("discord:dm-5", "/new"), "This chat is not connected to a group yet.")
			route(f)
			f.WantEchoes("discord:dm-5", "hello?", "anyone there?")
			f.WantEchoes("discord:77", "are you there?")
		})
	}
}

func TestUnroutedChat_Rows_WaitOverRestart(t *testing.T) {
	f := start(t, harness.Options{})
	row := f.Say("discord:dm-5", "hello?")
	waitScanned(f)
	f.Stop(harness.Gated)
	f.Kill(harness.Routd)
	f.Restart(harness.Routd)
	f.Restart(harness.Gated)
	waitScanned(f)
	if m := f.Row(row); m.Disposition != "" {
		t.Fatalf("the row is decided: %s/%s", m.Disposition, m.Reason)
	}
	f.AddRoute("platform=discord", "main")
	f.WantEchoes("discord:dm-5", "hello?")
}
