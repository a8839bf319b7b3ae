package scenarios

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"arizuko/pkg/msg"
)

func TestBuiltinTargets(t *testing.T) {
	s := start(t, Options{})
	s.Route("platform=discord room=1", "builtin:ping")
	s.Route("platform=discord room=2", "builtin:drop")
	ping := s.Say("discord:1", "anyone?")
	s.Replies(ping, "pong")
	s.Becomes(ping, msg.Command, msg.ReasonBuiltinPing)
	s.Becomes(s.Say("discord:2", "anyone?"), msg.Dropped, msg.ReasonBuiltinDrop)
	s.Replies(s.Say("discord:2", "/ping"), "pong")
}

func TestObservedRowsAreInTheNextPrompt(t *testing.T) {
	s := start(t, Options{Agent: Recording})
	s.Route("platform=discord", "main#observe")
	row := s.Becomes(s.Say("discord:5", "overheard in the hall"), msg.Observed, msg.ReasonRouteObserve)
	if row.RoutedTo != "main" || row.TurnID != 0 {
		t.Errorf("the row is %+v", row)
	}
	s.Answer(s.Say("telegram:5", "hello"))
	if in := s.Input("main"); !strings.Contains(in, "overheard in the hall") {
		t.Errorf("the prompt has it not:\n%s", in)
	}
	s.HasHeard("telegram:5", "hello")
}

func TestNoRoute(t *testing.T) {
	s := start(t, Options{})
	s.Becomes(s.Say("discord:5", "a group nobody serves"), msg.Dropped, msg.ReasonNoRoute)
	left := s.Put(msg.Message{ChatJID: "discord:dm-5", Verb: msg.VerbLeave, Addressed: true})[0]
	s.Becomes(left, msg.Dropped, msg.ReasonNoRoute)
}

// hook is a daemon that a route names. answer says how it replies to the nth
// request, from 1, with a given text.
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

func (h *hook) seen() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.texts...)
}

func TestADaemonTakesTheRow(t *testing.T) {
	h := newHook(t, func(n int, text string) (int, string) {
		switch {
		case text == "quietly":
			return http.StatusNoContent, ""
		case n == 1:
			return http.StatusServiceUnavailable, ""
		}
		return http.StatusAccepted, `{"reply":"taken: ` + text + `"}`
	})
	s := start(t, Options{Env: []string{"DAEMONS=tickets=" + h.URL + "/hook"}})
	route := s.Route("platform=discord", "daemon:tickets")
	row := s.Say("discord:5", "printer on fire")
	s.Replies(row, "taken: printer on fire")
	if m := s.Becomes(row, msg.Routed, msg.ReasonDaemon); m.RoutedTo != "daemon:tickets" || m.TurnID != 0 {
		t.Errorf("the row is %+v", m)
	}
	s.Becomes(s.Say("discord:5", "quietly"), msg.Routed, msg.ReasonDaemon)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.texts) != 3 || h.routes[0] != route {
		t.Errorf("the daemon saw %q by routes %v", h.texts, h.routes)
	}
	if out := s.Out("discord:5"); len(out) != 1 {
		t.Errorf("replies: %+v", out)
	}
}

func TestADaemonThatDoesNotTakeTheRow(t *testing.T) {
	release := make(chan struct{})
	h := newHook(t, func(n int, text string) (int, string) {
		if n == 1 {
			<-release
		}
		return http.StatusInternalServerError, "no"
	})
	s := start(t, Options{Env: []string{"DAEMONS=tickets=" + h.URL}})
	s.Route("platform=discord sender=discord:1", "daemon:tickets")
	s.Route("platform=discord", "main")
	stuck := s.Put(msg.Message{ChatJID: "discord:5", Sender: "discord:1", Content: "printer on fire"})[0]
	s.Answer(s.Say("discord:5", "meanwhile"))
	close(release)
	s.Becomes(stuck, msg.Dropped, msg.ReasonDaemonFailed)
	if got := h.seen(); len(got) != 3 {
		t.Errorf("it was asked %d times", len(got))
	}
	s.HasHeard("discord:5", "meanwhile")
}

func TestADaemonNobodyKnows(t *testing.T) {
	s := start(t, Options{})
	s.Exec(`INSERT INTO routes (match, target) VALUES ('platform=discord', 'daemon:nobody')`)
	s.Until("the route is in force", func() bool {
		return s.Decided(s.Say("discord:5", "hello")).Reason != msg.ReasonNoRoute
	})
	s.Becomes(s.Say("discord:5", "hello"), msg.Dropped, msg.ReasonDaemonFailed)
}

func TestAHandoverSurvivesGated(t *testing.T) {
	release := make(chan struct{})
	h := newHook(t, func(n int, text string) (int, string) {
		if n == 1 {
			<-release
		}
		return http.StatusOK, `{"reply":"done"}`
	})
	s := start(t, Options{Env: []string{"DAEMONS=tickets=" + h.URL}})
	s.Route("platform=discord", "daemon:tickets")
	row := s.Say("discord:5", "printer on fire")
	// The first request hangs in the hook's lock, so it cannot be asked for.
	passed(s)
	s.Kill(Gated)
	close(release)
	s.Restart(Gated)
	s.Replies(row, "done")
	s.Becomes(row, msg.Routed, msg.ReasonDaemon)
}

func TestRowsOfAChatWithoutAHomeWaitForARoute(t *testing.T) {
	add := map[string]func(*Suite){
		"by HTTP": func(s *Suite) { s.Route("platform=discord", "main") },
		"by SQL":  func(s *Suite) { s.Exec(`INSERT INTO routes (match, target) VALUES ('platform=discord', 'main')`) },
	}
	for name, route := range add {
		t.Run(name, func(t *testing.T) {
			s := start(t, Options{})
			dm := s.Put(texts("discord:dm-5", "hello?", "anyone there?")...)
			call := s.Put(msg.Message{ChatJID: "discord:77", Verb: msg.VerbMention, Content: "are you there?"})[0]
			s.Becomes(s.Say("discord:77", "chatter"), msg.Dropped, msg.ReasonNoRoute)
			s.Replies(s.Say("discord:dm-5", "/ping"), "pong")
			passed(s)
			for _, id := range append(dm, call) {
				if m := s.Row(id); m.Disposition != "" {
					t.Fatalf("%q did not wait: %s/%s", m.Content, m.Disposition, m.Reason)
				}
			}
			s.Replies(s.Say("discord:dm-5", "/new"), "This chat is not connected to a group yet.")
			route(s)
			s.HasHeard("discord:dm-5", "hello?", "anyone there?")
			s.HasHeard("discord:77", "are you there?")
		})
	}
}

func TestRowsWithoutAHomeWaitOverARestart(t *testing.T) {
	s := start(t, Options{})
	row := s.Say("discord:dm-5", "hello?")
	passed(s)
	s.Stop(Gated)
	s.Kill(Routd)
	s.Restart(Routd)
	s.Restart(Gated)
	passed(s)
	if m := s.Row(row); m.Disposition != "" {
		t.Fatalf("it did not wait: %s/%s", m.Disposition, m.Reason)
	}
	s.Route("platform=discord", "main")
	s.HasHeard("discord:dm-5", "hello?")
}
