package doctor

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"arizuko/pkg/store"
)

// locks is which processes hold the locks of the instance, as far as this machine's kernel shows them: not
// those of processes in another container.
type locks struct {
	holder  map[string]int // process by path
	waiters map[string]int // how many processes wait, by path
}

// readLocks reads who holds the lock files at the paths, and the database for writing. It takes no lock.
func (e *examination) readLocks(paths []string) locks {
	l := locks{map[string]int{}, map[string]int{}}
	table, err := os.ReadFile(filepath.Join(e.Proc, "locks"))
	if err != nil {
		return l
	}
	byInode := map[uint64]string{}
	for _, path := range append(paths, e.writeLock(), e.sharedMemory(), e.Base.DBPath()) {
		if info, err := os.Stat(path); err == nil {
			if stat, ok := info.Sys().(*syscall.Stat_t); ok {
				byInode[stat.Ino] = path
			}
		}
	}
	for line := range strings.Lines(string(table)) {
		l.note(line, byInode)
	}
	l.holder[e.sharedMemory()] = cmp.Or(l.holder[e.sharedMemory()], l.holder[e.Base.DBPath()])
	return l
}

// Bytes of SQLite's files that a process locks for writing: of the shared memory of a write-ahead log, and from which
// on of a database without one.
const (
	writeByte   = 120
	pendingByte = 0x40000000
)

// note reads a line such as "7: FLOCK  ADVISORY  WRITE 4711 fd:01:1234 0 EOF"; with "->" before FLOCK the
// process waits. SQLite's locks are of POSIX, with the first and the last byte at the end.
func (l *locks) note(line string, byInode map[uint64]string) {
	fields := strings.Fields(line)
	waits := len(fields) > 1 && fields[1] == "->"
	if waits {
		fields = slices.Delete(fields, 1, 2)
	}
	if len(fields) < 8 || fields[1] != "FLOCK" && !writesDatabase(fields) {
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

// writesDatabase reports whether a line is of a lock with which SQLite writes, or begins to.
func writesDatabase(fields []string) bool {
	first, err := strconv.ParseUint(fields[6], 10, 64)
	last, lastErr := strconv.ParseUint(fields[7], 10, 64)
	return fields[1] == "POSIX" && fields[3] == "WRITE" && err == nil && lastErr == nil &&
		(first <= writeByte && writeByte <= last || first >= pendingByte)
}

// lockPath is the file that a daemon holds locked while it runs.
func (e *examination) lockPath(name string) string {
	return filepath.Join(e.Base.RunDir(), name+".lock")
}

func (e *examination) writeLock() string { return e.Base.DBPath() + ".writelock" }

// sharedMemory is the file that SQLite locks to write the database.
func (e *examination) sharedMemory() string { return e.Base.DBPath() + "-shm" }

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

// lockHolders finds the process that keeps all daemons from writing.
func (e *examination) lockHolders() {
	if pid := e.locks.holder[e.writeLock()]; pid != 0 && e.stopped(pid) {
		e.Problem("writelock-stopped",
			fmt.Sprintf("process %d holds the write lock and is stopped (%d processes wait): no daemon can write", pid,
				e.locks.waiters[e.writeLock()]),
			fmt.Sprintf("kill -CONT %d, or kill -9 %[1]d: nothing is lost", pid))
		return
	}
	said := slices.ContainsFunc(e.Daemons, func(d Endpoint) bool { return e.says(d.Name, store.ErrLocked.Error()) })
	pid := e.locks.holder[e.sharedMemory()]
	switch {
	case e.Base.DB != "":
	case pid != 0 && (said || e.noneWrites()):
		end := fmt.Sprintf("end its transaction, or the program: kill %d", pid)
		if e.stopped(pid) {
			end = fmt.Sprintf("it is stopped: kill -CONT %d, or kill -9 %[1]d", pid)
		}
		e.Problem("database-locked",
			fmt.Sprintf("process %d%s holds the write lock of the database: no daemon can write", pid, e.command(pid)),
			end+"; the daemons go on by themselves, nothing is lost")
	case said:
		e.Problem("database-locked",
			"a process that this machine does not show holds the write lock of the database: no daemon can write",
			"run this on the machine itself, not in a container, or look with `fuser -v "+e.sharedMemory()+
				"`; end what holds it: the daemons go on by themselves, nothing is lost")
	}
}

// says reports whether a daemon answers that it is not ready for a reason.
func (e *examination) says(name, reason string) bool {
	a := e.answers[name]
	return a.status == http.StatusServiceUnavailable &&
		slices.ContainsFunc(a.lines, func(line string) bool { return strings.Contains(line, reason) })
}

// fell names the daemons that worked until the schema was taken back: those that have yet to start say that they do.
func (e *examination) fell() (names []string) {
	for _, d := range e.Daemons {
		if e.says(d.Name, store.Changed) {
			names = append(names, d.Name)
		}
	}
	return names
}

// noneWrites reports whether daemons run, and none of them has written its heartbeat lately.
func (e *examination) noneWrites() bool {
	runs := false
	for name := range e.in.Daemons {
		if e.alive(name) {
			return false
		}
		runs = runs || e.locks.holder[e.lockPath(name)] != 0
	}
	return runs
}

// command is what a process runs, in brackets, "" if that is not to be seen.
func (e *examination) command(pid int) string {
	words, err := os.ReadFile(filepath.Join(e.Proc, strconv.Itoa(pid), "cmdline"))
	text := strings.TrimSpace(string(bytes.ReplaceAll(words[:min(len(words), maxCommand)], []byte{0}, []byte{' '})))
	if err != nil || text == "" {
		return ""
	}
	return " (" + text + ")"
}

// maxCommand bounds what is shown of the command line of a process, in bytes.
const maxCommand = 120
