package snapshots

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/pkg/disk"
)

// keeper keeps the contents of files that have changed.
type keeper struct {
	*group
	old, now []item
	deadline time.Time
	racy     int64 // files that changed since then are looked at again

	baseline usage // of now
	diskFull bool
	swept    bool // nothing is left that could be deleted
}

// keep looks at the contents of items and keeps them. Those that it did not keep before come last, and large ones.
func (k *keeper) keep(changed []int) {
	k.baseline.addItems(k.now)
	space, err := disk.Of(k.Root)
	k.diskFull = err == nil && space.IsFull()
	slices.SortStableFunc(changed, func(a, b int) int {
		return cmp.Or(cmp.Compare(k.now[a].why, k.now[b].why), cmp.Compare(k.now[a].size, k.now[b].size))
	})
	for _, n := range changed {
		i := &k.now[n]
		if i.kind == link {
			i.content, err = k.dir.Readlink(i.path)
			i.why = whyNot(err)
		} else {
			i.content, i.why = k.keepFile(*i)
			k.baseline.add(i.entry)
		}
		if i.why == "" && i.ctime >= k.racy {
			i.ctime = 0
		}
	}
}

// keepFile returns the hash of a file's content if that is kept, else why not.
func (k *keeper) keepFile(i item) (content, why string) {
	share, size := k.Quota/4*3, space(i.size) // the rest is for what turns have replaced
	switch {
	case size > share:
		return "", tooBig
	case k.diskFull:
		return "", diskFull
	case k.baseline.size+size > share || k.swept && k.state.size+size > k.Quota:
		return "", overQuota
	case k.Now().After(k.deadline):
		return "", notYet
	}
	f, err := k.openSeen(i)
	if err != nil {
		return "", whyNot(err)
	}
	defer f.Close()
	content, err = hash(f, i.size)
	if err == nil && !k.has(content, i.size) {
		content, err = k.add(f, i.size)
	}
	if err == nil {
		err = unchanged(f, i)
	}
	if err != nil {
		return "", whyNot(err)
	}
	return content, ""
}

var (
	errChanged = errors.New("changed meanwhile")
	errQuota   = errors.New("over quota")
)

func whyNot(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, errQuota):
		return overQuota
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return diskFull
	case errors.Is(err, errChanged), errors.Is(err, fs.ErrNotExist):
		return beingWritten
	}
	return unreadable
}

// openSeen opens a file, if it is still the one that was seen.
func (g *group) openSeen(i item) (*os.File, error) {
	f, err := g.dir.OpenFile(i.path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := unchanged(f, i); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func unchanged(f *os.File, i item) error {
	e, _, err := statAt(int(f.Fd()), "")
	if err == nil && !e.untouched(i.entry) {
		err = errChanged
	}
	return err
}

// hash returns the hash of a file of a size.
func hash(f *os.File, size int64) (string, error) {
	h := sha256.New()
	if n, err := io.Copy(h, io.NewSectionReader(f, 0, size)); err != nil || n != size {
		return "", cmp.Or(err, errChanged)
	}
	return string(h.Sum(nil)), nil
}

func objectName(content string) string { return objects + "/" + hex.EncodeToString([]byte(content)) }

// has reports whether a content of a size is kept. A machine that lost power may leave empty files.
func (g *group) has(content string, size int64) bool {
	info, err := g.own.Lstat(objectName(content))
	return err == nil && info.Size() == size
}

// add copies a file to the objects, and returns the hash of the copy.
func (k *keeper) add(from *os.File, size int64) (content string, err error) {
	if k.state.size+space(size) > k.Quota && !k.swept {
		k.makeRoom(space(size))
	}
	if k.state.size+space(size) > k.Quota {
		return "", errQuota
	}
	const part = objects + "/part"
	to, err := k.own.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if errors.Is(err, fs.ErrNotExist) && k.own.Mkdir(objects, 0o700) == nil {
		to, err = k.own.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	}
	if err != nil {
		return "", err
	}
	content, err = copyFile(to, from, size)
	if err = errors.Join(err, to.Close()); err == nil {
		err = k.own.Rename(part, objectName(content))
	}
	if err != nil {
		return "", errors.Join(err, k.own.Remove(part))
	}
	k.state.size += space(size)
	return content, nil
}

// copyFile copies a file of a size to an empty one, and returns the hash of the copy. They share their blocks if the
// file system can do that.
func copyFile(to, from *os.File, size int64) (string, error) {
	if _, err := io.Copy(to, io.LimitReader(from, size)); err != nil {
		return "", err
	}
	return hash(to, size)
}

// makeRoom deletes objects until there is space: the newest of those to which the records of turns refer may stay. It
// makes room for an eighth of the quota at least, so that it is rare.
func (k *keeper) makeRoom(size int64) {
	limit := k.Quota - max(size, k.Quota/8)
	var used usage
	used.addItems(k.old)
	used.addItems(k.now)
	for _, t := range slices.Backward(k.state.known) {
		record, err := k.record(t.id)
		if err != nil {
			k.Log.Warn("cannot read what a turn changed", "folder", k.name, "turn", t.id, "err", err)
		}
		for _, c := range record {
			for _, e := range []entry{c.before, c.after} {
				if used.size+space(e.size) <= limit {
					used.add(e)
				}
			}
		}
	}
	k.state.size = used.size
	err := ignoreMissing(k.sweep(used.refs))
	if err != nil {
		k.Log.Warn("cannot delete old files of /undo", "folder", k.name, "err", err)
	}
	k.swept = err != nil || used.size > limit
}

// space is what a file of a size takes on the disk, at least a block.
func space(size int64) int64 { return (size/block + 1) * block }

const block = 4096

// usage is the contents that are used, and the space that they take.
type usage struct {
	refs map[string]bool
	size int64
}

func (u *usage) add(e entry) {
	if e.kind != file || e.content == "" || u.refs[e.content] {
		return
	}
	if u.refs == nil {
		u.refs = map[string]bool{}
	}
	u.refs[e.content] = true
	u.size += space(e.size)
}

func (u *usage) addItems(items []item) {
	for _, i := range items {
		u.add(i.entry)
	}
}

// sweep deletes the objects without references.
func (g *group) sweep(refs map[string]bool) error {
	return withFolder(g.own, objects, func(dir *os.File) error {
		names, err := dir.Readdirnames(-1)
		for _, name := range names {
			if content, e := hex.DecodeString(name); e != nil || !refs[string(content)] {
				err = errors.Join(err, g.own.Remove(objects+"/"+name))
			}
		}
		return err
	})
}
