package main

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"arizuko/migrations/dbcopy"
	"arizuko/pkg/lockfile"
)

// checkLocks returns a dbcopy.ErrRunning if a daemon runs on the data folder that needs a newer schema than target, or
// that does not say yet which one it needs.
func (c config) checkLocks(target int) error {
	folder := filepath.Dir(c.lockPath())
	names, err := fs.Glob(os.DirFS(folder), "*.lock")
	if err != nil {
		return err
	}
	var running []string
	for _, file := range names {
		name := strings.TrimSuffix(file, ".lock")
		if slices.Contains([]string{"migrate", "launcher", "backup"}, name) {
			continue
		}
		path := filepath.Join(folder, file)
		lock, err := lockfile.TryLock(path)
		if err == nil {
			lock.Close()
			continue
		}
		held := new(lockfile.HeldError)
		if !errors.As(err, &held) {
			return err
		}
		needs := math.MaxInt
		content, _ := os.ReadFile(path)
		for line := range strings.Lines(string(content)) {
			_, _ = fmt.Sscanf(line, "schema %d", &needs)
		}
		if needs > target {
			running = append(running, fmt.Sprintf("%s (%s)", name, held))
		}
	}
	return needMore(running, target)
}

// checkConnections is checkLocks for the daemons of all machines that use a server.
func (s *schema) checkConnections(target int) error {
	if s.cfg.server == "" {
		return nil
	}
	var running []string
	err := each(s.db, func(rows *sql.Rows) error {
		var from string
		err := rows.Scan(&from)
		running = append(running, from)
		return err
	}, `SELECT DISTINCT 'a connection of '||application_name||' from '||coalesce(host(client_addr), 'the server''s machine')
		FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
		AND application_name ~ '^arizuko(/[0-9]+)?$' AND coalesce(substring(application_name FROM '[0-9]+')::int, $1 + 1) > $1`,
		target)
	if err != nil {
		return err
	}
	return needMore(running, target)
}

func needMore(running []string, target int) error {
	if running == nil {
		return nil
	}
	return fmt.Errorf("%w: %s cannot work with schema %d: stop the new daemons first. "+
		"Those of the version that you go back to may run. Nothing was changed",
		dbcopy.ErrRunning, strings.Join(running, ", "), target)
}
