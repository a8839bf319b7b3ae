package harness

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBuild_Package_MakesProgram(t *testing.T) {
	bin, err := Build("", "arizuko/deploy/agents/demo")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(bin)
	info, err := os.Stat(filepath.Join(bin, "demo"))
	if err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("the program is %v, %v", info, err)
	}
}

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

func TestBuild_NoTempFolder_Fails(t *testing.T) {
	t.Setenv("TMPDIR", "/dev/null")
	if bin, err := Build("", "arizuko/deploy/agents/demo"); err == nil || bin != "" {
		t.Errorf("Build returns %q", bin)
	}
	if _, err := New(""); err == nil {
		t.Error("New succeeds")
	}
}

func TestPrograms_Bin_BuildsOnce(t *testing.T) {
	p := NewPrograms("", "arizuko/deploy/agents/demo")
	first, err := p.Bin()
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(first)
	if second, err := p.Bin(); second != first || err != nil {
		t.Errorf("the second folder is %s, want %s: %v", second, first, err)
	}
}
