// Package foreign is an adapter as somebody who does not use the suite's own packages for
// it would write one: plain SQL on the shared file, with no more columns than an adapter must
// name. Tests and load drivers play the platforms with it, so they also hold the suite to what
// it promises such adapters.
package foreign

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"

	"arizuko/pkg/msg"
	"arizuko/pkg/wake"
)

// The daemons that read on.
const (
	gated = "gated"
	routd = "routd"
)

// ErrNotQueued is the answer to a report on a row that waits for no delivery: it was never
// outbound, was cancelled, or has been reported on.
var ErrNotQueued = errors.New("the row is not queued")

// Adapter serves any number of platforms. It is safe for concurrent use.
type Adapter struct {
	db     *sql.DB
	poker  *wake.Poker
	opened string       // makes the platform ids of two adapters differ
	serial atomic.Int64 // of the platform ids made up
}

// Open opens the migrated database of a data folder. pokeFailed is told when a daemon that is
// there cannot be woken, which only costs time: it looks by itself, too.
func Open(data string, pokeFailed func(daemon string, err error)) (*Adapter, error) {
	path := filepath.Join(data, "arizuko.db")
	// _txlock: a transaction that reads first and writes later fails when another got in between.
	db, err := sql.Open("sqlite3", "file:"+path+"?mode=rw&_busy_timeout=20000&_txlock=immediate&_foreign_keys=true")
	if err != nil {
		return nil, err
	}
	if err := db.Ping(); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.Close())
	}
	return &Adapter{
		db: db, poker: wake.NewPoker(filepath.Join(data, "run"), pokeFailed),
		opened: strconv.FormatInt(time.Now().UnixNano(), 36),
	}, nil
}

// Close lets go of the database.
func (a *Adapter) Close() error {
	a.poker.Close()
	return a.db.Close()
}

// Receive stores what people wrote, in one transaction, and wakes gated. It returns the row ids;
// a message that came before, as its chat and platform id tell, keeps the row it has. What a row
// must have and does not say gets a value: a platform id of its own, a sender, the verb "message",
// the time being, the source "foreign".
func (a *Adapter) Receive(ctx context.Context, rows ...msg.Message) (ids []int64, err error) {
	if ids, err = a.Insert(ctx, rows...); err == nil {
		a.poker.Poke(gated)
	}
	return ids, err
}

// Insert is Receive without waking gated, which finds the rows when it looks by itself.
func (a *Adapter) Insert(ctx context.Context, rows ...msg.Message) (ids []int64, err error) {
	tx, err := a.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() //nolint:errcheck // nothing to undo after the commit
	for i := range rows {
		id, err := a.insert(ctx, tx, &rows[i])
		if err != nil {
			return nil, fmt.Errorf("insert %.80q of %s: %w", rows[i].Content, rows[i].ChatJID, err)
		}
		ids = append(ids, id)
	}
	return ids, tx.Commit()
}

func (a *Adapter) insert(ctx context.Context, tx *sql.Tx, m *msg.Message) (id int64, err error) {
	platform, _ := msg.SplitJID(m.ChatJID)
	platformID := cmp.Or(m.PlatformID, fmt.Sprintf("%s-%d", a.opened, a.serial.Add(1)))
	received := cmp.Or(m.ReceivedAt, time.Now().UnixMilli())
	columns := []string{"chat_jid", "platform_id", "direction", "sender", "sender_name", "verb", "content", "topic",
		"timestamp", "received_at", "source"}
	values := []any{m.ChatJID, platformID, msg.In, cmp.Or(m.Sender, platform+":7"), cmp.Or(m.SenderName, "bob"),
		cmp.Or(m.Verb, msg.VerbMessage), m.Content, m.Topic, cmp.Or(m.Timestamp, received), received,
		cmp.Or(m.Source, "foreign")}
	option := func(column string, value any, set bool) {
		if set {
			columns, values = append(columns, column), append(values, value)
		}
	}
	option("thread_id", m.ThreadID, m.ThreadID != "")
	option("reply_to_id", m.ReplyToID, m.ReplyToID != "")
	option("target_id", m.TargetID, m.TargetID != "")
	option("addressed", m.Addressed, m.Addressed)
	option("is_bot_message", m.IsBot, m.IsBot)
	option("pending_files", m.PendingFiles, m.PendingFiles != 0)
	if m.ForwardedFrom != nil {
		option("forwarded_from", m.ForwardedFrom.JSON(), true)
	}
	marks := strings.TrimSuffix(strings.Repeat("?,", len(columns)), ",")
	err = tx.QueryRowContext(ctx, `INSERT INTO messages (`+strings.Join(columns, ", ")+`) VALUES (`+marks+`)
		ON CONFLICT (chat_jid, platform_id) WHERE platform_id IS NOT NULL DO NOTHING RETURNING id`, values...).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		err = tx.QueryRowContext(ctx, `SELECT id FROM messages WHERE chat_jid = ? AND platform_id = ?`, m.ChatJID, platformID).Scan(&id)
	}
	return id, err
}

// Outbound is what an adapter has to know of a row in order to send it.
type Outbound struct {
	ID        int64
	ChatJID   string
	ThreadID  string // "" outside of threads
	ReplyToID string // the platform id of the message to be quoted, "" for none
	Kind      msg.Kind
	Content   string
	Source    string // which part of the suite wrote it
}

// Queued lists a platform's rows that wait to be sent, in the order in which they have to be.
func (a *Adapter) Queued(ctx context.Context, platform string) (all []Outbound, err error) {
	rows, err := a.db.QueryContext(ctx, `SELECT id, chat_jid, thread_id, ifnull(reply_to_id, ''), kind, content, source
		FROM messages WHERE platform = ? AND out_state = 'queued' ORDER BY id`, platform)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var o Outbound
		if err := rows.Scan(&o.ID, &o.ChatJID, &o.ThreadID, &o.ReplyToID, &o.Kind, &o.Content, &o.Source); err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, rows.Err()
}

// Sent reports that a queued row has arrived, as platformID ("" if the platform gives no ids). The
// zero time is now. Other errors than ErrNotQueued come from the database.
func (a *Adapter) Sent(ctx context.Context, id int64, platformID string, at time.Time) error {
	return a.report(ctx, id, report{state: msg.OutSent, platformID: platformID, at: at})
}

// Failed reports, as Sent does, that a queued row will never arrive, and why.
func (a *Adapter) Failed(ctx context.Context, id int64, why string, at time.Time) error {
	return a.report(ctx, id, report{state: msg.OutFailed, class: msg.Permanent, why: why, at: at})
}

type report struct {
	state      msg.OutState
	platformID string
	class      msg.ErrorClass
	why        string
	at         time.Time
}

// report keeps the row and its only part in step, and wakes routd: what arrives begins an
// engagement.
func (a *Adapter) report(ctx context.Context, id int64, r report) error {
	tx, err := a.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // nothing to undo after the commit
	res, err := tx.ExecContext(ctx, `UPDATE messages SET out_state = ?, platform_id = nullif(?, '') WHERE id = ? AND out_state = 'queued'`,
		r.state, r.platformID, id)
	if err != nil {
		return fmt.Errorf("report on row %d: %w", id, err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return cmp.Or(err, fmt.Errorf("report on row %d: %w", id, ErrNotQueued))
	}
	if r.at.IsZero() {
		r.at = time.Now()
	}
	if _, err = tx.ExecContext(ctx, `INSERT INTO deliveries (message_id, part, state, attempts, platform_id, error_class, error, updated_at)
		VALUES (?, 0, ?, 1, nullif(?, ''), nullif(?, ''), nullif(?, ''), ?)`,
		id, r.state, r.platformID, r.class, r.why, r.at.UnixMilli()); err != nil {
		return fmt.Errorf("report on row %d: %w", id, err)
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	a.poker.Poke(routd)
	return nil
}
