package daemon

import (
	"path/filepath"
	"slices"
	"testing"
)

// Each daemon is a folder at the top whose program has its name.
func TestSuite_NamesThePrograms(t *testing.T) {
	t.Parallel()
	programs, err := filepath.Glob("../../*d/main.go")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, program := range programs {
		found = append(found, filepath.Base(filepath.Dir(program)))
	}
	want := slices.Sorted(slices.Values(Suite()))
	if !slices.Equal(found, want) {
		t.Errorf("programs %q, Suite is %q", found, want)
	}
}
