package snapshots

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// What a path names.
const (
	absent int64 = iota
	file
	folder
	link
	other // a socket, a pipe or a device; walks leave it out
)

// Reasons why a file is not kept, or a change not covered.
const (
	tooBig       = "too big"
	overQuota    = "no room left in UNDO_QUOTA"
	unreadable   = "unreadable"
	notYet       = "not copied yet when the turn began"
	beingWritten = "was being written"
	tooDeep      = "too many folders deep"
	diskFull     = "the disk was full"
	overlap      = "changed while another conversation was running in the folder"
	gap          = "changed by others between two attempts of the turn"
	tooMany      = "the folder has too many files"
	notCompared  = "the folder could not be compared with its earlier state"
	damaged      = "the kept record is damaged"
	gone         = "its copy is no longer kept"
)

// entry is the state of a path. The zero value means that nothing is there.
type entry struct {
	kind, mode, uid, gid, size, mtime int64 // mode has no file's setuid bits: root must not make such files
	ctime, inode, links               int64 // a ctime of 0 is an unknown one

	content string // the hash of a file's content, or the target of a link; "" if it is not known
	why     string // why it is not kept
}

// untouched reports whether two entries have the same metadata: then the content is the same, too.
func (e entry) untouched(as entry) bool {
	e.content, e.why, as.content, as.why = "", "", "", ""
	return e == as && e.ctime != 0
}

// same reports whether restoring one entry over the other would change nothing.
func (e entry) same(as entry) bool {
	switch {
	case e.kind != as.kind || e.mode != as.mode:
		return false
	case e.content != "" && as.content != "":
		return e.content == as.content
	}
	return e.kind == absent || e.kind == folder || e.untouched(as)
}

// statAt returns the entry of a name in an open folder, without its content, and the file system that it is on. That is
// 0 if something is mounted there. Without a name it is the entry of the open file itself.
func statAt(dir int, name string) (e entry, system uint64, err error) {
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if name == "" {
		flags |= unix.AT_EMPTY_PATH // slower
	}
	var st unix.Statx_t
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Statx(dir, name, flags, unix.STATX_BASIC_STATS, &st)
	}
	if err != nil {
		return entry{}, 0, err
	}
	e = entry{
		kind: other, mode: int64(st.Mode & 0o777), uid: int64(st.Uid), gid: int64(st.Gid), size: int64(st.Size),
		mtime: st.Mtime.Sec*1e9 + int64(st.Mtime.Nsec), ctime: st.Ctime.Sec*1e9 + int64(st.Ctime.Nsec),
		inode: int64(st.Ino), links: int64(st.Nlink),
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		e.kind = file
	case unix.S_IFDIR:
		e.kind, e.mode = folder, int64(st.Mode&0o7777)
		e.size, e.ctime, e.links = 0, 0, 0 // these change with its content
	case unix.S_IFLNK:
		e.kind = link
	}
	if system = unix.Mkdev(st.Dev_major, st.Dev_minor); st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 && name != "" {
		system = 0
	}
	return e, system, nil
}

// item is an entry with its path below the group's folder. Lists of items are sorted.
type item struct {
	path string
	entry
}

func byPath(items []item) map[string]entry {
	entries := make(map[string]entry, len(items))
	for _, i := range items {
		entries[i.path] = i.entry
	}
	return entries
}

func sortByPath(items []item) {
	slices.SortFunc(items, func(a, b item) int { return comparePaths(a.path, b.path) })
}

// change is the change of a path: what a turn did, or what a restore does.
type change struct {
	path          string
	before, after entry
	why           string // why it is not covered
}

// comparePaths orders paths as a walk meets them: a folder before its content, and that before the next name.
func comparePaths(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}

// agentState reports whether a path belongs to the agents' own state, which they change whenever they run.
func agentState(path string) bool {
	top, _, _ := strings.Cut(path, "/")
	return strings.HasPrefix(top, ".claude.json") ||
		slices.Contains([]string{".claude", ".codex", ".gemini", ".qwen", ".config", ".local"}, top)
}
