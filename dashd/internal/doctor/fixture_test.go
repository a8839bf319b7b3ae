package doctor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
	"arizuko/pkg/disk"
	"arizuko/pkg/httpx"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	"arizuko/pkg/testkit/executable"
	"arizuko/pkg/wake"
)

const (
	now    = int64(1_800_000_000_000)
	second = 1000
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
	secret = "0123456789abcdef0123456789abcdef-shared"
	token  = "12345:telegram-bot-token"
)

// instance is a healthy instance that a test breaks.
type instance struct {
	t       *testing.T
	cfg     Config
	db      *sql.DB
	sockets map[string]*wake.Listener

	mu      sync.Mutex
	answers map[string]string // of the daemons to /readyz; "-" breaks the connection off
}

// newInstance makes one on which nothing is wrong: four daemons run, one group has a route.
func newInstance(t *testing.T) *instance {
	t.Helper()
	data, err := os.MkdirTemp("", "doctor") // sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(data) })
	x := &instance{t: t, sockets: map[string]*wake.Listener{}, answers: map[string]string{}}
	for _, folder := range []string{"run", "groups", "groups/main"} {
		x.ok(os.Mkdir(filepath.Join(data, folder), 0o700))
	}
	x.ok(storetest.Migrate(filepath.Join(data, "arizuko.db")))
	x.ok(os.Chmod(filepath.Join(data, "arizuko.db"), 0o600))
	x.ok(os.WriteFile(filepath.Join(data, "secret"), []byte(secret+"\n"), 0o600))
	x.db, err = sql.Open("sqlite3", "file:"+filepath.Join(data, "arizuko.db")+"?_busy_timeout=10000")
	x.ok(err)
	t.Cleanup(func() { x.db.Close() })
	proc := t.TempDir()
	x.ok(os.WriteFile(filepath.Join(proc, "locks"), nil, 0o600))
	x.cfg = Config{
		Base: config.Base{Data: data}, Bin: t.TempDir(), Environ: []string{"PATH=" + os.Getenv("PATH")},
		Now:   func() time.Time { return time.UnixMilli(now) },
		Proc:  proc,
		Media: &disk.Usage{Folder: filepath.Join(data, "media"), Quota: 1000, Now: time.Now},
		Carry: func(string) error { return nil },
		Disk: func(string) (disk.Space, error) {
			return disk.Space{Free: 50 << 30, Size: 100 << 30, FreeFiles: 900, Files: 1000}, nil
		},
	}
	x.sql(`INSERT INTO registered_groups (folder, name, created_at) VALUES ('main', 'Main', 0)`)
	x.sql(`INSERT INTO routes (match, target) VALUES ('sender=telegram:42', 'main')`)
	x.sql(`INSERT INTO chats (jid, platform, kind) VALUES ('telegram:42', 'telegram', 'dm')`)
	for _, name := range daemon.Core() {
		x.daemon(name, "connected", 2*second)
		x.program(name, "exit 0")
		x.cfg.Daemons = append(x.cfg.Daemons, Endpoint{Name: name})
		x.listen(name)
	}
	return x
}

// carriedBy puts the database on a file system that cannot carry it.
func (x *instance) carriedBy(kind string) {
	x.cfg.Carry = func(path string) error { return &disk.CarryError{Path: path, Kind: kind} }
}

func (x *instance) ok(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

// listen answers as a daemon does.
func (x *instance) listen(name string) {
	server, err := httpx.ListenLocal(x.cfg.Base.Socket(name), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		x.mu.Lock()
		defer x.mu.Unlock()
		switch problem := x.answers[name]; problem {
		case "":
		case "-":
			panic(http.ErrAbortHandler)
		default:
			http.Error(w, problem, http.StatusServiceUnavailable)
		}
	}), slog.New(slog.DiscardHandler))
	x.ok(err)
	served := make(chan error, 1)
	go func() { served <- server.Serve() }()
	x.t.Cleanup(func() {
		if err := errors.Join(server.Close(context.Background()), <-served); err != nil {
			x.t.Error(err)
		}
	})
}

func (x *instance) answer(name, problem string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answers[name] = problem
}

func (x *instance) sql(query string, args ...any) {
	x.t.Helper()
	_, err := x.db.Exec(query, args...)
	x.ok(err)
}

// daemon stores the row of a daemon whose last heartbeat was so long ago, and opens its socket if it runs.
func (x *instance) daemon(name, connection string, age int64) {
	x.t.Helper()
	x.sql(`INSERT OR REPLACE INTO daemons (name, version, started_at, heartbeat_at, connection) VALUES (?, 'v1', ?, ?, ?)`,
		name, now-hour, now-age, connection)
	if x.sockets[name] == nil {
		socket, err := wake.Listen(x.cfg.Base.RunDir(), name)
		x.ok(err)
		x.sockets[name] = socket
		x.t.Cleanup(func() { socket.Close() })
	}
}

// detail sets the state of a daemon's connection.
func (x *instance) detail(name, connection, detail string) {
	x.t.Helper()
	x.daemon(name, connection, 2*second)
	x.sql(`UPDATE daemons SET detail = ? WHERE name = ?`, detail, name)
}

// program puts a program beside dashd.
func (x *instance) program(name, script string) {
	x.t.Helper()
	executable.Script(x.t, filepath.Join(x.cfg.Bin, name), "[ \"$1\" = check ] || exit 9\n"+script)
}

func (x *instance) env(variables ...string) { x.cfg.Environ = append(x.cfg.Environ, variables...) }

// message stores an inbound message of that age; further columns are set by sql.
func (x *instance) message(chat string, age int64) (id int64) {
	x.t.Helper()
	res, err := x.db.Exec(`INSERT INTO messages (chat_jid, direction, sender, content, timestamp, received_at) VALUES (?, 'in', 'telegram:42', 'hi', ?2, ?2)`, chat, now-age)
	x.ok(err)
	id, err = res.LastInsertId()
	x.ok(err)
	return id
}

// decided stores a message that was routed to main.
func (x *instance) decided(age int64) (id int64) {
	x.t.Helper()
	id = x.message("telegram:42", age)
	x.sql(`UPDATE messages SET disposition = 'routed', reason = 'route', routed_to = 'main', decided_at = ?, decision_seq = id WHERE id = ?`, now-age, id)
	return id
}

// outbound stores an answer in a state.
func (x *instance) outbound(chat, state string, age int64) (id int64) {
	x.t.Helper()
	res, err := x.db.Exec(`INSERT INTO messages (chat_jid, direction, sender, content, timestamp, received_at, out_state) VALUES (?, 'out', 'agent:main', 'hi', ?2, ?2, ?3)`, chat, now-age, state)
	x.ok(err)
	id, err = res.LastInsertId()
	x.ok(err)
	return id
}

// turn stores a turn of main. A running one has a run that lives.
func (x *instance) turn(state string, age int64) (id int64) {
	x.t.Helper()
	trigger := x.decided(age)
	var run, ended any
	if state == "running" {
		res, err := x.db.Exec(`INSERT INTO runs (folder, topic, chat_jid, runtime, started_at) VALUES ('main', ?, 'telegram:42', 'bwrap', ?)`, fmt.Sprint(trigger), now-age)
		x.ok(err)
		run, err = res.LastInsertId()
		x.ok(err)
	}
	if state == "failed" {
		ended = now - age
	}
	res, err := x.db.Exec(`INSERT INTO turns (run_id, kind, folder, chat_jid, topic, trigger_message_id, surface, ceiling, state, created_at, started_at, ended_at)
		VALUES (?, 'conversation', 'main', 'telegram:42', '', ?, 'telegram-dm', 4000, ?, ?, ?, ?)`, run, trigger, state, now-age, now-age, ended)
	x.ok(err)
	id, err = res.LastInsertId()
	x.ok(err)
	return id
}

// backups are those that were made and that failed, so long ago.
func (x *instance) backups(done, failed int64) {
	for name, age := range map[string]int64{"backup.done": done, "backup.failed": failed} {
		path := filepath.Join(x.cfg.Base.RunDir(), name)
		x.ok(os.WriteFile(path, nil, 0o600))
		x.ok(os.Chtimes(path, time.Time{}, time.UnixMilli(now-age)))
	}
}

// lock makes the kernel's table say that a process in a state holds a lock.
func (x *instance) lock(path string, pid int, state string) {
	x.t.Helper()
	x.ok(os.WriteFile(path, nil, 0o600))
	info, err := os.Stat(path)
	x.ok(err)
	inode := info.Sys().(*syscall.Stat_t).Ino
	table := fmt.Sprintf("1: POSIX  ADVISORY  READ 5 08:01:%d 128 128\n2: FLOCK  ADVISORY  WRITE %d 08:01:%[1]d 0 EOF\n2: -> FLOCK  ADVISORY  WRITE 9 08:01:%[1]d 0 EOF\n", inode, pid)
	x.ok(os.WriteFile(filepath.Join(x.cfg.Proc, "locks"), []byte(table), 0o600))
	x.ok(os.MkdirAll(filepath.Join(x.cfg.Proc, fmt.Sprint(pid)), 0o700))
	x.ok(os.WriteFile(filepath.Join(x.cfg.Proc, fmt.Sprint(pid), "stat"), fmt.Appendf(nil, "%d (a) b) %s 1 1", pid, state), 0o600))
}

// locked has the daemons wait for a lock that a process holds: line is the kernel's line about it, with the path's
// inode for %d, or "" if it says nothing.
func (x *instance) locked(since int64, path, line, command string) {
	x.t.Helper()
	inode := func(path string) uint64 {
		info, err := os.Stat(path)
		x.ok(err)
		return info.Sys().(*syscall.Stat_t).Ino
	}
	var table strings.Builder
	for i, name := range daemon.Core() {
		x.daemon(name, "connected", since)
		x.answer(name, store.ErrLocked.Error())
		path := filepath.Join(x.cfg.Base.RunDir(), name+".lock")
		x.ok(os.WriteFile(path, nil, 0o600))
		fmt.Fprintf(&table, "%d: FLOCK  ADVISORY  WRITE %d 08:01:%d 0 EOF\n", i, 100+i, inode(path))
	}
	if line != "" {
		fmt.Fprintf(&table, "9: "+line+"\n", inode(path))
	}
	x.ok(os.WriteFile(filepath.Join(x.cfg.Proc, "locks"), []byte(table.String()), 0o600))
	x.ok(os.MkdirAll(filepath.Join(x.cfg.Proc, "4711"), 0o700))
	x.ok(os.WriteFile(filepath.Join(x.cfg.Proc, "4711", "cmdline"), []byte(command), 0o600))
}

// reminder adds an active reminder that is due at a time.
func (x *instance) reminder(due int64) {
	x.t.Helper()
	x.sql(`INSERT INTO reminders (folder, chat_jid, kind, body, due_at, time_zone, missed, state, next_slot, created_by, created_at, updated_at)
		VALUES ('main', 'telegram:42', 'text', 'tea', ?1, 'UTC', 'one', 'active', ?1, 'telegram:42', 1, 1)`, due)
}
