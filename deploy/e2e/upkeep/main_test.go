// Package upkeep drills the work of operators on a running instance: backup and restore, upgrade and rollback.
package upkeep

import (
	"os"
	"testing"

	"arizuko/deploy/e2e/harness"
)

// parallel is how many tests run at once.
const parallel = "3"

var programs = harness.NewPrograms("", "arizuko/gated", "arizuko/routd", "arizuko/onbod", "arizuko/dashd", "arizuko/teled", "arizuko/discd", "arizuko/slakd",
	"arizuko/migrations/cmd/migrate", "arizuko/deploy/agents/demo", "arizuko/deploy/launcher")

func TestMain(m *testing.M) { os.Exit(programs.RunTests(m, parallel)) }
