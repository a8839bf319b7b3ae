package compose

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"arizuko/pkg/testkit/need"
)

// stat is in gated's image; here the script uses the machine's.
func TestPrepare_TakesOnlyAnEmptyFolderOfRoot(t *testing.T) {
	t.Parallel()
	need.Root(t)
	script := repository(t) + "/deploy/docker/prepare.sh"
	prepare := func(dir string) (code int, out string) {
		output, err := exec.Command("sh", script, "1234", "1235", dir).CombinedOutput()
		if exit := new(exec.ExitError); errors.As(err, &exit) {
			return exit.ExitCode(), string(output)
		}
		if err != nil {
			t.Fatal(err)
		}
		return 0, string(output)
	}
	empty, full, foreign := t.TempDir(), t.TempDir(), t.TempDir()
	if err := errors.Join(os.WriteFile(full+"/arizuko.db", nil, 0o600), os.Chown(foreign, 77, 77)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is theirs
		if code, out := prepare(empty); code != 0 {
			t.Errorf("an empty folder of root: %d, %s", code, out)
		}
	}
	if info, err := os.Stat(empty); err != nil || info.Mode().Perm() != 0o700 || owner(info) != 1234 {
		t.Errorf("the folder is %v, %v", info, err)
	}
	for _, dir := range []string{full, foreign} {
		if code, out := prepare(dir); code != 78 || !strings.Contains(out, "chown -R 1234:1235 "+dir) {
			t.Errorf("%s: %d, %s", dir, code, out)
		}
	}
}

func owner(info fs.FileInfo) uint32 { return info.Sys().(*syscall.Stat_t).Uid }
