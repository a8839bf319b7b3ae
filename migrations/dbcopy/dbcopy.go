// Package dbcopy copies all rows of an instance from its database file to a database of a Postgres server, or back, and
// proves that they have arrived.
//
// A copy is one transaction of the source and one of the target. Both have read all rows before either is committed,
// and first the source's is, which marks it as moved. So a process that is killed leaves a target without rows, or a
// whole one, and a source that either is as it was or says that it must not be used: the same call completes the copy.
package dbcopy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// ErrRefused is an error that a second try does not fix.
var ErrRefused = errors.New("not copied")

// ErrRunning means that a process of the instance uses one of the databases.
var ErrRunning = errors.New("the database is in use")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrRefused, fmt.Errorf(format, args...))
}

// Options are what both directions take. All may be left out.
type Options struct {
	// Progress is called every few thousand rows. An error that it returns ends the copy.
	Progress func(Progress) error
	// At is called at each of the Points, for tests that end the process there. An error that it returns ends the copy.
	At func(Point) error
	// Confirm is called before the source is marked. An error that it returns ends the copy.
	Confirm func() error
	// Now is the time that the source's mark gets.
	Now func() time.Time
}

// Progress says how far a step is.
type Progress struct {
	Step  Step
	Table string // "" while indexes are made
	Rows  int64  // of the table so far; or indexes and references
	Total int64
}

func (p Progress) String() string {
	if p.Table == "" {
		return fmt.Sprintf("%d of %d %s", p.Rows, p.Total, p.Step)
	}
	return fmt.Sprintf("%s: %d of %d %s", p.Table, p.Rows, p.Total, p.Step)
}

// Step is a part of a copy that takes long.
type Step string

// The steps in their order.
const (
	Copying   Step = "rows copied"
	Indexing  Step = "indexes and references made"
	Verifying Step = "rows verified"
)

// Point is a moment of a copy after which the databases are in another state.
type Point string

// The points in their order.
const (
	Begun     Point = "begun"     // the source is locked, the target has no schema yet
	Prepared  Point = "prepared"  // the target has the schema, without indexes
	Loaded    Point = "loaded"    // it has all rows
	Verified  Point = "verified"  // they are those of the source
	Marked    Point = "marked"    // the source is marked as moved, the target is not committed
	Committed Point = "committed" // the target is committed, or has its name
)

// Points lists all points.
func Points() []Point { return []Point{Begun, Prepared, Loaded, Verified, Marked, Committed} }

// Table is what was copied of a table.
type Table struct {
	Name string
	Rows int64
	Sum  string // of all rows, whatever their order; in hex
	Last int64  // the last id that was given, 0 if rows are not numbered
}

// Result says what a copy has done.
type Result struct {
	Tables  []Table
	Cleaned int64  // texts with characters that a server does not take, which were left out
	Already bool   // the target had all rows already
	Aside   string // where a former database file was moved, "" if there was none
}

// Rows is the number of all rows.
func (r Result) Rows() (n int64) {
	for _, t := range r.Tables {
		n += t.Rows
	}
	return n
}

func (o Options) report(p Progress) error {
	if o.Progress == nil {
		return nil
	}
	return o.Progress(p)
}

func (o Options) at(p Point) error {
	if o.At == nil {
		return nil
	}
	return o.At(p)
}

// source is a database whose rows may be marked as moved.
type source interface {
	database
	// moved returns what the mark says, "" if there is none.
	moved(ctx context.Context) (string, error)
	// mark sets the mark and commits it.
	mark(ctx context.Context, moved string) error
}

// markTime is between the target's name and the time in a mark.
const markTime = " at "

// mark marks the source: daemons start on it no more.
func (o Options) mark(ctx context.Context, from source, target string) error {
	if o.Confirm != nil {
		if err := o.Confirm(); err != nil {
			return err
		}
	}
	now := time.Now
	if o.Now != nil {
		now = o.Now
	}
	return from.mark(ctx, target+markTime+now().UTC().Format(time.RFC3339))
}

// requireCurrent returns an ErrRefused if the rows of a source are old: they were copied to another database than this
// one.
func requireCurrent(ctx context.Context, from source, target string) error {
	moved, err := from.moved(ctx)
	if err == nil && moved != "" && !strings.HasPrefix(moved, target+markTime) {
		err = refuse("the source was copied to %s, its rows may be old: copy from there, or run `migrate reopen` first",
			moved)
	}
	return err
}

// ToServer copies a database file to a server's database, which has no rows, and no tables or those of this schema. No
// process of the instance may run: the caller has their locks. It returns an ErrRefused, an ErrRunning, or an error
// after which the same call completes the copy.
func ToServer(ctx context.Context, path, url string, o Options) (r Result, err error) {
	from, err := openFile(ctx, path)
	if err != nil {
		return r, err
	}
	defer from.close()
	to, err := openServer(ctx, url)
	if err != nil {
		return r, err
	}
	defer to.close()
	tables, err := from.tables(ctx)
	if err != nil {
		return r, err
	}
	if err := from.begin(ctx); err != nil {
		return r, err
	}
	if err := requireCurrent(ctx, from, Name(url)); err != nil {
		return r, err
	}
	if err := to.begin(ctx); err != nil {
		return r, err
	}
	if err := o.at(Begun); err != nil {
		return r, err
	}
	copied, err := to.prepare(ctx, tables)
	if err != nil {
		return r, err
	}
	if copied {
		return o.compare(ctx, from, to, tables, Name(url))
	}
	if r, err = o.transfer(ctx, from, to, tables); err != nil {
		return r, err
	}
	if err := to.requireIdle(ctx); err != nil {
		return r, err
	}
	if err := o.mark(ctx, from, Name(url)); err != nil {
		return r, err
	}
	if err := o.at(Marked); err != nil {
		return r, err
	}
	if err := to.commit(ctx); err != nil {
		return r, fmt.Errorf("commit: %w", err)
	}
	return r, o.at(Committed)
}

// ToFile copies a server's database to a file, which must not exist, have no rows, or be marked as moved. Otherwise it
// is ToServer.
func ToFile(ctx context.Context, url, path string, o Options) (r Result, err error) {
	old, err := examineOld(ctx, path)
	if err != nil {
		return r, err
	}
	from, err := openServer(ctx, url)
	if err != nil {
		return r, err
	}
	defer from.close()
	if err := from.begin(ctx); err != nil {
		return r, err
	}
	if err := from.requireSchema(ctx); err != nil {
		return r, err
	}
	if err := requireCurrent(ctx, from, hostPath(path)); err != nil {
		return r, err
	}
	if err := o.at(Begun); err != nil {
		return r, err
	}
	if old == oldHasRows {
		return o.compareFile(ctx, from, path)
	}
	defer removeFile(path + partial)
	if r, err = o.fill(ctx, from, path+partial); err != nil {
		return r, err
	}
	if err := from.requireIdle(ctx); err != nil {
		return r, err
	}
	if err := o.mark(ctx, from, hostPath(path)); err != nil {
		return r, err
	}
	if err := o.at(Marked); err != nil {
		return r, err
	}
	if r.Aside, err = replace(path, old); err != nil {
		return r, err
	}
	return r, o.at(Committed)
}

// Snapshot copies a server's database, as it is at one moment, to a new file. Daemons may write meanwhile.
func Snapshot(ctx context.Context, url, path string, o Options) (r Result, err error) {
	from, err := openServer(ctx, url)
	if err != nil {
		return r, err
	}
	defer from.close()
	if err := from.beginSnapshot(ctx); err != nil {
		return r, err
	}
	if r, err = o.fill(ctx, from, path); err != nil {
		removeFile(path)
	}
	return r, err
}

// fill makes a database file with all rows of a server, on disk.
func (o Options) fill(ctx context.Context, from *server, path string) (r Result, err error) {
	to, err := makeFile(ctx, path)
	if err != nil {
		return r, err
	}
	defer to.close()
	tables, err := to.tables(ctx)
	if err != nil {
		return r, err
	}
	if err := to.prepare(ctx); err != nil {
		return r, err
	}
	if r, err = o.transfer(ctx, from, to, tables); err != nil {
		return r, err
	}
	return r, to.finish(ctx)
}

// database is a side of a copy.
type database interface {
	// read returns the rows of a table, without those that are no part of a copy.
	read(ctx context.Context, t table) (rows, error)
	count(ctx context.Context, t table) (int64, error)
	// lastID is the last id that was given to a row of a numbered table.
	lastID(ctx context.Context, t table) (int64, error)
}

// target is a database without rows.
type target interface {
	database
	load(ctx context.Context, t table, all rows) error
	setLastID(ctx context.Context, t table, id int64) error
	// complete makes what slows loading down: indexes, references, triggers.
	complete(ctx context.Context, progress func(done, total int) error) error
}

// transfer loads all tables and reads them again.
func (o Options) transfer(ctx context.Context, from database, to target, tables []table) (r Result, err error) {
	if err := o.at(Prepared); err != nil {
		return r, err
	}
	for _, t := range tables {
		done, cleaned, err := o.loadTable(ctx, from, to, t)
		if err != nil {
			return r, fmt.Errorf("table %s: %w", t.name, err)
		}
		r.Tables, r.Cleaned = append(r.Tables, done), r.Cleaned+cleaned
	}
	err = to.complete(ctx, func(done, total int) error {
		return o.report(Progress{Step: Indexing, Rows: int64(done), Total: int64(total)})
	})
	if err != nil {
		return r, err
	}
	if err := o.at(Loaded); err != nil {
		return r, err
	}
	for i, t := range tables {
		got, _, err := o.summarize(ctx, to, t)
		if err == nil && got != r.Tables[i] {
			err = fmt.Errorf("the target has %+v, the source %+v: nothing was copied", got, r.Tables[i])
		}
		if err != nil {
			return r, fmt.Errorf("verify table %s: %w", t.name, err)
		}
	}
	return r, o.at(Verified)
}

func (o Options) loadTable(ctx context.Context, from database, to target, t table) (done Table, cleaned int64,
	err error) {
	all, err := o.open(ctx, from, t, Copying)
	if err != nil {
		return done, 0, err
	}
	defer all.Close()
	if err := errors.Join(to.load(ctx, t, all), all.Err()); err != nil {
		return done, 0, err
	}
	done = all.table()
	if t.numbered {
		if done.Last, err = from.lastID(ctx, t); err == nil {
			err = to.setLastID(ctx, t, done.Last)
		}
	}
	return done, all.cleaned, err
}

// summarize reads a table as it is.
func (o Options) summarize(ctx context.Context, db database, t table) (done Table, cleaned int64, err error) {
	all, err := o.open(ctx, db, t, Verifying)
	if err != nil {
		return done, 0, err
	}
	defer all.Close()
	for all.Next() {
		if _, err := all.Values(); err != nil {
			return done, 0, err
		}
	}
	if err := all.Err(); err != nil {
		return done, 0, err
	}
	done = all.table()
	if t.numbered {
		done.Last, err = db.lastID(ctx, t)
	}
	return done, all.cleaned, err
}

// open returns the rows of a table, which count and report themselves.
func (o Options) open(ctx context.Context, db database, t table, step Step) (*summedRows, error) {
	total, err := db.count(ctx, t)
	if err != nil {
		return nil, err
	}
	all, err := db.read(ctx, t)
	if err != nil {
		return nil, err
	}
	report := func(p Progress) error { return errors.Join(ctx.Err(), o.report(p)) }
	return &summedRows{rows: all, report: report, Progress: Progress{Step: step, Table: t.name, Total: total}}, nil
}

// compare is for a target that has rows: they may be those of this copy, whose end was not seen. Then it marks the
// source.
func (o Options) compare(ctx context.Context, from source, to database, tables []table, target string) (r Result,
	err error) {
	for _, t := range tables {
		want, cleaned, err := o.summarize(ctx, from, t)
		if err != nil {
			return r, err
		}
		got, _, err := o.summarize(ctx, to, t)
		if err != nil {
			return r, err
		}
		if got != want {
			return r, refuse("the target has rows already, and other ones (%d in table %s, the source has %d): choose an empty database",
				got.Rows, t.name, want.Rows)
		}
		r.Tables, r.Cleaned = append(r.Tables, want), r.Cleaned+cleaned
	}
	r.Already = true
	return r, o.mark(ctx, from, target)
}

func (o Options) compareFile(ctx context.Context, from *server, path string) (r Result, err error) {
	to, err := openFile(ctx, path)
	if err != nil {
		return r, err
	}
	defer to.close()
	tables, err := to.tables(ctx)
	if err != nil {
		return r, err
	}
	return o.compare(ctx, from, to, tables, hostPath(path))
}

// Reopen removes the mark of a copy: daemons use the database again, without what was stored in the other one since. It
// returns what the mark said, "" if there was none.
func Reopen(ctx context.Context, database string) (moved string, err error) {
	if IsServer(database) {
		s, err := openServer(ctx, database)
		if err != nil {
			return "", err
		}
		defer s.close()
		return s.reopen(ctx)
	}
	if _, err := os.Stat(database); err != nil {
		return "", refuse("%w", err)
	}
	f, err := openFile(ctx, database)
	if err != nil {
		return "", err
	}
	defer f.close()
	return f.reopen(ctx)
}
