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

	"arizuko/pkg/testkit/docker"
)

// stepIn is told to the test binary that has to stand in for a gated: which
// runtime to use, and what for.
const stepIn = "RUNTIME_TEST_GATED"

type standIn struct {
	Name     string
	Intruder string
	Engine   *docker.Engine
	Data     string
	Spec     wireSpec
}

// wireSpec is a Spec without what cannot be written as JSON.
type wireSpec struct {
	Spec
	Redact *string
}

// serve starts an agent, tells how to find it, and waits to be killed.
func (s standIn) serve() error {
	w := trial{s.Name, s.Intruder, s.Engine}.way(estate{s.Data, s.Spec.Spec})
	p, err := w.runtime.Start(context.Background(), s.Spec.Spec)
	if err != nil {
		return err
	}
	for _, order := range []string{"stubborn", "linger " + s.Data} {
		if err := p.Send([]byte(order + "\n")); err != nil {
			return err
		}
		if ev := <-p.Events(); ev.Frame == nil {
			return fmt.Errorf("%s: %+v", order, ev.Exit)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(Left{s.Spec.RunID, p.PID(), p.PIDStart(), p.Label(), 0}); err != nil {
		return err
	}
	for range p.Events() {
	}
	return errors.New("the agent ended")
}

// orphaned has a gated die and the next one find what it left.
func (tr trial) orphaned(t *testing.T, w way, e estate) {
	spec := e.spec
	w.change(&spec)
	order, err := json.Marshal(standIn{tr.name, tr.intruder, tr.engine, e.data, wireSpec{Spec: spec}})
	if err != nil {
		t.Fatal(err)
	}
	gated := exec.Command(os.Args[0])
	gated.Env = append(os.Environ(), stepIn+"="+string(order))
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
	var left Left
	if err := errors.Join(err, json.Unmarshal(line, &left)); err != nil {
		t.Fatal(err)
	}
	if tr.name != "docker" {
		if _, err := os.Stat(filepath.Join(e.temp(), "run-7")); err != nil {
			t.Errorf("the run had no temporary folder: %v", err)
		}
	}
	left.Grace = 50 * time.Millisecond
	found, err := w.runtime.End(t.Context(), left)
	if err != nil || !found && tr.name != "bwrap" { // bubblewrap goes with gated
		t.Errorf("End = %v, %v", found, err)
	}
	if alive, err := groupAlive(left.PID); alive || err != nil {
		t.Errorf("the process group is there (%v)", err)
	}
	if tr.name != "process" && running(t, e.data) {
		t.Error("what it started is still there")
	}
	if left, err := os.ReadDir(e.temp()); err == nil && len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
	if found, err := w.runtime.End(t.Context(), left); found || err != nil {
		t.Errorf("End once more = %v, %v", found, err)
	}
	killAll(t, e.data)
}

// killAll ends what the runtime process cannot: a process that left its group.
func killAll(t *testing.T, arg string) {
	t.Helper()
	for running(t, arg) {
		_ = exec.Command("pkill", "-KILL", "-f", arg).Run()
	}
}
