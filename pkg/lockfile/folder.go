package lockfile

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Folder holds the locks of a folder, so that no process that uses it runs or starts. The zero value holds none.
type Folder struct{ held map[string]*Lock }

// Take takes the locks with these names, and all others in the folder, unless it holds them already. Locks that it
// took before an error stay held until Close.
func (f *Folder) Take(folder string, names ...string) error {
	others, err := fs.Glob(os.DirFS(folder), "*.lock") // not filepath.Glob: the path may have a * in it
	if err != nil {
		return err
	}
	for _, name := range append(names, others...) {
		if f.held[name] != nil {
			continue
		}
		lock, err := TryLock(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		f.Add(name, lock)
	}
	return nil
}

// Add adds a lock of the folder that the caller has taken. Close releases it.
func (f *Folder) Add(name string, lock *Lock) {
	if f.held == nil {
		f.held = map[string]*Lock{}
	}
	f.held[name] = lock
}

// Close releases the locks.
func (f *Folder) Close() {
	for _, lock := range f.held {
		lock.Close()
	}
}
