package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"arizuko/migrations/backup"
	"arizuko/pkg/config"
	"arizuko/pkg/dataowner"
	"arizuko/pkg/disk"
	"arizuko/pkg/facts"
	factrows "arizuko/pkg/facts/rows"
)

// minSecret is the length of a secret that is not guessed, in characters; see docs/operations.md.
const minSecret = 32

// checkFolder checks the data folder: whether anything is missing, and which users may read or write it. It reports
// whether there is one.
func checkFolder(e *examination) bool {
	data := e.Base.Data
	info, err := os.Stat(data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Refuse("data-missing", "the data folder "+data+" does not exist",
			"set ARIZUKO_DATA to the data folder; for a new instance run `migrate up`")
		return false
	case err != nil:
		e.Refuse("data-unreadable", "the data folder cannot be read: "+err.Error(),
			"run this as the user that runs the daemons")
		return false
	case !info.IsDir():
		e.Refuse("data-missing", data+" is not a folder", "set ARIZUKO_DATA to the data folder")
		return false
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		e.Warn("data-mode", fmt.Sprintf("the data folder %s has mode %04o: other users of this machine can "+
			"look into it", data, mode), "chmod 700 "+data)
	}
	if unix.Access(data, unix.W_OK) != nil {
		e.Problem("data-readonly", "this user cannot write the data folder "+data,
			fmt.Sprintf("run the daemons and this as user %d, or chown the folder to their user",
				dataowner.Of(info).UID))
	}
	checkFileSystem(e)
	checkSecretFile(e)
	checkDatabaseFiles(e, dataowner.Of(info).UID)
	for _, line := range e.Base.LinkedFolders() {
		e.Warn("folder-linked", line, "mount the folder that it leads to at this path, as with `mount --bind`")
	}
	checkFiles(e)
	return true
}

// checkFiles checks the backups and the files of messages.
func checkFiles(e *examination) {
	done, failed := backup.Last(e.Base.Data)
	e.Backups(done, failed, e.now)
	if used, err := e.Media.Used(); err == nil { // what cannot be measured is no finding
		e.MediaFull(used, e.Media.Quota)
	}
}

// checkUnsaved finds that no backup was ever made.
func checkUnsaved(ctx context.Context, e *examination) error {
	if done, failed := backup.Last(e.Base.Data); !done.IsZero() || !failed.IsZero() {
		return nil
	}
	began, err := factrows.FirstArrival(ctx, e.st.Reader)
	e.Unsaved(began, e.now)
	return err
}

// checkFileSystem checks whether the file system can carry the database, also where that was overridden.
func checkFileSystem(e *examination) {
	if e.Base.DB != "" {
		return
	}
	no := new(disk.CarryError)
	switch err := e.Carry(e.Base.DBPath()); {
	case !errors.As(err, &no):
	case e.Base.UnsafeFS:
		e.Warn("filesystem",
			fmt.Sprintf("%s is on %s, which cannot carry the database: messages may be lost. %s overrides the refusal",
				no.Path, no.Kind, disk.UnsafeVariable), disk.CarryFix)
	default:
		e.Refuse("filesystem", fmt.Sprintf("%s is on %s, which cannot carry the database: daemons do not start",
			no.Path, no.Kind), disk.CarryFix)
	}
}

func checkSecretFile(e *examination) {
	path := e.Base.SecretPath()
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		e.Problem("secret-mode", fmt.Sprintf("%s has mode %04o: other users of this machine can call the daemons", path,
			info.Mode().Perm()), "chmod 600 "+path)
	}
	// without a database `migrate up` makes both
	if _, err := os.Stat(e.Base.DBPath()); e.secret == "" && (err == nil || e.Base.DB != "") {
		_, problem := e.Base.Secret()
		e.Refuse("secret-missing", problem.Error(),
			"run `migrate up`: it makes the secret; or set ARIZUKO_SECRET for all daemons")
	}
	if n := len(e.secret); n > 0 && n < minSecret {
		f := e.Warn("secret-short", fmt.Sprintf("the secret between the daemons has %d characters only", n),
			fmt.Sprintf("stop all daemons, write at least %d random characters into %s (or ARIZUKO_SECRET), "+
				"and start them", minSecret, path))
		if _, err := e.Base.StrongSecret(); err != nil { // daemons do not start with it
			f.Level, f.Config = facts.Problem, true
		}
	}
}

// checkDatabaseFiles checks the owner and mode of the database. A file that root has made cannot be written by others.
func checkDatabaseFiles(e *examination, user int) {
	if e.Base.DB != "" {
		return
	}
	for _, suffix := range []string{"", "-wal", "-shm", ".writelock"} {
		path := e.Base.DBPath() + suffix
		if link, err := os.Lstat(path); err == nil && suffix != "" && link.Mode()&fs.ModeSymlink != 0 {
			e.Problem("database-link", path+" is a symbolic link: no daemon can open it",
				"stop all daemons, and remove the link: they make the file")
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			continue // the daemons make all but the first
		}
		if dataowner.Of(info).UID != user {
			e.Problem("database-owner", fmt.Sprintf("%s belongs to user %d, the data folder to user %d", path,
				dataowner.Of(info).UID, user), fmt.Sprintf("chown %d %s", user, path))
		}
		if info.Mode().Perm()&0o077 != 0 && suffix == "" {
			e.Warn("database-mode", fmt.Sprintf("%s has mode %04o: other users of this machine may read all messages",
				path, info.Mode().Perm()), "chmod 600 "+path)
		}
	}
}

// socketProblem says why pokes do not reach a daemon that runs, "" if they do. With a server they go over that.
func socketProblem(ctx context.Context, base config.Base, name string) string {
	if base.DB != "" {
		return ""
	}
	path := filepath.Join(base.RunDir(), name+".sock")
	conn, err := new(net.Dialer).DialContext(ctx, "unixgram", path)
	switch {
	case err == nil:
		_ = conn.Close() // nothing was sent
	case errors.Is(err, fs.ErrNotExist):
		return "there is no " + path
	case errors.Is(err, unix.ECONNREFUSED):
		return "the socket " + path + " belongs to a process that has ended"
	}
	return ""
}
