package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// ownerName is the variable that marks processes that gated starts for sandboxes: bubblewrap, the
// programs that set its network up, and those of checks. Agents do not get it.
const ownerName = "ARIZUKO_GATED"

// ownerText names this process, a gated or a check, as the owner of processes and folders that it makes.
func ownerText() string {
	p := processOf(os.Getpid())
	return fmt.Sprintf("%d-%d", p.pid, p.started)
}

// ownerEnded reports whether the owner that a text begins with has ended. It is false for text of another kind.
func ownerEnded(text string) bool {
	var p process
	n, err := fmt.Sscanf(text, "%d-%d", &p.pid, &p.started)
	return n == 2 && err == nil && !p.alive()
}

// ownerMarker is the environment entry that marks a process of this gated.
func (s Sandbox) ownerMarker() string { return s.ownerPrefix() + ownerText() }

func (s Sandbox) ownerPrefix() string { return ownerName + "=" + InstanceOf(s.Data) + ":" }

// isFormer reports whether the process was started for a sandbox of the instance by a
// gated that has ended.
func (s Sandbox) isFormer(pid int) bool {
	for _, entry := range environOf(pid) {
		if owner, found := strings.CutPrefix(entry, s.ownerPrefix()); found {
			return ownerEnded(owner)
		}
	}
	return false
}

// EndFormer ends the leftovers of earlier gateds and their checks: processes, control groups
// and temporary folders, also those of runs that are not known any more. It must be
// called before the first run, when the known ones were ended. ended is false if there
// was nothing. An error names those that stay.
func (s Sandbox) EndFormer() (ended bool, err error) {
	killed, err := Orphan{}.end(s.isFormer)
	groups, groupsErr := s.groupsOf(isFormerName)
	temp, tempErr := removeFormerTemp(s.Temp)
	return killed || len(groups) > 0 || temp, errors.Join(err, groupsErr, removeGroups(groups), tempErr)
}

// isFormerName reports whether that is the name of a run's folder or control group, or of one of a check that has
// ended: there is no run yet.
func isFormerName(name string) bool {
	check, isCheck := strings.CutPrefix(name, checkPrefix)
	return strings.HasPrefix(name, runPrefix) || isCheck && ownerEnded(check)
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
		if isFormerName(entry.Name()) {
			removed, err = true, errors.Join(err, RemoveFolder(parent, entry.Name()))
		}
	}
	return removed, err
}
