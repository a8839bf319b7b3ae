package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// double is a testing.TB that records its failure.
type double struct {
	testing.TB
	failure string
}

func (d *double) Helper() {}

func (d *double) Errorf(format string, args ...any) { d.failure += fmt.Sprintf(format, args...) }

func (d *double) Fatal(args ...any) {
	d.failure += fmt.Sprint(args...)
	runtime.Goexit()
}

// compare returns the failure that Compare reports for a file.
func compare(t *testing.T, path, got string) string {
	d := &double{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		Compare(d, path, got)
	}()
	<-done
	return d.failure
}

func TestCompare(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.golden")
	if failure := compare(t, path, "one\n"); !strings.Contains(failure, "no such file") {
		t.Errorf("missing file: %q", failure)
	}
	if err := os.WriteFile(path, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if failure := compare(t, path, "one\n"); failure != "" {
		t.Errorf("same content: %q", failure)
	}
	if failure := compare(t, path, "two\n"); !strings.Contains(failure, path) || !strings.Contains(failure, "-update") || !strings.Contains(failure, "two") {
		t.Errorf("other content: %q", failure)
	}
}

func TestUpdate(t *testing.T) {
	was := *update
	t.Cleanup(func() { *update = was })
	*update = true
	path := filepath.Join(t.TempDir(), "x.golden")
	for _, text := range []string{"one\n", "two\n"} {
		if failure := compare(t, path, text); failure != "" {
			t.Errorf("-update: %q", failure)
		}
		if got, err := os.ReadFile(path); string(got) != text || err != nil {
			t.Errorf("it wrote %q, %v", got, err)
		}
	}
}

func TestReplaceSection(t *testing.T) {
	const file = "# x\n<!-- table:start -->\nold\n<!-- table:end -->\ntail\n"
	want := "# x\n<!-- table:start -->\n\n| new |\n\n<!-- table:end -->\ntail\n"
	got, err := replaceSection(file, "table", "| new |\n")
	if err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	if again, _ := replaceSection(got, "table", "| new |\n"); again != want {
		t.Errorf("the second replacement gave %q", again)
	}
	for _, bad := range []string{"", "<!-- table:start -->", "<!-- table:end --> <!-- table:start -->"} {
		if _, err := replaceSection(bad, "table", "| new |\n"); err == nil {
			t.Errorf("replaced a section in %q", bad)
		}
	}
}
