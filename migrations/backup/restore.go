package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"arizuko/migrations/backup/rows"

	"golang.org/x/sys/unix"

	"arizuko/pkg/daemon"
	"arizuko/pkg/dataowner"
	"arizuko/pkg/lockfile"
)

// Names in the data folder during a restore, and after one that replaced an instance.
const (
	runName       = "run"
	restoringName = "restoring" // everything that belongs to the restore; migrate does not run while it is there
	newName       = "new"       // in it: the extracted files
	// in it, once all of that is checked and on disk: the replacement, which may have begun
	readyName   = "ready.json"
	asidePrefix = "before-restore-"
)

// Restoration is a data folder to be made from a backup.
type Restoration struct {
	Process
	Data       string // the data folder, which is made unless it exists
	Source     string // the file, or Stdout for In
	Force      bool   // replaces an instance, which is moved aside
	CancelOpen bool   // cancels turns and messages that were under way when the backup was made
}

// Restored is the result of a Restoration.
type Restored struct {
	Summary
	Aside   string // where the former content of the data folder is, "" if there was none
	Resumed bool   // an earlier restore, which had checked everything, was completed; Source was not read
}

// Run restores. Until everything is extracted and checked, the data folder stays as it is. Killed at any moment, it
// leaves the folder as it was, or one without a database whose folder "restoring" says so; Run then completes
// it, or begins again. It returns a *lockfile.HeldError if a daemon runs with the data folder.
func (r Restoration) Run(ctx context.Context) (done Restored, err error) {
	from, err := open(r.Source, r.In)
	if err != nil {
		return done, err
	}
	defer from.Close()
	if err := os.MkdirAll(r.Data, 0o700); err != nil {
		return done, err
	}
	root, err := os.OpenRoot(r.Data)
	if err != nil {
		return done, err
	}
	defer root.Close()
	var daemons lockfile.Folder
	defer daemons.Close()
	var replacement *replacement
	err = dataowner.Do(r.Data, func() (err error) {
		if err := lockAll(r.Data, &daemons); err != nil {
			return err
		}
		replacement, err = readReplacement(root)
		return err
	})
	if err != nil {
		return done, err
	}
	done.Resumed = replacement != nil
	if replacement == nil {
		if replacement, err = r.extract(ctx, root, from); err != nil {
			return done, errors.Join(err, removeAll(root, restoringName))
		}
	}
	done.Summary = replacement.Summary
	done.Aside, err = replacement.apply(root)
	return done, err
}

// lockAll takes the locks of all daemons, so that none runs or starts meanwhile.
func lockAll(data string, held *lockfile.Folder) error {
	run, err := makeFolder(data, runName)
	if err != nil {
		return err
	}
	var names []string
	for _, name := range append(daemon.Suite(), "migrate", "backup") {
		names = append(names, name+".lock")
	}
	if err = held.Take(run, names...); errors.Is(err, lockfile.ErrHeld) {
		err = fmt.Errorf("the data folder is in use, stop all daemons first: %w", err)
	}
	return err
}

// makeFolder makes a folder of the data folder unless it exists, and returns its path.
func makeFolder(data, name string) (string, error) {
	folder, err := dataowner.Make(data, name)
	if err != nil {
		return "", err
	}
	return folder.Name(), folder.Close()
}

// extract makes the folder "restoring" and extracts the archive into it. If it fails, the caller removes that.
func (r Restoration) extract(ctx context.Context, root *os.Root, from io.Reader) (*replacement, error) {
	old, err := managed(root)
	if err != nil {
		return nil, err
	}
	if len(old) > 0 && !r.Force {
		return nil, refuse("%s holds an instance (%s): choose an empty or new folder, or --force, which moves it aside",
			r.Data, strings.Join(old, ", "))
	}
	if err := removeAll(root, restoringName); err != nil { // of a restore that was killed before it was ready
		return nil, err
	}
	work, err := dataowner.Make(r.Data, restoringName)
	if err != nil {
		return nil, err
	}
	defer work.Close()
	err = errors.Join(dataowner.Write(r.Data, work, "README", []byte(unfinished)), work.Mkdir(newName, 0o700))
	if err != nil {
		return nil, err
	}
	e := &extractor{path: filepath.Join(r.Data, restoringName, newName), known: r.Schema, report: newReport(r.Log)}
	if e.root, err = dataowner.OpenFolder(work, newName); err != nil {
		return nil, err
	}
	defer e.root.Close()
	if err := e.setOwner(root, len(old) == 0); err != nil {
		return nil, err
	}
	s, err := read(ctx, from, e, e.entry)
	if err != nil {
		return nil, err
	}
	if err := r.complete(ctx, root, e, &s); err != nil {
		return nil, err
	}
	p := &replacement{Summary: s, Aside: asideName(root, asidePrefix+r.Now().UTC().Format("20060102T150405Z"))}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	// From here on the replacement is carried out, whatever happens.
	if err := dataowner.Write(r.Data, work, readyName, text); err != nil {
		return nil, err
	}
	return p, syncAll(root)
}

// asideName returns a name that nothing has: two restores may be of one second.
func asideName(root *os.Root, first string) string {
	name := first
	for n := 2; ; n++ {
		if _, err := root.Lstat(name); err != nil {
			return name
		}
		name = fmt.Sprintf("%s-%d", first, n)
	}
}

const unfinished = `A restore of a backup is under way here, or was interrupted: this data folder is not whole.
Run "dashd restore" again: it completes the restore, or begins it again.
To do without it, remove this folder, if arizuko.db is still beside it.
`

// complete checks the extracted database, prepares it and puts everything on disk.
func (r Restoration) complete(ctx context.Context, root *os.Root, e *extractor, s *Summary) error {
	e.progress("database: checking")
	if r.CancelOpen && s.Schema != r.Schema {
		return refuse("--cancel-open needs the version that made the backup, %s: restore with that, then upgrade",
			s.Version)
	}
	if err := e.finish(); err != nil {
		return err
	}
	// SQLite opens files by their paths.
	err := dataowner.Do(r.Data, func() error {
		path := filepath.Join(e.path, databaseName)
		if err := checkDatabase(ctx, path, s); err != nil {
			return err
		}
		return rows.PrepareRestored(ctx, path, r.CancelOpen, r.Now().UnixMilli())
	})
	if err != nil {
		return err
	}
	if e.adopt {
		if err := giveAway(root, *e.owner); err != nil {
			return err
		}
	}
	return syncAll(root)
}

// giveAway gives a data folder of root, with everything a restore has made in it so far, to the user of the former
// instance.
func giveAway(root *os.Root, to dataowner.User) error {
	locks, err := fs.Glob(root.FS(), runName+"/*.lock")
	if err != nil {
		return err
	}
	for _, name := range append(locks, runName, restoringName, filepath.Join(restoringName, newName), ".") {
		if err := root.Lchown(name, to.UID, to.GID); err != nil {
			return err
		}
	}
	return nil
}

// syncAll puts a whole file system on disk.
func syncAll(root *os.Root) error {
	f, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}

// removeAll removes a folder also if folders in it must not be written.
func removeAll(root *os.Root, name string) error {
	if root.RemoveAll(name) == nil {
		return nil
	}
	err := fs.WalkDir(root.FS(), name, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return root.Chmod(path, 0o700)
		}
		return nil // removing it returns the error
	})
	return errors.Join(err, root.RemoveAll(name))
}

// managed lists the names that a restore replaces in the data folder, without empty folders. It refuses a folder that
// is a mount, which cannot be renamed.
func managed(root *os.Root) (names []string, err error) {
	whole, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	all, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	for _, entry := range all {
		switch name := entry.Name(); {
		case name == databaseName+".writelock":
		case strings.HasPrefix(name, databaseName), name == secretName:
			names = append(names, name)
		case name == groupsName, name == mediaName, name == "logs", name == "undo":
			info, err := entry.Info()
			if err != nil {
				return nil, err
			}
			if inodeOf(info).dev != inodeOf(whole).dev {
				return nil, refuse("%s is a mount of its own: restore into another folder, and copy %[1]s/ from there",
					name)
			}
			inside, err := fs.ReadDir(root.FS(), name)
			if err != nil {
				return nil, err
			}
			if len(inside) > 0 {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// replacement is ready.json.
type replacement struct {
	Summary Summary
	Aside   string // the folder for everything that is replaced
}

// readReplacement returns that of an earlier restore, or nil if none was ready.
func readReplacement(root *os.Root) (*replacement, error) {
	text, err := root.ReadFile(filepath.Join(restoringName, readyName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p := new(replacement)
	if err := json.Unmarshal(text, p); err != nil || !validName(p.Aside) || strings.Contains(p.Aside, "/") {
		return nil, refuse("%s/%s is damaged: remove the folder %[1]s, and restore again", restoringName, readyName)
	}
	return p, nil
}

// apply moves the old files aside and the new ones into their places, the database last. It continues where it was
// interrupted. It returns where the old content is, "" if there was none.
func (p *replacement) apply(root *os.Root) (aside string, err error) {
	if err := p.moveAside(root); err != nil {
		return "", err
	}
	if err := syncAll(root); err != nil {
		return "", err
	}
	for _, name := range []string{secretName, mediaName, groupsName, databaseName} {
		if _, err := root.Lstat(extracted(name)); errors.Is(err, fs.ErrNotExist) {
			continue // not in the backup, or in its place already
		}
		// An empty folder was not moved aside, and a rename does not replace one.
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if err := root.Rename(extracted(name), name); err != nil {
			return "", err
		}
	}
	if err := syncAll(root); err != nil {
		return "", err
	}
	if err := errors.Join(removeAll(root, restoringName), syncAll(root)); err != nil {
		return "", err
	}
	if _, err := root.Lstat(p.Aside); errors.Is(err, fs.ErrNotExist) {
		return "", nil // nothing was moved there
	}
	return filepath.Join(root.Name(), p.Aside), nil
}

// extracted is where a restore extracts a file or folder of the data folder.
func extracted(name string) string { return filepath.Join(restoringName, newName, name) }

// moveAside moves everything that a restore replaces. A name of the backup that is not among the extracted files any
// more is in its place already: it is new.
func (p *replacement) moveAside(root *os.Root) error {
	names, err := managed(root)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		_, restored := p.Summary.Parts[name]
		_, err := root.Lstat(extracted(name))
		return restored && errors.Is(err, fs.ErrNotExist)
	})
	if len(names) == 0 {
		return nil
	}
	if _, err := makeFolder(root.Name(), p.Aside); err != nil {
		return err
	}
	for _, name := range names {
		if err := root.Rename(name, filepath.Join(p.Aside, name)); err != nil {
			return err
		}
	}
	return nil
}
