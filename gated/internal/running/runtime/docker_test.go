package runtime

import (
	"os"
	"strings"
	"testing"

	"arizuko/pkg/groupconfig"
)

// containers tests features that only docker has.
func (tr runtimeTest) containers(t *testing.T) {
	e := newFixture(t, tr.attacker)
	w, engine := tr.open(e), tr.engine
	t.Run("limits and arguments", func(t *testing.T) {
		spec := e.spec
		spec.Limits = groupconfig.Limits{Memory: 32 << 20, CPUs: 0.5, PIDs: 32}
		c := w.start(t, spec)
		c.allowed(map[string]string{"env HOME": "/workspace", "read /workspace/notes": "content of groups/main+eng/notes"})
		id := engine.Docker(t, "ps", "--all", "--quiet", "--filter", "label=arizuko.instance="+InstanceOf(e.data), "--filter", "label=arizuko.run=7")
		format := "{{.HostConfig.Memory}} {{.HostConfig.MemorySwap}} {{.HostConfig.NanoCpus}} {{.HostConfig.PidsLimit}} {{.HostConfig.ReadonlyRootfs}} {{.HostConfig.LogConfig.Type}}"
		if got := engine.Docker(t, "inspect", "--format", format, id); got != "33554432 33554432 500000000 32 true none" {
			t.Errorf("limits %s", got)
		}
		argv, err := os.ReadFile(procPath(c.p.PID(), "cmdline"))
		if err != nil || strings.Contains(string(argv), "k-value") {
			t.Errorf("its arguments: %q, %v", argv, err)
		}
		if err := c.p.Send([]byte("memory 200\n")); err != nil {
			t.Fatal(err)
		}
		if _, _, exit := finish(t, c.p); exit.Code != 137 || exit.Err != nil {
			t.Errorf("after taking too much memory: %+v", exit)
		}
	})
	t.Run("no image", func(t *testing.T) {
		spec := e.spec
		spec.Image = "nosuchimage:1"
		exit := w.launch(t, spec).finish()
		if !isSetup(exit.Err) || !strings.Contains(exit.Reason(), "No such image: nosuchimage:1") {
			t.Errorf("exit %+v", exit)
		}
	})
	t.Run("no such program in it", func(t *testing.T) {
		spec := e.spec
		w.change = func(s *Spec) { s.Command = "true" } // the image has no shell
		exit := w.launch(t, spec).finish()
		if exit.Code != 127 || !isSetup(exit.Err) || !strings.Contains(exit.Reason(), "/bin/sh") {
			t.Errorf("exit %+v", exit)
		}
	})
	t.Run("no engine", func(t *testing.T) {
		gone := testRuntime{Docker{Client: "docker", Environ: []string{"DOCKER_HOST=unix:///nonexistent"}, Network: "none"}, func(*Spec) {}}
		exit := gone.launch(t, e.spec).finish()
		if ClassOf(exit.Err) != ClassMachine || !strings.Contains(exit.Reason(), "daemon") {
			t.Errorf("exit %+v", exit)
		}
		if err := gone.runtime.Check(t.Context(), e.spec); err == nil || !strings.Contains(err.Error(), "daemon") {
			t.Errorf("check: %v", err)
		}
		if _, err := gone.runtime.End(t.Context(), Orphan{RunID: 7}); ClassOf(err) != ClassMachine {
			t.Errorf("End without an engine: %v", err)
		}
	})
}
