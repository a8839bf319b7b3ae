package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/golden"
	"arizuko/pkg/groupconfig"
)

// lines puts arguments one below the other.
func lines(args []string) string { return strings.Join(args, "\n") + "\n" }

func TestDockerArguments(t *testing.T) {
	d := Docker{Instance: InstanceOf("/srv/arizuko"), Network: "agents"}
	spec := Spec{
		RunID: 7, Image: "reg.example/claude:1", Dir: `/srv/a,b/groups/acme+eng`, Folder: "acme/eng",
		Env:    []string{"PATH=/bin", "HOME=/root", "TZ=UTC", "API_KEY=hunter2-secret", "EMPTY="},
		Limits: groupconfig.Limits{Memory: 2 << 30, CPUs: 1.5, PIDs: 512},
	}
	golden.Compare(t, filepath.Join("testdata", "docker.txt"), lines(d.runArgs(spec, User{UID: 1000, GID: 1001})))
	bare := spec
	bare.Command, bare.Limits, bare.Env = "exec agent --fast", groupconfig.Limits{}, nil
	golden.Compare(t, filepath.Join("testdata", "docker-bare.txt"), lines(d.runArgs(bare, User{})))
	for _, arg := range d.runArgs(spec, User{}) {
		if strings.Contains(arg, "hunter2") {
			t.Errorf("a secret for everybody to read: %s", arg)
		}
	}
}

func TestDockerEnvironment(t *testing.T) {
	d := Docker{Environ: []string{"PATH=/bin", "HOME=/root", "DOCKER_HOST=tcp://h", "TELEGRAM_BOT_TOKEN=t", "XDG_RUNTIME_DIR=/run/u", "SSH=1"}}
	want := []string{"PATH=/bin", "HOME=/root", "DOCKER_HOST=tcp://h", "XDG_RUNTIME_DIR=/run/u"}
	if diff := cmp.Diff(want, d.clientEnv()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if a, b := InstanceOf("/srv/a"), InstanceOf("/srv/b"); a == b || len(a) != 12 {
		t.Errorf("instances %s, %s", a, b)
	}
}

func TestSandboxArguments(t *testing.T) {
	v := view{
		system: []string{"--ro-bind", "/usr", "/usr"}, readable: []string{"/opt/agent"}, data: "/srv/data",
		temp: "/srv/data/run/tmp/run-7", dir: "/srv/data/groups/acme+eng", shown: "/srv/data/groups/acme/eng",
	}
	golden.Compare(t, filepath.Join("testdata", "bwrap.txt"), lines(v.args()))
}

// The arguments have real paths: a link must not show something that is hidden.
func TestSandbox_ResolvesLinks(t *testing.T) {
	base := t.TempDir()
	real := filepath.Join(base, "real")
	for _, dir := range []string{"groups/main+child", "tmp"} {
		if err := os.MkdirAll(filepath.Join(real, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	s := Sandbox{Data: link, Readable: []string{filepath.Join(base, "gone"), base}}
	v, err := s.view(Spec{Dir: link + "/groups/main+child", Folder: "main/child"}, link+"/tmp")
	if err != nil {
		t.Fatal(err)
	}
	v.system = nil
	want := view{data: real, temp: real + "/tmp", dir: real + "/groups/main+child", shown: real + "/groups/main/child", readable: []string{base}}
	if diff := cmp.Diff(want, v, cmp.AllowUnexported(view{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := s.view(Spec{Dir: link + "/groups/gone"}, link+"/tmp"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a folder: %v", err)
	}
}

func TestProgram(t *testing.T) {
	for command, want := range map[string]string{
		"agent": "agent", "exec agent --fast": "agent", "exec '/opt/my agent' -x": "/opt/my agent", "  exec   /bin/a ": "/bin/a",
		"": "", "A=1 agent": "", "$AGENT": "", "cd /x && agent": "cd", "'unclosed": "", `"quoted" x`: "", "((": "", "a;b": "",
		"'one'two": "",
	} {
		if got := program(command); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
}

func TestTemporaryFolder(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "kept"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d := tempDir{filepath.Join(t.TempDir(), "run", "tmp"), 7}
	if err := d.remove(); err != nil {
		t.Errorf("nothing to remove: %v", err)
	}
	if err := d.make(User{}); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(d.path(), "mod", "inner")
	if err := os.MkdirAll(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, step := range []error{
		os.WriteFile(filepath.Join(closed, "file"), nil, 0o400),
		os.Symlink(outside, filepath.Join(d.path(), "mod", "link")),
		os.Chmod(closed, 0), os.Chmod(filepath.Dir(closed), 0o500),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	if err := d.remove(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(d.parent); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
		t.Errorf("what a link led to: %v", err)
	}
}

func TestWithout(t *testing.T) {
	env := []string{"A=1", "HOME=/h", "B", "HOMER=2"}
	if got := without(env, "HOME", "B"); !slices.Equal(got, []string{"A=1", "HOMER=2"}) || env[1] != "HOME=/h" {
		t.Errorf("%q of %q", got, env)
	}
}
