package browser_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// shots is where the pictures for the README go.
var shots = flag.String("shots", "", "write chat.png and chat-phone.png into this folder")

// built is the folder of the real programs, set by TestMain.
var built string

// parallel is how many instances run at once: each is mostly waiting, but a small machine has to
// carry all their processes, and a browser.
const parallel = "4"

// TestMain builds the programs.
func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	flag.Parse()
	err := flag.Set("test.parallel", parallel)
	if err == nil {
		built, err = os.MkdirTemp("", "browser-bin")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(built)
	build := exec.Command("go", "build", "-o", built+"/", "arizuko/routd", "arizuko/gated", "arizuko/dashd",
		"arizuko/migrations/cmd/migrate", "arizuko/deploy/agents/demo", "arizuko/deploy/launcher")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
