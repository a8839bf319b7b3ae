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
			k.baseline.add(i.entry, 1)
		}
		if i.why == "" && i.ctime >= k.racy {
			i.ctime = 0
		}
	}
}

// keepFile returns the hash of a file's content if that is kept, else why not.
func (k *keeper) keepFile(i item) (content, why string) {
	share := k.Quota / 4 * 3 // the rest is for what turns have replaced
	switch {
	case i.size > share:
		return "", tooBig
	case k.diskFull:
		return "", diskFull
	case k.baseline.size+i.size > share || k.swept && k.state.size+i.size > k.Quota:
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
	if k.state.size+size > k.Quota {
		k.makeRoom(size)
	}
	if k.state.size+size > k.Quota {
		return "", errQuota
	}
	const part = objects + "/part"
	to, err := k.own.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
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
	k.state.size += size
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

// makeRoom deletes the objects that nothing refers to, once it has forgotten the oldest turns until one of a size fits.
// It makes room for an eighth of the quota at least, so that it is rare.
func (k *keeper) makeRoom(size int64) {
	if k.swept {
		return
	}
	var used usage
	used.addItems(k.old)
	used.addItems(k.now)
	records := map[int64][]change{}
	for _, t := range k.state.known {
		record, err := k.record(t.id)
		if err != nil {
			k.Log.Warn("cannot read what a turn changed", "folder", k.name, "turn", t.id, "err", err)
		}
		records[t.id] = record
		used.addRecord(record, 1)
	}
	room := max(size, k.Quota/8)
	var oldest []turn
	for _, t := range k.state.known {
		if used.size+room > k.Quota && !slices.Contains(k.state.running, t.id) && t.id != k.restoring {
			used.addRecord(records[t.id], -1)
			oldest = append(oldest, t)
		}
	}
	k.swept = used.size+room > k.Quota
	err := k.forget(oldest)
	if err == nil {
		err = k.sweep(used.refs)
		k.state.size = used.size
	}
	if err != nil {
		k.swept = true
		k.Log.Warn("cannot delete old files of /undo", "folder", k.name, "err", err)
	}
}

// usage counts the references to objects, and the bytes of those that have any.
type usage struct {
	refs map[string]int
	size int64
}

func (u *usage) add(e entry, n int) {
	if e.kind != file || e.content == "" {
		return
	}
	if u.refs == nil {
		u.refs = map[string]int{}
	}
	before := u.refs[e.content]
	u.refs[e.content] = before + n
	if before == 0 || before+n == 0 {
		u.size += int64(n) * e.size
	}
}

func (u *usage) addItems(items []item) {
	for _, i := range items {
		u.add(i.entry, 1)
	}
}

func (u *usage) addRecord(record []change, n int) {
	for _, c := range record {
		u.add(c.before, n)
		u.add(c.after, n)
	}
}

// sweep deletes the objects without references.
func (g *group) sweep(refs map[string]int) error {
	return withFolder(g.own, objects, func(dir *os.File) error {
		names, err := dir.Readdirnames(-1)
		for _, name := range names {
			if content, e := hex.DecodeString(name); e != nil || refs[string(content)] == 0 {
				err = errors.Join(err, g.own.Remove(objects+"/"+name))
			}
		}
		return err
	})
}
