package events

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/pkg/adapter"
	"arizuko/pkg/daemon"
	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/store/storetest"
	"arizuko/slakd/internal/history"
	"arizuko/slakd/internal/inbound"
)

func TestReceiver_ConversionPanics_SkipsEvent(t *testing.T) {
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	l := &Listener{Options: Options{Now: time.Now}, missed: &history.Reader{}} // names are missing: looking one up panics
	l.me.Store(&inbound.Self{Platform: "slack", User: "U1", Bot: "B1"})
	s := adapter.New(nil, adapter.Options{
		Platform: "slack", Daemon: "slakd", Listener: l, Store: storetest.OpenAt(t, storetest.Path(t), nil), Log: logger,
		Metrics: prometheus.NewRegistry(), Now: time.Now,
		Heartbeat: daemon.NewHeartbeat("slakd", "", logger, func(context.Context, rows.Daemon) error { return nil }),
	})
	event := `{"team_id":"T1","event_id":"Ev1","event":{"type":"message","channel":"C1","user":"U2","text":"hi","ts":"1764000000.000100"}}`
	reply, err := l.receiver(s)(t.Context(), eventRequest, []byte(event))
	if reply != nil || err != nil {
		t.Errorf("%v, %v", reply, err)
	}
	if !strings.Contains(log.String(), "panic while decoding") || !strings.Contains(log.String(), "undecodable event skipped") {
		t.Errorf("log:\n%s", log.String())
	}
}
