package dataowner_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"arizuko/pkg/dataowner"
)

// TestMain is also a helper process: it becomes the owner of a folder and prints who it is then.
func TestMain(m *testing.M) {
	if data := os.Getenv("DATAOWNER_TEST_BECOME"); data != "" {
		if err := dataowner.Become(data); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		groups, _ := os.Getgroups()
		fmt.Println(os.Getuid(), os.Geteuid(), os.Getgid(), os.Getegid(), groups, syscall.Setuid(0) != nil)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const uid, gid = 4242, 4243

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root becomes another user: run this test with sudo")
	}
}

// folder is a folder that its owner can open.
func folder(t *testing.T) string {
	t.Helper()
	needRoot(t)
	data := t.TempDir()
	ok(t, os.Chmod(filepath.Dir(data), 0o755), os.Chmod(data, 0o700), os.Chown(data, uid, gid))
	return data
}

func ok(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func become(t *testing.T, data string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "DATAOWNER_TEST_BECOME="+data)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func TestBecome_FolderOfAnotherUser_ProcessIsThatUsersForGood(t *testing.T) {
	data := folder(t)
	if out, err := become(t, data); out != "4242 4242 4243 4243 [4243] true" || err != nil {
		t.Errorf("%s, %v", out, err)
	}
	ok(t, os.Chown(data, uid, 0))
	if out, err := become(t, data); out != "4242 4242 4242 4242 [4242] true" || err != nil {
		t.Errorf("in a folder of root's group: %s, %v", out, err)
	}
	ok(t, os.Chmod(filepath.Dir(data), 0o700))
	if out, err := become(t, data); err == nil || !strings.Contains(out, "who owns "+data+" and cannot open it: ") {
		t.Errorf("an owner without access: %s, %v", out, err)
	}
	ok(t, os.Chown(data, 0, gid))
	for _, own := range []string{data, filepath.Join(data, "none")} {
		if out, err := become(t, own); !strings.HasPrefix(out, "0 0 0 0 ") || err != nil {
			t.Errorf("root's own folder: %s, %v", out, err)
		}
	}
}

// Not parallel: the whole process has another user meanwhile.
func TestDo_FolderOfAnotherUser_RunsAsThatUser(t *testing.T) {
	data := folder(t)
	foreign := filepath.Join(t.TempDir(), "of root")
	ok(t, os.WriteFile(foreign, nil, 0o600))
	failed := errors.New("failed")
	err := dataowner.Do(data, func() error {
		if _, err := os.ReadFile(foreign); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("root's file: %v", err)
		}
		return errors.Join(os.WriteFile(filepath.Join(data, "made"), nil, 0o600), failed)
	})
	if !errors.Is(err, failed) || os.Geteuid() != 0 || os.Getegid() != 0 {
		t.Errorf("%v, as %d:%d afterwards", err, os.Geteuid(), os.Getegid())
	}
	if _, err := os.ReadFile(foreign); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(filepath.Join(data, "made"))
	ok(t, err)
	if st := info.Sys().(*syscall.Stat_t); st.Uid != uid || st.Gid != gid {
		t.Errorf("the file is of %d:%d", st.Uid, st.Gid)
	}
}

// As an instance that root restores into a folder of its home.
func TestDo_OwnerWithoutAccess_RunsAsRootUnlessThereIsALink(t *testing.T) {
	data := folder(t)
	ok(t, os.Chmod(filepath.Dir(data), 0o700))
	as := -1
	ok(t, dataowner.Do(data, func() error { as = os.Geteuid(); return nil }))
	if as != 0 {
		t.Errorf("it ran as %d", as)
	}
	ok(t, os.Symlink("/", filepath.Join(data, "run")), os.Lchown(filepath.Join(data, "run"), uid, gid))
	if err := dataowner.Do(data, func() error { return nil }); !errors.Is(err, dataowner.ErrLink) {
		t.Errorf("with a link: %v", err)
	}
}

func TestRefuseLinks_OnlyThoseOfOthersAreRefused(t *testing.T) {
	data := folder(t)
	link := func(name string, uid int) {
		path := filepath.Join(data, name)
		ok(t, os.Symlink("/", path), os.Lchown(path, uid, uid))
	}
	link("media", 0)
	link("notes", uid)
	ok(t, os.Mkdir(filepath.Join(data, "groups"), 0o700), dataowner.RefuseLinks(data))
	for _, name := range []string{"run", "logs", "secret", "arizuko.db", "arizuko.db-wal"} {
		link(name, uid)
	}
	err := dataowner.RefuseLinks(data)
	if !errors.Is(err, dataowner.ErrLink) || strings.Count(err.Error(), "\n") != 4 || strings.Contains(err.Error(), "media") {
		t.Errorf("got %v", err)
	}
	ok(t, os.Chown(data, 0, 0), dataowner.RefuseLinks(data))
}

func TestOpen_LinksInFolderOfAnotherUser_NotFollowed(t *testing.T) {
	data := folder(t)
	ok(t, os.MkdirAll(filepath.Join(data, "groups", "main"), 0o700), os.Symlink("groups", filepath.Join(data, "inside")),
		os.Symlink("/", filepath.Join(data, "outside")), os.Symlink("main", filepath.Join(data, "groups", "alias")))
	want := func(path string, opens bool) {
		t.Helper()
		for name, open := range map[string]func(data, path string) (*os.Root, error){"Open": dataowner.Open, "Make": dataowner.Make} {
			root, err := open(data, path)
			if (err == nil) != opens || err != nil && !errors.Is(err, dataowner.ErrLink) {
				t.Errorf("%s %s: %v", name, path, err)
			}
			if err == nil {
				root.Close()
			}
		}
	}
	want("groups/main", true)
	for _, link := range []string{"inside", "outside", "inside/main", "groups/alias", "groups/alias/x"} {
		want(link, false)
	}
	made, err := dataowner.Make(data, "logs/acme/eng")
	ok(t, err)
	defer made.Close()
	info, err := made.Stat(".")
	ok(t, err)
	if st := info.Sys().(*syscall.Stat_t); st.Uid != uid || info.Mode().Perm() != 0o700 {
		t.Errorf("a new folder is of %d, mode %s", st.Uid, info.Mode())
	}
	outside := filepath.Join(t.TempDir(), "outside")
	ok(t, os.WriteFile(outside, []byte("of another file"), 0o644), os.Symlink(outside, filepath.Join(made.Name(), "link")))
	if content, err := dataowner.Read(made, "link", 99); err == nil {
		t.Errorf("a link is read: %s", content)
	}
	ok(t, dataowner.Write(data, made, "new", []byte("former")), dataowner.Write(data, made, "new", []byte("content")),
		dataowner.Write(data, made, "link", []byte("in its place")))
	file, err := made.Stat("new")
	ok(t, err)
	if st := file.Sys().(*syscall.Stat_t); st.Uid != uid || file.Mode().Perm() != 0o600 || file.Size() != 7 {
		t.Errorf("a new file is of %d, mode %s, %d bytes", st.Uid, file.Mode(), file.Size())
	}
	for name, want := range map[string]string{"new": "content", "link": "in its"} {
		if content, err := dataowner.Read(made, name, int64(len(want))); string(content) != want || err != nil {
			t.Errorf("%s: %q, %v", name, content, err)
		}
	}
	if content, err := os.ReadFile(outside); string(content) != "of another file" || err != nil {
		t.Errorf("the link was followed: %q, %v", content, err)
	}
	ok(t, os.Chown(data, 0, 0))
	want("inside/main", true)
}
