package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"arizuko/migrations/backup/rows"
	"arizuko/migrations/dbcopy"
	"arizuko/pkg/dataowner"
	"arizuko/pkg/disk"
	"arizuko/pkg/lockfile"
	"arizuko/pkg/store"
)

// Stdout is the target, and the source, that is not a file.
const Stdout = "-"

// Creation is a backup to be made.
type Creation struct {
	Process
	Place
	Target string    // the file, which must not exist, or Stdout
	Out    io.Writer // standard output
}

// Summary describes a backup.
type Summary struct {
	Head
	Manifest
	Messages int64 // in the database
	Size     int64 // of the archive that was written, in bytes
}

func (s Summary) String() string {
	var files, bytes int64
	for name, p := range s.Parts {
		if name == groupsName || name == mediaName {
			files, bytes = files+p.Entries, bytes+p.Bytes
		}
	}
	return fmt.Sprintf("%s: schema %d, %d messages, database %s, %d files and folders with %s",
		s.CreatedAt.UTC().Format(time.RFC3339),
		s.Schema, s.Messages, disk.Bytes(s.Database), files, disk.Bytes(bytes))
}

// Run makes the backup. Nothing has the target's name before all of it is on disk; if Run fails, or ctx ends,
// it leaves nothing. Daemons may run: the database is as of one moment, and files are read after it, so that all
// files that its rows name are there unless they were removed meanwhile.
func (c Creation) Run(ctx context.Context) (s Summary, err error) {
	folder, err := c.openFolder()
	if err != nil {
		return s, err
	}
	defer folder.Close()
	var lock *lockfile.Lock
	if err := dataowner.Do(c.Data, func() (err error) { lock, err = c.lock(); return err }); err != nil {
		return s, err
	}
	defer lock.Close()
	defer func() { _ = dataowner.Do(c.Data, func() error { return c.note(err) }) }() // it is for the doctor only
	report := newReport(c.Log)
	s.Head = Head{Format: formatVersion, Version: c.Version, Instance: dbcopy.HostPath(c.Data),
		CreatedAt: c.Now().UTC()}
	// The copy of the database is beside the backup, unless the data folder's owner makes it for root.
	name := filepath.Join(folder.Name(), filepath.Base(c.Target)+".partial.db")
	_, other, err := dataowner.Other(c.Data)
	if other || c.Target == Stdout {
		name = filepath.Join(c.Data, runName, "backup.partial.db")
	}
	var copied *os.File
	if err == nil {
		err = dataowner.Do(c.Data, func() (err error) { copied, err = c.stage(ctx, name, &s, report); return err })
	}
	if err != nil {
		return s, err
	}
	defer copied.Close()
	s.Size, err = c.write(ctx, folder, copied, &s, report)
	return s, err
}

// Files of run/ whose time is that of the last backup that was made, or failed.
const doneName, failedName = "backup.done", "backup.failed"

// note keeps how a backup has ended.
func (c Creation) note(failed error) error {
	name := doneName
	if failed != nil {
		name = failedName
	}
	file, err := lockfile.Open(filepath.Join(c.Data, runName, name))
	if err != nil {
		return err
	}
	return errors.Join(file.Truncate(0), os.Chtimes(file.Name(), time.Time{}, c.Now()), file.Close())
}

// Last is when the last backup of a data folder was made, and when one last failed; zero for never.
func Last(data string) (done, failed time.Time) {
	at := func(name string) time.Time {
		if info, err := os.Lstat(filepath.Join(data, runName, name)); err == nil {
			return info.ModTime()
		}
		return time.Time{}
	}
	return at(doneName), at(failedName)
}

// lock keeps other backups from the data folder.
func (c Creation) lock() (*lockfile.Lock, error) {
	run, err := makeFolder(c.Data, runName)
	if err != nil {
		return nil, err
	}
	lock, err := lockfile.TryLock(filepath.Join(run, "backup.lock"))
	if errors.Is(err, lockfile.ErrHeld) {
		err = fmt.Errorf("another backup is being made: %w", err)
	}
	return lock, err
}

// openFolder opens the folder for the backup, and the folder run for standard output. No link leads out of the data
// folder if it is in that.
func (c Creation) openFolder() (*os.Root, error) {
	if c.Target == Stdout {
		return dataowner.Make(c.Data, runName)
	}
	switch _, err := os.Lstat(c.Target); {
	case err == nil:
		return nil, refuse("%s exists: choose another name, or remove it", c.Target)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	folder, err := withoutLinks(filepath.Dir(c.Target))
	if err != nil {
		return nil, err
	}
	data, err := withoutLinks(c.Data)
	if err != nil {
		return nil, err
	}
	inside, err := filepath.Rel(data, folder)
	if err != nil || !filepath.IsLocal(inside) {
		return os.OpenRoot(folder)
	}
	if part, _, _ := strings.Cut(inside, "/"); part == groupsName || part == mediaName {
		return nil, fmt.Errorf("%s is in %s, which is backed up itself, and which agents can read: "+
			"choose another folder", c.Target, filepath.Join(data, part))
	}
	return dataowner.Open(c.Data, inside)
}

func withoutLinks(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// stage makes a copy of the database with a name and checks it. The copy has no name any more when stage returns it.
// A database whose rows were copied to another one is refused: a backup of it would miss the rows stored since. So is
// one that is too new for this program, which would not restore it either.
func (c Creation) stage(ctx context.Context, name string, s *Summary, r *report) (*os.File, error) {
	defer os.Remove(name)
	if err := c.copyDatabase(ctx, name, r); err != nil {
		return nil, err
	}
	r.progress("database: checking the copy")
	info, err := rows.InspectCopy(ctx, name, false)
	if err != nil {
		return nil, err
	}
	if info.Moved != "" {
		return nil, refuse("the database was copied to %s: set ARIZUKO_DB, so that the backup is of that one",
			info.Moved)
	}
	switch mismatch := info.Mismatch(c.Schema); {
	case errors.Is(mismatch, store.ErrSchemaRefused): // nor would this program restore it
		return nil, refuse("%w", mismatch)
	case mismatch != nil:
		fmt.Fprintf(c.Log, "note: %v, after a restore too\n", mismatch)
	}
	if note := info.Newer(c.Schema); note != "" {
		fmt.Fprintln(c.Log, "note:", note)
	}
	s.Schema, s.Floor, s.Messages = info.Version, info.Floor, info.Messages
	return os.Open(name)
}

func (c Creation) copyDatabase(ctx context.Context, name string, r *report) error {
	if c.Server != "" {
		_, err := dbcopy.Snapshot(ctx, c.Server, name, dbcopy.Options{Progress: func(p dbcopy.Progress) error {
			r.progress("database: %s", p)
			return requireSpace(filepath.Dir(name), 0)
		}})
		if errors.Is(err, dbcopy.ErrRefused) {
			return refuse("copy %s: %w", store.Name(c.Server), err)
		}
		return store.Explain(err)
	}
	return rows.Copy(ctx, filepath.Join(c.Data, databaseName), name, func(bytes int64) error {
		r.progress("database: %s copied", disk.Bytes(bytes))
		// The log of the instance grows as long as the copy is being made.
		return errors.Join(requireSpace(filepath.Dir(name), 0), requireSpace(c.Data, 0))
	})
}

// write writes the archive to a name of its own, syncs it and renames it. It returns the size.
func (c Creation) write(ctx context.Context, in *os.Root, database *os.File, s *Summary, r *report) (written int64,
	err error) {
	if c.Target == Stdout {
		out := &guard{w: c.Out}
		err := c.archive(ctx, out, database, s, r)
		return out.written, err
	}
	final := filepath.Base(c.Target)
	partial := final + ".partial"
	if err := in.Remove(partial); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a backup that was killed
		return 0, err
	}
	// Not an existing file, which another user of the machine may have open.
	file, err := in.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer in.Remove(partial) // nothing, once it is renamed
	defer file.Close()
	out := &guard{w: file, folder: in.Name()}
	if err := c.archive(ctx, out, database, s, r); err != nil {
		return 0, err
	}
	if err := errors.Join(file.Chmod(0o600), file.Sync(), file.Close()); err != nil {
		return 0, err
	}
	if err := in.Rename(partial, final); err != nil {
		return 0, err
	}
	return out.written, syncAll(in)
}

func (c Creation) archive(ctx context.Context, out io.Writer, database *os.File, s *Summary, r *report) error {
	info, err := database.Stat()
	if err != nil {
		return err
	}
	owned := filepath.Join(c.Data, databaseName)
	if c.Server != "" {
		owned = c.Data
	}
	owner, err := os.Stat(owned)
	if err != nil {
		return err
	}
	s.Database = info.Size()
	packed, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return err
	}
	w := newWriter(packed, r)
	if err := w.json(ctx, headName, s.Head, s.CreatedAt); err != nil {
		return err
	}
	h := header(databaseName, owner) // its owner, or the folder's; the copy has that of this process
	h.Typeflag, h.Mode, h.Size = tar.TypeReg, 0o600, info.Size()
	if err := w.put(ctx, h, database); err != nil {
		return err
	}
	if err := c.files(ctx, w); err != nil {
		return err
	}
	s.Manifest = Manifest{Parts: w.parts.parts(), Notes: r.notes}
	if err := w.json(ctx, manifestName, s.Manifest, s.CreatedAt); err != nil {
		return err
	}
	return errors.Join(w.tar.Close(), packed.Close())
}

// files writes the secret, the attachments and the groups' folders, if they are there. Agents work in these meanwhile:
// files that they remove or change are noted, and nothing that they put in place of a folder leads elsewhere.
func (c Creation) files(ctx context.Context, w *writer) error {
	root, err := os.OpenRoot(c.Data)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range []string{secretName, mediaName, groupsName} {
		info, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		case info.Mode().Type() == fs.ModeSymlink:
			return fmt.Errorf("%s is a symbolic link, which a backup does not follow: bind-mount what it leads to "+
				"there instead", filepath.Join(c.Data, name))
		case name == secretName && !info.Mode().IsRegular(), name != secretName && !info.IsDir():
			return fmt.Errorf("%s is not the file or folder that belongs there", filepath.Join(c.Data, name))
		}
		if err := w.entry(ctx, root, name, name, info, 0); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) json(ctx context.Context, name string, v any, at time.Time) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return w.put(ctx, &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(text)),
		ModTime: at.Truncate(time.Second)},
		bytes.NewReader(text))
}
