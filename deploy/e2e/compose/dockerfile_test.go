package compose

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The images have nothing but what dist.sh makes: `make dist` puts its folder in place of the stages before them.
func TestDockerfile_Images_HaveOnlyWhatDistMakes(t *testing.T) {
	t.Parallel()
	file := readFile(t, "deploy/docker/Dockerfile")
	first := strings.Index(file, "\nFROM scratch")
	if first < 0 || strings.Contains(file[:first], "\nCOPY --from=build") {
		t.Fatal("the images do not begin with the first FROM scratch")
	}
	for line := range strings.Lines(file[first:]) {
		instruction, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case instruction == "FROM" && !strings.HasPrefix(rest, "scratch "), instruction == "RUN", instruction == "ADD",
			instruction == "COPY" && !strings.HasPrefix(rest, "--from=build /src/dist/"):
			t.Errorf("%s", line)
		}
	}
	// Debian's Compose has a builder that does not know more.
	if strings.Contains(file, "--mount") || strings.Contains(file, "BUILDPLATFORM") || strings.Contains(file, "syntax=") {
		t.Error("it needs BuildKit")
	}
}

// The context of a build has .git/HEAD and the refs alone.
func TestVersion_OfHeadAndRefs_IsTagOrCommit(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs(repository(t) + "/deploy/docker/version.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a", "GIT_CONFIG_GLOBAL=/dev/null")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if got := run(script); got != "" {
		t.Errorf("without a repository: %q", got)
	}
	run("git", "init", "-q", "-b", "main")
	if got := run(script); got != "" {
		t.Errorf("without a commit: %q", got)
	}
	for _, step := range []struct {
		git  string
		want string // "" for the commit
	}{
		{"commit -q --allow-empty -m 1", ""},
		{"tag v1", "v1"},
		{"commit -q --allow-empty -m 2", ""},
		{"pack-refs --all", ""},
		{"tag -a -m x v2", ""}, // its commit is in git's objects
		{"pack-refs --all", "v2"},
		{"checkout -q v1", "v1"},
		{"checkout -q main", "v2"},
		{"commit -q --allow-empty -m 3", ""},
	} {
		run("git", strings.Fields(step.git)...)
		want := step.want
		if want == "" {
			want = run("git", "rev-parse", "HEAD")[:12]
		}
		if got := run(script); got != want {
			t.Errorf("after git %s: %q, want %q", step.git, got, want)
		}
	}
}
