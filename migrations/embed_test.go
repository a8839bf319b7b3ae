package migrations

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestUp_ReturnsStepsInOrder(t *testing.T) {
	files := fstest.MapFS{
		"0002_b_c.up.sql":  {Data: []byte("two")},
		"0001_a.up.sql":    {Data: []byte("one")},
		"0001_a.down.sql":  {Data: []byte("undo")},
		"sub/0003_x.up.go": {Data: []byte("elsewhere")},
	}
	want := []Migration{{1, "a", "one"}, {2, "b_c", "two"}}
	if got, err := up(files); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for _, name := range []string{"notes.up.sql", "3_x.up.sql", "_x.up.sql"} {
		if _, err := up(fstest.MapFS{name: {}}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestFiles_AreNumberedAndPaired(t *testing.T) {
	names, err := fs.Glob(FS, "*")
	if err != nil {
		t.Fatal(err)
	}
	steps, err := Up()
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != 2*len(steps) {
		t.Errorf("%d files for %d steps: %s", len(names), len(steps), strings.Join(names, " "))
	}
	for i, step := range steps {
		if step.Version != i+1 || strings.TrimSpace(step.SQL) == "" {
			t.Errorf("step %d is %04d_%s with %d bytes", i+1, step.Version, step.Name, len(step.SQL))
		}
		down := fmt.Sprintf("%04d_%s.down.sql", step.Version, step.Name)
		if !slices.Contains(names, down) {
			t.Errorf("no %s", down)
		}
	}
	if Latest() != len(steps) {
		t.Errorf("Latest() = %d of %d", Latest(), len(steps))
	}
}
