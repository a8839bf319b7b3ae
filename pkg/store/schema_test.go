package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"arizuko/migrations"
	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestWaitSchema(t *testing.T) {
	t.Parallel()
	latest := migrations.Latest()
	tests := []struct {
		name   string
		change string // of a migrated database
		built  int
		reason string // for which it waits, "" if it does not
	}{
		{"current", ``, latest, ""},
		{"newer, its floor below", `UPDATE schema_migrations SET version = 99`, latest, ""},
		{"newer, its floor at this version", `UPDATE schema_migrations SET version = 99; UPDATE schema_floor SET floor = 7`, 7, ""},
		{"too old", ``, latest + 1, "run `migrate up`"},
		{"dirty", `UPDATE schema_migrations SET dirty = true`, latest, "running or has failed"},
		{"dirty and newer", `UPDATE schema_migrations SET dirty = true, version = 99; UPDATE schema_floor SET floor = 99`, latest, "migration 99"},
		{"no version", `DELETE FROM schema_migrations`, latest, "not migrated yet"},
		{"of another program", `DROP TABLE schema_migrations`, latest, "not migrated yet"},
		{"without a floor", `DELETE FROM schema_floor`, latest, "no compatibility floor"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := storetest.Path(t)
			storetest.Exec(t, path, tt.change)
			ctx, cancel := context.WithTimeout(t.Context(), storetest.MaxWait)
			defer cancel()
			var reasons []string
			err := store.WaitSchema(ctx, path, tt.built, func(reason string, _ error) {
				reasons = append(reasons, reason)
				cancel()
			})
			if tt.reason == "" {
				if err != nil || reasons != nil {
					t.Errorf("reasons %q, error %v", reasons, err)
				}
				return
			}
			if strings.Contains(fmt.Sprint(reasons), path) || strings.Contains(fmt.Sprint(reasons), "sql") {
				t.Errorf("a path or an error is in %q", reasons)
			}
			if len(reasons) != 1 || !strings.Contains(reasons[0], tt.reason) {
				t.Errorf("reasons %q, want one about %s", reasons, tt.reason)
			}
			if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), tt.reason) {
				t.Errorf("error %v has no reason", err)
			}
		})
	}
}

func TestSchema_DatabaseMoved_IsRefusedAndSaysWhereTo(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	st := storetest.OpenAt(t, path, nil)
	storetest.Exec(t, path, migrations.PutMoved, "postgres://db/arizuko at noon")
	join := func() error {
		return st.Write(t.Context(), func(tx *store.Tx) error {
			_, _, err := rows.Join(tx, "gated", "host:/data", "127.0.0.1:1", "")
			return err
		})
	}
	wait := func() error {
		return store.WaitSchema(t.Context(), path, migrations.Latest(), func(reason string, _ error) { t.Errorf("waits: %s", reason) })
	}
	for what, err := range map[string]error{"wait": wait(), "join": join()} {
		if !errors.Is(err, store.ErrMoved) || !strings.Contains(err.Error(), "postgres://db/arizuko at noon") || !strings.Contains(err.Error(), "migrate reopen") {
			t.Errorf("%s: %v", what, err)
		}
	}
	storetest.Exec(t, path, migrations.DropMoved)
	if err := errors.Join(wait(), join()); err != nil {
		t.Error(err)
	}
}

func TestWaitSchema_UnusableFile_SaysWhatToDo(t *testing.T) {
	t.Parallel()
	damaged := filepath.Join(t.TempDir(), "damaged.db")
	if err := os.WriteFile(damaged, bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(t.TempDir(), "none.db"): "there is no database yet: run `migrate up`",
		damaged:                               "database damaged: stop all daemons and restore a backup",
		damaged + "/arizuko.db":               "database not readable: check the owner and mode",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), storetest.MaxWait)
		got := ""
		_ = store.WaitSchema(ctx, path, migrations.Latest(), func(reason string, _ error) { got = reason; cancel() })
		cancel()
		if !strings.HasPrefix(got, want) || strings.Contains(got, path) {
			t.Errorf("%s: waits for %q, want %q", path, got, want)
		}
	}
}

func TestWaitSchema_BelowFloor_ReturnsErrSchemaRefused(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	storetest.Exec(t, path, `UPDATE schema_migrations SET version = 99; UPDATE schema_floor SET floor = 50`)
	err := store.WaitSchema(t.Context(), path, 49, func(reason string, _ error) { t.Errorf("waits: %s", reason) })
	if !errors.Is(err, store.ErrSchemaRefused) || !strings.Contains(err.Error(), "schema 49, the floor is 50") {
		t.Errorf("error %v", err)
	}
}

// TestWaitSchema_Migrated_Returns takes a database from missing to migrated.
func TestWaitSchema_Migrated_Returns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "arizuko.db")
	ctx, cancel := context.WithTimeout(t.Context(), storetest.MaxWait)
	defer cancel()
	var reasons []string
	err := store.WaitSchema(ctx, path, migrations.Latest(), func(reason string, _ error) {
		reasons = append(reasons, reason)
		switch len(reasons) {
		case 1:
			if err := os.WriteFile(path, nil, 0o600); err != nil { // migrate has opened it
				t.Error(err)
			}
		case 2:
			if err := storetest.Migrate(path); err != nil {
				t.Error(err)
			}
			storetest.Exec(t, path, `UPDATE schema_migrations SET dirty = true`)
		case 3:
			storetest.Exec(t, path, `UPDATE schema_migrations SET dirty = false`)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"no database yet", "not migrated yet", "running"} {
		if i >= len(reasons) || !strings.Contains(reasons[i], want) {
			t.Fatalf("reasons %q, want one about %s at %d", reasons, want, i)
		}
	}
}

func TestWaitSchema_ContextEnded_ReadsOnce(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	err := store.WaitSchema(ctx, filepath.Join(t.TempDir(), "none.db"), 1, func(string, error) {})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "run `migrate up`") {
		t.Errorf("error %v", err)
	}
}
