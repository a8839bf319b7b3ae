package pg

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const divisionByZero = "22012"

// Scan is the Scan method of a row.
type Scan = func(dest ...any) error

// Pipeline runs the statements of transactions on one connection with as few round trips as it can: one whose result is
// not needed is sent with the next one whose result is, or with the COMMIT.
type Pipeline struct {
	conn      *pgx.Conn
	pending   []statement
	opening   int  // so many of pending begin the transaction
	open      bool // the server has begun it
	onOpen    func()
	flushes   int // how often pending was sent
	unsettled int // so many of pending may fail

	savedAt, savedLength int // flushes and the length of pending at the last savepoint
}

type statement struct {
	text      string
	args      []any
	otherwise error // unless it is nil, the error if the statement divides by zero, see Expect
}

// begin queues the statements that begin a transaction. opened is called once the server has begun it, or could not.
func (p *Pipeline) begin(opened func(), opening ...statement) {
	p.unsettled = 0
	p.pending, p.opening, p.open, p.onOpen = append(p.pending[:0], opening...), len(opening), false, opened
}

// Later queues a statement; its error is that of a later one.
func (p *Pipeline) Later(text string, args []any) {
	p.unsettled++
	p.queue(text, args...)
}

// Expect is Later for a statement that must change a row, else otherwise is its error. The server itself has to find
// that out, by a division by zero: a COMMIT may follow in the same call.
func (p *Pipeline) Expect(otherwise error, text string, args []any) {
	p.unsettled++
	text = "WITH changed AS (" + text + " RETURNING 1) SELECT 1 / count(*) FROM changed"
	p.pending = append(p.pending, statement{text, args, otherwise})
}

// unexpectedError is the error of a statement of Expect that has changed no row.
type unexpectedError struct{ error }

func (e unexpectedError) Unwrap() error { return e.error }

func (p *Pipeline) queue(text string, args ...any) {
	p.pending = append(p.pending, statement{text: text, args: args})
}

// flush sends the queue.
func (p *Pipeline) flush() error {
	if len(p.pending) == 0 {
		return nil
	}
	return p.send(len(p.pending), func(pgx.BatchResults) error { return nil })
}

// Exec runs a statement and returns how many rows it has changed.
func (p *Pipeline) Exec(text string, args []any) (changed int64, err error) {
	p.Later(text, args)
	last := len(p.pending) - 1
	err = p.send(last, func(results pgx.BatchResults) error {
		tag, err := results.Exec()
		changed = tag.RowsAffected()
		return err
	})
	return changed, err
}

// Query runs a query and calls row for each row until it returns false or an error.
func (p *Pipeline) Query(row func(scan Scan) (more bool, err error), text string, args []any) error {
	p.Later(text, args)
	last := len(p.pending) - 1
	return p.send(last, func(results pgx.BatchResults) error {
		rows, err := results.Query()
		if err != nil {
			return err
		}
		defer rows.Close()
		for more := true; more && rows.Next(); {
			if more, err = row(rows.Scan); err != nil {
				return err
			}
		}
		rows.Close()
		return rows.Err()
	})
}

// send sends the queue, reads the results of the first n itself and leaves the others to read.
func (p *Pipeline) send(n int, read func(pgx.BatchResults) error) (err error) {
	batch := &pgx.Batch{}
	for _, s := range p.pending {
		batch.Queue(s.text, s.args...)
	}
	sent, opening := p.pending, p.opening
	p.pending, p.opening = nil, 0
	p.unsettled = 0
	p.flushes++
	results := p.conn.SendBatch(context.Background(), batch)
	defer func() {
		if closing := results.Close(); err == nil {
			err = closing
		}
	}()
	for i := range n {
		var refused *pgconn.PgError
		_, err = results.Exec()
		if sent[i].otherwise != nil && errors.As(err, &refused) && refused.Code == divisionByZero {
			err = unexpectedError{sent[i].otherwise}
		}
		if i < opening && (err != nil || i == opening-1) {
			p.open = err == nil
			p.onOpen()
		}
		if err != nil {
			return err
		}
	}
	return read(results)
}

// Settle sends the queue if it has statements that may fail.
func (p *Pipeline) Settle() error {
	if p.unsettled == 0 {
		return nil
	}
	return p.flush()
}

// Savepoint begins a part of the transaction that Undo takes back.
func (p *Pipeline) Savepoint() {
	p.savedAt, p.savedLength = p.flushes, len(p.pending)
	p.queue("SAVEPOINT verb")
}

// Release ends the part.
func (p *Pipeline) Release() { p.queue("RELEASE verb") }

// Undo goes back to the last savepoint.
func (p *Pipeline) Undo() error {
	p.unsettled = 0
	if p.savedAt == p.flushes { // the server does not know of it
		p.pending = p.pending[:p.savedLength+1]
		return nil
	}
	if err := p.usable(); err != nil {
		return err
	}
	p.pending = p.pending[:0]
	return p.run("ROLLBACK TO verb") // alone: nothing can be prepared after an error
}

// commit sends the queue with a COMMIT and a statement that follows it, unless that is "", and returns the server's tag
// for the COMMIT. Once there is one, nothing that fails later counts.
func (p *Pipeline) commit(then string) (tag string, err error) {
	last := len(p.pending)
	p.queue("COMMIT")
	if then != "" {
		p.queue(then)
	}
	err = p.send(last, func(results pgx.BatchResults) error {
		command, err := results.Exec()
		tag = command.String()
		return err
	})
	return tag, err
}

// run runs a statement alone.
func (p *Pipeline) run(text string) error {
	_, err := p.conn.PgConn().Exec(context.Background(), text).ReadAll()
	return err
}

// inTransaction reports whether the server has a transaction of this connection.
func (p *Pipeline) inTransaction() bool { return p.conn.PgConn().TxStatus() != 'I' }

// usable returns an error if the transaction cannot go on: the connection is lost, or the server has not begun it.
func (p *Pipeline) usable() error {
	switch {
	case p.conn.IsClosed():
		return errConnectionLost
	case !p.open && p.opening == 0:
		return errNotBegun
	}
	return nil
}

var (
	errConnectionLost = errors.New("the connection to the database server is lost")
	errNotBegun       = errors.New("the database server has not begun the transaction")
)
