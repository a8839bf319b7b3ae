package groupdir

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

const (
	// marker is the file that says that the folders lie side by side; no group's folder can
	// have its name. Each line that is no comment names a folder that is still nested.
	marker     = ".flat"
	markerNew  = ".flat.new"
	markerText = "# The groups' folders lie side by side here, with + for /. If this file is missing, gated moves nested ones.\n"
	// asideSuffix marks a folder that was found nested while the group had a flat one.
	asideSuffix = ".nested"
)

// Flatten moves the folders of groups that an earlier version made inside one
// another, once: a marker keeps it from ever taking a folder that an agent made for a
// group's. Nothing may run meanwhile. known returns the folders of all groups, also of
// those that were removed.
//
// A kill at any moment loses nothing: until the marker is written the next start does
// what is left to do, deepest folders first, so that each is found at its former path.
// A folder that cannot be moved fails the runs of its group and of those above it, see
// Make; the next start tries it again.
func (d *Dirs) Flatten(known func() ([]string, error), log *slog.Logger) error {
	root, err := d.open()
	if err != nil {
		return err
	}
	defer root.Close()
	before, done, err := readMarker(root)
	if err != nil {
		return err
	}
	folders := before
	if !done {
		if folders, err = known(); err != nil {
			return err
		}
	}
	for _, folder := range deepestFirst(folders) {
		moved, err := d.moveUnlessHolding(root, folder)
		switch {
		case err != nil:
			log.Error("group folder not moved", "folder", folder, "err", err)
			d.nested[folder] = err
		case moved != "":
			log.Info("group folder moved", "folder", folder, "file", moved)
		}
	}
	var left []string
	for folder := range d.nested {
		left = append(left, folder)
	}
	slices.Sort(left)
	if done && slices.Equal(left, before) {
		return nil
	}
	d.at(failpoint.MovedFolders)
	return writeMarker(root, left)
}

// deepestFirst returns the folders that can be inside another's, the deepest first.
func deepestFirst(folders []string) (nested []string) {
	for _, folder := range folders {
		if msg.ValidFolder(folder) == nil && msg.Parent(folder) != "" {
			nested = append(nested, folder)
		}
	}
	slices.SortFunc(nested, func(a, b string) int {
		return cmp.Or(strings.Count(b, "/")-strings.Count(a, "/"), strings.Compare(a, b))
	})
	return slices.Compact(nested)
}

// moveUnlessHolding moves a nested folder, unless one inside it could not be moved:
// that one would not be found any more.
func (d *Dirs) moveUnlessHolding(root *os.Root, folder string) (name string, err error) {
	for inside := range d.nested {
		if msg.Within(inside, folder) {
			return "", fmt.Errorf("the folder of group %s is in it", inside)
		}
	}
	return d.move(root, folder)
}

// move moves a nested folder and returns its new name, "" if there was none.
func (d *Dirs) move(root *os.Root, folder string) (name string, err error) {
	found, err := isDir(root, folder)
	if err != nil || !found {
		return "", err
	}
	d.at(failpoint.MovingFolder)
	if name, err = freeName(root, folder); err != nil || name == "" {
		return "", err
	}
	if err := rename(root, folder, name); err != nil {
		return "", err
	}
	d.at(failpoint.MovedFolder)
	// A power cut must not leave the folder at neither path, nor bring it back after the marker.
	return name, errors.Join(syncDir(root, "."), syncDir(root, path.Dir(folder)))
}

// rename renames a folder. It needs the right to write in the folder and in the one
// that holds it; an agent may have taken that away, and finds it so afterwards.
func rename(root *os.Root, folder, name string) error {
	err := root.Rename(folder, name)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	holder := path.Dir(folder)
	ofFolder, errFolder := root.Lstat(folder)
	ofHolder, errHolder := root.Lstat(holder)
	if err := errors.Join(errFolder, errHolder); err != nil {
		return err
	}
	const owner = 0o700
	// What this cannot change fails the second attempt.
	_ = root.Chmod(folder, ofFolder.Mode().Perm()|owner)
	_ = root.Chmod(holder, ofHolder.Mode().Perm()|owner)
	if err = root.Rename(folder, name); err != nil {
		name = folder
	}
	return errors.Join(err, root.Chmod(name, ofFolder.Mode().Perm()), root.Chmod(holder, ofHolder.Mode().Perm()))
}

// isDir reports whether a nested path is a folder. It refuses links on the way: an
// agent may have made one that leads to another group's folder.
func isDir(root *os.Root, folder string) (bool, error) {
	for i := range len(folder) + 1 {
		if i < len(folder) && folder[i] != '/' {
			continue
		}
		info, err := root.Lstat(folder[:i])
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return false, nil
		case err != nil:
			return false, err
		case info.Mode().Type() == fs.ModeSymlink:
			return false, fmt.Errorf("%s is a link", folder[:i])
		case !info.IsDir():
			return false, nil
		}
	}
	return true, nil
}

// freeName returns the name for a nested folder, "" if it may stay: an empty one has
// nothing to be moved if the group has a folder. If both have files, the nested one
// gets a name aside, out of the reach of the group above.
func freeName(root *os.Root, folder string) (name string, err error) {
	name = msg.DirName(folder)
	if _, err := root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return name, nil
	} else if err != nil {
		return "", err
	}
	if empty, err := isEmpty(root, folder); err != nil || empty {
		return "", err
	}
	if empty, err := isEmpty(root, name); err != nil || empty {
		return name, errors.Join(err, removeEmpty(root, name, empty))
	}
	name += asideSuffix
	if _, err := root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return "", errors.Join(fmt.Errorf("%s exists", name), err)
	}
	return name, nil
}

func removeEmpty(root *os.Root, name string, empty bool) error {
	if !empty {
		return nil
	}
	return root.Remove(name)
}

// isEmpty reports whether a folder has no files; what is no folder has some.
func isEmpty(root *os.Root, name string) (bool, error) {
	info, err := root.Lstat(name)
	if err != nil || !info.IsDir() {
		return false, err
	}
	dir, err := root.Open(name)
	if err != nil {
		return false, err
	}
	defer dir.Close()
	_, err = dir.ReadDir(1)
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	return false, err
}

// flattened returns why a group's runs cannot start yet, in words for an operator: its
// folder, or one of a group below it, is still nested, or was, beside another.
func (d *Dirs) flattened(root *os.Root, folder string) error {
	name := msg.DirName(folder)
	if _, err := root.Lstat(name + asideSuffix); err == nil {
		return setupError(fmt.Errorf("group %s has two folders, %s and, from an earlier version, %s: put into the first what it needs "+
			"of the second, and remove or rename the second", folder, d.path(name), d.path(name+asideSuffix)))
	}
	for nested, cause := range d.nested {
		if !msg.Within(nested, folder) {
			continue
		}
		if found, err := isDir(root, nested); err == nil && !found || err != nil && nested != folder {
			continue // it was moved by now, or there is only a link
		}
		return setupError(fmt.Errorf("the folder of group %s, %s, has to be %s now and could not be moved: %w: move it by hand",
			nested, d.path(nested), d.path(msg.DirName(nested)), cause))
	}
	return nil
}

// readMarker returns the folders that are still nested, and whether there is a marker.
func readMarker(root *os.Root) (nested []string, done bool, err error) {
	content, err := root.ReadFile(marker)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			nested = append(nested, line)
		}
	}
	return nested, true, err
}

// writeMarker writes the marker so that a power cut leaves all of it or nothing.
func writeMarker(root *os.Root, nested []string) error {
	content := markerText
	for _, folder := range nested {
		content += folder + "\n"
	}
	file, err := root.OpenFile(markerNew, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(content)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := root.Rename(markerNew, marker); err != nil {
		return err
	}
	return syncDir(root, ".")
}

func syncDir(root *os.Root, name string) error {
	dir, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
