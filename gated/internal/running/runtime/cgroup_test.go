package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/testkit/need"
)

// limited makes a sandbox whose runs have limits, where this machine keeps any.
func limited(t *testing.T, attacker string, l groupconfig.Limits) (fixture, Sandbox) {
	t.Helper()
	needBwrap(t)
	e := newFixture(t, attacker)
	s := sandboxOf(e, attacker)
	s.Network = NetworkNone
	if err := s.CheckLimits(l); err != nil {
		need.Root(t) // other users may write no control group
		need.Full(t)
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left := s.allGroups(t); len(left) > 0 {
			t.Errorf("control groups are left: %v", left)
		}
	})
	e.spec.Limits, e.spec.Required = l, l
	return e, s
}

// allGroups are the control groups of the instance.
func (s Sandbox) allGroups(t *testing.T) []string {
	t.Helper()
	all, err := s.groupsOf(func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestSandbox_MemoryEater_IsKilledAndTheRunSaysSo(t *testing.T) {
	e, s := limited(t, buildAttacker(t), groupconfig.Limits{Memory: 64 << 20})
	c := testRuntime{s, func(*Spec) {}}.start(t, e.spec)
	c.allowed(map[string]string{"memory 16": ""})
	if err := c.p.Send([]byte("memory 500\n")); err != nil {
		t.Fatal(err)
	}
	if exit := c.finish(); exit.Err == nil || !strings.Contains(exit.Reason(), "killed for memory: it took more than its limit of 64m") || ClassOf(exit.Err) != ClassAgent {
		t.Errorf("exit %+v", exit)
	}
}

func TestSandbox_ForkBomb_EndsAtItsLimit(t *testing.T) {
	e, s := limited(t, "/bin/sh", groupconfig.Limits{PIDs: 20})
	e.spec.Command = "i=0; while [ $i -lt 60 ]; do sleep 100 & i=$((i+1)); done; wait"
	if exit := (testRuntime{s, func(*Spec) {}}).start(t, e.spec).finish(); exit.Err == nil ||
		!strings.Contains(exit.Reason(), "limit of 20 processes and threads") || ClassOf(exit.Err) != ClassAgent {
		t.Errorf("exit %+v", exit)
	}
}

func TestSandbox_Limits_AreInTheGroupAndEndWithTheRun(t *testing.T) {
	attacker := buildAttacker(t)
	e, s := limited(t, attacker, groupconfig.Limits{Memory: 1 << 30, CPUs: 0.5, PIDs: 100})
	c := testRuntime{s, func(*Spec) {}}.start(t, e.spec)
	c.ask("env X")
	paths := s.allGroups(t)
	got := map[string]string{}
	for _, path := range paths {
		for _, file := range []string{"memory.max", "memory.limit_in_bytes", "cpu.max", "cpu.cfs_quota_us", "pids.max"} {
			if b, err := os.ReadFile(filepath.Join(path, file)); err == nil {
				name, _, _ := strings.Cut(file, ".")
				got[name] = strings.TrimSpace(string(b))
			}
		}
		if procs, err := os.ReadFile(filepath.Join(path, "cgroup.procs")); err != nil || len(strings.Fields(string(procs))) < 2 {
			t.Errorf("%s has the processes %q, %v", path, procs, err)
		}
	}
	got["cpu"] = strings.TrimSuffix(got["cpu"], " 100000")
	if diff := cmp.Diff(map[string]string{"memory": "1073741824", "cpu": "50000", "pids": "100"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if exit := c.finish(); exit.Code != 0 || exit.Err != nil {
		t.Errorf("exit %+v", exit)
	}
	if left := s.allGroups(t); len(left) > 0 {
		t.Errorf("control groups are left: %v", left)
	}
	// One of a gated that was killed before it recorded the run.
	machine, err := readCgroupFS()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is there
		if _, err = newRunGroup(machine, s.groupPrefix()+runName(7), e.spec.Limits, groupconfig.Limits{}); err != nil {
			t.Fatal(err)
		}
	}
	if ended, err := s.EndFormer(); !ended || err != nil {
		t.Error(ended, err)
	}
}

// fakeCgroups is a tree of control groups of version 2 with the files that gated writes, in mountinfo's
// and cgroup's words.
func fakeCgroups(t *testing.T, own string, groups map[string]string) (cgroupFS, string) {
	t.Helper()
	top := t.TempDir()
	for group, controllers := range groups {
		dir := filepath.Join(top, group)
		err := os.MkdirAll(dir, 0o700)
		for file, text := range map[string]string{"cgroup.controllers": controllers, "cgroup.subtree_control": "", "cgroup.procs": ""} {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	mounts := "28 1 0:31 / /Docker/host rw - 9p C:\\134Docker rw,path=C:\\Program Files\\Docker;trans=fd\n" + // as WSL writes it
		"30 24 0:27 / " + top + " rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n29 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
	return cgroupFS{mounts: mounts, own: "0::" + own + "\n"}, top
}

func TestMakeGroups_Version2_FindsAGroupThatCanBeWritten(t *testing.T) {
	all := "cpuset cpu io memory pids\n"
	for name, tt := range map[string]struct {
		own    string
		groups map[string]string
		root   bool
		want   string
	}{
		"beside its own":  {"/app.slice/gated", map[string]string{"app.slice": all, "app.slice/gated": ""}, false, "app.slice/i"},
		"below its own":   {"/system.slice/gated", map[string]string{"system.slice/gated": all}, false, "system.slice/gated/i"},
		"in a container":  {"/", map[string]string{"": all}, true, "i"},
		"at the top":      {"/system.slice/gated", map[string]string{"": all, "system.slice/gated": all}, true, "i"},
		"some are absent": {"/a/gated", map[string]string{"a": "memory pids\n"}, false, "a/i"},
		"none":            {"/a/gated", map[string]string{"a/gated": "io\n"}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, top := fakeCgroups(t, tt.own, tt.groups)
			c.root = tt.root
			dirs, err := c.makeGroups("i", limitControllers())
			for controller, dir := range dirs {
				if dir != (cgroupDir{filepath.Join(top, tt.want), true}) {
					t.Errorf("%s: %+v", controller, dir)
				}
			}
			if complete := len(dirs) == 3; complete != (err == nil) || (len(dirs) > 0) != (tt.want != "") {
				t.Errorf("%v, %v", dirs, err)
			}
			if tt.want == "" {
				return
			}
			b, err := os.ReadFile(filepath.Join(top, filepath.Dir(tt.want), "cgroup.subtree_control"))
			if err != nil || !strings.Contains(string(b), "+memory") || !strings.Contains(string(b), "+pids") {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
}

func TestMakeGroups_Version1_OneFolderPerController(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"memory/docker/x", "cpu,cpuacct/docker/x", "pids/docker/x"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	mounts := ""
	for _, controllers := range []string{"memory", "cpu,cpuacct", "pids", "freezer"} {
		mounts += "30 24 0:27 /docker " + top + "/" + controllers + "/docker rw - cgroup cgroup rw," + controllers + "\n"
	}
	c := cgroupFS{mounts: mounts, own: "9:pids:/docker/x\n4:memory:/docker/x\n2:cpu,cpuacct:/docker/x\n0::/docker/x\n"}
	dirs, err := c.makeGroups("i", limitControllers())
	want := map[string]cgroupDir{
		"memory": {path: top + "/memory/docker/x/i"}, "cpu": {path: top + "/cpu,cpuacct/docker/x/i"}, "pids": {path: top + "/pids/docker/x/i"},
	}
	if diff := cmp.Diff(want, dirs, cmp.AllowUnexported(cgroupDir{})); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestNewRunGroup_NoneCanBeWritten_IsAnErrorIfRequired(t *testing.T) {
	c, _ := fakeCgroups(t, "/a", map[string]string{"a": ""})
	limits := groupconfig.Limits{Memory: 1 << 30}
	if g, err := newRunGroup(c, "i", limits, groupconfig.Limits{PIDs: 9}); g != nil || err != nil {
		t.Errorf("%+v, %v", g, err)
	}
	if g, err := newRunGroup(c, "i", limits, limits); g != nil || !isSetup(err) || !strings.Contains(err.Error(), "control group for memory") {
		t.Errorf("required: %+v, %v", g, err)
	}
	if g, err := newRunGroup(c, "i", groupconfig.Limits{}, limits); g != nil || err != nil {
		t.Errorf("without limits: %+v, %v", g, err)
	}
}

func TestNewRunGroup_OneIsMissing_NothingIsLeft(t *testing.T) {
	top := t.TempDir()
	c := cgroupFS{mounts: "30 24 0:27 / " + top + " rw - cgroup cgroup rw,memory\n", own: "4:memory:/\n"}
	limits := groupconfig.Limits{Memory: 1 << 30, PIDs: 9}
	if g, err := newRunGroup(c, "i", limits, limits); g != nil || !isSetup(err) || !strings.Contains(err.Error(), "control group for pids") {
		t.Errorf("%+v, %v", g, err)
	}
	if left, err := os.ReadDir(top); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestSettings(t *testing.T) {
	limits := groupconfig.Limits{Memory: 2 << 30, CPUs: 1.5, PIDs: 512}
	for name, tt := range map[string]struct {
		v2   bool
		want []string
	}{
		"version 2": {true, []string{"memory.max 2147483648", "memory.swap.max 0", "cpu.max 150000 100000", "pids.max 512"}},
		"version 1": {false, []string{
			"memory.limit_in_bytes 2147483648", "memory.memsw.limit_in_bytes 2147483648",
			"cpu.cfs_period_us 100000", "cpu.cfs_quota_us 150000", "pids.max 512",
		}},
	} {
		var got []string
		for _, controller := range limitControllers() {
			for _, s := range settings(controller, tt.v2, limits) {
				got = append(got, s.file+" "+s.value)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if s := settings("cpu", false, groupconfig.Limits{CPUs: 0.001}); s[1].value != "1000" {
		t.Errorf("a thousandth of a processor: %+v", s)
	}
}
