package doctor

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// locks is which processes hold the locks of the instance, as far as this machine's kernel shows them: not
// those of processes in another container.
type locks struct {
	holder  map[string]int // process by path
	waiters map[string]int // how many processes wait, by path
}

// readLocks reads who holds the lock files at the paths. It takes no lock.
func (e *examination) readLocks(paths []string) locks {
	l := locks{map[string]int{}, map[string]int{}}
	table, err := os.ReadFile(filepath.Join(e.Proc, "locks"))
	if err != nil {
		return l
	}
	byInode := map[uint64]string{}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			if stat, ok := info.Sys().(*syscall.Stat_t); ok {
				byInode[stat.Ino] = path
			}
		}
	}
	for line := range strings.Lines(string(table)) {
		l.note(line, byInode)
	}
	return l
}

// note reads a line such as "7: FLOCK  ADVISORY  WRITE 4711 fd:01:1234 0 EOF"; with "->" before FLOCK the
// process waits.
func (l *locks) note(line string, byInode map[uint64]string) {
	fields := strings.Fields(line)
	waits := len(fields) > 1 && fields[1] == "->"
	if waits {
		fields = slices.Delete(fields, 1, 2)
	}
	if len(fields) < 6 || fields[1] != "FLOCK" {
		return
	}
	pid, err := strconv.Atoi(fields[4])
	place := strings.Split(fields[5], ":")
	inode, inodeErr := strconv.ParseUint(place[len(place)-1], 10, 64)
	path, ours := byInode[inode]
	if err != nil || inodeErr != nil || !ours {
		return
	}
	if waits {
		l.waiters[path]++
	} else {
		l.holder[path] = pid
	}
}

// lockPath is the file that a daemon holds locked while it runs.
func (e *examination) lockPath(name string) string {
	return filepath.Join(e.Base.RunDir(), name+".lock")
}

func (e *examination) writeLock() string { return e.Base.DBPath() + ".writelock" }

// stopped reports whether a process is stopped by a signal or a debugger.
func (e *examination) stopped(pid int) bool {
	stat, err := os.ReadFile(filepath.Join(e.Proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	after := string(stat[bytes.LastIndexByte(stat, ')')+1:]) // the process's name, before that, may have anything in it
	return strings.HasPrefix(after, " T") || strings.HasPrefix(after, " t")
}

// awaken is what to do first about a daemon that does not answer: "" unless its process is stopped.
func (e *examination) awaken(name string) string {
	pid := e.locks.holder[e.lockPath(name)]
	if pid == 0 || !e.stopped(pid) {
		return ""
	}
	return fmt.Sprintf("its process %d is stopped: kill -CONT %[1]d; ", pid)
}

// lockHolders says who holds the write lock, and finds a stopped process that does.
func (e *examination) lockHolders() {
	pid := e.locks.holder[e.writeLock()]
	if pid == 0 || !e.stopped(pid) {
		return
	}
	e.problem("writelock-stopped", fmt.Sprintf("process %d holds the write lock and is stopped (%d processes wait): no daemon can write", pid, e.locks.waiters[e.writeLock()]),
		fmt.Sprintf("kill -CONT %d, or kill -9 %[1]d: nothing is lost", pid))
}
