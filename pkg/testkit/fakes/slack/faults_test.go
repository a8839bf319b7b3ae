package slack_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"arizuko/pkg/testkit/fakes/internal/fakeservertest"
	"arizuko/pkg/testkit/fakes/slack"
)

func TestFault_Answers(t *testing.T) {
	tests := []struct {
		name     string
		fault    slack.Fault
		status   int
		body     string
		accepted bool
	}{
		{"5xx before", slack.Fault{Status: 502}, 502, `{"ok":false,"error":"Bad Gateway"}` + "\n", false},
		{"5xx after", slack.Fault{Status: 500, After: true, Error: "fatal_error"}, 500, `{"ok":false,"error":"fatal_error"}` + "\n", true},
		{"an error", slack.Fault{Error: "internal_error"}, 200, `{"ok":false,"error":"internal_error"}` + "\n", false},
		{"429", slack.Fault{RetryAfter: 7}, 429, `{"ok":false,"error":"ratelimited"}` + "\n", false},
		{"dropped before", slack.Fault{Drop: true}, 0, "", false},
		{"dropped after", slack.Fault{Drop: true, After: true}, 0, "", true},
		{"raw body", slack.Fault{Body: "<html>", After: true}, 200, "<html>", true},
		{"a proxy's page", slack.Fault{Body: "<html>", Status: 503}, 503, "<html>", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t, slack.Options{})
			team := r.Channel("team").ChannelID
			r.InjectFault(tt.fault)
			a := r.call("chat.postMessage", "channel", team, "text", "one")
			if a.Status != tt.status || tt.status != 0 && a.Body != tt.body {
				t.Errorf("got %d %s, want %d %s", a.Status, a.Body, tt.status, tt.body)
			}
			if tt.fault.RetryAfter != 0 && a.Header.Get("Retry-After") != "7" {
				t.Errorf("Retry-After %s", a.Header.Get("Retry-After"))
			}
			if got := len(r.Sent()) == 1; got != tt.accepted {
				t.Errorf("carried out: %v, want %v", got, tt.accepted)
			}
			if c := r.Calls()[0]; c.Status != tt.status || c.Accepted != tt.accepted || c.Text != "one" {
				t.Errorf("recorded %+v", c)
			}
			r.must("chat.postMessage", "channel", team, "text", "two")
		})
	}
}

func TestFault_MatchesMethods(t *testing.T) {
	r := start(t, slack.Options{})
	team := r.Channel("team").ChannelID
	send := func() int { return r.call("chat.postMessage", "channel", team, "text", "x").Status }
	steps := []struct {
		faults []slack.Fault
		want   []int // of apps.connections.open, auth.test, and three messages
	}{
		{[]slack.Fault{{Method: "chat.postMessage", Times: 2, Status: 500}}, []int{200, 200, 500, 500, 200}},
		{[]slack.Fault{{Status: 500}}, []int{200, 500, 200, 200, 200}},
		{[]slack.Fault{{Method: "apps.connections.open", Status: 500}}, []int{500, 200, 200, 200, 200}},
		{[]slack.Fault{{Method: "*", Times: -1, Status: 500}}, []int{500, 500, 500, 500, 500}},
		{[]slack.Fault{{Method: "chat.postMessage", Status: 500}, {Method: "chat.postMessage", RetryAfter: 1}}, []int{200, 200, 500, 429, 200}},
	}
	for _, step := range steps {
		r.InjectFault(step.faults...)
		got := []int{r.call("apps.connections.open").Status, r.call("auth.test").Status, send(), send(), send()}
		if fmt.Sprint(got) != fmt.Sprint(step.want) {
			t.Errorf("%+v: %v, want %v", step.faults, got, step.want)
		}
		r.ClearFaults()
	}
}

func TestFault_Delay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slack.New(slack.Options{})
		team := s.Channel("team").ChannelID
		for _, after := range []bool{false, true} {
			s.InjectFault(slack.Fault{Delay: 9 * time.Second, After: after})
			begin := time.Now()
			req := httptest.NewRequest("POST", "/api/chat.postMessage", strings.NewReader("channel="+team+"&text=x&token="+s.BotToken()))
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			s.ServeHTTP(w, req)
			sent := s.Sent()
			if len(sent) == 0 {
				t.Fatal(w.Body)
			}
			accepted := sent[len(sent)-1].At.Sub(begin)
			if took := time.Since(begin); took != 9*time.Second || (accepted == 0) != after {
				t.Errorf("after=%v: took %v, carried out after %v", after, took, accepted)
			}
		}
	})
}

func TestSetReachable_False_BreaksSockets(t *testing.T) {
	r := start(t, slack.Options{})
	alice := r.User("Alice", "alice")
	dm, w := r.DM(alice), r.dial()
	r.SetReachable(false)
	if n := r.Sockets(); n != 0 {
		t.Errorf("%d sockets open", n)
	}
	if frame := w.read(); frame != nil {
		t.Errorf("after the end: %v", frame)
	}
	dm.Say(alice, "meanwhile")
	if a := r.call("chat.postMessage", "channel", dm.ChannelID, "text", "x"); a.Status != 0 {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
	r.SetReachable(true)
	r.dial().event(`{"text": "meanwhile"}`)
	if sent := r.Sent(); len(sent) != 0 {
		t.Errorf("carried out: %+v", sent)
	}
}

func TestServer_Restart(t *testing.T) {
	r := start(t, slack.Options{})
	w := r.dial()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if frame := w.read(); frame != nil {
		t.Errorf("after the end: %v", frame)
	}
	r.client.CloseIdleConnections()
	base, err := r.Start(strings.TrimPrefix(r.base, "http://"))
	if err != nil || base != r.base {
		t.Fatalf("at %s: %v", base, err)
	}
	r.dial()
}

func TestEvents_DuplicatedReorderedRedelivered(t *testing.T) {
	r := start(t, slack.Options{})
	alice := r.User("Alice", "alice")
	dm, w := r.DM(alice), r.dial()
	said := func(n int) string {
		var all []string
		for _, e := range w.events(n) {
			all = append(all, fmt.Sprint(e["text"]))
		}
		return strings.Join(all, " ")
	}
	r.ReverseNext(2)
	dm.Say(alice, "1")
	dm.Say(alice, "2")
	dm.Say(alice, "3")
	if got := said(3); got != "2 1 3" {
		t.Errorf("reversed: %s", got)
	}
	r.DuplicateNext(1)
	dm.Say(alice, "4")
	dm.Say(alice, "5")
	if got := said(3); got != "4 4 5" {
		t.Errorf("twice: %s", got)
	}
	if err := r.WaitConfirmed(r.ctx); err != nil {
		t.Fatal(err)
	}
	if n := r.Redeliver(2); n != 2 {
		t.Errorf("%d redelivered", n)
	}
	frame := w.read()
	fakeservertest.Subset(t, frame, `{"retry_attempt": 1, "retry_reason": "timeout", "payload": {"event": {"text": "4"}}}`)
	w.ack(frame["envelope_id"], nil)
	if got := said(1); got != "5" {
		t.Errorf("again: %s", got)
	}
}

func TestInject_MalformedEventsAndFrames(t *testing.T) {
	r := start(t, slack.Options{})
	w := r.dial()
	id := r.Inject(`"not an object"`)
	frame := w.read()
	fakeservertest.Subset(t, frame, `{"type": "events_api", "payload": {"event": "not an object", "event_id": "`+id+`"}}`)
	w.ack(frame["envelope_id"], nil)
	r.InjectFrame("{")
	if kind, raw, err := w.conn.Read(r.ctx); err != nil || kind != websocket.MessageText || string(raw) != "{" {
		t.Errorf("got %q, %v", raw, err)
	}
	if err := w.conn.Write(r.ctx, websocket.MessageText, []byte("nonsense")); err != nil {
		t.Fatal(err)
	}
	w.ack("unknown", nil)
	if err := r.Until(r.ctx, func() bool { return len(r.Acks()) == 2 }); err != nil || r.Acks()[1].Kind != "" {
		t.Errorf("answers %+v, %v", r.Acks(), err)
	}
}

// A flood holds for a method in every conversation, and for no other method.
func TestFlood_HoldsForTheMethod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slack.New(slack.Options{})
		alice := s.User("Alice", "alice")
		one, two := s.Channel("one", alice).ChannelID, s.DM(alice).ChannelID
		call := func(method, channel string) (status int, retryAfter string) {
			r := httptest.NewRequest("POST", "/api/"+method, strings.NewReader("text=x&channel="+channel))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Authorization", "Bearer "+s.BotToken())
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			return w.Code, w.Header().Get("Retry-After")
		}
		s.Flood("chat.postMessage", time.Minute)
		time.Sleep(500 * time.Millisecond) //nolint:forbidigo // in a bubble
		for _, channel := range []string{one, two} {
			if status, after := call("chat.postMessage", channel); status != 429 || after != "60" {
				t.Errorf("%s: %d, Retry-After %q", channel, status, after)
			}
		}
		if status, _ := call("conversations.history", one); status != 200 {
			t.Errorf("another method: %d", status)
		}
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		if status, _ := call("chat.postMessage", one); status != 200 {
			t.Errorf("after it: %d", status)
		}
	})
}

func TestLockThread_RefusesReplies(t *testing.T) {
	r := start(t, slack.Options{})
	alice := r.User("Alice", "alice")
	team := r.Channel("team", alice)
	root := team.Say(alice, "root").TS
	team.Thread(root).LockThread()
	r.refuse("restricted_action_thread_locked", "chat.postMessage", "channel", team.ChannelID, "thread_ts", root, "text", "x")
	r.must("chat.postMessage", "channel", team.ChannelID, "text", "x")
}
