package groupfiles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/dataowner"
	"arizuko/pkg/disk"
	"arizuko/pkg/msg"
)

// inbox is the folder of attachments inside a group's folder.
const inbox = "inbox"

// Take copies an attachment of a message, number n from 0, into the group's inbox, and returns
// its path in the group's folder. A copy that is there stays.
func (f *Files) Take(folder string, row *msg.Message, n int) (string, error) {
	to := InboxPath(row, n)
	take := func() (any, error) { return nil, f.take(folder, row.Attachments[n].Path, path.Base(to)) }
	if _, err, _ := f.taking.Do(path.Join(folder, to), take); err != nil {
		return "", err
	}
	return to, nil
}

// InboxPaths replaces the paths of attachments by those of their copies in the group's
// folder, without making one.
func InboxPaths(_ string, rows []*msg.Message) error {
	for _, row := range rows {
		for i := range row.Attachments {
			if a := &row.Attachments[i]; a.Error != "" {
				a.Path = ""
			} else if a.Path != "" {
				a.Path = InboxPath(row, i)
			}
		}
	}
	return nil
}

// InboxPath is the path of the copy of an attachment, number n from 0, in its group's folder.
func InboxPath(row *msg.Message, n int) string {
	return path.Join(inbox, fmt.Sprintf("%d-%d-%s", row.ID, n+1, safeName(&row.Attachments[n])))
}

// take copies <data>/<from>, which must be under media/, into the inbox. It opens
// everything through roots, so no path and no link leads out of them.
func (f *Files) take(folder, from, name string) error {
	src, err := f.openMedia(from)
	if err != nil {
		return err
	}
	defer src.Close()
	group, user, err := f.Dir(folder)
	if err != nil {
		return err
	}
	to, err := openInbox(group, user)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoInbox, err)
	}
	defer to.Close()
	if err := copyOnce(to, name, src, user); err != nil {
		return fmt.Errorf("%w: %w", errNotCopied, err)
	}
	return nil
}

// CopyTo copies <data>/<from>, which must be under media/, to a file of user in a folder, under a name that is not
// there yet.
func (f *Files) CopyTo(folder *os.Root, name, from string, user runtime.User) error {
	src, err := f.openMedia(from)
	if err != nil {
		return err
	}
	defer src.Close()
	return copyOnce(folder, name, src, user)
}

// openMedia opens the file <data>/<from>, which must be under media/.
func (f *Files) openMedia(from string) (*os.File, error) {
	media, err := dataowner.Open(f.Data, mediaFolder)
	if err != nil {
		return nil, err
	}
	defer media.Close()
	rest, ok := strings.CutPrefix(path.Clean(filepath.ToSlash(from)), mediaFolder+"/")
	if !ok {
		return nil, fmt.Errorf("%q is not under media/", from)
	}
	src, err := media.Open(filepath.FromSlash(rest))
	if err != nil {
		return nil, err
	}
	if info, err := src.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%q is not a file", from), err, src.Close())
	}
	return src, nil
}

// openGroup opens a group's folder, which is in the folder groups of the data folder. Of root's it follows no link that
// the data folder's owner has made there.
func openGroup(dir string) (*os.Root, error) {
	groups, name := filepath.Split(dir)
	data, groups := filepath.Split(filepath.Clean(groups))
	return dataowner.Open(data, filepath.Join(groups, name))
}

// openInbox opens the inbox in a group's folder, which it makes unless it exists. The
// agent may put a link, a pipe or a folder of root in its place at any time.
func openInbox(group string, user runtime.User) (*os.Root, error) {
	folder, err := openGroup(group)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	if err := folder.Mkdir(inbox, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	to, err := dataowner.OpenFolder(folder, inbox)
	if err != nil {
		return nil, err
	}
	if err := giveInbox(to, user); err != nil {
		return nil, errors.Join(err, to.Close())
	}
	return to, nil
}

// giveInbox gives an empty inbox of root, such as a new one, to the group's user. It
// returns an error if another one is not that user's.
func giveInbox(inbox *os.Root, user runtime.User) error {
	if user.IsZero() {
		return nil
	}
	dir, err := inbox.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	var owner unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &owner); err != nil {
		return err
	}
	if int(owner.Uid) == user.UID {
		return nil
	}
	if _, err := dir.Readdirnames(1); owner.Uid != 0 || !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s belongs to user %d, not to user %s of the group's agents", inbox.Name(), owner.Uid, user)
	}
	return chown(dir, user)
}

// chown gives an open file to the group's user. It takes no name: the agent may have
// put a hard link to a file of another user there.
func chown(f *os.File, user runtime.User) error {
	if user.IsZero() {
		return nil
	}
	return f.Chown(user.UID, user.GID)
}

// copyOnce copies src to name in the inbox unless that exists, shared on the disk where the file
// system can. A copy, not a link: the agent must not be able to change the stored file.
func copyOnce(root *os.Root, name string, src io.Reader, user runtime.User) error {
	if _, err := root.Lstat(name); err == nil {
		return nil
	}
	part := name + ".part"
	// The agent may have put a pipe or a link there.
	if err := root.RemoveAll(part); err != nil {
		return err
	}
	dst, err := root.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(fill(dst, src), chown(dst, user), dst.Close()); err != nil {
		_ = root.Remove(part) // the next attempt does, too
		return err
	}
	return root.Rename(part, name)
}

// Why the copy of a file that is there failed, as agents and users are to read it.
var (
	errNoRoom  = errors.New("there is no room on the disk for a copy of the file")
	errNoInbox = errors.New("inbox in the group's folder is not a folder of its agents: move away what is there, " +
		"then fetch the file again")
	errNotCopied = errors.New("the file cannot be copied into inbox: gated's log says why")
)

// Problem is why Take failed, as agents and users are to read it.
func Problem(err error) string {
	for _, known := range []error{errNoRoom, errNoInbox, errNotCopied} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "the file is not there any more"
}

// fill writes the content of src to dst, shared on the disk where the file system can.
func fill(dst *os.File, src io.Reader) error {
	if from, ok := src.(*os.File); ok {
		if unix.IoctlFileClone(int(dst.Fd()), int(from.Fd())) == nil {
			return nil
		}
		info, err := from.Stat()
		if err != nil {
			return err
		}
		space, err := disk.Of(fmt.Sprintf("/proc/self/fd/%d", dst.Fd()))
		if err != nil || space.Free < disk.Full+info.Size() {
			return errors.Join(errNoRoom, err)
		}
	}
	_, err := io.Copy(dst, src)
	return err
}

// safeName is an attachment's name as one path element of plain characters.
func safeName(a *msg.Attachment) string {
	name := path.Base(filepath.ToSlash(a.Name))
	if a.Name == "" {
		name = path.Base(a.Path)
	}
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("._-", r):
			return r
		}
		return '_'
	}, name)
	const longest = 80
	return name[max(0, len(name)-longest):] // the end keeps the extension
}
