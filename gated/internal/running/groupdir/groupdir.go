// Package groupdir keeps the groups' folders on disk. They lie side by side, each
// under its [msg.DirName]: were one inside another, the agent of the upper group
// could read it, rename it or put its own in its place, whatever is mounted over it.
package groupdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/dataowner"
	"arizuko/pkg/msg"
)

// Dirs are the folders of the groups.
type Dirs struct{ root string }

// marker is the file that says that no folder is inside another's; no group's folder can have its name. An agent may
// make a folder in its own whose path is that of another group.
const marker = ".flat"

// New returns the folders in root, an absolute path: the folder groups of the data folder.
func New(root string) *Dirs { return &Dirs{root: root} }

// CheckFlat fails if the folder of a group is inside another's, as versions before 0.1.0 made them, and says how to
// move it. known are the folders of all groups. It looks once: then a marker says that there is none.
func (d *Dirs) CheckFlat(known []string) error {
	root, err := d.open()
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := root.Lstat(marker); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	slices.SortFunc(known, func(a, b string) int { return strings.Compare(b, a) }) // those inside others first
	var moves []string
	for _, folder := range known {
		name := msg.DirName(folder)
		if _, err := root.Lstat(name); err == nil {
			continue
		}
		if info, err := root.Lstat(folder); err == nil && info.IsDir() {
			moves = append(moves, fmt.Sprintf("mv -T %s %s", d.path(folder), d.path(name)))
		}
	}
	if len(moves) > 0 {
		return setupError(fmt.Errorf("folders of groups are inside one another, as before version 0.1.0; move them: %s",
			strings.Join(moves, " && ")))
	}
	return root.WriteFile(marker, nil, 0o600)
}

// Make makes a group's folder unless it exists, and returns its path. It refuses a
// link in its place. An error that only an operator can fix is a *runtime.SetupError.
func (d *Dirs) Make(folder string) (path string, err error) {
	if err := msg.ValidFolder(folder); err != nil {
		return "", err
	}
	root, err := d.open()
	if err != nil {
		return "", err
	}
	defer root.Close()
	name := msg.DirName(folder)
	if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if info, err := root.Lstat(name); err != nil || !info.IsDir() {
		return "", setupError(errors.Join(fmt.Errorf("the folder of group %s, %s, is not a directory", folder,
			d.path(name)), err))
	}
	return d.path(name), nil
}

// open opens the folder of all groups, and makes it if need be. A gated of root follows no link of the data folder's
// owner.
func (d *Dirs) open() (*os.Root, error) {
	root, err := dataowner.Make(filepath.Dir(d.root), filepath.Base(d.root))
	if errors.Is(err, dataowner.ErrLink) {
		err = setupError(err)
	}
	return root, err
}

func (d *Dirs) path(name string) string { return filepath.Join(d.root, filepath.FromSlash(name)) }

func setupError(err error) error { return &runtime.SetupError{Err: err} }
