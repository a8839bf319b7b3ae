package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/prometheus/client_golang/prometheus"

	"arizuko/discd/internal/discordapi"
	"arizuko/discd/internal/inbound"
	"arizuko/pkg/adapter"
	"arizuko/pkg/daemon"
	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/store/storetest"
)

func TestListen_FewSessionsLeft_Waits(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v9/gateway/bot" {
			t.Errorf("unexpected call of %s", r.URL)
		}
		fmt.Fprint(w, `{"url":"ws://127.0.0.1:1","shards":1,"session_start_limit":{"total":1000,"remaining":49,"reset_after":7200000,"max_concurrency":1}}`)
	}))
	defer api.Close()
	err := NewListener(discordapi.NewClient(api.URL, "token", adapter.NewCallClient()), nil, "token", adapter.Network{}).Listen(t.Context(), nil)
	var f *adapter.Failure
	if !errors.As(err, &f) || f.After != 2*time.Hour || !strings.Contains(err.Error(), "49 times") {
		t.Errorf("%v", err)
	}
}

func TestReceive_ConversionPanics_SkipsEvent(t *testing.T) {
	var log strings.Builder
	st := storetest.OpenAt(t, storetest.Path(t), nil)
	l := NewListener(nil, st, "token", adapter.Network{})
	l.decoder.me.Platform = "discord"
	l.decoder.convert = func(u *discordapi.Update, me inbound.Self, known *inbound.Guilds) (adapter.Inbound, error) {
		if u.Message.Content == "bad" {
			panic("no such case")
		}
		return inbound.Convert(u, me, known)
	}
	logger := slog.New(slog.NewTextHandler(&log, nil))
	s := adapter.New(nil, adapter.Options{
		Platform: "discord", Daemon: "discd", Listener: l, Store: st, Log: logger, Metrics: prometheus.NewRegistry(), Now: time.Now,
		Heartbeat: daemon.NewHeartbeat("discd", "", logger, func(context.Context, rows.Daemon) error { return nil }),
	})
	for id, content := range []string{"one", "bad", "two"} {
		raw := fmt.Sprintf(`{"id":"%d","channel_id":"5","content":%q,"author":{"id":"7","username":"alice"}}`, id+1, content)
		if err := l.receive(t.Context(), s, &discordgo.Event{Type: "MESSAGE_CREATE", RawData: []byte(raw)}); err != nil {
			t.Fatal(err)
		}
	}
	last, err := st.LastMessageID(t.Context())
	if err != nil || last != 2 || strings.Count(log.String(), "undecodable event skipped") != 1 {
		t.Errorf("last row %d, %v, log:\n%s", last, err, log.String())
	}
}
