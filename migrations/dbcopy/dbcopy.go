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
	"time"

	"arizuko/migrations"
)

// ErrRefused is an error that a second try does not fix.
var ErrRefused = errors.New("not copied")

// ErrRunning means that a process of the instance uses one of the databases.
var ErrRunning = errors.New("the database is in use")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrRefused, fmt.Errorf(format, args...))
}

// Options are those of both directions. All may be left out.
type Options struct {
	// Progress is called every few thousand rows. An error that it returns ends the copy.
	Progress func(Progress) error
	// At is called at each Point, for tests that end the process there. An error that it returns ends the copy.
	At func(Point) error
	// Confirm is called before the source is marked. An error that it returns ends the copy.
	Confirm func() error
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

// Table is the result for one table.
type Table struct {
	Name string
	Rows int64
	Sum  string // of all rows, whatever their order; in hex
	Last int64  // the last id that was given, 0 if rows are not numbered
}

// Result is the result of a copy.
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

// markTime is between the target's name and the time in a mark.
const markTime = " at "

// mark marks the source: daemons start on it no more.
func (o Options) mark(ctx context.Context, from *database, target string) error {
	if o.Confirm != nil {
		if err := o.Confirm(); err != nil {
			return err
		}
	}
	return from.mark(ctx, target+markTime+time.Now().UTC().Format(time.RFC3339))
}

// ToServer copies a database file to a server's database, which has no rows, and no tables or those of this schema. No
// process of the instance may run: the caller has their locks. It returns an ErrRefused, an ErrRunning, or an error
// after which the same call completes the copy.
func ToServer(ctx context.Context, path, url string, o Options) (Result, error) {
	return o.copy(ctx, path, url, oldNone)
}

// ToFile copies a server's database to a file, which must not exist, have no rows, or be marked as moved. Otherwise it
// is ToServer.
func ToFile(ctx context.Context, url, path string, o Options) (r Result, err error) {
	was, err := examineOld(ctx, path)
	if err != nil {
		return r, err
	}
	if was != oldHasRows {
		defer removeFile(path + partial)
	}
	return o.copy(ctx, url, path, was)
}

// copy has the steps of both directions. was is the state of a target that is a file.
func (o Options) copy(ctx context.Context, source, target string, was old) (r Result, err error) {
	from, err := open(ctx, source)
	if err != nil {
		return r, err
	}
	defer from.close()
	if err := from.beginSource(ctx, fullName(target)); err != nil {
		return r, err
	}
	to, err := openTarget(ctx, target, was)
	if err != nil {
		return r, err
	}
	defer to.close()
	if err := o.at(Begun); err != nil {
		return r, err
	}
	filled := was == oldHasRows
	if !filled {
		if filled, err = to.prepare(ctx, from); err != nil {
			return r, err
		}
	}
	tables, err := tablesOf(ctx, from, to)
	if err != nil {
		return r, err
	}
	if filled {
		return o.compare(ctx, from, to, tables, fullName(target))
	}
	if r, err = o.transfer(ctx, from, to, tables); err != nil {
		return r, err
	}
	if err := errors.Join(to.finish(), to.requireIdle(ctx), from.requireIdle(ctx)); err != nil {
		return r, err
	}
	if err := o.mark(ctx, from, fullName(target)); err != nil {
		return r, err
	}
	if err := o.at(Marked); err != nil {
		return r, err
	}
	if r.Aside, err = to.commitTarget(ctx, target, was); err != nil {
		return r, fmt.Errorf("commit: %w", err)
	}
	return r, o.at(Committed)
}

// Snapshot copies a server's database, as it is at one moment, to a new file. Daemons may write meanwhile.
func Snapshot(ctx context.Context, url, path string, o Options) (r Result, err error) {
	from, err := open(ctx, url)
	if err != nil {
		return r, err
	}
	defer from.close()
	if err := from.beginSnapshot(ctx); err != nil {
		return r, err
	}
	defer func() {
		if err != nil {
			removeFile(path)
		}
	}()
	to, err := makeFile(ctx, path)
	if err != nil {
		return r, err
	}
	defer to.close()
	if _, err := to.prepare(ctx, from); err != nil {
		return r, err
	}
	tables, err := to.tables(ctx)
	if err != nil {
		return r, err
	}
	if r, err = o.transfer(ctx, from, to, tables); err != nil {
		return r, err
	}
	return r, to.finish()
}

// transfer loads all tables and reads them again.
func (o Options) transfer(ctx context.Context, from, to *database, tables []table) (r Result, err error) {
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
	given, err := from.numbers(ctx)
	if err == nil {
		err = to.setNumbers(ctx, given)
	}
	if err != nil {
		return r, fmt.Errorf("number decisions and deliveries: %w", err)
	}
	for i, statement := range to.undo { // the server checks the references
		if err := to.run(ctx, statement); err != nil {
			return r, err
		}
		if err := o.report(Progress{Step: Indexing, Rows: int64(i + 1), Total: int64(len(to.undo))}); err != nil {
			return r, err
		}
	}
	if err := to.complete(ctx); err != nil {
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

func (o Options) loadTable(ctx context.Context, from, to *database, t table) (done Table, cleaned int64, err error) {
	done, cleaned, err = o.read(ctx, from, t, Copying, func(all *rows) error { return to.load(ctx, t, all) })
	if err == nil && t.numbered {
		err = to.setLastID(ctx, t, done.Last)
	}
	return done, cleaned, err
}

// summarize reads a table as it is.
func (o Options) summarize(ctx context.Context, db *database, t table) (done Table, cleaned int64, err error) {
	return o.read(ctx, db, t, Verifying, func(all *rows) error {
		for all.Next() {
			if _, err := all.Values(); err != nil {
				return err
			}
		}
		return nil
	})
}

// read reads the rows of a table to use, and sums them up.
func (o Options) read(ctx context.Context, db *database, t table, step Step, use func(*rows) error) (done Table,
	cleaned int64, err error) {
	total, err := db.count(ctx, t)
	if err != nil {
		return done, 0, err
	}
	all, err := db.read(ctx, t)
	if err != nil {
		return done, 0, err
	}
	defer all.Close()
	all.report = func(p Progress) error { return errors.Join(ctx.Err(), o.report(p)) }
	all.progress = Progress{Step: step, Table: t.name, Total: total}
	if err := errors.Join(use(all), all.Err(), all.Close()); err != nil {
		return done, 0, err
	}
	done = all.table()
	if t.numbered {
		done.Last, err = db.lastID(ctx, t)
	}
	return done, all.cleaned, err
}

// compare is for a target that has rows: they may be those of this copy, whose end was not seen. Then it marks the
// source.
func (o Options) compare(ctx context.Context, from, to *database, tables []table, target string) (r Result,
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
			return r, refuse("the target has rows already, and other ones (%d in table %s, the source has %d): "+
				"choose an empty database",
				got.Rows, t.name, want.Rows)
		}
		r.Tables, r.Cleaned = append(r.Tables, want), r.Cleaned+cleaned
	}
	r.Already = true
	return r, o.mark(ctx, from, target)
}

// Reopen removes the mark of a copy: daemons use the database again, without the rows stored in the other one since. It
// returns the text of the mark, "" if there was none.
func Reopen(ctx context.Context, database string) (moved string, err error) {
	d, err := open(ctx, database)
	if err != nil {
		return "", err
	}
	defer d.close()
	if err := d.requireSchema(ctx); err != nil {
		return "", err
	}
	if moved, err = migrations.Moved(ctx, d.conn); err == nil {
		err = d.run(ctx, migrations.DropMoved)
	}
	return moved, err
}
