package harness

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestBuild_UnknownPackage_FailsAndLeavesNothing(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	bin, err := Build("", "arizuko/deploy/nowhere")
	if err == nil || !strings.Contains(err.Error(), "go build: exit status 1\n") || !strings.Contains(err.Error(), "arizuko/deploy/nowhere") {
		t.Errorf("the error is %v", err)
	}
	left, err := filepath.Glob(filepath.Join(temp, "arizuko*"))
	if bin != "" || err != nil || len(left) > 0 {
		t.Errorf("Build returns %q and leaves %v, %v", bin, left, err)
	}
}
