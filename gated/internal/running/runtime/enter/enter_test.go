package enter

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/testkit/need"
)

func TestMain(m *testing.M) {
	Intercept(os.Environ())
	os.Exit(m.Run())
}

// agent is a user that no other program of the machine has.
func agent() User { return User{59001, 59001} }

func TestOrder_ArgsAndParse_RoundTrip(t *testing.T) {
	for _, o := range []Order{
		{Dir: "/d", Command: []string{"/bin/sh", "-c", "true"}},
		{
			User: agent(), Reach: true, Dir: "/a b\xff", Paths: []string{"/p", "-q&"}, Readable: []string{"/r,s"},
			Gate: 5, Stdio: 7, Command: []string{"/bin/sh", "--user", "0:0"},
		},
	} {
		args := o.Args()
		got, err := parse(args[1:])
		if diff := cmp.Diff(o, got); err != nil || diff != "" || args[0] != Name {
			t.Errorf("%v: %v (-want +got):\n%s", args, err, diff)
		}
	}
}

func TestParse_RootOrNonsense_Refused(t *testing.T) {
	for _, user := range []string{"0:0", "1000:0", "0:1000", "1000", "-1:5", "x:y", "4294967296:5", ""} {
		if o, err := parse([]string{"dir=/&gate=0&stdio=0&reach=false&user=" + user, "/bin/true"}); err == nil {
			t.Errorf("%q: %+v", user, o)
		}
	}
	if _, err := parse([]string{"dir=/&gate=0&stdio=0&reach=false"}); err == nil {
		t.Error("no error without a command")
	}
}

func TestTrace(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []error{
		os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700),
		os.Symlink("a/b", filepath.Join(dir, "l")),
		os.Symlink(dir+"/l/../b", filepath.Join(dir, "a", "abs")),
		os.Symlink("loop", filepath.Join(dir, "loop")),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	want := []thing{{at: filepath.Join(dir, "a", "abs"), target: dir + "/l/../b"}, {at: filepath.Join(dir, "l"), target: "a/b"}}
	real, links, err := trace(filepath.Join(dir, "a", "abs"))
	if diff := cmp.Diff(want, links, cmp.AllowUnexported(thing{})); err != nil || real != filepath.Join(dir, "a", "b") || diff != "" {
		t.Errorf("%s, %v (-want +got):\n%s", real, err, diff)
	}
	if _, _, err = trace(filepath.Join(dir, "loop")); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a loop: %v", err)
	}
}

// tree makes folders and files below a closed folder. Names that end in / are folders; those that
// contain "own" belong to the agent.
func tree(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if strings.HasSuffix(name, "/") {
			err = errors.Join(err, os.MkdirAll(path, 0o700))
		} else {
			err = errors.Join(err, os.WriteFile(path, []byte("content of "+name), 0o644))
		}
		if strings.Contains(name, "own") {
			err = errors.Join(err, os.Chown(path, agent().UID, agent().GID))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// sh runs a script by an order and returns its output and exit code.
func sh(t *testing.T, o Order, script string) (string, int) {
	t.Helper()
	o.Command = []string{"/bin/sh", "-c", script}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", o.Args()...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "KEY=value"}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String()), cmd.ProcessState.ExitCode()
}

func TestEnter_BecomesTheUser(t *testing.T) {
	need.Root(t)
	dir := tree(t, "own/")
	o := Order{User: agent(), Reach: true, Dir: filepath.Join(dir, "own")}
	out, code := sh(t, o, `grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs)' /proc/self/status; pwd; echo $KEY; ls /proc/self/fd; umask`)
	const none = "0000000000000000"
	want := []string{
		"Uid:\t59001\t59001\t59001\t59001", "Gid:\t59001\t59001\t59001\t59001", "Groups:",
		"CapInh:\t" + none, "CapPrm:\t" + none, "CapEff:\t" + none, "CapBnd:\t" + none, "CapAmb:\t" + none, "NoNewPrivs:\t1",
		o.Dir, "value", "0", "1", "2", "3", "0022", // 3 is of ls
	}
	var got []string
	for line := range strings.Lines(out) {
		got = append(got, strings.TrimRight(line, " \t\n"))
	}
	if diff := cmp.Diff(want, got); code != 0 || diff != "" {
		t.Errorf("exit code %d (-want +got):\n%s", code, diff)
	}
}

func TestEnter_ShowsItsPathsAndNothingElse(t *testing.T) {
	need.Root(t)
	dir := tree(t, "data/groups/own/file", "data/groups/other/file", "data/secret", "data/run/own-temp/", "bin/demo", "bin/sub/closed", "tool", "far/away/program")
	for _, step := range []error{
		os.Chown(filepath.Join(dir, "data/groups/own"), agent().UID, agent().GID),
		os.Symlink("data", filepath.Join(dir, "link")),
		os.Symlink("../far/away", filepath.Join(dir, "bin", "away")),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	o := Order{
		User: agent(), Reach: true, Dir: filepath.Join(dir, "link/groups/own"), Paths: []string{filepath.Join(dir, "data/run/own-temp")},
		Readable: []string{filepath.Join(dir, "bin"), filepath.Join(dir, "tool"), filepath.Join(dir, "far/away"), filepath.Join(dir, "missing"), "/usr"},
	}
	for script, want := range map[string]string{
		"cat file":                         "content of data/groups/own/file",
		"echo new > new && cat new":        "new",
		"pwd -P":                           filepath.Join(dir, "data/groups/own"),
		"ls " + dir:                        "bin data far link tool",
		"ls ../.. ..":                      "..: own ../..: groups run",
		"cat " + dir + "/bin/demo":         "content of bin/demo",
		"cat " + dir + "/bin/away/program": "content of far/away/program",
		"cat " + dir + "/tool":             "content of tool",
		"echo x > " + dir + "/data/run/own-temp/f && ls " + dir + "/data/run/own-temp": "f",
	} {
		out, code := sh(t, o, script)
		if got := strings.Join(strings.Fields(out), " "); got != want || code != 0 {
			t.Errorf("%s: %q, exit code %d, want %q", script, got, code, want)
		}
	}
	for _, script := range []string{
		"cat ../../secret", "cat ../other/file", "cat " + dir + "/bin/sub/closed", "ls " + dir + "/missing",
		"touch " + dir + "/planted", "touch ../planted", "touch " + dir + "/bin/planted", "chmod 777 " + dir + "/tool",
		"umount " + dir, "chmod 4755 /dev/null", "chown root file",
	} {
		if out, code := sh(t, o, script); code == 0 {
			t.Errorf("%s: %s", script, out)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 5 {
		t.Errorf("mounts are seen outside: %v, %v", left, err)
	}
}

func TestOpenAll_EntryRemovedMeanwhile_LeftOut(t *testing.T) {
	dir := t.TempDir()
	gone := filepath.Join(dir, "gone")
	got, err := openAll([]thing{{at: dir}, {at: gone, entry: true}})
	if err != nil || len(got) != 1 || got[0].at != dir || !got[0].info.IsDir() {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := openAll([]thing{{at: gone}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a path that is asked for: %+v, %v", got, err)
	}
}

func TestEnter_NothingClosed_NoMounts(t *testing.T) {
	need.Root(t)
	out, code := sh(t, Order{User: agent(), Reach: true, Dir: "/tmp", Readable: []string{"/usr/bin"}}, "readlink /proc/self/ns/mnt")
	own, err := os.Readlink("/proc/self/ns/mnt")
	if out != own || code != 0 || err != nil {
		t.Errorf("mount namespace %q, exit code %d, ours %s, %v", out, code, own, err)
	}
}

func TestEnter_Failures_NameThePath(t *testing.T) {
	need.Root(t)
	dir := tree(t, "foreign/", "own/")
	for want, o := range map[string]Order{
		"chdir " + dir + "/foreign: permission denied": {User: agent(), Reach: true, Dir: dir + "/foreign"},
		"lstat " + dir + "/none: no such file":         {User: agent(), Reach: true, Dir: dir + "/none"},
	} {
		if out, code := sh(t, o, "true"); !strings.HasPrefix(out, Prefix+want) || code != ExitFailed {
			t.Errorf("%q, exit code %d, want %q", out, code, want)
		}
	}
	o := Order{User: agent(), Reach: true, Dir: dir + "/own", Command: []string{dir + "/noprogram"}}
	out, err := exec.CommandContext(t.Context(), "/proc/self/exe", o.Args()...).CombinedOutput()
	if want := Prefix + "execute " + dir + "/noprogram: no such file"; err == nil || !strings.HasPrefix(string(out), want) {
		t.Errorf("%q, want %q", out, want)
	}
}

// Without the capability to mount, as root has none in most containers.
func TestEnter_MayNotMount_SaysWhichFolderIsClosed(t *testing.T) {
	need.Root(t)
	need.Program(t, "setpriv", "util-linux")
	dir := tree(t, "own/")
	enter := func(dir string) string {
		o := Order{User: agent(), Reach: true, Dir: dir, Command: []string{"/bin/sh", "-c", "echo entered"}}
		args := slices.Concat([]string{"--bounding-set", "-sys_admin", "--", "/proc/self/exe"}, o.Args())
		args[3] = os.Args[0]
		out, _ := exec.CommandContext(t.Context(), "setpriv", args...).CombinedOutput()
		return strings.TrimSpace(string(out))
	}
	if out := enter(dir + "/own"); !strings.Contains(out, "cannot enter "+dir) && !strings.Contains(out, "cannot enter "+filepath.Dir(dir)) || !strings.Contains(out, "chmod o+x") {
		t.Errorf("closed: %q", out)
	}
	if out := enter("/tmp"); out != "entered" {
		t.Errorf("open: %q", out)
	}
}
