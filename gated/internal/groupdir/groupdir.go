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

	"arizuko/pkg/msg"
)

// Dirs are the folders of the groups.
type Dirs struct {
	root string
}

// New returns the folders in root, an absolute path.
func New(root string) Dirs { return Dirs{root} }

// Make makes a group's folder unless it exists, and returns its path. It refuses a
// link in its place.
func (d Dirs) Make(folder string) (path string, err error) {
	if err := msg.ValidFolder(folder); err != nil {
		return "", err
	}
	if err := os.MkdirAll(d.root, 0o700); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(d.root)
	if err != nil {
		return "", err
	}
	defer root.Close()
	name := msg.DirName(folder)
	if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if info, err := root.Lstat(name); err != nil || !info.IsDir() {
		return "", errors.Join(fmt.Errorf("the folder of group %s, %s, is not a directory", folder, filepath.Join(d.root, name)), err)
	}
	return filepath.Join(d.root, name), nil
}
