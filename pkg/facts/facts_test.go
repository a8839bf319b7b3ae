package facts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/daemon"
	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/msg"
)

const (
	now    = int64(1_800_000_000_000) // unix ms
	minute = 60_000
)

func row(name string, c daemon.Connection, age int64) *Daemon {
	return &Daemon{Daemon: rows.Daemon{Name: name, Version: "v1", StartedAt: now - 60*minute, Connection: string(c), HeartbeatAt: now - age}}
}

func detailed(d *Daemon, detail string, others ...rows.Process) *Daemon {
	d.Detail, d.Processes = detail, others
	return d
}

// The words about a daemon for anyone, and for operators.
func TestDaemon_EachState_Worded(t *testing.T) {
	t.Parallel()
	noAgents, fails := NoAgents("docker", "no engine", 0), GroupFails("main", "exit 1")
	const bad, down = "has a bad connection to its platform", "cannot answer some messages: the dashboard says why"
	for _, tt := range []struct {
		d       *Daemon
		trouble string
		fact    string // level, kind and text, "" for none
		fix     string // a part of the remedy
	}{
		{nil, "has never run with this data folder", "", ""},
		{row("teled", daemon.Connected, 0), "", "", ""},
		{row("gated", daemon.Connected, 14_999), "", "", ""},
		{row("gated", daemon.Connected, 15_000), "does not run: its last heartbeat was 15 s ago", "", ""},
		{&Daemon{Daemon: row("gated", daemon.Connected, 20_000).Daemon, hangs: true}, "runs, but has not answered for 20 s", "", ""},
		{&Daemon{Daemon: row("gated", daemon.Connected, 0).Daemon, unready: "the disk is full"}, "is not ready: the disk is full", "", ""},
		{row("gated", daemon.Stopped, 3*minute), "was stopped 3 min ago", "", ""},
		{row("gated", daemon.Connected, -minute), "", "problem clock-heartbeat gated's heartbeat is 60 s in the future", "timedatectl"},
		{detailed(row("teled", daemon.BadCredentials, 0), "401\nno"), "cannot log in: its platform refuses the credentials",
			"problem credentials teled cannot log in: 401; no", "set TELEGRAM_BOT_TOKEN to the current token, run `teled check`, and restart teled"},
		{row("teled", daemon.Degraded, 0), bad, "problem connection teled " + bad + ": its log says why", "`teled check`"},
		{detailed(row("teled", daemon.Degraded, 0), "a webhook is set"), bad, "problem webhook teled " + bad + ": a webhook is set", "deleteWebhook"},
		{detailed(row("teled", daemon.Degraded, 0), "another program reads"), bad, "problem poller teled " + bad + ": another program reads", "one token, one poller"},
		{detailed(row("teled+work", daemon.Connected, 0), "a rival"), "", "problem competing teled+work is not alone: a rival", "one token, one program"},
		{detailed(row("slakd", daemon.Connected, 0), "a rival"), "", "problem competing slakd is not alone: a rival", "one token, one program"},
		{detailed(row("discd", daemon.Connected, 0), "a rival"), "", "warning competing discd is not alone: a rival", "one token, one program"},
		{detailed(row("routd", daemon.Connected, 0), "route 1 is open"), "", "", ""},
		{row("teled", daemon.Connecting, 0), "is still connecting", "problem connecting teled started 60 min ago and has not connected to its platform yet", "`teled check`"},
		{detailed(row("gated", daemon.Degraded, 0), noAgents+"; "+fails), down, "problem agents " + noAgents, "`gated check`"},
		{detailed(row("gated", daemon.Degraded, 0), fails), down, "", ""},
		{detailed(row("gated", daemon.Connected, 0), "as ever", rows.Process{Place: "host2", Connection: "degraded", Detail: fails},
			rows.Process{Place: "host3", Connection: "degraded", Detail: "no engine"}), down, "problem agents on host3: no engine", "`gated check`"},
	} {
		if got := tt.d.Trouble(now); got != tt.trouble {
			t.Errorf("%+v: trouble %q, want %q", tt.d, got, tt.trouble)
		}
		if tt.d == nil {
			continue
		}
		var got, fix string
		for _, f := range tt.d.Platform(now) {
			got, fix = got+fmt.Sprintf("%s %s %s", f.Level, f.Kind, f.Text), f.Fix
		}
		if got != tt.fact || !strings.Contains(fix, tt.fix) {
			t.Errorf("%+v: %q, %q, want %q, %q", tt.d, got, fix, tt.fact, tt.fix)
		}
	}
}

func TestDaemons_MissingAndVersions(t *testing.T) {
	t.Parallel()
	all := Daemons{"gated": row("gated", daemon.Degraded, 0), "routd": row("routd", daemon.Connected, minute)}
	if name, trouble := all.Missing(now, Deciders()...); name != "routd" || trouble != "routd does not run: its last heartbeat was 60 s ago" {
		t.Errorf("%s: %s", name, trouble)
	}
	if name, _ := all.Missing(now, "gated"); name != "" {
		t.Errorf("%s is missing", name)
	}
	var l List
	if all.Versions(now, &l); l.Found != nil {
		t.Errorf("of one version: %+v", l.Found)
	}
	all["teled"] = row("teled", daemon.Connecting, 0)
	all["teled"].Version = "v2"
	if all.Versions(now, &l); len(l.Found) != 1 || !strings.Contains(l.Found[0].Text, "(v1: gated; v2: teled)") {
		t.Errorf("%+v", l.Found)
	}
}

func TestDaemons_Start_NamesTheProcessToLookAt(t *testing.T) {
	t.Parallel()
	others := []rows.Process{{Daemon: "gated", Place: "host3"}, {Daemon: "gated", Place: "host1", Holds: "gated"}}
	for want, own := range map[string][]rows.Process{
		"start it on one of the machines that others run on: host1, host3":                           nil,
		"no process has its lease; those on host2 should take it within seconds: look at their logs": {{Daemon: "teled", Place: "host2"}},
		"its process on host1 renews its lease and reports nothing: look at its log":                 {{Daemon: "teled", Place: "host1", Holds: "teled", Now: 1, Until: 2}},
		"the lease of its process on host1 ended 2 min ago, and no other took over: look at its log there, or start teled on another machine": {
			{Daemon: "teled", Place: "host1", Holds: "teled", Now: 2 * minute}},
	} {
		all := Daemons{"gated": detailed(row("gated", daemon.Connected, 0), "", others...), "teled": detailed(row("teled", daemon.Connected, minute), "", own...)}
		if got := all.Start("teled"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A reader of the dashboard reads the remedy of its page, not a command.
func TestFacts_WithAPageThatFixes_NameNoCommandThere(t *testing.T) {
	t.Parallel()
	in := &finder{Instance: &Instance{Now: now, MaxAgents: 5}}
	in.queue(nil, []*msg.Turn{{ID: 7, Folder: "main", NotBefore: now + 48*60*minute}}, 1)
	found := append(in.Found, row("teled", daemon.BadCredentials, 0).Platform(now)...)
	var pages []string
	for _, f := range found {
		if pages = append(pages, f.Page.Path); f.Page.Fix == "" || strings.Contains(f.Page.Fix, "`") {
			t.Errorf("%s: %q", f.Kind, f.Page.Fix)
		}
	}
	if diff := cmp.Diff([]string{"/turns/7", "/connect/teled"}, pages); diff != "" {
		t.Error(diff)
	}
}

func TestFiles_BackupsAndMedia(t *testing.T) {
	t.Parallel()
	at := func(age time.Duration) time.Time { return time.UnixMilli(now).Add(-age) }
	const hour = time.Hour
	for _, tt := range []struct {
		done, failed time.Time
		began        int64
		used, quota  int64
		want         string
	}{
		{want: ""}, // no message, no backup
		{began: now - 6*24*3_600_000, want: ""},
		{began: now - 8*24*3_600_000, want: "warning backup-none"},
		{done: at(70 * hour), want: ""},
		{done: at(73 * hour), want: "warning backup-old"},
		{done: at(hour), failed: at(2 * hour), want: ""},
		{done: at(2 * hour), failed: at(hour), want: "problem backup-failed"},
		{failed: at(hour), want: "problem backup-failed"},
		{used: 950, quota: 1000, want: ""},
		{used: 951, quota: 1000, want: "problem media-full"},
		{used: 951, want: ""},
	} {
		var l List
		l.Backups(tt.done, tt.failed, now)
		l.Unsaved(tt.began, now)
		l.MediaFull(tt.used, tt.quota)
		got := ""
		for _, f := range l.Found {
			got += string(f.Level) + " " + f.Kind
			if !f.Alerts() {
				t.Errorf("operators are not notified of %s", f.Kind)
			}
		}
		if got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

// A problem has the same key while its text changes, and another one of its kind has another.
func TestKey_TextChanges_StaysTheSame(t *testing.T) {
	t.Parallel()
	key := func(name string, ago int64) string {
		found := row(name, daemon.BadCredentials, ago).Platform(now)
		return found[0].Key()
	}
	if key("teled", 1) != key("teled", 2) || key("teled", 1) == key("slakd", 1) {
		t.Error(key("teled", 1), key("teled", 2), key("slakd", 1))
	}
}

func TestSpan_RoundsDownToUnit(t *testing.T) {
	t.Parallel()
	for ms, want := range map[int64]string{
		-5: "0 s", 119_999: "119 s", 2 * minute: "2 min", 120*minute - 1: "119 min", 47 * 60 * minute: "47 h", 48 * 60 * minute: "2 days",
	} {
		if got := Span(ms); got != want {
			t.Errorf("%d ms: %s, want %s", ms, got, want)
		}
	}
}
