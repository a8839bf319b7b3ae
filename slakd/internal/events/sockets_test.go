package events

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest/nettest"
	"arizuko/pkg/daemon"
	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/store/storetest"
	fake "arizuko/pkg/testkit/fakes/slack"
	"arizuko/slakd/internal/slackapi"
)

func TestSockets_OwnConnections_AreNoCompetitors(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	// greeting is of a new connection, or of one that is opened beside it to count them.
	type greeting struct {
		after  time.Duration // since begin
		open   int
		beside bool
		others int
		sure   bool
	}
	for name, greetings := range map[string][]greeting{
		"alone":                        {{0, 1, false, 0, true}},
		"not said":                     {{0, 0, false, 0, true}},
		"another at the start":         {{0, 2, false, 1, true}},
		"two others at the start":      {{0, 3, false, 2, true}},
		"replaced after hours":         {{0, 1, false, 0, true}, {5 * time.Hour, 2, false, 0, false}, {5*time.Hour + recountDelay, 2, true, 0, true}},
		"replaced, and another":        {{0, 1, false, 0, true}, {5 * time.Hour, 3, false, 1, true}},
		"another that is counted late": {{0, 1, false, 0, true}, {5 * time.Hour, 2, false, 0, false}, {5*time.Hour + recountDelay, 3, true, 1, true}},
		"it stops":                     {{0, 2, false, 1, true}, {recountDelay, 3, true, 1, true}, {time.Hour, 2, true, 0, true}},
		"breaks in a row":              {{0, 1, false, 0, true}, {time.Second, 2, false, 0, false}, {2 * time.Second, 3, false, 0, false}, {3 * time.Second, 5, false, 1, true}},
		"replaced while counting":      {{0, 1, false, 0, true}, {5 * time.Hour, 2, false, 0, false}, {5*time.Hour + time.Second, 3, true, 0, false}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sockets{}
			for i, g := range greetings {
				judge := s.greet
				if g.beside {
					judge = s.counted
				}
				if others, sure := judge(g.open, begin.Add(g.after)); others != g.others || sure != g.sure {
					t.Errorf("greeting %d: %d others, sure %t, want %d, %t", i, others, sure, g.others, g.sure)
				}
			}
		})
	}
}

// competitor is a second program with the app's token.
func competitor(ctx context.Context, t *testing.T, api *slackapi.Client, n adapter.Network) (stop func()) {
	t.Helper()
	_, address, err := api.StartSocketModeContext(ctx)
	if err != nil {
		t.Fatal(err)
	}
	conn, res, err := dialer(ctx, n).DialContext(ctx, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, _, err := conn.ReadMessage(); err != nil { // it answers pings meanwhile
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		conn.Close()
		<-ended
	})
}

func TestListen_AnotherConnection_IsNamedUntilItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fake.New(fake.Options{})
		m := nettest.Serve(t, server)
		n := adapter.Network{Dial: m.Dial, TLS: m.TLS()}
		api := slackapi.NewClient("https://slack.test/api/", server.BotToken(), server.AppToken(), n.ListenClient())
		t.Cleanup(api.Close)
		var mu sync.Mutex
		var row rows.Daemon
		logger := slog.New(slog.DiscardHandler)
		heartbeat := daemon.NewHeartbeat("slakd", "", logger, func(_ context.Context, d rows.Daemon) error {
			mu.Lock()
			defer mu.Unlock()
			row = d
			return nil
		})
		st := storetest.Open(t)
		l := New(Options{
			Identity: adapter.Identity{Platform: "slack", Daemon: "slakd"}, API: api, Store: st, Now: time.Now, Network: n,
			RemoveStaleMarks: func(context.Context) error { return nil },
		})
		metrics := prometheus.NewRegistry()
		s := adapter.New(nil, adapter.Options{
			Platform: "slack", Daemon: "slakd", Listener: l, Store: st, Log: logger, Metrics: metrics, Now: time.Now, Heartbeat: heartbeat,
		})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		stop := competitor(ctx, t, api, n)
		defer stop()
		running.Go(func() { _ = l.Listen(ctx, s) })
		running.Go(func() { _ = heartbeat.Run(ctx) })
		expect := func(when string, others float64, words string) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if row.Connection != "connected" || (words == "") != (row.Detail == "") || !strings.Contains(row.Detail, words) {
				t.Errorf("%s: the daemon is %s, %q, want connected, %q", when, row.Connection, row.Detail, words)
			}
			if got := competing(t, metrics); got != others {
				t.Errorf("%s: the metric is %v, want %v", when, got, others)
			}
		}
		<-time.After(20 * time.Second)
		expect("at the start", 1, "another program is connected with this app token: stop it, half of the events go there")
		<-time.After(time.Hour)
		expect("an hour later", 1, "another program is connected with this app token")
		stop()
		<-time.After(recountInterval + time.Minute)
		expect("once it has ended", 0, "")
		server.Disconnect("refresh_requested")
		for range 10 {
			<-time.After(10 * time.Second)
			expect("while a connection is replaced", 0, "")
		}
	})
}

func competing(t *testing.T, from prometheus.Gatherer) float64 {
	t.Helper()
	all, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range all {
		if family.GetName() == "arizuko_competing_receivers" {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("there is no such metric")
	return 0
}
