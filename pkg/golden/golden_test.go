package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// double is a test whose failure is only noted.
type double struct {
	testing.TB
	said string
}

func (d *double) Helper() {}

func (d *double) Errorf(format string, args ...any) { d.said += fmt.Sprintf(format, args...) }

func (d *double) Fatal(args ...any) {
	d.said += fmt.Sprint(args...)
	runtime.Goexit()
}

// compare is what Compare says of a file.
func compare(t *testing.T, path, got string) string {
	d := &double{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		Compare(d, path, got)
	}()
	<-done
	return d.said
}

func TestCompare(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.golden")
	if said := compare(t, path, "one\n"); !strings.Contains(said, "no such file") {
		t.Errorf("of no file it says %q", said)
	}
	if err := os.WriteFile(path, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := compare(t, path, "one\n"); said != "" {
		t.Errorf("of the same it says %q", said)
	}
	if said := compare(t, path, "two\n"); !strings.Contains(said, path) || !strings.Contains(said, "-update") || !strings.Contains(said, "two") {
		t.Errorf("of another it says %q", said)
	}
}

func TestUpdate(t *testing.T) {
	was := *update
	t.Cleanup(func() { *update = was })
	*update = true
	path := filepath.Join(t.TempDir(), "x.golden")
	for _, text := range []string{"one\n", "two\n"} {
		if said := compare(t, path, text); said != "" {
			t.Errorf("it says %q", said)
		}
		if got, err := os.ReadFile(path); string(got) != text || err != nil {
			t.Errorf("it wrote %q, %v", got, err)
		}
	}
}
