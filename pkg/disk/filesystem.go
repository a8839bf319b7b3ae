package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// UnsafeVariable is the environment variable that lets the database be on any file system.
const UnsafeVariable = "ARIZUKO_UNSAFE_FS"

// CarryError says that a file system cannot carry the database.
type CarryError struct {
	Path string
	Kind string // of the file system
}

func (e *CarryError) Error() string {
	return fmt.Sprintf("%s is on %s, which cannot carry the database: its processes share memory and locks there, "+
		"and messages would be lost. %s",
		e.Path, e.Kind, CarryFix)
}

// CarryFix is the remedy for a CarryError.
const CarryFix = "Move the data folder (ARIZUKO_DATA) to a disk of this machine, in Docker Desktop to a " +
	"named volume, or use a server (ARIZUKO_DB). " + UnsafeVariable + "=1 starts anyway, at the risk of the data"

// CheckCarry returns a *CarryError if the write-ahead log of a database at a path is not safe on its file system:
// SQLite needs shared memory between processes, and their locks. If it isn't there yet, the folder above counts.
func CheckCarry(path string) error {
	at, err := filepath.Abs(path)
	var s unix.Statfs_t
	for err == nil {
		err = unix.Statfs(at, &s)
		if !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		at, err = filepath.Dir(at), nil
	}
	if err != nil {
		return nil //nolint:nilerr // opening the database fails, too, and says more
	}
	if kind := unsafeKind(int64(s.Type)); kind != "" { //nolint:unconvert // it is smaller on some machines
		return &CarryError{Path: path, Kind: kind}
	}
	return nil
}

// unsafeKind names a file system, as statfs(2) numbers it, that cannot carry the database; "" is one that can.
func unsafeKind(number int64) string {
	switch uint32(number) { // some are signed on machines of 32 bits
	case unix.V9FS_MAGIC:
		return "9p"
	case unix.FUSE_SUPER_MAGIC:
		return "FUSE"
	case 0x6a656a63:
		return "virtiofs"
	case unix.NFS_SUPER_MAGIC:
		return "NFS"
	case unix.CIFS_SUPER_MAGIC:
		return "CIFS"
	case unix.SMB2_SUPER_MAGIC, unix.SMB_SUPER_MAGIC:
		return "SMB"
	}
	return ""
}
