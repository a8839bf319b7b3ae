package store

import (
	"context"
	"time"
)

const (
	// maxRunning is how long a transaction may run before readers give up waiting for its rows: one of another program
	// may run for hours. Ours end far sooner.
	maxRunning = 5 * time.Minute
	// floorPause is the least time between two questions to a server about the transactions that run.
	floorPause = 20 * time.Millisecond
)

// Floor is how far a reader has read the rows of a table by their numbers. In a file they become visible in that order. On
// a server only those of one chat do: a row may come behind one that was read, from a transaction that ran then. So a
// reader reads again what comes after the floor, which rises once no such transaction is left. It calls Ask, reads the
// rows, and once it has all of them, calls See for each, and then Raise. The zero value begins before the first row. A Floor belongs to one goroutine.
type Floor struct {
	At   int64 // all rows up to this one were seen
	seen map[int64]bool
	last int64 // the highest of them

	settled int64     // nothing appears up to this row any more; what has, the next read sees
	next    int64     // the same, once all transactions up to this one have ended:
	upto    int64     // 0 if next is not set
	since   time.Time // when it was set
	asked   time.Time // when the server was asked last
}

// FloorAt is the floor of a reader that begins after the rows of now. On a server it first reads some of them again.
func (r Reader) FloorAt(ctx context.Context) (*Floor, error) {
	last, err := r.LastMessageID(ctx)
	f := &Floor{At: last}
	if !r.q.dialect.ordered() {
		const recent = 1000
		f.At = max(last-recent, 0)
	}
	return f, err
}

// See notes that a row was read, and reports whether it is the first time.
func (f *Floor) See(number int64) bool {
	if number <= f.At || f.seen[number] {
		return false
	}
	if f.seen == nil {
		f.seen = map[int64]bool{}
	}
	f.seen[number] = true
	return true
}

// Seen is how many rows after the floor were read.
func (f *Floor) Seen() int { return len(f.seen) }

// Ask asks the server, before the rows are read, which transactions run. It rarely has to.
func (f *Floor) Ask(ctx context.Context, r Reader) error {
	running, err := f.Running(ctx, r)
	if err == nil {
		f.Note(running)
	}
	return err
}

// Running are the transactions that run in a server's database and may write, by their numbers: the oldest and the
// newest, 0 if there are none.
type Running struct{ oldest, newest int64 }

// Running returns what Note needs, nil if it is not the time to ask for that.
func (f *Floor) Running(ctx context.Context, r Reader) (*Running, error) {
	if r.q.dialect.ordered() || f.last <= f.At && f.upto == 0 || time.Since(f.asked) < floorPause {
		return nil, nil
	}
	running := &Running{}
	_, err := r.Get(ctx, []any{&running.oldest, &running.newest}, queryRunning)
	return running, err
}

// Note is Ask with an answer of Running.
func (f *Floor) Note(running *Running) {
	if running == nil {
		return
	}
	f.asked = time.Now()
	if f.upto != 0 && (running.oldest > f.upto || f.asked.Sub(f.since) > maxRunning) {
		f.settled, f.upto = f.next, 0
	}
	switch {
	case running.newest == 0:
		f.settled, f.upto = f.last, 0
	case f.upto == 0 && f.last > f.settled:
		f.next, f.upto, f.since = f.last, running.newest, f.asked
	}
}

// Raise raises the floor as far as it goes, after the visible rows up to one were read; 0: there are none.
func (f *Floor) Raise(r Reader, read int64) {
	f.last = max(f.last, read)
	switch {
	case r.q.dialect.ordered():
		f.Pass(read)
	case read == 0:
		f.Pass(f.settled)
	default:
		f.Pass(min(f.settled, read))
	}
}

// Pass raises the floor to a row up to which no other can appear any more.
func (f *Floor) Pass(to int64) {
	if to <= f.At {
		return
	}
	f.At = to
	for number := range f.seen {
		if number <= to {
			delete(f.seen, number)
		}
	}
}

// queryRunning is of a file, where none run beside a reader; a server has its own.
const queryRunning = `SELECT 0, 0`
