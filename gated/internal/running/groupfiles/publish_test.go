package groupfiles

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/disk"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/need"
)

const limit = 1 << 20

// files has a group with a folder.
type files struct {
	*Files
	t   *testing.T
	dir string // the group's folder
}

func newFiles(t *testing.T, user runtime.User) *files {
	t.Helper()
	f := &files{t: t, dir: filepath.Join(t.TempDir(), "acme")}
	f.Files = &Files{Data: t.TempDir(), Dir: func(string) (string, runtime.User, error) { return f.dir, user, nil }}
	f.do(os.Mkdir(f.dir, 0o700), os.Mkdir(filepath.Join(f.dir, "out"), 0o700))
	return f
}

func (f *files) do(all ...error) {
	f.t.Helper()
	if err := errors.Join(all...); err != nil {
		f.t.Fatal(err)
	}
}

func (f *files) path(name string) string { return filepath.Join(f.dir, name) }

func (f *files) write(name, content string) {
	f.t.Helper()
	f.do(os.WriteFile(f.path(name), []byte(content), 0o644))
}

func now() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

// wantNothing checks that the media folder has no file.
func (f *files) wantNothing() {
	f.t.Helper()
	f.do(filepath.WalkDir(f.Data, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			f.t.Errorf("%s was left", name)
		}
		return err
	}))
}

func TestPublish_RegularFile_CopiesItOnce(t *testing.T) {
	f := newFiles(t, runtime.User{})
	f.write("out/report.txt", "all is well")
	first, err := f.Publish("acme", "out/report.txt", "", limit, now())
	f.do(err)
	if first.Name != "report.txt" || first.MIME != "text/plain" || first.Size != 11 || !strings.HasPrefix(first.Path, "media/202611/out-") {
		t.Errorf("%+v", first)
	}
	again, err := f.Publish("acme", f.path("out/report.txt"), "", limit, now().Add(time.Hour)) // as the agent may see it
	f.do(err)
	f.write("out/report.txt", "all is lost")
	other, err := f.Publish("acme", "./out/../out/report.txt", "../a b\n.md", limit, now())
	f.do(err)
	if again.Name != first.Name || other.Name != "_a b_.md" {
		t.Errorf("%+v, %+v", again, other)
	}
	for path, want := range map[string]string{first.Path: "all is well", again.Path: "all is well", other.Path: "all is lost"} {
		info, err := os.Stat(filepath.Join(f.Data, path))
		f.do(err)
		if got, err := os.ReadFile(filepath.Join(f.Data, path)); string(got) != want || err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%q, %v, %v", got, info.Mode(), err)
		}
	}
	left, err := filepath.Glob(filepath.Join(f.Data, "media/202611/*.part"))
	if err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestPublish_Discarded_LeavesTheOthers(t *testing.T) {
	f := newFiles(t, runtime.User{})
	f.write("a", "a")
	first, err := f.Publish("acme", "a", "", limit, now())
	f.do(err)
	second, err := f.Publish("acme", "a", "", limit, now())
	f.do(err, f.Discard(first))
	if _, err := os.Stat(filepath.Join(f.Data, first.Path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the first: %v", err)
	}
	if _, err := os.Stat(filepath.Join(f.Data, second.Path)); err != nil {
		t.Errorf("the second: %v", err)
	}
	f.do(os.WriteFile(filepath.Join(f.Data, "media", "7-0-cat.jpg"), nil, 0o600), os.WriteFile(filepath.Join(f.Data, "out-secret"), nil, 0o600))
	for _, path := range []string{"", "media", "media/7-0-cat.jpg", "out-secret", "media/../out-secret", "media/gone"} {
		if err := f.Discard(msg.Attachment{Path: path}); err == nil {
			t.Errorf("%q was removed", path)
		}
	}
}

func TestPublish_BeyondTheQuota_IsRefusedAndLogged(t *testing.T) {
	f := newFiles(t, runtime.User{})
	var log bytes.Buffer
	f.Usage = &disk.Usage{Folder: filepath.Join(f.Data, "media"), Quota: 100, Now: now}
	f.Log = slog.New(slog.NewTextHandler(&log, nil))
	f.write("a", strings.Repeat("a", 60))
	first, err := f.Publish("acme", "a", "", limit, now())
	f.do(err)
	for range 3 {
		var refusal *Refusal
		if _, err := f.Publish("acme", "a", "", limit, now()); !errors.As(err, &refusal) || !strings.Contains(err.Error(), "no room") {
			t.Errorf("%v", err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(f.Data, "media/202611/*")); len(left) != 1 || err != nil || !strings.Contains(log.String(), "MEDIA_QUOTA") {
		t.Errorf("%v, %v, log: %s", left, err, log.String())
	}
	f.do(f.Discard(first))
	_, err = f.Publish("acme", "a", "", limit, now())
	f.do(err)
}

func TestPublish_TypesOfFiles(t *testing.T) {
	f := newFiles(t, runtime.User{})
	f.write("a.png", "not really")
	f.write("b", "\x89PNG\r\n\x1a\n")
	f.write("c", "plain")
	for name, want := range map[string]string{"a.png": "image/png", "b": "image/png", "c": "text/plain"} {
		if a, err := f.Publish("acme", name, "", limit, now()); a.MIME != want || err != nil {
			t.Errorf("%s: %q, %v", name, a.MIME, err)
		}
	}
}

func TestPublish_NoRegularFileInTheFolder_IsRefused(t *testing.T) {
	f := newFiles(t, runtime.User{})
	secret := filepath.Join(filepath.Dir(f.dir), "secret")
	f.write("out/a.txt", "a")
	f.write("empty", "")
	f.do(os.WriteFile(secret, []byte("secret"), 0o600), os.Symlink("out/a.txt", f.path("link")), os.Symlink("../secret", f.path("away")),
		os.Symlink("out", f.path("linked")), os.Symlink("/proc/self", f.path("proc")), syscall.Mkfifo(f.path("pipe"), 0o600),
		os.Truncate(f.path("out/a.txt"), 1), os.WriteFile(f.path("large"), make([]byte, limit+1), 0o600))
	for path, why := range map[string]string{
		"": "not inside your folder", "../secret": "not inside", "out/../../secret": "not inside", "/etc/passwd": "not inside", "a\x00b": "not inside",
		"link": "is a link", "away": "is a link", "linked/a.txt": "link or no folder", "proc/environ": "link or no folder", "out/a.txt/b": "link or no folder",
		"pipe": "not a regular file", "out": "not a regular file", ".": "not a regular file", "gone": "no file", "empty": "is empty", "large": "1048577 bytes",
		strings.Repeat("x", 300): "cannot be opened",
	} {
		var refusal *Refusal
		if a, err := f.Publish("acme", path, "", limit, now()); !errors.As(err, &refusal) || !strings.Contains(err.Error(), why) {
			t.Errorf("%.20q: %+v, %v, want %q", path, a, err, why)
		}
	}
	f.wantNothing()
}

func TestPublish_Device_IsRefused(t *testing.T) {
	need.Root(t)
	f := newFiles(t, runtime.User{})
	if err := syscall.Mknod(f.path("zero"), syscall.S_IFCHR|0o666, 1<<8|5); err != nil {
		t.Fatalf("make a device: %v: run this test as a root that may", err)
	}
	var refusal *Refusal
	if _, err := f.Publish("acme", "zero", "", limit, now()); !errors.As(err, &refusal) {
		t.Error(err)
	}
}

func TestPublish_HardLinkToAnotherUsersFile_IsRefused(t *testing.T) {
	need.Root(t)
	f := newFiles(t, agentUser)
	secret := filepath.Join(filepath.Dir(f.dir), "secret")
	f.do(os.Lchown(f.dir, agentUser.UID, agentUser.GID), os.WriteFile(secret, []byte("secret"), 0o600), os.Link(secret, f.path("mine")))
	var refusal *Refusal
	if _, err := f.Publish("acme", "mine", "", limit, now()); !errors.As(err, &refusal) {
		t.Error(err)
	}
	f.wantNothing()
}

// Adapters that are not root read what a gated that is root has copied.
func TestPublish_DataFolderOfAnotherUser_CopyIsThatUsers(t *testing.T) {
	need.Root(t)
	f := newFiles(t, runtime.User{})
	f.do(os.Lchown(f.Data, 59003, 59003))
	f.write("a.txt", "a")
	a, err := f.Publish("acme", "a.txt", "", limit, now())
	f.do(err)
	for _, path := range []string{"media", "media/202611", a.Path} {
		wantOwner(t, filepath.Join(f.Data, path), 59003)
	}
}

// The agent puts a link to a secret, a pipe and a folder in place of the file, again and again.
func TestPublish_FileSwappedMeanwhile_NeverPublishesAnythingElse(t *testing.T) {
	f := newFiles(t, runtime.User{})
	content := strings.Repeat("mine", 10_000)
	f.do(os.WriteFile(filepath.Join(filepath.Dir(f.dir), "secret"), []byte("secret"), 0o600))
	f.write("kept", content)
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.RemoveAll(f.path("out"))
			switch i % 4 {
			case 0:
				_ = os.Symlink("..", f.path("out"))
			case 1:
				_ = os.Mkdir(f.path("out"), 0o700)
				_ = os.Symlink("../../secret", f.path("out/secret"))
			case 2:
				_ = os.Mkdir(f.path("out"), 0o700)
				_ = syscall.Mkfifo(f.path("out/secret"), 0o600)
			case 3:
				_ = os.Mkdir(f.path("out"), 0o700)
				_ = os.Link(f.path("kept"), f.path("out/secret"))
			}
		}
	})
	for range 2000 {
		a, err := f.Publish("acme", "out/secret", "", limit, now())
		var refusal *Refusal
		if err != nil && !errors.As(err, &refusal) {
			t.Fatal(err)
		}
		if err == nil {
			if got, err := os.ReadFile(filepath.Join(f.Data, a.Path)); string(got) != content || err != nil {
				t.Fatalf("published %.20q, %v", got, err)
			}
		}
	}
	close(stop)
	swapping.Wait()
}

func TestCopyWhole_FileChangesMeanwhile_IsRefused(t *testing.T) {
	f := newFiles(t, runtime.User{})
	for name, size := range map[string]int64{"truncated": 20, "grown": 5} { // since it was opened
		f.write("a", "ten bytes!")
		src, err := os.Open(f.path("a"))
		f.do(err)
		dst, err := os.Create(f.path("copy"))
		f.do(err)
		var refusal *Refusal
		if err := copyWhole(dst, src, size); !errors.As(err, &refusal) {
			t.Errorf("%s: %v", name, err)
		}
		f.do(src.Close(), dst.Close())
	}
}
