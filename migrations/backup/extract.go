package backup

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"arizuko/pkg/dataowner"
)

// extractor writes an archive into an empty folder. Links are made last: while files are written, no path leads
// through one.
type extractor struct {
	path    string // of the folder
	root    *os.Root
	known   int             // the newest schema that this program knows
	owner   *dataowner.User // of everything that the former data folder's user owned; nil if owners cannot be kept
	adopt   bool            // the folder gets the former one's user
	former  dataowner.User  // who owned the database
	folders []*tar.Header
	links   []*tar.Header
	kept    int // bytes of these two
	*report
}

// begin gets the head, before all else.
func (e *extractor) begin(h Head) error {
	if h.Format != formatVersion {
		return fmt.Errorf("the backup has format %d, this program reads %d: use dashd %s", h.Format, formatVersion,
			h.Version)
	}
	if problem := h.tooNew(e.known); problem != "" {
		return refuse("%s", problem)
	}
	return requireSpace(e.path, h.Database)
}

// tooNew says why a program that knows a schema cannot restore the backup, "" if it can.
func (h *Head) tooNew(known int) string {
	if h.Schema <= known {
		return ""
	}
	return fmt.Sprintf("the backup has schema %d, this program knows %d: restore it with the version that "+
		"made it, %s, or a newer one",
		h.Schema, known, h.Version)
}

func (e *extractor) entry(h *tar.Header, content io.Reader) error {
	name := strings.TrimSuffix(h.Name, "/")
	var err error
	switch h.Typeflag {
	case tar.TypeDir:
		if err = e.keep(&e.folders, h); err == nil {
			err = e.root.Mkdir(name, 0o700)
		}
	case tar.TypeSymlink:
		err = e.keep(&e.links, h)
	case tar.TypeLink:
		err = e.link(h)
	default:
		if name == databaseName {
			e.former = dataowner.User{UID: h.Uid, GID: h.Gid}
			if e.adopt {
				e.owner = &e.former
			}
		}
		err = e.file(h, content)
	}
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: it has %q twice", ErrInvalid, h.Name)
	}
	return err
}

// maxKept bounds the memory for folders and links, in bytes: a million of those that an agent makes.
const maxKept = 256 << 20

// keep keeps the parts of an entry that finish needs.
func (e *extractor) keep(all *[]*tar.Header, h *tar.Header) error {
	const fields = 200 // bytes of a header without its texts
	if e.kept += fields + len(h.Name) + len(h.Linkname); e.kept > maxKept {
		return fmt.Errorf("%w: its folders and links take more than %d MiB of memory", ErrInvalid, maxKept>>20)
	}
	*all = append(*all, &tar.Header{Typeflag: h.Typeflag, Name: h.Name, Linkname: h.Linkname, Mode: h.Mode, Uid: h.Uid,
		Gid: h.Gid, ModTime: h.ModTime})
	return nil
}

func (e *extractor) link(h *tar.Header) error {
	info, err := e.root.Lstat(h.Linkname)
	if err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %q is a link to %q, which is not a file before it", ErrInvalid, h.Name, h.Linkname)
	}
	return e.root.Link(h.Linkname, h.Name)
}

func (e *extractor) file(h *tar.Header, content io.Reader) (err error) {
	f, err := e.root.OpenFile(h.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.Copy(&guard{w: f, folder: e.path}, content); err != nil {
		return err
	}
	if err := e.give(h.Name, h); err != nil {
		return err
	}
	if h.Mode&0o6000 != 0 {
		e.note(&e.notes.Changed, h.Name, "restored without its setuid and setgid bits")
	}
	if err := f.Chmod(modeOf(h)); err != nil {
		return err
	}
	return e.root.Chtimes(h.Name, h.ModTime, h.ModTime)
}

// setOwner decides who gets the files, which only root can give away: the owner of the data folder, or of the
// former one if this is root's and empty, as one is that was just made.
func (e *extractor) setOwner(data *os.Root, empty bool) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := data.Stat(".")
	if err != nil {
		return err
	}
	to := dataowner.Of(info)
	e.owner, e.adopt = &to, empty && to.UID == 0
	return nil
}

// give gives what was made of an entry to its owner, if owners can be kept.
func (e *extractor) give(name string, h *tar.Header) error {
	if e.owner == nil {
		return nil
	}
	uid, gid := h.Uid, h.Gid
	if uid == e.former.UID {
		uid = e.owner.UID
	}
	if gid == e.former.GID {
		gid = e.owner.GID
	}
	return e.root.Lchown(name, uid, gid)
}

// finish makes the links and gives folders their modes, owners and times. The data folder's owner gets the folder of
// the extracted files, to open the database in it.
func (e *extractor) finish() error {
	for _, h := range e.links {
		err := e.root.Symlink(h.Linkname, h.Name)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%w: it has %q twice", ErrInvalid, h.Name)
		}
		if err == nil {
			err = e.give(h.Name, h)
		}
		if err != nil {
			return err
		}
	}
	for _, h := range slices.Backward(e.folders) {
		name := filepath.Clean(h.Name)
		err := errors.Join(e.give(name, h), e.root.Chmod(name, modeOf(h)), e.root.Chtimes(name, h.ModTime, h.ModTime))
		if err != nil {
			return err
		}
	}
	if e.owner == nil || e.adopt { // a folder of root is given away later
		return nil
	}
	return e.root.Lchown(".", e.owner.UID, e.owner.GID)
}

// modeOf is the mode of a file or folder that is restored. Files that only daemons open get the mode that daemons give
// them. Files in a group's folder keep the archive's, without write access for others and without set-user-id and
// set-group-id.
func modeOf(h *tar.Header) fs.FileMode {
	switch {
	case strings.HasPrefix(strings.TrimSuffix(h.Name, "/"), groupsName+"/"):
		return fs.FileMode(h.Mode & 0o755)
	case h.Typeflag == tar.TypeDir:
		return 0o700
	}
	return 0o600
}
