package groupfiles

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/need"
)

// agentUser is the user that owns the group's folder in these tests.
var agentUser = runtime.User{UID: 59001, GID: 59001}

// groupOf makes a group's folder that belongs to agentUser, and a file of root outside.
func groupOf(t *testing.T) (group, foreign string) {
	t.Helper()
	group, foreign = t.TempDir(), filepath.Join(t.TempDir(), "foreign")
	if err := errors.Join(os.Lchown(group, agentUser.UID, agentUser.GID), os.WriteFile(foreign, []byte("secret"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return group, foreign
}

func wantOwner(t *testing.T, path string, want int) {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil || int(st.Uid) != want || int(st.Gid) != want {
		t.Errorf("%s belongs to %d:%d, want %d, %v", path, st.Uid, st.Gid, want, err)
	}
}

func TestOpenInbox_NewOrEmpty_BelongsToTheAgent(t *testing.T) {
	need.Root(t)
	for _, made := range []bool{false, true} { // by a gated that was killed before it gave it
		group, _ := groupOf(t)
		dir := filepath.Join(group, inbox)
		if made {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			to, err := openInbox(group, agentUser)
			if err != nil {
				t.Fatal(err)
			}
			err = errors.Join(copyOnce(to, "1-1-cat.txt", strings.NewReader("meow"), agentUser), to.Close())
			if b, readErr := os.ReadFile(filepath.Join(dir, "1-1-cat.txt")); err != nil || readErr != nil || string(b) != "meow" {
				t.Errorf("%q, %v, %v", b, err, readErr)
			}
		}
		wantOwner(t, dir, agentUser.UID)
		wantOwner(t, filepath.Join(dir, "1-1-cat.txt"), agentUser.UID)
	}
}

func TestOpenInbox_NotTheAgents_IsRefusedAndKeepsItsOwner(t *testing.T) {
	need.Root(t)
	for name, put := range map[string]func(dir, private, foreign string) error{
		"hard link":      func(dir, _, foreign string) error { return os.Link(foreign, dir) },
		"link":           func(dir, _, _ string) error { return os.Symlink("private", dir) },
		"link outside":   func(dir, _, foreign string) error { return os.Symlink(filepath.Dir(foreign), dir) },
		"folder of root": func(dir, private, _ string) error { return os.Rename(private, dir) },
		"pipe":           func(dir, _, _ string) error { return syscall.Mkfifo(dir, 0o600) },
		"empty folder of a third user": func(dir, _, _ string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Lchown(dir, 59002, 59002))
		},
	} {
		t.Run(name, func(t *testing.T) {
			group, foreign := groupOf(t)
			dir, private := filepath.Join(group, inbox), filepath.Join(group, "private")
			if err := errors.Join(os.Mkdir(private, 0o700), os.WriteFile(filepath.Join(private, "key"), nil, 0o600), put(dir, private, foreign)); err != nil {
				t.Fatal(err)
			}
			var before, after syscall.Stat_t
			if err := syscall.Lstat(dir, &before); err != nil {
				t.Fatal(err)
			}
			if to, err := openInbox(group, agentUser); err == nil {
				_ = to.Close()
				t.Error("it was opened")
			}
			if err := syscall.Lstat(dir, &after); err != nil || after.Uid != before.Uid || after.Ino != before.Ino {
				t.Errorf("it belongs to user %d, before to %d, %v", after.Uid, before.Uid, err)
			}
			wantOwner(t, foreign, 0)
		})
	}
}

// readerFunc is a file that is read while something else happens.
type readerFunc func(b []byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// The agent puts a hard link to a file of root in place of the copy that is written.
func TestCopyOnce_CopyIsReplacedMeanwhile_GivesNoForeignFile(t *testing.T) {
	need.Root(t)
	group, foreign := groupOf(t)
	to, err := openInbox(group, agentUser)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	part := filepath.Join(group, inbox, "1-1-cat.txt.part")
	src := readerFunc(func([]byte) (int, error) {
		if err := errors.Join(os.Remove(part), os.Link(foreign, part)); err != nil {
			t.Error(err)
		}
		return 0, io.EOF
	})
	if err := copyOnce(to, "1-1-cat.txt", src, agentUser); err != nil {
		t.Error(err)
	}
	wantOwner(t, foreign, 0)
}

// Two calls of an agent want one file at a time: neither gets half of it.
func TestTake_TwiceAtOnce_BothGetTheWholeFile(t *testing.T) {
	const size = 8 << 20
	f := newFiles(t, runtime.User{})
	f.do(os.MkdirAll(filepath.Join(f.Data, "media"), 0o700), os.WriteFile(filepath.Join(f.Data, "media/big"), make([]byte, size), 0o600))
	for row := range int64(10) {
		m := &msg.Message{ID: row, Attachments: []msg.Attachment{{Path: "media/big", Name: "big"}}}
		var calls sync.WaitGroup
		start := make(chan struct{})
		for range 4 {
			calls.Go(func() {
				<-start
				taken, err := f.Take("acme", m, 0)
				if err != nil {
					t.Error(err)
					return
				}
				if info, err := os.Stat(f.path(taken)); err != nil || info.Size() != size {
					t.Errorf("%s: %v, %v", taken, info, err)
				}
			})
		}
		close(start)
		calls.Wait()
	}
}

// The file is there, and something is wrong with the group's folder.
func TestTake_InboxIsNoFolder_IsSaid(t *testing.T) {
	m := &msg.Message{ID: 1, Attachments: []msg.Attachment{{Path: "media/cat", Name: "cat"}, {Path: "media/lost", Name: "lost"}}}
	for name, put := range map[string]func(path string) error{
		"a file": func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a link": func(path string) error { return os.Symlink(t.TempDir(), path) },
		"a pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		f := newFiles(t, runtime.User{})
		f.do(os.MkdirAll(filepath.Join(f.Data, "media"), 0o700), os.WriteFile(filepath.Join(f.Data, "media/cat"), []byte("meow"), 0o600), put(f.path("inbox")))
		if _, err := f.Take("acme", m, 0); err == nil || Problem(err) != errNoInbox.Error() {
			t.Errorf("%s: %v: %q", name, err, Problem(err))
		}
		if _, err := f.Take("acme", m, 1); err == nil || Problem(err) != "the file is not there any more" {
			t.Errorf("%s, a lost file: %v: %q", name, err, Problem(err))
		}
	}
}

// Neither ext4 nor tmpfs can share the blocks of two files: the copy is written. It is never a hard link, by
// which an agent could change the file that is stored and sent.
func TestTake_FileSystemWithoutSharedBlocks_CopiesTheFile(t *testing.T) {
	for _, dir := range []string{t.TempDir(), "/dev/shm"} {
		data, err := os.MkdirTemp(dir, "media")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(data) })
		group := filepath.Join(data, "group")
		f := &Files{Data: data, Dir: func(string) (string, runtime.User, error) { return group, runtime.User{}, nil }}
		stored := filepath.Join(data, "media", "big")
		err = errors.Join(os.Mkdir(group, 0o700), os.Mkdir(filepath.Join(data, "media"), 0o700), os.WriteFile(stored, make([]byte, 1<<20), 0o600))
		if err != nil {
			t.Fatal(err)
		}
		taken, err := f.Take("acme", &msg.Message{ID: 1, Attachments: []msg.Attachment{{Path: "media/big", Name: "big"}}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		var before, copied syscall.Stat_t
		if err := errors.Join(syscall.Stat(stored, &before), syscall.Stat(filepath.Join(group, taken), &copied)); err != nil {
			t.Fatal(err)
		}
		if before.Ino == copied.Ino || before.Nlink != 1 || copied.Nlink != 1 || copied.Size != 1<<20 {
			t.Errorf("%s: %+v is not a copy of %+v", dir, copied, before)
		}
	}
}

// A disk that is nearly full gets no second copy.
func TestCopyOnce_NoRoom_WritesNothing(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	src, err := os.CreateTemp("/dev/shm", "huge") // of another file system: their blocks cannot be shared
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(src.Name())
	defer src.Close()
	if err := src.Truncate(1 << 42); err != nil { // sparse, and larger than what is free here
		t.Fatal(err)
	}
	if err := copyOnce(root, "huge", src, runtime.User{}); !errors.Is(err, errNoRoom) {
		t.Errorf("error %v", err)
	}
	if all, err := os.ReadDir(root.Name()); err != nil || len(all) != 0 {
		t.Errorf("left %v, %v", all, err)
	}
}
