package groupfiles

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// Copies are called <copyPrefix><random>-<name>, and <copyPrefix><random><partSuffix> until they are whole.
const (
	copyPrefix = "out-"
	partSuffix = ".part"
)

// part is a file that is being written, under a name of its own.
type part struct {
	*os.File
	name string
}

func newPart(root *os.Root, folder string) (*part, error) {
	name := path.Join(folder, copyPrefix+rand.Text()+partSuffix)
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &part{f, name}, nil
}

// mkdirAll makes a folder with its parents. New ones belong to the owner of the data folder.
func mkdirAll(root *os.Root, folder string) error {
	if parent := path.Dir(folder); parent != "." {
		if err := mkdirAll(root, parent); err != nil {
			return err
		}
	}
	if err := root.Mkdir(folder, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	dir, err := root.Open(folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	return giveLike(root, dir)
}

// giveLike gives a file to the owner of the data folder: a gated that is root writes for adapters that are not.
func giveLike(root *os.Root, f *os.File) error {
	if os.Getuid() != 0 {
		return nil
	}
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return f.Chown(int(owner.Uid), int(owner.Gid))
}
