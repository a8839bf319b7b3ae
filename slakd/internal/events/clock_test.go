package events

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/pkg/adapter"
	"arizuko/pkg/daemon"
	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/store/storetest"
	fake "arizuko/pkg/testkit/fakes/slack"
	"arizuko/slakd/internal/slackapi"
)

// The first start is stored by Slack's clock, though the machine's shows another day.
func TestListen_WrongClock_BeginsAtSlacksTime(t *testing.T) {
	server := fake.New(fake.Options{})
	base, err := server.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	api := slackapi.NewClient(base+"/api/", server.BotToken(), server.AppToken(), adapter.NewListenClient())
	t.Cleanup(api.Close)
	st, wrong := storetest.Open(t), func() time.Time { return time.Now().Add(24 * time.Hour) }
	l := New(Options{
		Identity: adapter.Identity{Platform: "slack", Daemon: "slakd"}, API: api, Store: st, Now: wrong,
		RemoveStaleMarks: func(context.Context) error { return nil },
	})
	logger := slog.New(slog.DiscardHandler)
	s := adapter.New(nil, adapter.Options{
		Platform: "slack", Daemon: "slakd", Listener: l, Store: st, Log: logger, Metrics: prometheus.NewRegistry(), Now: wrong,
		Heartbeat: daemon.NewHeartbeat("slakd", "", logger, func(context.Context, rows.Daemon) error { return nil }),
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- l.Listen(ctx, s) }()
	for began := ""; began == "" && ctx.Err() == nil; {
		adapter.Pause(ctx, 10*time.Millisecond)
		if began, err = st.DaemonCursor(t.Context(), "slakd", "began"); err != nil {
			t.Fatal(err)
		}
		if seconds, err := strconv.ParseFloat(began, 64); began != "" && (err != nil || time.Since(time.UnixMilli(int64(seconds*1000))).Abs() > time.Minute) {
			t.Errorf("began at %q, %v, want now", began, err)
		}
	}
	if ctx.Err() != nil {
		t.Error("no start is stored")
	}
	cancel()
	<-done
}
