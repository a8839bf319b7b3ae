package main

import (
	"strings"
	"testing"
	"time"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/msg"
)

// second is a time in a run.
func second(n int) time.Time { return time.Unix(int64(1000+n), 0) }

func TestEpisode_Measure_CountsAnswersToWhatWasWrittenSince(t *testing.T) {
	e := &episode{name: "gated killed", began: second(10), recovered: second(40)}
	e.measure([]answer{
		{"slack", second(1), second(2)},      // long before
		{"slack", second(9), second(13)},     // written before
		{"slack", second(12), second(15)},    // the first
		{"slack", second(16), second(35)},    // after the longest silence
		{"slack", second(36), second(41)},    // the first one that is later than the end
		{"slack", second(90), second(99)},    // much later
		{"telegram", second(11), second(12)}, // the first and the only one
		{"discord", second(8), second(11)},   // only what was written before
	})
	if len(e.firsts) != 2 || e.firsts[0] != 5*time.Second || e.firsts[1] != 2*time.Second {
		t.Errorf("first answers after %v", e.firsts)
	}
	if len(e.silences) != 2 || e.silences[0] != 20*time.Second || e.silences[1] != 2*time.Second {
		t.Errorf("silences %v", e.silences)
	}
	if line := e.String(); !strings.Contains(line, "p50   5.0 s max   5.0 s") || !strings.Contains(line, "max  20.0 s") {
		t.Error(line)
	}
}

func TestGenerator_WithoutForeign_UsersWriteElsewhere(t *testing.T) {
	g := recordedGenerator(t, 1)
	newcomers := newNewcomers(g.platforms["telegram"])[:2]
	g.leaveOutForeign(newcomers)
	g.foreign, g.approver = nil, &approver{}
	for range 2000 {
		g.act(t.Context())
		if g.failure.get() != nil {
			t.Fatal(g.failure.get())
		}
	}
	unknown := 0
	for _, a := range actionsOf(g) {
		if platform, _ := msg.SplitJID(a.Chat); platform == "matrix" {
			t.Fatalf("a user wrote in %s", a.Chat)
		}
		if a.Conversation == newcomers[0] || a.Conversation == newcomers[1] {
			unknown++
		}
	}
	if unknown < 2 || g.unknown != len(newcomers) {
		t.Errorf("%d messages of %d newcomers", unknown, g.unknown)
	}
	for _, r := range unknownRoutes([]chatsim.Conversation{{Chat: "telegram:901"}}) {
		if r.Match != "platform=telegram room=901" || r.Target != "daemon:onbod" {
			t.Errorf("route %+v", r)
		}
	}
}
