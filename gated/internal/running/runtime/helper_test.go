package runtime

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/testkit/docker"
)

// helperEnv makes the test binary a helper process in the role of gated: its value
// is the helperProcess as JSON.
const helperEnv = "RUNTIME_TEST_GATED"

type helperProcess struct {
	Name     string
	Attacker string
	Engine   *docker.Engine
	Data     string
	Spec     wireSpec
	Busy     bool // it starts sandboxes and checks all the time
}

// wireSpec is a Spec without the field that cannot be written as JSON.
type wireSpec struct {
	Spec
	Redact *string
}

// serve starts an agent, prints how to find it, and waits to be killed.
func (s helperProcess) serve() error {
	w := runtimeTest{s.Name, s.Attacker, s.Engine}.open(fixture{s.Data, s.Spec.Spec})
	if s.Busy {
		return startMany(w.runtime, s.Spec.Spec)
	}
	p, err := w.runtime.Start(context.Background(), s.Spec.Spec)
	if err != nil {
		return err
	}
	for _, order := range []string{"ignore-term", "detach " + s.Data} {
		if err := p.Send([]byte(order + "\n")); err != nil {
			return err
		}
		if ev := <-p.Events(); ev.Frame == nil {
			return fmt.Errorf("%s: %+v", order, ev.Exit)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(Orphan{s.Spec.RunID, p.PID(), p.PIDStart(), p.Label(), 0}); err != nil {
		return err
	}
	for range p.Events() {
	}
	return errors.New("the agent ended")
}

// orphaned kills a gated: the next one must find and end its agent.
func (tr runtimeTest) orphaned(t *testing.T, w testRuntime, e fixture) {
	spec := e.spec
	if tr.name == "bwrap" {
		spec.Limits = groupconfig.Limits{Memory: 1 << 30, CPUs: 1, PIDs: 200}
	}
	w.change(&spec)
	order, err := json.Marshal(helperProcess{tr.name, tr.attacker, tr.engine, e.data, wireSpec{Spec: spec}, false})
	if err != nil {
		t.Fatal(err)
	}
	gated := exec.Command(os.Args[0])
	gated.Env = append(os.Environ(), helperEnv+"="+string(order))
	gated.Stderr = os.Stderr
	out, err := gated.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := gated.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	_ = gated.Process.Kill()
	_ = gated.Wait()
	var left Orphan
	if err := errors.Join(err, json.Unmarshal(line, &left)); err != nil {
		t.Fatal(err)
	}
	if tr.name != "docker" {
		if _, err := os.Stat(filepath.Join(e.temp(), "run-7")); err != nil {
			t.Errorf("the run had no temporary folder: %v", err)
		}
	}
	if tr.name == "bwrap" { // its uplink needs no gated for its end
		if !within(patience, func() bool { return len(uplinksOf(t, e.data)) == 0 }) {
			t.Error("the uplink outlives gated")
		}
	}
	left.Grace = 50 * time.Millisecond
	found, err := w.runtime.End(t.Context(), left)
	if err != nil || !found && tr.name != "bwrap" { // bubblewrap is killed with gated
		t.Errorf("End = %v, %v", found, err)
	}
	if groupAlive(t, left.PID) {
		t.Error("the process group is there")
	}
	if running(t, e.data) {
		t.Error("what it started is still there")
	}
	if left, err := os.ReadDir(e.temp()); err == nil && len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
	if found, err := w.runtime.End(t.Context(), left); found || err != nil {
		t.Errorf("End once more = %v, %v", found, err)
	}
	if tr.name == "bwrap" {
		if groups := (Sandbox{Data: e.data}).allGroups(t); len(groups) > 0 {
			t.Errorf("control groups are left: %v", groups)
		}
	}
}
