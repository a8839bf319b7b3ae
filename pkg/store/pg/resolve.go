package pg

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// A row of the table counters, with this prefix in its name, is the mark of a writer: each of its
// transactions sets it to the transaction's number. So one that has lost the connection during a commit reads
// from the row whether there was one. Unlike the status of a transaction id, it says so on a standby that was promoted,
// too, which gives ids to other transactions that the former primary had given already; and the row's lock says whether
// the transaction still runs.
const (
	markPrefix  = "writer/"
	markMaxAge  = 7 * 24 * time.Hour // marks of processes that ended without removing theirs
	resolveWait = answerTimeout - 5*time.Second
)

// newMark names the mark of a writer that starts now.
func newMark(now time.Time) string { return markBefore(now) + "/" + rand.Text() }

// markBefore sorts after all marks of processes that started before a time.
func markBefore(at time.Time) string { return fmt.Sprintf("%s%013d", markPrefix, at.UnixMilli()) }

// putMark stores the mark.
func (w *Writer) putMark(ctx context.Context) error {
	_, err := w.pipe.conn.Exec(ctx, setMark, w.mark, w.next())
	return err
}

// removeOldMarks removes those that ended processes have left.
func (w *Writer) removeOldMarks(ctx context.Context) error {
	_, err := w.pipe.conn.Exec(ctx, "DELETE FROM counters WHERE name > $1 AND name < $2", markPrefix,
		markBefore(time.Now().Add(-markMaxAge)))
	return err
}

// removeMark is for a writer that ends. That it fails does no harm.
func (w *Writer) removeMark(ctx context.Context) {
	_, _ = w.runContext(ctx, "DELETE FROM counters WHERE name = '"+w.mark+"'")
}

// setMark gives a transaction its number. It fails, by a division by zero, if the mark has that or a higher one:
// resolve has given up a transaction that the network held up.
const setMark = `INSERT INTO counters (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE
	SET value = excluded.value / CASE WHEN counters.value < excluded.value THEN 1 ELSE 0 END`

// resolve finds out whether a transaction was committed whose end the lost connection did not say. It retries until the
// server says so: neither answer may be guessed.
func (w *Writer) resolve(cause error) error {
	for {
		w.disconnect()
		committed, err := w.wasCommitted(w.count)
		switch {
		case err == nil && committed:
			return nil
		case err == nil:
			w.count++ // the mark has it
			return cause
		case errors.Is(err, errUnresolved):
			return fmt.Errorf("%w: %w", err, cause)
		}
		select {
		case <-time.After(resolvePause):
		case <-w.db.closed:
			return fmt.Errorf("%w: %w (%w)", errUnresolved, cause, err)
		}
	}
}

// wasCommitted reports whether this writer has committed its transaction with a number, on a new connection. As long
// as that transaction runs, perhaps because the server does not know yet that its connection is lost, it returns an
// error. One that it reports as not committed will never be: the mark gets a higher number. One that it reports as
// committed is on the synchronous standby, too, if there is one: a commit whose wait for it was ended, as by a restart
// of the server, can be seen although it is on the primary alone, and is lost if that fails. A commit after it waits
// for both.
func (w *Writer) wasCommitted(number int64) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	if err := w.connect(ctx); err != nil {
		return false, err
	}
	value, err := w.run("BEGIN; SET LOCAL lock_timeout = " + strconv.FormatInt(resolveWait.Milliseconds(), 10) +
		"; SELECT value FROM counters WHERE name = '" + w.mark + "' FOR UPDATE")
	if err != nil {
		return false, err
	}
	last, err := strconv.ParseInt(value, 10, 64)
	if err != nil { // no row
		return false, errUnresolved
	}
	mark := last
	if last < number {
		mark = number + 1
	}
	_, err = w.run("UPDATE counters SET value = " + strconv.FormatInt(mark, 10) + " WHERE name = '" + w.mark +
		"'; COMMIT")
	return last == number, err
}

// errUnresolved means that it will never be known whether a transaction was committed: the process ended before the
// server could say so, or the mark was deleted by hand.
var errUnresolved = errors.New("it is not known whether the database has stored this")
