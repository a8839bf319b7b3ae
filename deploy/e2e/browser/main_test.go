package browser_test

import (
	"os"
	"testing"

	"arizuko/deploy/e2e/harness"
)

// parallel is how many instances run at once: each is mostly waiting, but a small machine has to
// carry all their processes, and a browser.
const parallel = "4"

var programs = harness.NewPrograms("", "arizuko/routd", "arizuko/gated", "arizuko/dashd",
	"arizuko/migrations/cmd/migrate", "arizuko/deploy/agents/demo", "arizuko/deploy/launcher")

func TestMain(m *testing.M) { os.Exit(programs.RunTests(m, parallel)) }
