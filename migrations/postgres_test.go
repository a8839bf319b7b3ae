package migrations

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

func TestCheckServer_OldOrNotUTF8_IsRefused(t *testing.T) {
	t.Parallel()
	if err := checkVersion("UTF8", 130000); err != nil {
		t.Errorf("Postgres 13 with UTF8: %v", err)
	}
	for want, err := range map[string]error{
		"it is Postgres 12, version 13 or later is needed": checkVersion("UTF8", 120022),
		"encoding is SQL_ASCII: make one by":               checkVersion("SQL_ASCII", 170004),
	} {
		if !errors.Is(err, ErrServer) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A step for SQLite has one for Postgres, from the first one that there is for Postgres.
func TestPostgresFiles_AreNumberedLikeTheOthers(t *testing.T) {
	t.Parallel()
	steps, err := Postgres()
	if err != nil || len(steps) == 0 {
		t.Fatalf("%v, %v", steps, err)
	}
	names, err := fs.Glob(PostgresFS(), "*")
	if err != nil || len(names) != 2*len(steps) {
		t.Errorf("%d files for %d steps: %q, %v", len(names), len(steps), names, err)
	}
	for i, step := range steps {
		if want := Latest() - len(steps) + 1 + i; step.Version != want {
			t.Errorf("step %d_%s, want number %d", step.Version, step.Name, want)
		}
		if !slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, step.Name+".down.sql") }) {
			t.Errorf("no way down from %d_%s", step.Version, step.Name)
		}
	}
}
