package doctor

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"arizuko/pkg/config"
	"arizuko/pkg/facts"
)

// locks is which processes hold the locks of the instance, as far as this machine's kernel shows them: not
// those of processes in another container.
type locks struct {
	base   config.Base
	proc   string         // the kernel's folder of processes
	holder map[string]int // process by path
}

// readLocks reads which processes hold the locks of daemons, and the database for writing. It takes no lock.
func readLocks(proc string, base config.Base, daemons facts.Daemons) locks {
	l := locks{base, proc, map[string]int{}}
	table, err := os.ReadFile(filepath.Join(proc, "locks"))
	if err != nil {
		return l
	}
	paths := []string{l.writeLock(), l.sharedMemory(), base.DBPath(), l.path(launcher)}
	for name := range daemons {
		paths = append(paths, l.path(name))
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
	l.holder[l.sharedMemory()] = cmp.Or(l.holder[l.sharedMemory()], l.holder[base.DBPath()])
	return l
}

// Bytes of SQLite's files that a process locks for writing: of the shared memory of a write-ahead log, and from which
// on of a database without one.
const (
	writeByte   = 120
	pendingByte = 0x40000000
)

// note reads a line such as "7: FLOCK  ADVISORY  WRITE 4711 fd:01:1234 0 EOF"; with "->" before FLOCK the
// process waits, and does not count. SQLite's locks are of POSIX, with the first and the last byte at the end.
func (l *locks) note(line string, byInode map[uint64]string) {
	fields := strings.Fields(line)
	if len(fields) < 8 || fields[1] != "FLOCK" && !writesDatabase(fields) {
		return
	}
	pid, err := strconv.Atoi(fields[4])
	place := strings.Split(fields[5], ":")
	inode, inodeErr := strconv.ParseUint(place[len(place)-1], 10, 64)
	if path, ours := byInode[inode]; ours && err == nil && inodeErr == nil {
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

// path is the file that a daemon holds locked while it runs.
func (l *locks) path(name string) string { return filepath.Join(l.base.RunDir(), name+".lock") }

func (l *locks) writeLock() string { return l.base.DBPath() + ".writelock" }

// sharedMemory is the file that SQLite locks to write the database.
func (l *locks) sharedMemory() string { return l.base.DBPath() + "-shm" }

// daemon is the process that holds the lock of a daemon, 0 for none.
func (l *locks) daemon(name string) int { return l.holder[l.path(name)] }

// stopped reports whether a process is stopped by a signal or a debugger.
func (l *locks) stopped(pid int) bool {
	stat, err := os.ReadFile(filepath.Join(l.proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	after := string(stat[bytes.LastIndexByte(stat, ')')+1:]) // the process's name, before that, may have anything in it
	return strings.HasPrefix(after, " T") || strings.HasPrefix(after, " t")
}

// awaken is the first step for a daemon that does not answer: "" unless its process is stopped.
func (l *locks) awaken(name string) string {
	pid := l.daemon(name)
	if pid == 0 || !l.stopped(pid) {
		return ""
	}
	return fmt.Sprintf("its process %d is stopped: kill -CONT %[1]d; ", pid)
}

// command is the command line of a process, in brackets, "" if it cannot be read.
func (l *locks) command(pid int) string {
	words, err := os.ReadFile(filepath.Join(l.proc, strconv.Itoa(pid), "cmdline"))
	text := strings.TrimSpace(string(bytes.ReplaceAll(words[:min(len(words), maxCommand)], []byte{0}, []byte{' '})))
	if err != nil || text == "" {
		return ""
	}
	return " (" + text + ")"
}

// maxCommand bounds how much of a command line is shown, in bytes.
const maxCommand = 120
