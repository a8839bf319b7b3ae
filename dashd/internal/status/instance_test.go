package status

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/daemon"
	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/store"
)

func TestDaemon_OK(t *testing.T) {
	r := newFixture(t)
	r.beat("a-fresh", daemon.Connected, 15*second-1)
	r.beat("b-late", daemon.Connected, 15*second)
	r.beat("c-connecting", daemon.Connecting, 0)
	r.beat("d-ahead", daemon.Connected, -minute) // its clock may differ
	got, err := r.status.Daemons(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var well []string
	for _, d := range reported(got, now) {
		if d.OK {
			well = append(well, d.Name)
		}
	}
	if diff := cmp.Diff([]string{"a-fresh", "d-ahead"}, well); diff != "" {
		t.Error(diff)
	}
}

func TestInstance_Healthy_ListsDaemons(t *testing.T) {
	r := newFixture(t)
	r.healthy()
	facts, err := r.status.Instance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := "Running turns: none\nQueue: empty\nHealthy: dashd, gated, routd"
	if diff := cmp.Diff(want, facts.text()); diff != "" {
		t.Errorf("fresh (-want +got):\n%s", diff)
	}

	for i := range 60 {
		r.run(r.turn(tele, 3*minute, inTopic(fmt.Sprint("#t", i))), 2*minute)
	}
	for range 55 {
		r.turn(other, 20*second)
	}
	r.answered(other, "s", 5*minute, inTopic("#out"))
	r.outbound(other, 5*minute)
	r.inbound(other, second)
	r.beat("teled", daemon.BadCredentials, second)
	if facts, err = r.status.Instance(t.Context()); err != nil {
		t.Fatal(err)
	}
	want = `teled cannot log in: its platform refuses the credentials.
1 message has waited to be sent for 5 min.
Running turns: 60, the oldest for 2 min
Queue: 55 turns, the oldest for 20 s
1 message has waited for a decision for 1 s.
Healthy: dashd, gated, routd`
	if diff := cmp.Diff(want, facts.text()); diff != "" {
		t.Errorf("busy (-want +got):\n%s", diff)
	}
	if len(facts.Running) != 50 || len(facts.Queued) != 50 || facts.RunningCount != 60 || facts.QueuedCount != 55 {
		t.Errorf("%d of %d running, %d of %d queued", len(facts.Running), facts.RunningCount, len(facts.Queued), facts.QueuedCount)
	}
	if facts.Now != now || facts.Outbound.ChatJID != other || facts.Inbound.Rows != 1 || facts.Daemons["teled"].Details() != "as @bot" {
		t.Errorf("facts %+v", facts)
	}
}

// Everything is wrong at once, and names contain line breaks and control characters.
func TestReport_Length_Bounded(t *testing.T) {
	r := newFixture(t)
	for i := range 20 {
		r.beat(fmt.Sprintf("d%02d\nHealthy: all", i), daemon.Degraded, second)
	}
	r.healthy()
	r.pin(tele, "main", "#a\nGroup: \x1b[2Jroot\u202e", 0)
	r.inbound(tele, 2*minute)
	r.retryAt(r.turn(tele, minute), now+second)
	r.turn(tele, minute)
	r.engage(tele, "", now-minute, now+minute)
	text := r.chat(Where{ChatJID: tele}).Text
	if n := strings.Count(text, "\n") + 1; n > 12 {
		t.Errorf("%d lines", n)
	}
	if strings.ContainsAny(text, "\x1b\u202e") || strings.Contains(text, "\nGroup: ?") || strings.Count(text, "\nHealthy: ") != 1 {
		t.Errorf("text %q", text)
	}
	for _, hidden := range []string{"private", "hush", "as @bot", secret} {
		if strings.Contains(text, hidden) {
			t.Errorf("the text contains %q", hidden)
		}
	}
}

// process adds a process at a place, with the lease of its daemon or standing by.
func (r *fixture) process(name, place string, works bool) (id int64) {
	r.t.Helper()
	r.write(func(tx *store.Tx) (err error) {
		if id, _, err = rows.Join(tx, name, place, place+":1", "v2"); err != nil || !works {
			return err
		}
		_, err = rows.Claim(tx, name, id)
		return err
	})
	return id
}

func (r *fixture) facts() Facts {
	r.t.Helper()
	f, err := r.status.Instance(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return f
}

func TestMachines_OneMachine_AreNotListed(t *testing.T) {
	r := newFixture(t)
	r.healthy()
	if f := r.facts(); f.Machines != nil {
		t.Errorf("a file: %+v", f.Machines)
	}
	r.process("gated", "host1", true)
	r.process("teled", "host1", true)
	if f := r.facts(); f.Machines != nil {
		t.Errorf("one machine on a server: %+v", f.Machines)
	}
}

func TestMachines_Several_ListedWithWhatWorksFirst(t *testing.T) {
	r := newFixture(t)
	r.healthy()
	r.process("gated", "host1", false)
	worse := r.process("gated", "host2", true)
	late := r.process("teled", "host2", true)
	r.process("teled", "host1", false)
	r.sql(`UPDATE processes SET until = until - 20000 WHERE id = ?`, late)
	r.sql(`UPDATE processes SET until = until - 5000, connection = 'degraded', detail = 'no engine' WHERE id = ?`, worse)
	f := r.facts()
	var got []string
	for _, p := range f.Machines {
		quiet := p.Now - p.Renewed()
		if p.Since < now || (p.Until <= p.Now) != (p.Daemon == "teled" && p.Holds != "") {
			t.Errorf("process %+v", p)
		}
		if p.Daemon == "gated" && p.Holds != "" && (quiet < 5*second || quiet > minute) {
			t.Errorf("renewed %d ms ago", quiet)
		}
		got = append(got, fmt.Sprintf("%s %s %s %s %t %s", p.Daemon, p.Place, p.Addr, p.Version, p.Holds != "", p.Detail))
	}
	want := []string{"gated host2 host2:1 v2 true no engine", "gated host1 host1:1 v2 false ", "teled host2 host2:1 v2 true ", "teled host1 host1:1 v2 false "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Agents of another machine's gated cannot work: the daemon is not healthy, whatever the one that decides says of itself.
func TestDaemons_OtherGatedDegraded_IsAProblem(t *testing.T) {
	r := newFixture(t)
	r.healthy()
	r.process("gated", "host1", true)
	other := r.process("gated", "host2", false)
	r.sql(`UPDATE processes SET connection = 'degraded', detail = 'no engine' WHERE id = ?`, other)
	f := r.facts()
	if d := f.Daemons["gated"]; d.Trouble(now) == "" || d.Details() != "on host2: no engine" {
		t.Errorf("gated: %+v", d)
	}
	if text := f.text(); !strings.HasPrefix(text, "gated cannot answer some messages: the dashboard says why.\n") || strings.Contains(text, "host2") {
		t.Errorf("text %q", text)
	}
	r.beat("gated", daemon.Degraded, second) // "as @bot"
	if d := r.facts().Daemons["gated"]; d.Details() != "as @bot; on host2: no engine" {
		t.Errorf("both: %+v", d)
	}
}
