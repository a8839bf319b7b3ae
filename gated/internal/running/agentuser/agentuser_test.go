package agentuser

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/testkit/need"
)

// newUsers returns users on a machine that knows none, with a data folder of root, and
// their log.
func newUsers(fixed runtime.User) (*Users, *bytes.Buffer) {
	log := &bytes.Buffer{}
	u := New("/", fixed, slog.New(slog.NewTextHandler(log, nil)))
	u.known = func(int) bool { return false }
	return u, log
}

// mkdir makes a folder in groups.
func mkdir(t *testing.T, groups, name string, uid int) string {
	t.Helper()
	dir := filepath.Join(groups, name)
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Lchown(dir, uid, uid)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func claim(t *testing.T, u *Users, dir string) runtime.User {
	t.Helper()
	user, err := u.Claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	return user
}

// owners are the owners of a folder and its content, links not followed.
func owners(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		err = errors.Join(err, unix.Lstat(path, &st))
		all[strings.TrimPrefix(strings.TrimPrefix(path, dir), "/")] = fmt.Sprintf("%d:%d", st.Uid, st.Gid)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func number(id int) runtime.User { return runtime.User{UID: id, GID: id} }

func TestClaim_NumberPerGroup_KeptByTheFolder(t *testing.T) {
	need.Root(t)
	groups := t.TempDir()
	u, _ := newUsers(runtime.User{})
	a, b := mkdir(t, groups, "a", 0), mkdir(t, groups, "b", 0)
	if got := claim(t, u, a); got != number(First) {
		t.Errorf("the first group: %s", got)
	}
	u.known = func(id int) bool { return id == First+1 }
	if got := claim(t, u, b); got != number(First+2) {
		t.Errorf("beside a user of the machine: %s", got)
	}
	restarted, log := newUsers(runtime.User{})
	if first, second := claim(t, restarted, a), claim(t, restarted, b); first != number(First) || second != number(First+2) {
		t.Errorf("after a restart: %s, %s", first, second)
	}
	if log.Len() > 0 {
		t.Errorf("given once more: %s", log)
	}
	if err := os.Remove(b); err != nil {
		t.Fatal(err)
	}
	mkdir(t, groups, "last", Last)
	if got := claim(t, u, mkdir(t, groups, "c", 0)); got != number(First+2) {
		t.Errorf("with the highest number in use: %s", got)
	}
	info, err := os.Stat(a)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %s, %v", info.Mode(), err)
	}
}

// An earlier gated was the user that owns the data folder, and could read the secret.
func TestClaim_OwnerOfTheDataFolder_IsReplaced(t *testing.T) {
	need.Root(t)
	u, _ := newUsers(runtime.User{})
	u.data = mkdir(t, t.TempDir(), "data", 1000)
	dir := mkdir(t, u.data, "a", 1000)
	mkdir(t, dir, "of the owner", 1000)
	mkdir(t, dir, "of a third", 1001)
	if got := claim(t, u, dir); got != number(First) {
		t.Errorf("user %s", got)
	}
	want := map[string]string{"": "30000:30000", "of the owner": "30000:30000", "of a third": "1001:1001"}
	if diff := cmp.Diff(want, owners(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestClaim_FolderOfAnotherUser_IsASetupErrorAndKeepsItsOwner(t *testing.T) {
	need.Root(t)
	dir := mkdir(t, t.TempDir(), "a", 29999)
	mkdir(t, dir, "of the owner", 29999)
	mkdir(t, dir, "of root", 0)
	before := owners(t, dir)
	numbers, _ := newUsers(runtime.User{})
	fixed, _ := newUsers(number(29998))
	for _, u := range []*Users{numbers, fixed} {
		user, err := u.Claim(dir)
		if !errors.As(err, new(*runtime.SetupError)) || !user.IsZero() {
			t.Fatalf("%s, %v", user, err)
		}
		for _, want := range []string{"user 29999 owns", "chown -R 0:0 '" + dir + "'", "AGENT_USER=29999"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in %q", want, err)
			}
		}
		if diff := cmp.Diff(before, owners(t, dir)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	owner, _ := newUsers(number(29999))
	if got := claim(t, owner, dir); got != number(29999) {
		t.Errorf("with AGENT_USER: %s", got)
	}
	if diff := cmp.Diff(before, owners(t, dir)); diff != "" {
		t.Errorf("with AGENT_USER (-want +got):\n%s", diff)
	}
	given := owners(t, dir)
	for name := range given {
		given[name] = "30000:30000"
		if err := os.Lchown(filepath.Join(dir, name), 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	claim(t, numbers, dir)
	if diff := cmp.Diff(given, owners(t, dir)); diff != "" {
		t.Errorf("after chown (-want +got):\n%s", diff)
	}
}

func TestClaim_FixedUser_OwnsAllFolders(t *testing.T) {
	need.Root(t)
	groups := t.TempDir()
	numbers, _ := newUsers(runtime.User{})
	dir := mkdir(t, groups, "a", 0)
	claim(t, numbers, dir)
	fixed, _ := newUsers(runtime.User{UID: 1005, GID: 1006})
	if got := claim(t, fixed, dir); got != fixed.fixed {
		t.Errorf("user %s", got)
	}
	if got := claim(t, fixed, mkdir(t, groups, "b", 0)); got != fixed.fixed {
		t.Errorf("user %s of another group", got)
	}
	if got := owners(t, dir)[""]; got != "1005:1006" {
		t.Errorf("owner %s", got)
	}
}

// A former gated that was root and its agents leave all kinds of files.
func TestClaim_FolderOfRoot_IsGivenWithAllInIt(t *testing.T) {
	need.Root(t)
	groups, outside := t.TempDir(), t.TempDir()
	dir := mkdir(t, groups, "a", 0)
	file := func(dir, name string, mode uint32) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte("text"), 0o600), unix.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	foreign, inner := file(outside, "foreign", 0o600), mkdir(t, dir, "inner", 0)
	twice, suid := file(dir, "twice", 0o600), file(inner, "suid", unix.S_ISUID|0o755)
	half := file(dir, "half", 0o600) // given by a gated that was killed then
	for _, step := range []error{
		os.Symlink(foreign, filepath.Join(dir, "link")), os.Symlink(outside, filepath.Join(dir, "linked folder")),
		os.Link(foreign, filepath.Join(dir, "hard link")), os.Link(twice, filepath.Join(inner, "twice")),
		unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600), unix.Mknod(filepath.Join(dir, "device"), unix.S_IFCHR|0o600, 1<<8|3),
		os.Chown(half, First+7, First+7), os.Chmod(inner, 0o000),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	mounted := mkdir(t, dir, "mounted", 0)
	if err := unix.Mount(outside, mounted, "", unix.MS_BIND, ""); err != nil {
		need.Full(t)
		t.Fatalf("cannot mount: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(mounted, unix.MNT_DETACH) })

	u, log := newUsers(runtime.User{})
	claim(t, u, dir)
	const ours, root = "30000:30000", "0:0"
	want := map[string]string{
		"": ours, "inner": ours, "inner/suid": ours, "inner/twice": ours, "twice": ours, "half": ours, "link": ours, "linked folder": ours,
		"pipe": ours, "hard link": root, "device": root, "mounted": root, "mounted/foreign": root,
	}
	if diff := cmp.Diff(want, owners(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if info, err := os.Stat(suid); err != nil || info.Mode()&fs.ModeSetuid != 0 {
		t.Errorf("mode %s, %v", info.Mode(), err)
	}
	if got := owners(t, outside); got["foreign"] != root || got[""] != root {
		t.Errorf("outside: %v", got)
	}
	for _, name := range []string{"hard link", "device"} {
		if !strings.Contains(log.String(), name) {
			t.Errorf("%s is not in the log:\n%s", name, log)
		}
	}
}

// A folder that was not given to the end is still root's.
func TestGive_Fails_FolderKeepsItsOwner(t *testing.T) {
	need.Root(t)
	dir := mkdir(t, t.TempDir(), "a", 0)
	fixed := filepath.Join(dir, "immutable")
	if err := os.WriteFile(fixed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !setImmutable(t, fixed, true) {
		t.Skip("the file system has no immutable files")
	}
	u, _ := newUsers(runtime.User{})
	_, err := u.Claim(dir)
	setImmutable(t, fixed, false)
	if !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "immutable") || owners(t, dir)[""] != "0:0" {
		t.Errorf("%v, owner %s", err, owners(t, dir)[""])
	}
	if got := claim(t, u, dir); got != number(First) || owners(t, dir)["immutable"] != "30000:30000" {
		t.Errorf("once more: %s, %v", got, owners(t, dir))
	}
}

func setImmutable(t *testing.T, path string, on bool) bool {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil {
		return false
	}
	const immutable = 0x10 // FS_IMMUTABLE_FL
	if flags &^= immutable; on {
		flags |= immutable
	}
	return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags) == nil
}

func TestClaim_Link_Refused(t *testing.T) {
	need.Root(t)
	groups := t.TempDir()
	link := filepath.Join(groups, "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	u, _ := newUsers(runtime.User{})
	if user, err := u.Claim(link); err == nil {
		t.Errorf("a link was given to %s", user)
	}
}

func TestClaim_NoNumberLeft(t *testing.T) {
	need.Root(t)
	u, _ := newUsers(runtime.User{})
	u.known = func(int) bool { return true }
	_, err := u.Claim(mkdir(t, t.TempDir(), "a", 0))
	if !errors.As(err, new(*runtime.SetupError)) || !strings.Contains(err.Error(), "AGENT_USER") {
		t.Error(err)
	}
}

func TestClaim_GatedIsNotRoot_ChangesNothing(t *testing.T) {
	u, _ := newUsers(runtime.User{})
	u.root = false
	if user, err := u.Claim("/nowhere"); !user.IsZero() || err != nil {
		t.Errorf("%s, %v", user, err)
	}
	if got := u.Describe(); !strings.HasPrefix(got, "gated's own") || !u.Example().IsZero() {
		t.Errorf("%q, %s", got, u.Example())
	}
}

func TestLookup(t *testing.T) {
	for _, name := range []string{"root", "0", "no such user", "", "-5", "4294967296"} {
		if user, err := Lookup(name); err == nil {
			t.Errorf("%q is %s", name, user)
		}
	}
	free := 29999
	for known(free) {
		free--
	}
	if user, err := Lookup(strconv.Itoa(free)); err != nil || user != number(free) {
		t.Errorf("a number without a name: %s, %v", user, err)
	}
}

// A directory service may give users numbers of the range.
func TestClaim_UserOfTheRange_IsNotTakenForAGroup(t *testing.T) {
	need.Root(t)
	u, _ := newUsers(runtime.User{})
	u.known = func(id int) bool { return id == 35001 }
	dir := mkdir(t, t.TempDir(), "a", 35001)
	if _, err := u.Claim(dir); !errors.As(err, new(*runtime.SetupError)) || owners(t, dir)[""] != "35001:35001" {
		t.Errorf("%v, owners %v", err, owners(t, dir))
	}

	u.known = func(int) bool { return false }
	u.data = mkdir(t, t.TempDir(), "data", 35001)
	dir = mkdir(t, u.data, "a", 35001)
	if got := claim(t, u, dir); got != number(35002) || owners(t, dir)[""] != "35002:35002" {
		t.Errorf("with the data folder's owner: %s, owners %v", got, owners(t, dir))
	}
}
