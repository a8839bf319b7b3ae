package status

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/daemon"
	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/store"
)

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
	for i := range f.Machines {
		p := &f.Machines[i]
		if p.Since < now || p.Left+p.Quiet != store.LeaseTime.Milliseconds() || (p.Left <= 0) != (p.Daemon == "teled" && p.Works) {
			t.Errorf("process %+v", p)
		}
		if p.Daemon == "gated" && p.Works && (p.Quiet < 5*second || p.Quiet > minute) {
			t.Errorf("renewed %d ms ago", p.Quiet)
		}
		p.Since, p.Left, p.Quiet = 0, 0, 0
	}
	want := []Process{
		{Daemon: "gated", Place: "host2", Addr: "host2:1", Version: "v2", Works: true, Bad: true, Note: "no engine"},
		{Daemon: "gated", Place: "host1", Addr: "host1:1", Version: "v2"},
		{Daemon: "teled", Place: "host2", Addr: "host2:1", Version: "v2", Works: true, Bad: true},
		{Daemon: "teled", Place: "host1", Addr: "host1:1", Version: "v2"},
	}
	if diff := cmp.Diff(want, f.Machines); diff != "" {
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
	for _, d := range f.Daemons {
		if d.Name == "gated" && (d.OK || d.Detail != "on host2: no engine") {
			t.Errorf("gated: %+v", d)
		}
	}
	if text := f.text(); !strings.HasPrefix(text, "gated cannot answer some messages: the dashboard says why.\n") || strings.Contains(text, "host2") {
		t.Errorf("text %q", text)
	}
	r.beat("gated", daemon.Degraded, second) // "as @bot"
	for _, d := range r.facts().Daemons {
		if d.Name == "gated" && d.Detail != "as @bot; on host2: no engine" {
			t.Errorf("both: %+v", d)
		}
	}
}
