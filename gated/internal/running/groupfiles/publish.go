package groupfiles

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/pkg/dataowner"
	"arizuko/pkg/disk"
	"arizuko/pkg/msg"
)

// Refusal is an error about the file that an agent names. Its text is for the agent.
type Refusal struct{ text string }

func (r *Refusal) Error() string { return r.text }

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// Publish copies a file of a group's folder into the media folder, and returns it as an attachment
// named name, "" for the file's own name. limit bounds its size, in bytes. The copy is sent,
// however often that is tried. Each call makes a copy of its own: a caller that sends none discards it. An error
// about the file is a *Refusal: it must be a regular file of 1 byte or more, and no part of its path may be a link.
func (f *Files) Publish(folder, from, name string, limit int64, now time.Time) (a msg.Attachment, err error) {
	dir, _, err := f.Dir(folder)
	if err != nil {
		return a, err
	}
	src, size, err := openBeneath(dir, from)
	if err != nil {
		return a, err
	}
	defer src.Close()
	if size > limit {
		return a, refuse("%.200q has %d bytes, and a file that is sent here may have %d at most: make it smaller, "+
			"or send it in parts", from, size, limit)
	}
	return f.publish(cmp.Or(name, path.Base(filepath.ToSlash(from))), size, now,
		func(to *os.File) error { return copyWhole(to, src, size) })
}

// PublishText stores a text in the media folder, and returns it as an attachment named name. It returns a
// *Refusal if there is no room for it. A caller that does not send it discards it.
func (f *Files) PublishText(name, text string, now time.Time) (msg.Attachment, error) {
	return f.publish(name, int64(len(text)), now, func(to *os.File) error {
		_, err := to.WriteString(text)
		return err
	})
}

// publish makes a file of a size in the media folder, for which there is room.
func (f *Files) publish(name string, size int64, now time.Time, write func(to *os.File) error) (a msg.Attachment,
	err error) {
	if space, err := disk.Of(f.Data); err != nil || space.Free < disk.Full+size {
		return a, errors.Join(refuse("there is no room on the disk for a copy of the file: "+
			"go on without it, and say so"),
			err)
	}
	written, err := f.reserve(size)
	if err != nil {
		return a, err
	}
	a = msg.Attachment{Name: msg.FileName(name), Size: size}
	if a.Path, a.MIME, err = f.store(write, &a, now); err != nil {
		written(0)
		return msg.Attachment{}, err
	}
	written(size)
	return a, nil
}

// reserve takes room in the media folder, which the caller gives back with the number of bytes written.
func (f *Files) reserve(size int64) (written func(n int64), err error) {
	if f.Usage == nil {
		return func(int64) {}, nil
	}
	ok, err := f.Usage.Reserve(size)
	if err == nil && !ok {
		f.Log.Warn("file not copied: the media folder is full (MEDIA_QUOTA)", "bytes", size)
		err = refuse("there is no room for files here just now: go on without it, and say so")
	}
	return func(n int64) { f.Usage.Release(size, n) }, err
}

// Discard removes a copy that Publish has made, and that no message names.
func (f *Files) Discard(a msg.Attachment) error {
	root, err := dataowner.Open(f.Data, mediaFolder)
	if err != nil {
		return err
	}
	defer root.Close()
	name, ok := strings.CutPrefix(a.Path, mediaFolder+"/")
	if !ok || !strings.HasPrefix(path.Base(name), copyPrefix) {
		return fmt.Errorf("%q is no copy of a file that is sent", a.Path)
	}
	if err := root.Remove(filepath.FromSlash(name)); err != nil {
		return err
	}
	if f.Usage != nil {
		f.Usage.Release(0, -a.Size)
	}
	return nil
}

// Copies are called <copyPrefix><random>-<name>, and <copyPrefix><random><partSuffix> until they are whole.
const (
	copyPrefix = "out-"
	partSuffix = ".part"
)

// store makes a file in the media folder, which belongs to the owner of the data folder: a gated that is root writes
// for adapters that are not. It returns its path in the data folder, and its type.
func (f *Files) store(write func(to *os.File) error, a *msg.Attachment, now time.Time) (stored, kind string,
	err error) {
	folder := path.Join(mediaFolder, now.UTC().Format("200601"))
	root, err := dataowner.Make(f.Data, folder)
	if err != nil {
		return "", "", err
	}
	defer root.Close()
	name := copyPrefix + rand.Text()
	part, err := root.OpenFile(name+partSuffix, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return "", "", err
	}
	defer root.Remove(name + partSuffix) // after a rename there is none
	defer part.Close()
	if err := write(part); err != nil {
		return "", "", err
	}
	if kind, err = typeOf(part, a.Name); err != nil {
		return "", "", err
	}
	owner, other, err := dataowner.Other(f.Data)
	if other {
		err = part.Chown(owner.UID, owner.GID)
	}
	if err := errors.Join(err, part.Sync()); err != nil {
		return "", "", err
	}
	stored = path.Join(folder, name+"-"+safeName(a))
	return stored, kind, root.Rename(name+partSuffix, path.Base(stored))
}

// openBeneath opens a regular file below a folder for reading, and returns its size. No component of the path may be a
// link: unlike os.Root it refuses those that stay inside, too. It opens nothing but a regular file, not even for a
// moment: devices and pipes act when they are opened.
func openBeneath(dir, from string) (file *os.File, size int64, err error) {
	from = strings.TrimPrefix(from, dir+"/")
	clean := filepath.Clean(filepath.FromSlash(from))
	if from == "" || !filepath.IsLocal(clean) || strings.ContainsRune(from, 0) {
		return nil, 0, refuse("path %.200q is not inside your folder: give a path relative to it, "+
			"such as out/report.pdf",
			from)
	}
	group, err := openGroup(dir)
	if err != nil {
		return nil, 0, err
	}
	defer group.Close()
	folder, err := dataowner.OpenFolder(group, filepath.Dir(clean))
	if err != nil {
		return nil, 0, openRefusal(from, err)
	}
	defer folder.Close()
	at, err := folder.OpenFile(filepath.Base(clean), unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, 0, openRefusal(from, err)
	}
	defer at.Close()
	info, err := at.Stat()
	groupInfo, groupErr := group.Stat(".")
	if err := errors.Join(err, groupErr); err != nil {
		return nil, 0, err
	}
	st, groupOwner := info.Sys().(*syscall.Stat_t), groupInfo.Sys().(*syscall.Stat_t).Uid
	switch {
	case info.Mode().Type() == fs.ModeSymlink:
		return nil, 0, refuse("%.200q is a link: copy the file itself into your folder, and send the copy", from)
	case !info.Mode().IsRegular():
		return nil, 0, refuse("%.200q is not a regular file: name a file, and pack a folder first", from)
	case st.Nlink > 1 && st.Uid != groupOwner: // a hard link gives another user's file a name there
		return nil, 0, refuse("%.200q has another name elsewhere and another owner: send a copy of it", from)
	case info.Size() == 0:
		return nil, 0, refuse("%.200q is empty: write it first", from)
	}
	// The descriptor of O_PATH names this very file, whatever is put in its place meanwhile.
	if file, err = os.Open(fmt.Sprintf("/proc/self/fd/%d", at.Fd())); err != nil {
		return nil, 0, refuse("%.200q cannot be read: %v", from, errors.Unwrap(err))
	}
	return file, info.Size(), nil
}

func openRefusal(from string, err error) error {
	switch {
	case errors.Is(err, unix.ENOENT):
		return refuse("there is no file %.200q in your folder: check the name, which is relative to the folder", from)
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, dataowner.ErrLink):
		return refuse("a part of %.200q is a link or no folder: send a file that is really there", from)
	}
	return refuse("%.200q cannot be opened: %v", from, err)
}

// copyWhole copies a file that has a size, shared on the disk where the file system can. It returns a *Refusal if the
// file is written meanwhile.
func copyWhole(to, from *os.File, size int64) error {
	before, err := from.Stat()
	if err == nil && unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) != nil {
		_, err = io.Copy(to, io.LimitReader(from, size+1))
	}
	after, afterErr := from.Stat()
	copied, copiedErr := to.Stat()
	if err := errors.Join(err, afterErr, copiedErr); err != nil {
		return err
	}
	if copied.Size() != size || after.Size() != size || !after.ModTime().Equal(before.ModTime()) {
		return refuse("the file was written while it was copied: finish writing it, then send it")
	}
	return nil
}

// typeOf returns the type of a file that is sent under a name.
func typeOf(f *os.File, name string) (string, error) {
	head := make([]byte, 512)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	kind, _, _ := strings.Cut(cmp.Or(mime.TypeByExtension(path.Ext(name)), http.DetectContentType(head[:n])), ";")
	return kind, nil
}
