package events

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest/nettest"
	"arizuko/pkg/daemon"
	"arizuko/pkg/daemon/rows"
)

func TestSessionStarts_OnlyThoseOfOthersCount(t *testing.T) {
	type look struct {
		left   int
		own    int64
		others bool
	}
	for name, looks := range map[string][]look{
		"none begin":                    {{999, 1, false}, {999, 1, false}},
		"another begins":                {{999, 1, false}, {998, 1, true}, {998, 1, false}},
		"the count is reset":            {{999, 1, false}, {1000, 1, false}, {999, 1, true}},
		"its own resumes":               {{999, 1, false}, {998, 2, false}, {998, 2, false}},
		"its own is counted late":       {{999, 1, false}, {999, 2, false}, {998, 2, false}, {998, 2, false}},
		"begun since the watch began":   {{999, 2, false}, {998, 2, false}, {997, 2, true}},
		"another beside one of its own": {{999, 1, false}, {997, 2, false}}, // this cannot be known
	} {
		t.Run(name, func(t *testing.T) {
			c := sessionStarts{own: 1, left: -1}
			for i, l := range looks {
				if others := c.look(l.left, l.own); others != l.others {
					t.Errorf("look %d: %t, want %t", i, others, l.others)
				}
			}
		})
	}
}

func TestWatchStarts_AnotherSession_IsNamedForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left atomic.Int64
		m := nettest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"url":"wss://discord.test","shards":1,"session_start_limit":{"total":1000,"remaining":%d,"reset_after":7200000,"max_concurrency":1}}`, left.Load())
		}))
		client := adapter.Network{Dial: m.Dial, TLS: m.TLS()}.ListenClient()
		t.Cleanup(client.CloseIdleConnections)
		logger := slog.New(slog.DiscardHandler)
		l := NewListener(discordapi.NewClient("https://discord.test", "token", client), nil, "token", adapter.Network{})
		var notes []string
		s := adapter.New(nil, adapter.Options{
			Platform: "discord", Daemon: "discd", Listener: l, Log: logger, Metrics: prometheus.NewRegistry(), Now: time.Now,
			Note:      func(all ...string) { notes = all },
			Heartbeat: daemon.NewHeartbeat("discd", "", logger, func(context.Context, rows.Daemon) error { return nil }),
		})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		left.Store(999)
		running.Go(func() { watchStarts(ctx, s, l.api, l.gateway) })
		<-time.After(time.Minute)
		for _, step := range []struct {
			what  string
			do    func()
			after time.Duration
			named bool
		}{
			{"none begin", func() {}, 3 * startsInterval, false},
			{"its own begins", func() { l.gateway.starts.Add(1); left.Add(-1) }, 3 * startsInterval, false},
			{"another begins", func() { left.Add(-1) }, startsInterval, true},
			{"an hour later", func() {}, time.Hour, true},
			{"a day later", func() {}, startsNamed, false},
		} {
			step.do()
			<-time.After(step.after)
			synctest.Wait()
			if got := slices.Equal(notes, []string{anotherSession}); got != step.named || !got && len(notes) > 0 {
				t.Errorf("%s: the notes are %q, named is to be %t", step.what, notes, step.named)
			}
		}
	})
}
