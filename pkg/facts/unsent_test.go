package facts

import (
	"strings"
	"testing"
	"time"

	"arizuko/pkg/daemon/rows"
)

func TestUnsent_SaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	const now = int64(1_000_000)
	daemon := func(name, connection string, age time.Duration) Daemons {
		return Daemons{
			"gated": {Daemon: rows.Daemon{Name: "gated", Connection: "connected", HeartbeatAt: now}},
			name:    {Daemon: rows.Daemon{Name: name, Connection: connection, HeartbeatAt: now - age.Milliseconds()}},
		}
	}
	for _, tt := range []struct {
		chat string
		all  Daemons
		want string
	}{
		{"telegram:-1", nil, "teled has never run"},
		{"telegram+work:-1", daemon("teled", "connected", 0), "teled+work has never run"},
		{"telegram:-1", daemon("teled", "stopped", 0), "teled was stopped"},
		{"slack:C1", daemon("slakd", "connected", 15*time.Second), "slakd does not run"},
		{"discord:1", daemon("discd", "bad_credentials", 0), "discd cannot log in"},
		{"telegram:-1", daemon("teled", "connected", time.Second), "about 20 messages a minute in a group"},
		{"slack:C1", daemon("slakd", "connected", time.Second), "slakd sends what is for a chat one after the other, as fast as its"},
		{"hand:1", nil, "the program that serves its platform has not taken it"},
	} {
		if got := tt.all.Unsent(tt.chat, now); !strings.Contains(got, tt.want) {
			t.Errorf("%s, %+v: %q, want %q", tt.chat, tt.all, got, tt.want)
		}
	}
}
