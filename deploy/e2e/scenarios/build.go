package scenarios

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"arizuko/deploy/e2e/harness"
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
	return harness.Build("", "arizuko/gated", "arizuko/routd", "arizuko/migrations/cmd/migrate", "arizuko/deploy/agents/demo")
}
