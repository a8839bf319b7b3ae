package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"arizuko/gated/internal/running/runtime/enter"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/testkit/need"
)

// startMany starts sandboxes and checks, several at a time, until it is killed.
func startMany(r Runtime, spec Spec) error {
	var all sync.WaitGroup
	for lane := range int64(3) {
		all.Go(func() {
			for id := lane + 1; ; id += 3 {
				spec := spec
				spec.RunID = id
				p, err := r.Start(context.Background(), spec)
				if err != nil {
					continue
				}
				go func() {
					for range p.Events() {
					}
				}()
				p.Stop(5 * time.Millisecond)
			}
		})
	}
	for {
		_ = r.Check(context.Background(), spec)
	}
}

func TestEndFormer_KilledAtManyMoments_NothingIsLeft(t *testing.T) {
	need.Verify(t)
	attacker := buildAttacker(t)
	e, s := limited(t, attacker, groupconfig.Limits{PIDs: 200})
	s.Network = NetworkOwn
	if _, err := s.EndFormer(); err != nil {
		t.Fatal(err)
	}
	order, err := json.Marshal(helperProcess{Name: "bwrap", Attacker: attacker, Data: e.data, Spec: wireSpec{Spec: e.spec}, Busy: true})
	if err != nil {
		t.Fatal(err)
	}
	for moment := range 15 {
		gated := exec.Command(os.Args[0])
		gated.Env = append(os.Environ(), helperEnv+"="+string(order))
		if err := gated.Start(); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Duration(30+7*moment) * time.Millisecond) // as long as its start takes, and some more
		_ = gated.Process.Kill()
		_ = gated.Wait()
		<-time.After(50 * time.Millisecond) // as long as the start of the next one takes
		begin := time.Now()
		if _, err := s.EndFormer(); err != nil {
			t.Errorf("moment %d: %v", moment, err)
		}
		if took := time.Since(begin); took > killWait {
			t.Errorf("moment %d: it took %v", moment, took)
		}
		nothingLeft(t, s)
	}
}

func nothingLeft(t *testing.T, s Sandbox) {
	t.Helper()
	if found, err := endProcesses(0, func(st procfs.ProcStat) int {
		if s.isFormer(st.PID) {
			t.Errorf("process %d is left", st.PID)
		}
		return 0
	}); found || err != nil {
		t.Error(err)
	}
	if running(t, s.Data) {
		t.Error("a process of the data folder is left")
	}
	if left, err := os.ReadDir(s.Temp); err != nil || len(left) > 0 {
		t.Errorf("temporary folders are left: %v, %v", left, err)
	}
	if left := s.allGroups(t); len(left) > 0 {
		t.Errorf("control groups are left: %v", left)
	}
}

// Bubblewrap's first process waits for ever if bubblewrap is killed at a wrong moment. It
// works in /, and its run need not be known any more.
func TestEndFormer_EndsWhatIsOfThisInstanceAndHasNoOwner(t *testing.T) {
	data := t.TempDir()
	s := Sandbox{Temp: filepath.Join(data, "run", "tmp"), Data: data}
	started := map[string]*exec.Cmd{}
	for name, env := range map[string][]string{
		"of a former gated": {formerMark(s)},
		"of this gated":     {s.ownerMarker()},
		"of an instance":    {formerMark(Sandbox{Data: data + "2"})},
		"of no gated":       {"A=1"},
	} {
		cmd := exec.Command("/bin/sleep", "1000")
		cmd.Dir, cmd.Env = "/", env
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		started[name] = cmd
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
	kept := checkPrefix + ownerText() + "-1"
	for _, name := range []string{"run-7/a", checkPrefix + formerOwner() + "-1/a", kept} {
		if err := os.MkdirAll(filepath.Join(s.Temp, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []bool{true, false} {
		if ended, err := s.EndFormer(); ended != want || err != nil {
			t.Errorf("ended = %v, %v", ended, err)
		}
	}
	for name, cmd := range started {
		st, err := readStat(cmd.Process.Pid)
		if want := name == "of a former gated"; err != nil || dead(st) != want {
			t.Errorf("process %s: %+v, %v", name, st, err)
		}
	}
	if left, err := os.ReadDir(s.Temp); err != nil || len(left) != 1 || left[0].Name() != kept {
		t.Errorf("temporary folders %v, %v", left, err)
	}
}

// Bubblewrap may be killed before it was recorded, and its child then waits for ever.
func TestEnd_RunNotRecorded_EndsThatOfThisInstance(t *testing.T) {
	data := t.TempDir()
	p := Process{Temp: filepath.Join(data, "run", "tmp"), AsRoot: true}
	s := Sandbox{Temp: p.Temp, Data: data}
	for name, tt := range map[string]struct {
		runtime Runtime
		run     int64
		mark    string
		want    bool
	}{
		"process":                        {p, orphanRun, "TMPDIR=" + tempDir{p.Temp, orphanRun}.path(), true},
		"process of another run":         {p, orphanRun + 1, "TMPDIR=" + tempDir{p.Temp, orphanRun}.path(), false},
		"process of another instance":    {p, orphanRun, "TMPDIR=" + tempDir{p.Temp + "2", orphanRun}.path(), false},
		"sandbox":                        {s, orphanRun, formerMark(s), true},
		"sandbox of another run":         {s, orphanRun + 1, formerMark(s), false},
		"sandbox of this gated":          {s, orphanRun, s.ownerMarker(), false},
		"sandbox of another data folder": {s, orphanRun, formerMark(Sandbox{Data: data + "2"}), false},
		"sandbox without a gated's mark": {s, orphanRun, "A=1", false},
	} {
		cmd := exec.Command("/bin/sh", "-c", "trap '' TERM; exec sleep 1000")
		cmd.Env = []string{runMarker(tt.run), tt.mark}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if found, err := tt.runtime.End(t.Context(), Orphan{RunID: orphanRun}); found != tt.want || err != nil {
			t.Errorf("%s: found = %v, %v", name, found, err)
		}
		if st, err := readStat(cmd.Process.Pid); err != nil || dead(st) != tt.want {
			t.Errorf("%s: %+v, %v", name, st, err)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// formerMark marks a process of a gated of the sandbox's instance that has ended.
func formerMark(s Sandbox) string { return s.ownerPrefix() + formerOwner() }

func formerOwner() string {
	return fmt.Sprintf("%d-%d", os.Getpid(), processOf(os.Getpid()).started-1)
}

func TestGate_GatedHasEnded_AgentDoesNotRun(t *testing.T) {
	for text, want := range map[string]string{enter.GoAhead: "ran\n", "": ""} {
		files := make([]*os.File, gateFD-2) // its descriptor is the last one
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		files[len(files)-1] = r
		_, err = w.WriteString(text)
		cmd := exec.Command(shell, "-c", gateScript(0), shell, "/bin/sh", "-c", fmt.Sprintf("[ ! -e /proc/self/fd/%d ] && echo ran", gateFD))
		cmd.ExtraFiles = files
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		out, err := cmd.Output()
		_ = r.Close()
		if string(out) != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, out, err)
		}
	}
}

// The held process of a sandbox ends when gated does: it needs no next one for that.
func TestSandbox_PipeEndsBeforeTheStart_AgentDoesNotRun(t *testing.T) {
	needBwrap(t)
	e := newFixture(t, os.Args[0])
	s := sandboxOf(e, os.Args[0])
	s.Network = NetworkNone
	if err := os.MkdirAll(e.temp(), 0o700); err != nil {
		t.Fatal(err)
	}
	v, err := s.view(e.spec, e.temp())
	if err != nil {
		t.Fatal(err)
	}
	prep, err := s.prepare(e.spec, &v)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bwrap", slices.Concat(prep.args(), v.args(), v.command([]string{shell, "-c", "echo ran"}, 0))...)
	cmd.ExtraFiles = prep.files
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	closeAll(prep.files)
	prep.init = readInfo(prep.info)
	_ = prep.release.Close() // as at gated's end
	err = cmd.Wait()
	if cmd.ProcessState.ExitCode() != enter.ExitFailed || out.Len() > 0 {
		t.Errorf("%v, it printed %q", err, out.String())
	}
	if err := prep.end(); err != nil {
		t.Error(err)
	}
}
