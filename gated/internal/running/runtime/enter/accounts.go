package enter

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// accountName names the user, and its group, where the machine has no name for them.
const accountName = "agent"

// AccountFile is a table of users or groups, see passwd(5) and group(5).
type AccountFile struct{ Path, Content string }

// Accounts returns the machine's tables completed by the user and its group; those that
// have the entry already, or do not exist, are left out. Without an entry ssh, whoami
// and others fail.
func (u User) Accounts(home string) (files []AccountFile, err error) {
	if strings.ContainsAny(home, ":\n") {
		home = "/" // there is no way to write such a path
	}
	for _, f := range []struct {
		path, rest string
		id         int
	}{
		{"/etc/passwd", strconv.Itoa(u.GID) + "::" + home + ":/bin/sh", u.UID},
		{"/etc/group", "", u.GID},
	} {
		table, err := os.ReadFile(f.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if content, added := addAccount(string(table), f.id, f.rest); added {
			files = append(files, AccountFile{f.path, content})
		}
	}
	return files, nil
}

// addAccount adds an entry to a table if that has none for the id. rest are the fields
// after the id.
func addAccount(table string, id int, rest string) (string, bool) {
	name, number := accountName, strconv.Itoa(id)
	for line := range strings.Lines(table) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		if len(fields) > 2 && fields[2] == number {
			return table, false
		}
		if fields[0] == accountName {
			name = accountName + number
		}
	}
	if table != "" && !strings.HasSuffix(table, "\n") {
		table += "\n"
	}
	return table + name + ":x:" + number + ":" + rest + "\n", true
}

// showAccounts mounts the user's account files over the machine's, in the mount
// namespace of its own. dir is an existing folder.
func (u User) showAccounts(home, dir string) (err error) {
	files, err := u.Accounts(home)
	if err != nil || len(files) == 0 {
		return err
	}
	// Something must hold the files: a file system that is detached once they are mounted.
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Unmount(dir, unix.MNT_DETACH)) }()
	for _, f := range files {
		source := filepath.Join(dir, filepath.Base(f.Path))
		if err := os.WriteFile(source, []byte(f.Content), 0o644); err != nil {
			return err
		}
		if err := unix.Mount(source, f.Path, "", unix.MS_BIND, ""); err != nil {
			return &os.PathError{Op: "mount", Path: f.Path, Err: err}
		}
	}
	return nil
}
