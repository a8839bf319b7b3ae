package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"arizuko/pkg/groupconfig"
)

const (
	// cpuPeriod is over which time the kernel measures a quota of processors, in
	// microseconds: its own default.
	cpuPeriod = 100_000
	// daemonsGroup takes the processes of a control group of version 2 that was
	// delegated to gated: a group with groups below it may hold none itself.
	daemonsGroup = "daemons"
)

// limitControllers are the controllers of the kernel that keep limits.
func limitControllers() []string { return []string{"memory", "cpu", "pids"} }

// No library makes these control groups. Most of this file looks for a group that gated may write, in containers, below
// systemd and for users, which neither containerd/cgroups (v3.1.3) nor opencontainers/cgroups (v0.1.0) does; the rest
// is some 60 lines. With the first, a limit for swap is an error where the kernel has none, and in a container with
// version 1 the path of the own group is wrong. The second enables every controller in all groups above. Neither reads
// pids.events, as exceeded does. They would add ten modules and seven.

// cgroupDir is a folder of a control group.
type cgroupDir struct {
	path string
	v2   bool
}

// cgroupFS is the kernel's account of control groups.
type cgroupFS struct {
	mounts string // /proc/self/mountinfo
	own    string // /proc/self/cgroup
	root   bool   // gated is root
}

func readCgroupFS() (c cgroupFS, err error) {
	mounts, mountsErr := os.ReadFile("/proc/self/mountinfo")
	own, ownErr := os.ReadFile("/proc/self/cgroup")
	return cgroupFS{string(mounts), string(own), os.Getuid() == 0}, errors.Join(mountsErr, ownErr)
}

// makeGroups makes a control group of a name for each of the controllers that can be used. An error is why one cannot.
func (c cgroupFS) makeGroups(name string, need []string) (dirs map[string]cgroupDir, err error) {
	dirs = map[string]cgroupDir{}
	for _, m := range c.cgroupMounts() {
		var missing []string
		for _, controller := range need {
			if _, ok := dirs[controller]; !ok && (m.v2 || slices.Contains(m.controllers, controller)) {
				missing = append(missing, controller)
			}
		}
		if len(missing) > 0 {
			err = errors.Join(err, m.makeGroup(c.root, name, missing, dirs))
		}
	}
	if len(dirs) == len(need) {
		return dirs, nil
	}
	return dirs, errors.Join(err, fmt.Errorf("not all of %v have a control group that can be written", need))
}

// cgroupMount is a hierarchy of control groups.
type cgroupMount struct {
	point, root string
	v2          bool
	controllers []string // of version 1
	own         string   // gated's group, as a path on this machine
}

// cgroupMounts returns version 2 first.
func (c cgroupFS) cgroupMounts() []cgroupMount {
	var newer, older []cgroupMount
	for line := range strings.Lines(c.mounts) {
		before, after, _ := strings.Cut(line, " - ")
		words, kind := strings.Fields(before), strings.Fields(after)
		if len(words) < 5 || len(kind) < 3 {
			continue
		}
		m := cgroupMount{point: words[4], root: words[3], v2: kind[0] == "cgroup2"}
		if !m.v2 && kind[0] != "cgroup" {
			continue
		}
		for _, option := range strings.Split(kind[2], ",") {
			if slices.Contains(limitControllers(), option) {
				m.controllers = append(m.controllers, option)
			}
		}
		own, ok := c.ownGroup(m)
		if !ok {
			continue
		}
		inside, _ := strings.CutPrefix(own, strings.TrimSuffix(m.root, "/"))
		m.own = filepath.Join(m.point, inside)
		if m.v2 {
			newer = append(newer, m)
		} else {
			older = append(older, m)
		}
	}
	return append(newer, older...)
}

// ownGroup is gated's group in a hierarchy.
func (c cgroupFS) ownGroup(m cgroupMount) (path string, ok bool) {
	for line := range strings.Lines(c.own) {
		words := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(words) < 3 {
			continue
		}
		of := strings.Split(words[1], ",")
		if m.v2 && words[0] == "0" || !m.v2 && len(m.controllers) > 0 && slices.Contains(of, m.controllers[0]) {
			return words[2], true
		}
	}
	return "", false
}

// places are the groups below which those of runs may be made, the best first. Of version 2 these are the group above
// gated's own, and its own if that was delegated to gated; for root the top before them, as container engines do.
func (m cgroupMount) places(root bool) []string {
	top := []string{}
	if root && m.own != m.point {
		top = []string{m.point}
	}
	switch {
	case !m.v2:
		return append([]string{m.own}, top...)
	case m.own == m.point:
		return []string{m.own}
	}
	return append(top, filepath.Dir(m.own), m.own)
}

// makeGroup makes a group for as many of the controllers as a place has, in the first place that takes it.
func (m cgroupMount) makeGroup(root bool, name string, need []string, dirs map[string]cgroupDir) (err error) {
	for _, place := range m.places(root) {
		has, e := need, error(nil)
		if m.v2 {
			has, e = available(place, need)
		}
		if len(has) == 0 {
			err = errors.Join(err, e)
			continue
		}
		if m.v2 {
			e = enable(place, has)
			if errors.Is(e, syscall.EBUSY) && place == m.own {
				e = errors.Join(moveProcesses(place), enable(place, has))
			}
		}
		path := filepath.Join(place, name)
		if e == nil { // one with this name is of a former database
			e = errors.Join(removeGroups([]string{path}), os.Mkdir(path, 0o755))
		}
		if e == nil {
			for _, controller := range has {
				dirs[controller] = cgroupDir{path, m.v2}
			}
			return nil
		}
		err = errors.Join(err, e)
	}
	return err
}

// available are those of the controllers that groups below one may use.
func available(dir string, need []string) (has []string, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	for _, controller := range strings.Fields(string(text)) {
		if slices.Contains(need, controller) {
			has = append(has, controller)
		}
	}
	return has, err
}

// enable lets the groups below one use controllers.
func enable(dir string, controllers []string) error {
	path := filepath.Join(dir, "cgroup.subtree_control")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var missing []string
	for _, controller := range controllers {
		if !slices.Contains(strings.Fields(string(text)), controller) {
			missing = append(missing, "+"+controller)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return writeControl(path, strings.Join(missing, " "))
}

// moveProcesses moves all processes of a group, gated among them, into one below it.
func moveProcesses(dir string) error {
	below := filepath.Join(dir, daemonsGroup)
	if err := os.Mkdir(below, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	pids, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	for _, pid := range strings.Fields(string(pids)) {
		e := writeControl(filepath.Join(below, "cgroup.procs"), pid)
		if !errors.Is(e, syscall.ESRCH) { // it has ended
			err = errors.Join(err, e)
		}
	}
	return err
}

// writeControl writes a value in one call, as the kernel takes it.
func writeControl(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// runGroup is the control group of a run; nil is none.
type runGroup struct {
	dirs   map[string]cgroupDir // by controller
	limits groupconfig.Limits
}

// wanted are the controllers that limits take.
func wanted(l groupconfig.Limits) (controllers []string) {
	for controller, set := range map[string]bool{"memory": l.Memory > 0, "cpu": l.CPUs > 0, "pids": l.PIDs > 0} {
		if set {
			controllers = append(controllers, controller)
		}
	}
	slices.Sort(controllers)
	return controllers
}

// newRunGroup makes the control group of a run with its limits. Where the machine's
// cannot be written, an error says why if the limit is one of those required; it is
// left out otherwise.
func newRunGroup(c cgroupFS, name string, l, required groupconfig.Limits) (*runGroup, error) {
	need := wanted(l)
	if len(need) == 0 {
		return nil, nil
	}
	dirs, err := c.makeGroups(name, need)
	g := &runGroup{dirs: dirs, limits: l}
	for _, controller := range wanted(required) {
		if _, ok := dirs[controller]; !ok && slices.Contains(need, controller) {
			err := setupError("the group's limits cannot be kept by bubblewrap: gated cannot write a control "+
				"group for %s: %w",
				controller, err)
			return nil, errors.Join(err, g.remove())
		}
	}
	if len(dirs) == 0 {
		return nil, nil
	}
	if err := g.limit(); err != nil {
		return nil, errors.Join(fmt.Errorf("limit the run: %w", err), g.remove())
	}
	return g, nil
}

func (g *runGroup) limit() error {
	for controller, dir := range g.dirs {
		for _, setting := range settings(controller, dir.v2, g.limits) {
			err := writeControl(filepath.Join(dir.path, setting.file), setting.value)
			if err != nil && (!setting.optional || !errors.Is(err, fs.ErrNotExist)) {
				return err
			}
		}
	}
	return nil
}

// cgroupSetting is a file of a control group and its value. An optional one is not in all
// kernels.
type cgroupSetting struct {
	file, value string
	optional    bool
}

// settings are a controller's values in their order. No swap comes on top of the memory.
func settings(controller string, v2 bool, l groupconfig.Limits) []cgroupSetting {
	memory, pids := strconv.FormatInt(int64(l.Memory), 10), strconv.Itoa(l.PIDs)
	quota := strconv.FormatInt(max(int64(l.CPUs*cpuPeriod), 1000), 10) // the kernel's minimum
	period := strconv.Itoa(cpuPeriod)
	switch {
	case controller == "pids":
		return []cgroupSetting{{"pids.max", pids, false}}
	case controller == "memory" && v2:
		return []cgroupSetting{{"memory.max", memory, false}, {"memory.swap.max", "0", true}}
	case controller == "memory":
		return []cgroupSetting{{"memory.limit_in_bytes", memory, false}, {"memory.memsw.limit_in_bytes", memory, true}}
	case v2:
		return []cgroupSetting{{"cpu.max", quota + " " + period, false}}
	}
	return []cgroupSetting{{"cpu.cfs_period_us", period, false}, {"cpu.cfs_quota_us", quota, false}}
}

// paths are the group's folders, each once.
func (g *runGroup) paths() (paths []string) {
	for _, dir := range g.dirs {
		paths = append(paths, dir.path)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// add puts a process into the group. Its later children are in the group, too.
func (g *runGroup) add(pid int) error {
	if g == nil {
		return nil
	}
	for _, path := range g.paths() {
		if err := writeControl(filepath.Join(path, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("limit the run: %w", err)
		}
	}
	return nil
}

// exceeded describes the limit that the run has reached, "" for none. Reaching that of
// processors only makes it slower.
func (g *runGroup) exceeded() string {
	if g == nil {
		return ""
	}
	memory, pids := g.dirs["memory"], g.dirs["pids"]
	events := "memory.events"
	if !memory.v2 {
		events = "memory.oom_control"
	}
	switch {
	case count(memory.path, events, "oom_kill") > 0:
		return fmt.Sprintf("killed for memory: it took more than its limit of %s", g.limits.Memory)
	case count(pids.path, "pids.events", "max") > 0:
		return fmt.Sprintf("it reached its limit of %d processes and threads", g.limits.PIDs)
	}
	return ""
}

// count reads a counter of a group, 0 if there is none.
func count(path, file, name string) int {
	if path == "" {
		return 0
	}
	text, err := os.ReadFile(filepath.Join(path, file))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) == 2 && words[0] == name {
			n, _ := strconv.Atoi(words[1])
			return n
		}
	}
	return 0
}

// remove removes the group when its processes have ended.
func (g *runGroup) remove() error {
	if g == nil {
		return nil
	}
	return removeGroups(g.paths())
}

// removeGroups removes groups when their processes have ended. Those that are not there are no error.
func removeGroups(paths []string) (err error) {
	for _, path := range paths {
		var last error
		within(killWait, func() bool {
			last = os.Remove(path)
			return !errors.Is(last, syscall.EBUSY)
		})
		if last != nil && !errors.Is(last, fs.ErrNotExist) {
			pids, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
			err = errors.Join(err, fmt.Errorf("remove a run's control group, whose processes are %v: %w",
				strings.Fields(string(pids)), last))
		}
	}
	return err
}

// CheckLimits returns why limits cannot be kept, nil if all can.
func (s Sandbox) CheckLimits(l groupconfig.Limits) error {
	c, err := readCgroupFS()
	if err != nil {
		return err
	}
	g, err := newRunGroup(c, s.groupPrefix()+checkPrefix+ownerText(), l, l)
	return errors.Join(err, g.remove())
}

// groupPrefix begins the names of the instance's control groups.
func (s Sandbox) groupPrefix() string { return "arizuko-" + InstanceOf(s.Data) + "-" }

// groupsOf are the control groups that the instance may have made, by the rest of their names.
func (s Sandbox) groupsOf(match func(name string) bool) (paths []string, err error) {
	c, err := readCgroupFS()
	for _, m := range c.cgroupMounts() {
		for _, place := range append(m.places(true), m.point) {
			entries, _ := os.ReadDir(place) // some are not there
			for _, entry := range entries {
				name, ours := strings.CutPrefix(entry.Name(), s.groupPrefix())
				if ours && entry.IsDir() && match(name) {
					paths = append(paths, filepath.Join(place, entry.Name()))
				}
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), err
}
