package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ownerName is the variable that marks processes that gated starts for sandboxes: bubblewrap, the
// programs that set its network up, and those of checks. Agents do not get it.
const ownerName = "ARIZUKO_GATED"

// owner is the gated, or the check, that started a process or made a folder.
type owner struct {
	pid     int
	started int64
}

func thisProcess() owner {
	o := owner{pid: os.Getpid()}
	if st, err := readStat(o.pid); err == nil {
		o.started = st.started
	}
	return o
}

func (o owner) String() string { return fmt.Sprintf("%d-%d", o.pid, o.started) }

// parseOwner reads an owner's String. Other text follows it.
func parseOwner(text string) (o owner, ok bool) {
	n, err := fmt.Sscanf(text, "%d-%d", &o.pid, &o.started)
	return o, n == 2 && err == nil
}

func (o owner) alive() bool {
	st, err := readStat(o.pid)
	return err == nil && st.started == o.started && !st.dead()
}

// ownerMarker is the environment entry that marks a process of this gated.
func (s Sandbox) ownerMarker() string {
	return ownerName + "=" + InstanceOf(s.Data) + ":" + thisProcess().String()
}

// ownerOf is who started a process for a sandbox of the instance.
func (s Sandbox) ownerOf(pid int) (o owner, ok bool) {
	for _, entry := range environOf(pid) {
		if value, found := strings.CutPrefix(entry, ownerName+"="+InstanceOf(s.Data)+":"); found {
			return parseOwner(value)
		}
	}
	return owner{}, false
}

// isFormer reports whether the process was started for a sandbox of the instance by a
// gated that has ended.
func (s Sandbox) isFormer(pid int) bool {
	o, ok := s.ownerOf(pid)
	return ok && !o.alive()
}

// EndFormer ends the leftovers of earlier gateds and their checks: processes, control groups
// and temporary folders, also those of runs that are not known any more. It must be
// called before the first run, when the known ones were ended. ended is false if there
// was nothing. An error names those that stay.
func (s Sandbox) EndFormer() (ended bool, err error) {
	killed, err := killAllOf(s.isFormer)
	groups, groupsErr := s.endFormerGroups()
	temp, tempErr := removeFormerTemp(s.Temp)
	return killed || groups || temp, errors.Join(err, groupsErr, tempErr)
}

// endFormerGroups ends the control groups of all runs but those of a check that runs.
func (s Sandbox) endFormerGroups() (ended bool, err error) {
	c, err := readCgroupFS()
	if err != nil {
		return false, err
	}
	var paths []string
	for _, path := range c.instances(s.cgroup()) {
		entries, _ := os.ReadDir(path) // most are not there
		for _, entry := range entries {
			run := filepath.Join(path, entry.Name())
			if entry.IsDir() && strings.HasPrefix(entry.Name(), "run-") &&
				!slices.ContainsFunc(groupProcesses(run), s.isOfThisOrACheck) {
				paths = append(paths, run)
			}
		}
	}
	return len(paths) > 0, endGroups(paths)
}

func (s Sandbox) isOfThisOrACheck(pid int) bool {
	o, ok := s.ownerOf(pid)
	return ok && o.alive()
}

// instances are the folders where instance may have made the control groups.
func (c cgroupFS) instances(name string) (paths []string) {
	for _, m := range c.cgroupMounts() {
		for _, above := range []string{m.own, filepath.Dir(m.own), m.point} {
			if above == m.point || strings.HasPrefix(above, m.point+"/") {
				paths = append(paths, filepath.Join(above, name))
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// endGroups kills the processes of runs' control groups and removes the groups.
func endGroups(paths []string) error {
	_, err := within(killWait, func() (bool, error) {
		left := false
		for _, path := range paths {
			for _, pid := range groupProcesses(path) {
				if pid > 1 && pid != os.Getpid() { // 0 is one that is not visible here
					left = true
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		}
		return !left, nil
	})
	return errors.Join(err, removeGroups(paths))
}

// groupsOf are the folders of the control groups in a run's label, see runGroup.String.
func groupsOf(label string) (paths []string) {
	for word := range strings.FieldsSeq(label) {
		if escaped, ok := strings.CutPrefix(word, "cgroup="); ok {
			if path, err := url.PathUnescape(escaped); err == nil {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// groupProcesses are the processes of a control group, none if it is not there.
func groupProcesses(path string) (pids []int) {
	text, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
	if err != nil {
		return nil
	}
	for _, word := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// removeFormerTemp removes the temporary folders of runs, and those of checks that have
// ended. It makes the folder that holds them, so that the checks of this gated use it.
func removeFormerTemp(parent string) (removed bool, err error) {
	root, err := OpenTemp(parent)
	if err != nil {
		return false, err
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, entry := range entries {
		name := entry.Name()
		if rest, isRun := strings.CutPrefix(name, "run-"); isRun {
			if id, e := strconv.ParseInt(rest, 10, 64); e == nil {
				removed, err = true, errors.Join(err, tempDir{parent, id}.remove())
			}
		} else if rest, isCheck := strings.CutPrefix(name, checkDir); isCheck {
			if o, known := parseOwner(rest); !known || !o.alive() {
				removed = true
				if e := root.RemoveAll(name); !errors.Is(e, fs.ErrNotExist) {
					err = errors.Join(err, e)
				}
			}
		}
	}
	return removed, err
}
