package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"arizuko/pkg/dataowner"
)

// tempDir is the folder of a run's temporary files. Its name follows from the run
// alone, so that the next gated finds it.
type tempDir struct {
	parent string
	runID  int64
}

// runPrefix begins the names of runs' folders and control groups.
const runPrefix = "run-"

func runName(runID int64) string { return runPrefix + strconv.FormatInt(runID, 10) }

func (d tempDir) name() string { return runName(d.runID) }
func (d tempDir) path() string { return filepath.Join(d.parent, d.name()) }

func (d tempDir) make(u User) error {
	if err := d.remove(); err != nil {
		return err
	}
	parent, err := OpenTemp(d.parent)
	if err != nil {
		return err
	}
	defer parent.Close()
	if err := parent.Mkdir(d.name(), 0o700); err != nil || u.IsZero() {
		return err
	}
	if err := parent.Lchown(d.name(), u.UID, u.GID); err != nil {
		return errors.Join(err, parent.Remove(d.name()))
	}
	return nil
}

// OpenTemp opens a folder in the folder run of the data folder, and makes it if there is none. A gated of root follows
// no link there that the data folder's owner has made.
func OpenTemp(path string) (*os.Root, error) {
	data, in := splitTemp(path)
	return dataowner.Make(data, in)
}

// splitTemp splits data/run/NAME behind the data folder.
func splitTemp(path string) (data, in string) {
	run, name := filepath.Split(path)
	data, run = filepath.Split(filepath.Clean(run))
	return data, filepath.Join(run, name)
}

// remove returns no error if there is nothing to remove.
func (d tempDir) remove() error {
	if err := RemoveFolder(d.parent, d.name()); err != nil {
		return fmt.Errorf("remove temporary files of run %d: %w", d.runID, err)
	}
	return nil
}

// RemoveFolder removes a folder that programs have written to. It returns no error if there is nothing to remove.
func RemoveFolder(parent, name string) error {
	root, err := dataowner.Open(splitTemp(parent))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.RemoveAll(name); err == nil {
		return nil
	}
	// Programs make folders that they cannot write themselves, such as Go's module
	// cache. The root keeps links from leading out.
	_ = fs.WalkDir(root.FS(), name, func(name string, entry fs.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			_ = root.Chmod(name, 0o700)
		}
		return nil
	})
	return root.RemoveAll(name)
}

// TempOf is the folder of a run's temporary files, "" if the runtime has none on this machine's disk.
func TempOf(rt Runtime, runID int64) string {
	switch rt := rt.(type) {
	case Process:
		return tempDir{rt.Temp, runID}.path()
	case Sandbox:
		return tempDir{rt.Temp, runID}.path()
	}
	return ""
}

// starter starts a program in the place of the agent of a spec, with a folder for its temporary files. cleanup is
// called when nothing of the run is left.
type starter func(ctx context.Context, spec Spec, argv []string, temp string, cleanup func()) (*Proc, error)

// use starts the command of a run with the folder, which ends with the run. A failure to remove it does not concern the
// turn: the folder stays for an operator to remove.
func (d tempDir) use(ctx context.Context, spec Spec, start starter) (*Proc, error) {
	if spec.Command == "" {
		return nil, errNoCommand
	}
	if err := d.make(spec.User); err != nil {
		return nil, typed(err)
	}
	argv := []string{shell, "-c", spec.Command}
	p, err := start(ctx, spec, argv, d.path(), func() { _ = d.remove() })
	if err != nil {
		return nil, errors.Join(typed(err), d.remove())
	}
	return p, nil
}
