// Package foreign is a third-party adapter, written without the suite's adapter packages: plain SQL on the
// shared database, with only the columns that an adapter must set. Tests and load generators use it
// to simulate platforms, which also checks the guarantees of the suite to third-party adapters.
package foreign

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	"arizuko/pkg/wake"
)

// The daemons that an adapter pokes.
const (
	gated = "gated"
	routd = "routd"
)

// What a transaction on a server begins and ends with: it waits for its turn to write, so that the ids of rows grow in
// the order of commits, and it pokes a daemon on whichever machine that is.
const (
	waitForTurn = `SELECT pg_advisory_xact_lock(hashtext('arizuko.write'))`
	notify      = `SELECT pg_notify('arizuko/' || ?, '')`
)

// ErrNotQueued is returned for a report on a row that is not queued: it is inbound or cancelled, or was
// reported before.
var ErrNotQueued = errors.New("row is not queued")

// Adapter serves any number of platforms. It is safe for concurrent use.
type Adapter struct {
	db     *sql.DB
	server bool         // the database is on a server
	poker  *wake.Poker  // of the daemons on a file
	opened string       // makes the generated platform ids of two adapters differ
	serial atomic.Int64 // of generated platform ids
}

// Open opens a migrated database, a file or the URL of one on a server, of a data folder. pokeFailed is called when a
// running daemon cannot be poked. That only costs time, since daemons also poll.
func Open(database, data string, pokeFailed func(daemon string, err error)) (*Adapter, error) {
	db, err := storetest.OpenSQL(database)
	if err != nil {
		return nil, err
	}
	if err := db.Ping(); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", store.Name(database), err), db.Close())
	}
	return &Adapter{
		db: db, server: store.IsServer(database), poker: wake.NewPoker(filepath.Join(data, "run"), pokeFailed),
		opened: strconv.FormatInt(time.Now().UnixNano(), 36),
	}, nil
}

// Close closes the database.
func (a *Adapter) Close() error {
	a.poker.Close()
	return a.db.Close()
}

// Receive stores inbound messages in one transaction and pokes gated. It returns the row ids. A message
// with the chat and platform id of an existing row keeps that row. Required fields that are empty get
// values: a unique platform id, a sender, the verb "message", the current time, the source "foreign".
func (a *Adapter) Receive(ctx context.Context, rows ...msg.Message) ([]int64, error) {
	return a.store(ctx, gated, rows)
}

// Insert is Receive without the poke. Gated finds the rows when it polls.
func (a *Adapter) Insert(ctx context.Context, rows ...msg.Message) ([]int64, error) {
	return a.store(ctx, "", rows)
}

func (a *Adapter) store(ctx context.Context, poked string, rows []msg.Message) (ids []int64, err error) {
	err = a.write(ctx, poked, func(tx *sql.Tx) error {
		for i := range rows {
			id, err := a.insert(ctx, tx, &rows[i])
			if err != nil {
				return fmt.Errorf("insert %.80q of %s: %w", rows[i].Content, rows[i].ChatJID, err)
			}
			ids = append(ids, id)
		}
		return nil
	})
	return ids, err
}

// write commits the writes of a function, and pokes a daemon, "" for none.
func (a *Adapter) write(ctx context.Context, poked string, fn func(*sql.Tx) error) error {
	tx, err := a.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after the commit
	if a.server {
		if _, err := tx.ExecContext(ctx, waitForTurn); err != nil {
			return err
		}
	}
	if err := fn(tx); err != nil {
		return err
	}
	if a.server && poked != "" {
		if _, err := tx.ExecContext(ctx, notify, poked); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	if !a.server && poked != "" {
		a.poker.Poke(poked)
	}
	return nil
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
	if len(m.Attachments) > 0 {
		files, err := json.Marshal(m.Attachments)
		if err != nil {
			return 0, err
		}
		option("attachments", string(files), true)
	}
	if m.ForwardedFrom != nil {
		option("forwarded_from", m.ForwardedFrom.JSON(), true)
	}
	marks := strings.TrimSuffix(strings.Repeat("?,", len(columns)), ",")
	err = tx.QueryRowContext(ctx, `INSERT INTO messages (`+strings.Join(columns, ", ")+`) VALUES (`+marks+`)
		ON CONFLICT (chat_jid, platform_id) WHERE platform_id IS NOT NULL DO NOTHING RETURNING id`, values...).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		err = tx.QueryRowContext(ctx, `SELECT id FROM messages WHERE chat_jid = ? AND platform_id = ?`, m.ChatJID,
			platformID).Scan(&id)
	}
	return id, err
}

// Outbound has the fields of a row that an adapter needs to send it.
type Outbound struct {
	ID        int64
	ChatJID   string
	ThreadID  string // "" outside of threads
	ReplyToID string // platform id of the message that it replies to, "" for none
	Kind      msg.Kind
	Content   string
	Source    string // the part of the suite that wrote it
}

// Queued lists the queued rows of a platform, in sending order.
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

// Sent reports that a queued row was sent and has a platform id, "" if the platform has none. The zero
// time means now. It returns ErrNotQueued or an error of the database.
func (a *Adapter) Sent(ctx context.Context, id int64, platformID string, at time.Time) error {
	return a.report(ctx, id, report{state: msg.OutSent, platformID: platformID, at: at})
}

// Failed is Sent for a queued row that failed permanently, with the reason.
func (a *Adapter) Failed(ctx context.Context, id int64, reason string, at time.Time) error {
	return a.report(ctx, id, report{state: msg.OutFailed, class: msg.Permanent, reason: reason, at: at})
}

type report struct {
	state      msg.OutState
	platformID string
	class      msg.ErrorClass
	reason     string
	at         time.Time
}

// report updates the row and its only part together, and pokes routd, since a sent answer starts an
// engagement.
func (a *Adapter) report(ctx context.Context, id int64, r report) error {
	if r.at.IsZero() {
		r.at = time.Now()
	}
	err := a.write(ctx, routd, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx,
			`UPDATE messages SET out_state = ?, platform_id = nullif(?, '') WHERE id = ? AND out_state = 'queued'`,
			r.state, r.platformID, id)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return cmp.Or(err, ErrNotQueued)
		}
		_, err = tx.ExecContext(ctx,
			`INSERT INTO deliveries (message_id, part, state, attempts, platform_id, error_class, error, updated_at)
			VALUES (?, 0, ?, 1, nullif(?, ''), nullif(?, ''), nullif(?, ''), ?)`,
			id, r.state, r.platformID, r.class, r.reason, r.at.UnixMilli())
		return err
	})
	if err != nil {
		return fmt.Errorf("report on row %d: %w", id, err)
	}
	return nil
}
