package slack_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"arizuko/pkg/adapter/adaptertest/nettest"
	"arizuko/pkg/testkit/fakes/internal/fakeservertest"
	"arizuko/pkg/testkit/fakes/slack"
)

func TestEvents_Unanswered_AreRetriedAndDropped(t *testing.T) {
	r := start(t, slack.Options{AckTimeout: 20 * time.Millisecond, RetryDelays: []time.Duration{0, 20 * time.Millisecond}})
	alice := r.User("Alice", "alice")
	w := r.dial()
	r.DM(alice).Say(alice, "hello")
	seen := map[any]bool{}
	for attempt := range 3 {
		frame := w.read()
		if frame["retry_attempt"] != float64(attempt) || attempt > 0 && frame["retry_reason"] != "timeout" {
			t.Errorf("attempt %d is %v", attempt, frame)
		}
		seen[frame["envelope_id"]] = true
	}
	if err := r.WaitConfirmed(r.ctx); err != nil || r.Undelivered() != 1 || len(seen) != 3 {
		t.Errorf("%d lost of %d envelopes, %v", r.Undelivered(), len(seen), err)
	}
}

// Slack sends an event at once, after a while and after a longer one, and then no more.
func TestEvents_NobodyConnected_AreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slack.New(slack.Options{})
		alice := s.User("Alice", "alice")
		team := s.Channel("team", alice)
		team.Say(alice, "hello")
		for _, tt := range []struct {
			wait    time.Duration
			pending int
		}{{0, 1}, {59 * time.Second, 1}, {5 * time.Minute, 1}, {2 * time.Second, 0}} {
			time.Sleep(tt.wait) //nolint:forbidigo // in a bubble
			synctest.Wait()
			if s.Pending() != tt.pending || s.Undelivered() != 1-tt.pending {
				t.Errorf("after another %v: %d pending, %d lost", tt.wait, s.Pending(), s.Undelivered())
			}
		}
		if got := team.Messages(); len(got) != 1 {
			t.Errorf("the history has %d messages", len(got))
		}
	})
}

func TestSocket_UsedTicket_Refused(t *testing.T) {
	r := start(t, slack.Options{})
	address := r.must("apps.connections.open").str("url")
	conn, _, err := websocket.Dial(r.ctx, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	fakeservertest.Subset(t, (&wire{r, conn}).read(), `{"type": "hello"}`) // then it counts
	for _, bad := range []string{address, address + "x"} {
		if _, resp, err := websocket.Dial(r.ctx, bad, nil); err == nil || resp.StatusCode != 403 {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if a := r.with(r.BotToken(), "apps.connections.open"); a.str("error") != "not_allowed_token_type" {
		t.Errorf("with the bot's token: %s", a.Body)
	}
	r.InjectFault(slack.Fault{Method: "socket", Status: 503})
	if _, resp, err := websocket.Dial(r.ctx, r.must("apps.connections.open").str("url"), nil); err == nil || resp.StatusCode != 503 {
		t.Errorf("with a fault: %v", err)
	}
	for range 9 {
		r.dial()
	}
	if _, resp, err := websocket.Dial(r.ctx, r.must("apps.connections.open").str("url"), nil); err == nil || resp.StatusCode != 403 {
		t.Errorf("above the limit: %v", err)
	}
}

func TestSocket_Pings_ArriveInInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that no answer is late
		s := slack.New(slack.Options{})
		n := nettest.Serve(t, s)
		client := &http.Client{Transport: &http.Transport{DialContext: n.Dial, TLSClientConfig: n.TLS()}}
		t.Cleanup(client.CloseIdleConnections)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://slack.test/api/apps.connections.open", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+s.AppToken())
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var opened struct{ URL string }
		err = json.NewDecoder(res.Body).Decode(&opened)
		res.Body.Close()
		pinged := make(chan struct{}, 100)
		conn, _, dialErr := websocket.Dial(t.Context(), opened.URL, &websocket.DialOptions{
			HTTPClient: client, OnPingReceived: func(_ context.Context, _ []byte) bool { pinged <- struct{}{}; return len(pinged) < 3 },
		})
		if err := errors.Join(err, dialErr); err != nil {
			t.Fatal(err)
		}
		defer conn.CloseNow()
		if _, _, err := conn.Read(t.Context()); err != nil { // hello
			t.Fatal(err)
		}
		// Two are answered; the third is not, and ends it.
		if _, frame, err := conn.Read(t.Context()); err == nil || len(pinged) < 3 {
			t.Errorf("got %s after %d pings", frame, len(pinged))
		}
	})
}
