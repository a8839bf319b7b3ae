package main

import (
	"cmp"
	"database/sql"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/disk"
)

// counts is how many rows the tables have.
type counts map[string]int64

// count counts the rows of each table.
func (s *schema) count() (counts, error) {
	query := `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name <> 'schema_migrations'`
	if s.cfg.server != "" {
		query = `SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename <> 'schema_migrations'`
	}
	all := counts{}
	err := each(s.db, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		all[name] = 0
		return err
	}, query)
	for name := range all {
		var n int64
		if err == nil {
			err = s.db.QueryRow(`SELECT count(*) FROM ` + quoted(name)).Scan(&n)
		}
		all[name] = n
	}
	if err != nil {
		return nil, fmt.Errorf("count rows: %w", err)
	}
	return all, nil
}

// change is the result of a change of the schema.
type change struct {
	from, to                         version
	floor                            int // of the schema now
	before, after                    counts
	kept                             string // path of the copy, "" for none
	began, checked, copied, migrated time.Time
	size                             struct{ before, after int64 } // of the database and its log, in bytes
}

// lines are the receipt: which tables have other rows than before, how long it took, and how much the database takes.
func (c *change) lines() []string {
	took := func(from, to time.Time) time.Duration { return to.Sub(from).Round(10 * time.Millisecond) }
	changed, same := compare(c.before, c.after)
	lines := []string{
		fmt.Sprintf("schema %s -> %s in %s: references and rows checked in %s, copy %s, migration %s", c.from, c.to,
			took(c.began, c.migrated),
			took(c.began, c.checked), took(c.checked, c.copied), took(c.copied, c.migrated)),
		"tables with another number of rows than before: " + cmp.Or(strings.Join(changed, "; "), "none"),
		"unchanged: " + cmp.Or(strings.Join(same, ", "), "none"),
	}
	if c.size.after > 0 {
		lines = append(lines, fmt.Sprintf("disk: the database takes %s, with its log, before it took %s",
			disk.Bytes(c.size.after), disk.Bytes(c.size.before)))
	}
	return lines
}

// compare lists the tables that have lost or gained rows, and the others that have some.
func compare(before, after counts) (changed, same []string) {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		was := before[name]
		now, there := after[name]
		switch {
		case was == 0 && now == 0:
		case !there:
			changed = append(changed, fmt.Sprintf("%s %d, now there is no such table", name, was))
		case was != now:
			changed = append(changed, fmt.Sprintf("%s %d, now %d", name, was, now))
		default:
			same = append(same, fmt.Sprintf("%s %d", name, was))
		}
	}
	return changed, same
}

// wayBack has the exact commands that undo the change: the steps back of this program, and the copy.
func (c *change) wayBack(cfg config) (lines []string) {
	if c.to.number < c.from.number {
		return []string{"the way back: `migrate up`"}
	}
	stop := "stop the new daemons first; those of before may run, they work with both schemas"
	if c.floor > c.from.number {
		stop = "stop all daemons first"
	}
	lines = append(lines, fmt.Sprintf("the way back to schema %s, with what was stored since (%s):", c.from, stop),
		"  "+cfg.command("down", c.to.number-c.from.number))
	if cfg.server != "" {
		lines = append(lines, "  with ARIZUKO_DB as it is now")
	}
	if c.kept == "" {
		return lines
	}
	path := absolute(cfg.dbPath())
	return append(lines,
		fmt.Sprintf("the way back to the copy of %s, without what was stored since (stop all daemons and "+
			"commands first):",
			c.copied.Format(time.DateTime)),
		fmt.Sprintf("  rm -f %s %s && mv %s %s", shell(path+"-wal"), shell(path+"-shm"), shell(absolute(c.kept)),
			shell(path)),
		"then start the programs of before; the next migration replaces the copy")
}

// command is a call of this program for this instance, as a shell reads it. The URL of a server has a password: it is
// left out.
func (c config) command(args ...any) string {
	program, err := os.Executable()
	if err != nil {
		program = "migrate"
	}
	return strings.TrimSpace(fmt.Sprintln(append([]any{"ARIZUKO_DATA=" + shell(absolute(c.data)), shell(program)},
		args...)...))
}

func absolute(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

// shell quotes a word for a shell, where it has to be.
func shell(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
