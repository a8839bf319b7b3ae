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
	"syscall"
	"time"

	"arizuko/dashd/internal/rows"
	"arizuko/migrations/dbcopy"
	"arizuko/pkg/dataowner"
	"arizuko/pkg/disk"
	"arizuko/pkg/lockfile"
	"arizuko/pkg/store"
	"arizuko/pkg/store/pg"
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
	folder, err := c.folder()
	if err != nil {
		return s, err
	}
	var lock *lockfile.Lock
	if err := dataowner.Do(c.Data, func() (err error) { lock, err = c.lock(); return err }); err != nil {
		return s, err
	}
	defer lock.Close()
	defer func() { _ = dataowner.Do(c.Data, func() error { return c.note(err) }) }() // it is for the doctor only
	report := newReport(c.Log)
	s.Head = Head{Format: formatVersion, Version: c.Version, Instance: dbcopy.HostPath(c.Data),
		CreatedAt: c.Now().UTC()}
	if err := c.requireCurrent(ctx); err != nil {
		return s, err
	}
	if err := c.measure(ctx, folder, &s.Head); err != nil {
		return s, err
	}
	var copied *os.File
	err = dataowner.Do(c.Data, func() (err error) { copied, err = c.stage(ctx, folder, &s, report); return err })
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

// folder is where the backup is written.
func (c Creation) folder() (string, error) {
	if c.Target == Stdout {
		return filepath.Join(c.Data, runName), nil
	}
	target, err := filepath.Abs(c.Target)
	if err != nil {
		return "", err
	}
	switch _, err := os.Lstat(target); {
	case err == nil:
		return "", fmt.Errorf("%s exists: choose another name, or remove it", c.Target)
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(target))
	if err != nil {
		return "", err
	}
	for _, name := range []string{groupsName, mediaName} {
		inside, err := filepath.EvalSymlinks(filepath.Join(c.Data, name))
		if err != nil {
			continue
		}
		if inside, err = filepath.Abs(inside); err == nil &&
			(folder == inside || strings.HasPrefix(folder, inside+"/")) {
			return "", fmt.Errorf("%s is in %s, which is backed up itself, and which agents can read: "+
				"choose another folder",
				c.Target, inside)
		}
	}
	return folder, nil
}

// requireCurrent refuses a database whose rows were copied to another one: a backup of it would miss the rows stored
// since. It refuses one that is too new for this program, and names the versions of one that is older or newer.
func (c Creation) requireCurrent(ctx context.Context) error {
	if c.Server != "" {
		return nil // its copy refuses
	}
	schema, err := store.ReadSchema(ctx, filepath.Join(c.Data, databaseName))
	if err != nil {
		return nil //nolint:nilerr // the copy reports it
	}
	if schema.Moved != "" {
		return refuse("the database was copied to %s: set ARIZUKO_DB, so that the backup is of that one", schema.Moved)
	}
	switch mismatch := schema.Mismatch(c.Schema); {
	case errors.Is(mismatch, store.ErrSchemaRefused): // nor would this program restore it
		return refuse("%w", mismatch)
	case mismatch != nil:
		fmt.Fprintf(c.Log, "note: %v, after a restore too\n", mismatch)
	}
	if note := schema.Newer(c.Schema); note != "" {
		fmt.Fprintln(c.Log, "note:", note)
	}
	return nil
}

// databaseSize is about how large a copy of the database gets.
func (c Creation) databaseSize(ctx context.Context) (int64, error) {
	if c.Server != "" {
		size, err := pg.Size(ctx, c.Server)
		return size, store.Explain(err)
	}
	info, err := os.Stat(filepath.Join(c.Data, databaseName))
	if err != nil {
		return 0, fmt.Errorf("no database to back up: %w", err)
	}
	bytes := info.Size()
	if log, err := os.Stat(filepath.Join(c.Data, databaseName+"-wal")); err == nil {
		bytes += log.Size() // the copy is at most that larger
	}
	return bytes, nil
}

// measure fills in the sizes, and returns an ErrSpace if the disk may be too small. How well the archive can be
// compressed is not known before.
func (c Creation) measure(ctx context.Context, folder string, h *Head) (err error) {
	if h.Database, err = c.databaseSize(ctx); err != nil {
		return err
	}
	for _, name := range []string{groupsName, mediaName} {
		err := filepath.WalkDir(filepath.Join(c.Data, name), func(_ string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // an estimate: the files are read later
			}
			h.Files++
			if info, err := d.Info(); err == nil && !isMostlyHoles(info) {
				h.FileBytes += max(info.Sys().(*syscall.Stat_t).Blocks*512, info.Size())
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	archive := h.Database + h.FileBytes
	if c.Target == Stdout {
		archive = 0
	}
	return requireSpace(folder, h.Database+archive)
}

// stage copies the database and checks the copy, which has no name any more when stage returns it. The copy is made
// beside the backup. For standard output it is made in the folder run, and where the data folder's owner makes it for
// root.
func (c Creation) stage(ctx context.Context, folder string, s *Summary, r *report) (*os.File, error) {
	name := filepath.Join(folder, filepath.Base(c.Target)+".partial.db")
	if info, err := os.Stat(c.Data); err != nil {
		return nil, err
	} else if c.Target == Stdout || os.Getuid() == 0 && dataowner.Of(info).UID != 0 {
		folder = filepath.Join(c.Data, runName)
		name = filepath.Join(folder, "backup.partial.db")
	}
	defer os.Remove(name)
	if err := c.copyDatabase(ctx, folder, name, r); err != nil {
		return nil, err
	}
	r.progress("database: checking the copy")
	info, err := rows.InspectCopy(ctx, name, false)
	if err != nil {
		return nil, err
	}
	s.Schema, s.Floor, s.Messages = info.Schema, info.Floor, info.Messages
	return os.Open(name)
}

func (c Creation) copyDatabase(ctx context.Context, folder, name string, r *report) error {
	if c.Server != "" {
		_, err := dbcopy.Snapshot(ctx, c.Server, name, dbcopy.Options{Progress: func(p dbcopy.Progress) error {
			r.progress("database: %s", p)
			return requireSpace(folder, 0)
		}})
		if err != nil {
			err = fmt.Errorf("copy %s: %w", store.Name(c.Server), store.Explain(err))
		}
		return err
	}
	return rows.Copy(ctx, filepath.Join(c.Data, databaseName), name, func(bytes int64) error {
		r.progress("database: %s copied", disk.Bytes(bytes))
		// The log of the instance grows as long as the copy is being made.
		return errors.Join(requireSpace(folder, 0), requireSpace(c.Data, 0))
	})
}

// write writes the archive to a name of its own, syncs it and renames it. It returns the size.
func (c Creation) write(ctx context.Context, folder string, database *os.File, s *Summary, r *report) (written int64,
	err error) {
	if c.Target == Stdout {
		out := &guard{w: c.Out}
		err := c.archive(ctx, out, database, s, r)
		return out.written, err
	}
	in, err := c.openFolder(folder)
	if err != nil {
		return 0, err
	}
	defer in.Close()
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
	out := &guard{w: file, folder: folder}
	if err := c.archive(ctx, out, database, s, r); err != nil {
		return 0, err
	}
	if err := errors.Join(file.Chmod(0o600), file.Sync(), file.Close()); err != nil {
		return 0, err
	}
	if err := in.Rename(partial, final); err != nil {
		return 0, err
	}
	return out.written, syncFolder(in)
}

// openFolder opens the folder for the backup; no link leads out of the data folder if it is in that.
func (c Creation) openFolder(folder string) (*os.Root, error) {
	data, err := filepath.EvalSymlinks(c.Data)
	if err == nil {
		data, err = filepath.Abs(data)
	}
	if err != nil {
		return nil, err
	}
	if inside, err := filepath.Rel(data, folder); err == nil && filepath.IsLocal(inside) {
		return dataowner.Open(c.Data, inside)
	}
	return os.OpenRoot(folder)
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

// files writes the secret, the groups' folders and the attachments.
func (c Creation) files(ctx context.Context, w *writer) error {
	root, err := os.OpenRoot(c.Data)
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Lstat(secretName)
	switch {
	case err == nil && info.Mode().IsRegular():
		if err := w.file(ctx, root, secretName, secretName, info); err != nil {
			return err
		}
	case err == nil:
		return fmt.Errorf("%s is not a file", filepath.Join(c.Data, secretName))
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := w.folder(ctx, c.Data, mediaName); err != nil {
		return err
	}
	return w.folder(ctx, c.Data, groupsName)
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

func syncFolder(root *os.Root) error {
	folder, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
