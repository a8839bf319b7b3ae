package platforms

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"arizuko/deploy/e2e/harness"
	fp "arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/need"
)

// An earlier version made groups' folders inside one another. gated moves them at its
// first start, wherever it is killed meanwhile.
func TestGated_KilledWhileMovingNestedFolders_LosesNothing(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	groups := []string{"acme", "acme/eng", "acme/eng/oncall", "acme/x/y"}
	for _, point := range fp.AtFirstStart() {
		passes := 3 // once for each nested folder
		if point == fp.MovedFolders {
			passes = 1
		}
		for n := range passes {
			crash := fmt.Sprintf("%s:%d", point, n+1)
			t.Run(crash, func(t *testing.T) {
				t.Parallel()
				f := startNested(t, groups)
				f.StartDaemon(harness.Gated, "FAILPOINT="+crash)
				p := f.Instance.Process(harness.Gated)
				f.Until("gated to end", func() bool { return !p.Running() })
				if !p.Killed() {
					t.Fatalf("gated ended with %s, want killed", p.State())
				}
				f.Restart(harness.Gated)
				for _, group := range groups {
					notes, err := os.ReadFile(filepath.Join(f.Data, "groups", msg.DirName(group), "notes"))
					if err != nil || string(notes) != "of "+group {
						t.Errorf("notes of %s: %q, %v", group, notes, err)
					}
				}
				if left, err := filepath.Glob(filepath.Join(f.Data, "groups/acme/*")); err != nil || !slices.Equal(left, []string{
					filepath.Join(f.Data, "groups/acme/notes"), filepath.Join(f.Data, "groups/acme/x"),
				}) {
					t.Errorf("in the folder of acme: %v, %v", left, err)
				}
				f.Say("web:acme/eng", "hello")
				f.WantEchoes("web:acme/eng", "hello")
				if log := f.Log(harness.Gated); strings.Contains(log, "not moved") {
					t.Errorf("log:\n%s", log)
				}
			})
		}
	}
}

// startNested makes an instance without gated, whose groups have nested folders with a
// file notes in each.
func startNested(t *testing.T, groups []string) *harness.Fixture {
	t.Helper()
	f := harness.NewFixture(t, programs, harness.Options{})
	f.Migrate()
	f.Restart(harness.Routd)
	f.AddGroups(groups...)
	for _, group := range groups {
		dir := filepath.Join(f.Data, "groups", group)
		f.OK(os.MkdirAll(dir, 0o700))
		f.OK(os.WriteFile(filepath.Join(dir, "notes"), []byte("of "+group), 0o600))
	}
	return f
}
