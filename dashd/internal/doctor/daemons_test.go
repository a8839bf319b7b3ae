package doctor

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"arizuko/pkg/config"
	"arizuko/pkg/httpx"
	"arizuko/pkg/store"
	"arizuko/pkg/testkit/need"
)

func TestExamine_Daemons(t *testing.T) {
	runAll(t, []broken{
		{"gated killed", func(x *instance) { x.daemon("gated", "connected", hour) }, "daemon-gone gated does not run: its last heartbeat was 60 min ago", "`systemctl start arizuko@gated`", 1},
		{"routd stopped", func(x *instance) { x.daemon("routd", "stopped", 2*day) }, "daemon-gone routd was stopped 2 days ago", "start it", 1},
		{"nothing runs", func(x *instance) {
			x.sql(`UPDATE daemons SET heartbeat_at = ?`, now-hour)
			x.cfg.Daemons = nil
		}, "nothing-runs no daemon runs: the last one reported 60 min ago", "`systemctl start arizuko.target`", 1},
		{"nothing ever ran", func(x *instance) { x.sql(`DELETE FROM daemons`); x.cfg.Daemons = nil }, "nothing-runs no daemon runs, and none has run", "make run", 1},
		{"an adapter that was stopped", func(x *instance) { x.daemon("teled", "stopped", hour) }, "daemon-gone teled was stopped 60 min ago", "start it", 0},
		{"gated hangs", func(x *instance) {
			x.daemon("gated", "connected", minute)
			x.lock(filepath.Join(x.cfg.Base.RunDir(), "gated.lock"), 4711, "S")
		}, "daemon-hangs gated (process 4711) runs but has written nothing for 60 s", "kill -CONT 4711", 1},
		{"write lock of a stopped process", func(x *instance) { x.lock(x.cfg.Base.DBPath()+".writelock", 4711, "T") },
			"writelock-stopped process 4711 holds the write lock and is stopped: no daemon can write", "kill -CONT 4711", 1},
		{"write lock of a running process", func(x *instance) { x.lock(x.cfg.Base.DBPath()+".writelock", 4711, "R") }, "", "", 0},
		{"locked by another program", func(x *instance) {
			x.locked(minute, x.cfg.Base.DBPath()+"-shm", "POSIX  ADVISORY  WRITE 4711 08:01:%d 120 120", "sqlite3\x00arizuko.db\x00")
		}, "database-locked process 4711 (sqlite3 arizuko.db) holds the write lock of the database: no daemon can write", "kill 4711", 1},
		{"locked a moment ago", func(x *instance) {
			x.locked(2*second, x.cfg.Base.DBPath()+"-shm", "POSIX  ADVISORY  WRITE 4711 08:01:%d 120 123", "")
		}, "database-locked process 4711 holds the write lock of the database", "kill 4711", 1},
		{"locked whole", func(x *instance) {
			x.locked(minute, x.cfg.Base.DBPath(), "POSIX  ADVISORY  WRITE 4711 08:01:%d 1073741824 1073742335", "")
		}, "database-locked process 4711 holds the write lock of the database", "kill 4711", 1},
		{"locked from another container", func(x *instance) { x.locked(minute, "", "", "") },
			"database-locked a process that this machine does not show holds the write lock", "fuser -v", 1},
		{"read by another program", func(x *instance) {
			x.locked(minute, x.cfg.Base.DBPath()+"-shm", "POSIX  ADVISORY  READ 4711 08:01:%d 123 123", "")
		}, "database-locked a process that this machine does not show", "fuser -v", 1},
		{"clock ahead", func(x *instance) { x.decided(-hour) }, "clock-ahead message 1 arrived 60 min in the future", "NTP", 0},
		{"clock step", func(x *instance) { x.decided(hour); x.decided(3 * hour) }, "clock-step the clock went back by 2 h between messages 1 and 2", "NTP", 0},
		{"old clock step", func(x *instance) { x.decided(2 * day); x.decided(3 * day) }, "", "", 0},
		{"no socket", func(x *instance) { x.ok(x.sockets["gated"].Close()) }, "socket-missing pokes do not reach gated", "restart gated", 1},
		{"agents", func(x *instance) {
			x.detail("gated", "degraded", "no agent can be started as docker since 2027-01-01 00:00:00, messages wait: no engine; turns of group main fail alike")
		}, "agents no agent can be started as docker since 2027-01-01 00:00:00, messages wait: no engine", "gated check", 1},
		{"schema taken back", func(x *instance) {
			x.sql(`UPDATE schema_migrations SET version = version - 1`)
			x.answer("gated", store.Changed+"x: "+store.SchemaFix)
		}, "schema-old the schema was taken back while gated ran, which cannot go on: the schema is at ", "stop the daemons of this version", 1},
		{"routes to one missing group", func(x *instance) {
			for range 10 {
				x.sql(`INSERT INTO routes (match, target) VALUES ('sender=telegram:1', 'gone')`)
			}
		}, "route-invalid route 2 and 9 more match nothing: ", "register the group", 1},
		{"a reminder in no time zone", func(x *instance) {
			x.reminder(now - hour)
			x.sql(`UPDATE reminders SET time_zone = 'Mars/Base'`)
		}, `reminders reminder 1 of main in telegram:42 is overdue for 60 min, since there is no time zone "Mars/Base"`, "gated reminders cancel 1", 1},
		{"TZ", func(x *instance) { x.env("TZ=Mars/Base") }, "timezone TZ=Mars/Base is no time zone", "Europe/Berlin", 78},
		{"TZ of a file", func(x *instance) { x.env("TZ=:/usr/share/zoneinfo") }, "", "", 0},
		{"write lock is a dead link", func(x *instance) { x.ok(os.Symlink("/nowhere", x.cfg.Base.DBPath()+".writelock")) },
			"database-link DATA/arizuko.db.writelock is a symbolic link", "remove the link", 1},
		{"secret changed", func(x *instance) {
			x.ok(os.Chtimes(x.cfg.Base.SecretPath(), time.Time{}, time.UnixMilli(now+minute)))
		}, "secret-changed the secret was changed after these started, which use the former one: dashd, gated, onbod, routd", "restart them", 1},
		{"a group's own agent", func(x *instance) {
			x.program("gated", `echo "warning: the agent of group main cannot be run as process: /nope: not found"`)
		}, "group-agent the agent of group main cannot be run as process", "agent.command", 1},
		{"a group's folder of another user", func(x *instance) {
			need.Root(x.t)
			x.ok(os.Chown(filepath.Join(x.cfg.Base.GroupsDir(), "main"), 12345, 12345))
		}, "group-owner DATA/groups/main belongs to user 12345, the data folder to user 0", "chown -R 0", 1},
		{"backup failed", func(x *instance) { x.backups(2*day, hour) }, "backup-failed the last backup failed 60 min ago", "journalctl -u arizuko-backup", 1},
		{"backups have stopped", func(x *instance) { x.backups(4*day, 5*day) }, "backup-old the last backup was made 4 days ago", "dashd backup", 0},
		{"a backup last night", func(x *instance) { x.backups(hour, 5*day) }, "", "", 0},
		{"many dropped messages", func(x *instance) {
			for range 100 {
				x.message("telegram:42", minute)
			}
			x.sql(`UPDATE messages SET disposition = 'dropped', reason = 'rate_limit', decided_at = 1, decision_seq = id`)
		}, "refused 100 messages were dropped within an hour: their senders have had as many turns", "page Messages", 0},
		{"unreachable", func(x *instance) { x.answer("routd", "-") }, "unreachable routd runs but does not answer at DATA/run/routd.http.sock", "ROUTD_URL", 1},
		{"stopped a moment ago", func(x *instance) {
			x.answer("routd", "-")
			x.lock(filepath.Join(x.cfg.Base.RunDir(), "routd.lock"), 4711, "T")
		}, "unreachable routd runs but does not answer at DATA/run/routd.http.sock", "its process 4711 is stopped: kill -CONT 4711", 1},
		{"not ready", func(x *instance) { x.answer("routd", "changes of routes and groups are not seen") },
			"not-ready routd is not ready: changes of routes and groups are not seen", "log", 1},
		{"another secret", func(x *instance) {
			daemon := httptest.NewServer(httpx.Verify("gated", func() string { return "that of the other daemons" })(http.NotFoundHandler()))
			x.t.Cleanup(daemon.Close)
			x.cfg.Daemons = []Endpoint{{"gated", config.URL(daemon.URL)}}
		}, "secret-differs http://", "same ARIZUKO_SECRET", 78},
	})
}

// A transaction of this process, as the kernel shows it.
func TestReadLocks_TransactionThatWrites_NamesItsProcess(t *testing.T) {
	t.Parallel()
	x := newInstance(t)
	var l locks
	holder := func() int {
		l = readLocks("/proc", x.cfg.Base, nil)
		return l.holder[l.sharedMemory()]
	}
	if pid := holder(); pid != 0 {
		t.Errorf("process %d holds it", pid)
	}
	conn, err := x.db.Conn(t.Context())
	x.ok(err)
	defer conn.Close()
	_, err = conn.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	x.ok(err)
	if pid := holder(); pid != os.Getpid() || l.command(pid) == "" {
		t.Errorf("process %d (%s) holds it, want %d", pid, l.command(pid), os.Getpid())
	}
	_, err = conn.ExecContext(t.Context(), "ROLLBACK")
	x.ok(err)
}

func TestExamine_Platforms(t *testing.T) {
	connected := func(x *instance) {
		x.env("TELEGRAM_BOT_TOKEN="+token, "OPERATORS=telegram:42")
		x.program("teled", "exit 0")
	}
	runAll(t, []broken{
		{"connected", func(x *instance) { connected(x); x.daemon("teled", "connected", second) }, "", "", 0},
		{"token set and never started", connected, "daemon-gone teled has never run", "`docker compose up -d teled`", 1},
		{"webhook by check", func(x *instance) {
			connected(x)
			x.daemon("teled", "connected", second)
			x.program("teled", "echo 'teled: a webhook is set and updates go to https://example.com' >&2; exit 1")
		}, "check teled: a webhook is set and updates go to https://example.com", "teled check", 1},
		{"out of reach", func(x *instance) { connected(x); x.detail("teled", "degraded", "dial tcp: timeout") },
			"connection teled has a bad connection to its platform: dial tcp: timeout", "teled check", 1},
	})
}

func TestExamine_FurtherAccounts(t *testing.T) {
	work := func(x *instance) {
		x.env("ACCOUNTS=teled+work", "TELEGRAM_BOT_TOKEN_WORK="+token, "OPERATORS=telegram:42")
		x.program("teled", `[ "$TELED_ACCOUNT $TELEGRAM_BOT_TOKEN" = "work `+token+`" ] || { echo "teled+work: of $TELED_ACCOUNT" >&2; exit 1; }`)
	}
	runAll(t, []broken{
		{"connected", func(x *instance) { work(x); x.daemon("teled+work", "connected", second) }, "", "", 0},
		{"never started", work, "daemon-gone teled+work has never run", "`systemctl start arizuko@teled-work`", 1},
		{"bad token", func(x *instance) { work(x); x.detail("teled+work", "bad_credentials", "401") },
			"credentials teled+work cannot log in: 401", "run `TELED_ACCOUNT=work teled check`, and restart teled+work", 1},
		{"check fails", func(x *instance) {
			work(x)
			x.daemon("teled+work", "connected", second)
			x.program("teled", `echo "teled+work: refused" >&2; exit 1`)
		}, "check teled+work: refused", "`TELED_ACCOUNT=work teled check`", 1},
		{"unknown program", func(x *instance) { x.env("ACCOUNTS=gated+work") }, `config ACCOUNTS: "gated+work" is not an adapter`, "correct it", 78},
		{"one token for two", func(x *instance) {
			work(x)
			x.env("TELEGRAM_BOT_TOKEN=" + token)
			x.daemon("teled", "connected", second)
			x.daemon("teled+work", "connected", second)
			x.program("teled", "exit 0")
		}, "secret-reused TELEGRAM_BOT_TOKEN and TELEGRAM_BOT_TOKEN_WORK have the same value", "its own", 78},
		{"token handed to agents", func(x *instance) {
			work(x)
			x.daemon("teled+work", "connected", second)
			x.env("AGENT_ENV=TELEGRAM_BOT_TOKEN_WORK")
		}, "secret-to-agents AGENT_ENV hands TELEGRAM_BOT_TOKEN_WORK to every agent", "remove it", 78},
		{"undelivered", func(x *instance) { x.outbound("telegram+work:1", "queued", hour) },
			"unsent 1 message waits for telegram+work, the oldest (1, to telegram+work:1) for 60 min: teled+work has never run with this data folder",
			"start teled+work, which needs TELEGRAM_BOT_TOKEN and TELED_ACCOUNT=work", 1},
	})
}
