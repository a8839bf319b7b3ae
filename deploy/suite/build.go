package suite

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// parallel is how many instances run at once: each is mostly waiting, but a
// small machine has to carry all their processes.
const parallel = "3"

// programs is the folder of the programs, built by the first caller.
var programs = sync.OnceValues(build)

// Main is what TestMain calls: it runs the tests and tidies up after them.
func Main(m *testing.M) int {
	if !flag.Parsed() {
		flag.Parse()
	}
	if err := flag.Set("test.parallel", parallel); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	bin, err := programs()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := os.RemoveAll(bin); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

func build() (bin string, err error) {
	root, err := workspace()
	if err != nil {
		return "", err
	}
	if bin, err = os.MkdirTemp("", "suite-bin"); err != nil {
		return "", err
	}
	for _, p := range []struct{ module, program string }{
		{"gated", "."}, {"routd", "."}, {"migrations", "./cmd/migrate"}, {"deploy", "./agents/demo"},
	} {
		cmd := exec.Command("go", "build", "-o", bin+"/", p.program)
		cmd.Dir = filepath.Join(root, p.module)
		if out, err := cmd.CombinedOutput(); err != nil {
			return bin, fmt.Errorf("build %s of %s: %w\n%s", p.program, p.module, err, out)
		}
	}
	return bin, nil
}

// workspace is the folder of the modules.
func workspace() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "arizuko/deploy").Output()
	if err != nil {
		return "", fmt.Errorf("find the workspace: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}
