package main

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/config"
	"arizuko/pkg/store/storetest"
	fake "arizuko/pkg/testkit/fakes/discord"
)

// maxWait bounds the wait for an expected event.
const maxWait = 30 * time.Second

// harness runs discd with a fake Discord and a database.
type harness struct {
	testing.TB
	discord *fake.Server
	alice   fake.User
	guild   fake.Guild
	general fake.Place
	env     []string
	db      *sql.DB
	log     logged
}

// logged collects the log of discd.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newHarness(t testing.TB, o fake.Options, env ...string) *harness {
	t.Helper()
	data, err := os.MkdirTemp("", "discd") // short: the paths of sockets are limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(data) })
	path := filepath.Join(data, "arizuko.db")
	if err := storetest.Migrate(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "secret"), []byte("0123456789abcdef-shared\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &harness{TB: t, discord: fake.New(o)}
	base, err := r.discord.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.discord.Close() })
	r.env = append([]string{
		"ARIZUKO_DATA=" + data, "DISCD_ADDR=127.0.0.1:0", "DISCORD_BOT_TOKEN=" + r.discord.Token(), "DISCORD_API_URL=" + base,
		"POLL_INTERVAL=20ms",
	}, env...)
	if r.db, err = sql.Open("sqlite3", "file:"+path+"?_txlock=immediate&_busy_timeout=10000"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.db.Close() })
	r.alice = r.discord.User("Alice", "alice")
	r.guild = r.discord.Guild("Team", r.alice)
	r.general = r.guild.Channel("general")
	return r
}

// serve runs discd until stop is called, or the test ends.
func (r *harness) serve() (stop func()) {
	r.Helper()
	cfg, err := config.Load[Config](r.env)
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- program().Serve(ctx, cfg, &r.log) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			r.Errorf("discd ended with %v", err)
		}
	})
	r.Cleanup(stop)
	return stop
}

// connect is serve, and waits for the connection.
func (r *harness) connect() (stop func()) {
	r.Helper()
	stop = r.serve()
	r.until("the connection", func() bool { return r.connection() == "connected" && r.discord.Listening() })
	return stop
}

// until waits for a condition.
func (r *harness) until(what string, happens func() bool) {
	r.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(maxWait)
	for !happens() {
		select {
		case <-tick.C:
		case <-deadline:
			r.Fatalf("still waiting for %s; stored:\n%s\nlogged:\n%s", what, strings.Join(r.stored(), "\n"), r.log.String())
		}
	}
}

// connection is the state in discd's row of daemons.
func (r *harness) connection() string {
	return r.text(`SELECT connection FROM daemons WHERE name = 'discd'`)
}

// text is the first value of a query, "" for none.
func (r *harness) text(query string, args ...any) (value string) {
	r.Helper()
	if err := r.db.QueryRow(query, args...).Scan(&value); err != nil && err != sql.ErrNoRows {
		r.Fatal(err)
	}
	return value
}

func (r *harness) exec(query string, args ...any) {
	r.Helper()
	if _, err := r.db.Exec(query, args...); err != nil {
		r.Fatal(err)
	}
}

// stored lists the inbound rows in order: verb, content and, in brackets, the names of chat and thread.
func (r *harness) stored() (all []string) {
	r.Helper()
	rows, err := r.db.Query(`SELECT m.verb || ': ' || m.content || ' [' || ifnull(c.title, c.jid) || ifnull(' / ' || nullif(t.title, ''), '') || ']'
		FROM messages m JOIN chats c ON c.jid = m.chat_jid
		LEFT JOIN platform_threads t ON t.chat_jid = m.chat_jid AND t.thread_id = m.thread_id
		WHERE m.direction = 'in' ORDER BY m.id`)
	if err != nil {
		r.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var row string
		if err := rows.Scan(&row); err != nil {
			r.Fatal(err)
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		r.Fatal(err)
	}
	return all
}

// expect waits for as many rows as wanted, and compares them.
func (r *harness) expect(want ...string) {
	r.Helper()
	r.until("the rows", func() bool { return len(r.stored()) >= len(want) })
	if diff := cmp.Diff(want, r.stored()); diff != "" {
		r.Fatalf("stored (-want +got):\n%s", diff)
	}
}

// queue writes an outbound row, as gated does.
func (r *harness) queue(chatJID, threadID, content string) (id int64) {
	r.Helper()
	now := time.Now().UnixMilli()
	res, err := r.db.Exec(`INSERT INTO messages (chat_jid, thread_id, direction, sender, sender_name, content, timestamp, received_at, source, out_state)
		VALUES (?, ?, 'out', 'agent:main', 'main', ?, ?, ?, 'agent', 'queued')`, chatJID, threadID, content, now, now)
	if err != nil {
		r.Fatal(err)
	}
	if id, err = res.LastInsertId(); err != nil {
		r.Fatal(err)
	}
	return id
}
