package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"arizuko/dashd/internal/checks"
	"arizuko/pkg/disk"
	"arizuko/pkg/facts"
	"arizuko/pkg/hooks"
)

// broken is an instance on which one thing is wrong.
type broken struct {
	name string
	do   func(x *instance)
	want string // "ID text", with the beginning of the text; "" for no finding
	fix  string // a part of the remedy
	exit int
}

func (b broken) run(t *testing.T) {
	t.Parallel()
	x := newInstance(t)
	b.do(x)
	report := Examine(t.Context(), x.cfg)
	if b.want == "" {
		if len(report.Findings) > 0 || report.Exit() != 0 {
			t.Fatalf("found %+v", report.Findings)
		}
		return
	}
	if len(report.Findings) != 1 {
		t.Fatalf("%d findings, want one: %+v", len(report.Findings), report.Findings)
	}
	f := report.Findings[0]
	got := strings.ReplaceAll(f.Kind+" "+f.Text, x.cfg.Base.Data, "DATA")
	if !strings.HasPrefix(got, b.want) {
		t.Errorf("found %q, want %q", got, b.want)
	}
	if !strings.Contains(f.Fix, b.fix) || f.Fix == "" {
		t.Errorf("the remedy is %q, want %q", f.Fix, b.fix)
	}
	if report.Exit() != b.exit {
		t.Errorf("exit %d, want %d", report.Exit(), b.exit)
	}
}

func runAll(t *testing.T, all []broken) {
	t.Parallel()
	for _, b := range all {
		t.Run(b.name, b.run)
	}
}

func TestExamine_Folder(t *testing.T) {
	path := func(x *instance, name string) string { return filepath.Join(x.cfg.Base.Data, name) }
	runAll(t, []broken{
		{"healthy", func(*instance) {}, "", "", 0},
		{"no data folder", func(x *instance) { x.cfg.Base.Data += "/none"; x.cfg.Daemons = nil }, "data-missing the data folder DATA does not exist", "migrate up", 78},
		{"data folder is a file", func(x *instance) { x.cfg.Base.Data += "/secret"; x.cfg.Daemons = nil }, "data-missing DATA is not a folder", "ARIZUKO_DATA", 78},
		{"open data folder", func(x *instance) { x.ok(os.Chmod(x.cfg.Base.Data, 0o755)) }, "data-mode the data folder DATA has mode 0755", "chmod 700 ", 0},
		{"open secret", func(x *instance) { x.ok(os.Chmod(path(x, "secret"), 0o644)) }, "secret-mode DATA/secret has mode 0644", "chmod 600 ", 1},
		{"no secret", func(x *instance) { x.ok(os.Remove(path(x, "secret"))) }, "secret-missing no secret: DATA/secret does not exist", "migrate up", 78},
		{"secret is a pipe", func(x *instance) {
			x.env("ARIZUKO_SECRET=" + secret)
			x.ok(os.Remove(path(x, "secret")))
			x.ok(unix.Mkfifo(path(x, "secret"), 0o600))
		}, "secret-missing no secret: DATA/secret is not a file", "migrate up", 78},
		{"short secret", func(x *instance) {
			x.ok(os.WriteFile(path(x, "secret"), []byte("hunter22"), 0o600))
		}, "secret-short the secret between the daemons has 8 characters", "32 random", 78},
		{"weak secret", func(x *instance) {
			x.ok(os.WriteFile(path(x, "secret"), []byte("0123456789abcdef"), 0o600))
		}, "secret-short the secret between the daemons has 16 characters", "32 random", 0},
		{"a file system that cannot carry it", func(x *instance) { x.carriedBy("NFS") },
			"filesystem DATA/arizuko.db is on NFS, which cannot carry the database: daemons do not start", "ARIZUKO_UNSAFE_FS=1", 78},
		{"the same, overridden", func(x *instance) { x.carriedBy("FUSE"); x.cfg.Base.UnsafeFS = true },
			"filesystem DATA/arizuko.db is on FUSE, which cannot carry the database: messages may be lost. ARIZUKO_UNSAFE_FS overrides", "a disk of this machine", 0},
		{"open database", func(x *instance) { x.ok(os.Chmod(path(x, "arizuko.db"), 0o644)) }, "database-mode DATA/arizuko.db has mode 0644", "chmod 600 ", 0},
		{"no database", func(x *instance) { x.ok(os.Remove(path(x, "arizuko.db"))) }, "database-missing there is no database at DATA/arizuko.db", "restore a backup", 1},
		{"full disk", func(x *instance) {
			x.cfg.Disk = func(string) (disk.Space, error) { return disk.Space{Free: 40 << 10, Size: 4 << 30}, nil }
		}, "disk-full the disk of DATA is full: 40 KiB free", "RETENTION_DAYS", 1},
		{"low disk", func(x *instance) {
			x.cfg.Disk = func(string) (disk.Space, error) { return disk.Space{Free: 1 << 30, Size: 100 << 30}, nil }
		}, "disk-low the disk of DATA has only 1 GiB free, 1 %", "RETENTION_DAYS", 0},
		{"no inodes", func(x *instance) {
			x.cfg.Disk = func(string) (disk.Space, error) {
				return disk.Space{Free: 50 << 30, Size: 100 << 30, FreeFiles: 1, Files: 1000}, nil
			}
		}, "disk-inodes the file system of DATA has 1 of 1000 inodes left", "remove old files", 1},
	})
}

func TestExamine_Database(t *testing.T) {
	runAll(t, []broken{
		{"empty file", func(x *instance) { x.ok(os.Truncate(x.cfg.Base.DBPath(), 0)) }, "schema-none DATA/arizuko.db is not migrated", "migrate up", 1},
		{"no database at all", func(x *instance) { x.overwrite(0, 8192, 'x') }, "database-damaged the database cannot be read: database damaged", "restore a backup", 1},
		{"a pipe", func(x *instance) {
			x.ok(os.Remove(x.cfg.Base.DBPath()))
			x.ok(unix.Mkfifo(x.cfg.Base.DBPath(), 0o600))
		}, "database-damaged the database cannot be read: database damaged", "restore a backup", 1},
		{"damaged page that a check reads late", func(x *instance) {
			page := int64(0)
			x.ok(x.db.QueryRow(`SELECT rootpage FROM sqlite_schema WHERE name = 'registered_groups'`).Scan(&page))
			x.overwrite((page-1)*4096, 4096, 'x')
		}, "database-damaged the database cannot be read: database damaged", "restore a backup", 1},
		{"damaged page", func(x *instance) {
			x.cfg.Deep = true
			x.sql(`CREATE TABLE t (a TEXT); CREATE INDEX i ON t (a); INSERT INTO t VALUES ('abc'), ('xyz')`)
			x.sql(`PRAGMA writable_schema = 1; DELETE FROM sqlite_schema WHERE name = 'i'`)
		}, "database-damaged the database is damaged: ", "restore a backup", 1},
		{"migration failed", func(x *instance) { x.sql(`UPDATE schema_migrations SET dirty = 1`) }, "schema-dirty migration ", "migrate up", 1},
		{"migration pending", func(x *instance) { x.sql(`UPDATE schema_migrations SET version = version - 1`) }, "schema-old a migration is pending: the schema is at ", "migrate up", 1},
		{"too new", func(x *instance) { x.sql(`UPDATE schema_floor SET floor = 1000`) }, "schema-new this program was built for schema ", "roll back", 78},
	})
}

func TestExamine_CheckpointsThatDoNotAdvance_Reported(t *testing.T) {
	t.Parallel()
	x := newInstance(t)
	x.cfg.Base.Data = t.TempDir()
	x.ok(os.WriteFile(x.cfg.Base.DBPath()+"-wal", nil, 0o600))
	x.ok(os.Truncate(x.cfg.Base.DBPath()+"-wal", 35_000*4096))
	e := &examination{Config: x.cfg}
	checkWAL(e)
	if !e.Has("wal-grows") || !strings.Contains(e.Found[0].Text, "136.7 MiB") {
		t.Errorf("found %+v", e.Found)
	}
}

// overwrite damages the database file.
func (x *instance) overwrite(at int64, n int, with byte) {
	x.t.Helper()
	x.ok(x.db.Close())
	f, err := os.OpenFile(x.cfg.Base.DBPath(), os.O_RDWR, 0)
	x.ok(err)
	defer f.Close()
	_, err = f.WriteAt(bytes.Repeat([]byte{with}, n), at)
	x.ok(err)
}

func TestExamine_Configuration(t *testing.T) {
	runAll(t, []broken{
		{"one secret for two", func(x *instance) { x.env("SLACK_APP_TOKEN="+token, "DASH_PASSWORD="+token) },
			"secret-reused DASH_PASSWORD and SLACK_APP_TOKEN have the same value", "its own", 78},
		{"token handed to agents", func(x *instance) { x.env("AGENT_ENV=ANTHROPIC_API_KEY,TELEGRAM_BOT_TOKEN") },
			"secret-to-agents AGENT_ENV hands TELEGRAM_BOT_TOKEN to every agent", "remove it", 78},
		{"no operator", func(x *instance) { x.daemon("teled", "connected", second) }, "operators-empty no user of a platform is an operator", "on the dashboard's page Access press Make a code", 0},
		{"operators without a direct chat", func(x *instance) {
			x.env("OPERATORS=telegram:77,slack:U0AB")
			x.daemon("teled", "connected", second)
		}, "operators-unreached no operator has a direct chat with the bot", "writes to the bot", 0},
		{"an operator by a code without a direct chat", func(x *instance) {
			x.sql(`INSERT INTO cursors (daemon, key, value) VALUES ('gated', 'operator:telegram:77', '{}')`)
			x.daemon("teled", "connected", second)
		}, "operators-unreached no operator has a direct chat with the bot", "writes to the bot", 0},
		{"groups is a link", func(x *instance) {
			x.ok(os.Rename(x.cfg.Base.GroupsDir(), x.cfg.Base.GroupsDir()+"2"))
			x.ok(os.Symlink("groups2", x.cfg.Base.GroupsDir()))
			x.program("gated", "echo 'warning: groups is a symbolic link, so `dashd backup` fails'")
		}, "folder-linked DATA/groups is a symbolic link, so `dashd backup` fails", "mount", 0},
		{"request of the future", func(x *instance) {
			x.sql(`INSERT INTO onboarding_requests (code, chat_jid, state, created_at) VALUES ('ABCD-1234', 'telegram:5', 'pending', ?)`, now+30*24*hour)
		}, "clock-request request ABCD-1234 of telegram:5 was made 30 days in the future", "approve or reject it", 0},
		{"operator by name", func(x *instance) { x.env("OPERATORS=telegram:@ada") }, "operators-invalid OPERATORS: telegram:@ada is no id of telegram, which are numbers", "/chatid", 78},
		{"operator without platform", func(x *instance) { x.env("OPERATORS=42") }, "operators-invalid OPERATORS: 42 is not platform:user", "/chatid", 78},
		{"dashd's own configuration", func(x *instance) { x.cfg.Problems = []string{"POLL_INTERVAL: must be at least 1ms"} },
			"config POLL_INTERVAL: must be", "environment", 78},
		{"unreadable token file", func(x *instance) { x.env("SLACK_BOT_TOKEN_FILE=/none") }, "config SLACK_BOT_TOKEN_FILE: open /none", "environment", 78},
		{"check refuses", func(x *instance) { x.program("gated", "echo 'gated: MAX_AGENTS: must be at least 1' >&2; exit 78") },
			"check gated: MAX_AGENTS: must be at least 1", "gated check", 78},
		{"check warns", func(x *instance) {
			x.program("gated", "echo 'warning: strangers can reach group main (by route 1), whose agent runs as process: nothing confines it; use docker'")
		}, "unconfined strangers can reach group main (by route 1)", "use docker", 1},
		{"check warns of more", func(x *instance) {
			var known facts.List // which doctor finds by the rows
			known.UnsetOperators()
			x.program("onbod", "cat <<'END'\nwarning: "+known.Found[0].String()+"\nwarning: it rains\nEND")
		},
			"check onbod: it rains", "onbod check", 0},
		{"limits", func(x *instance) { x.program("gated", "echo 'agents run without all of their limits: no cgroup'") },
			"limits agents run without all of their limits: no cgroup", "Runtimes", 0},
		{"check cannot run", func(x *instance) { x.ok(os.WriteFile(filepath.Join(x.cfg.Bin, "gated"), []byte("no program"), 0o600)) },
			"check-failed `gated check` failed: ", "by hand", 1},
		{"not beside", func(x *instance) { x.ok(os.RemoveAll(x.cfg.Bin)) }, "", "", 0},
	})
}

func TestExamine_Stuck(t *testing.T) {
	runAll(t, []broken{
		{"undecided", func(x *instance) { x.message("telegram:1", hour) }, "undecided 1 message is not decided, the oldest (1, in telegram:1) for 60 min", "gated why 1", 1},
		{"held by the gate", func(x *instance) { x.message("telegram:1", 4*minute) }, "", "", 0},
		{"parked without a request", func(x *instance) {
			x.message("telegram:1", hour)
			x.sql(`UPDATE messages SET disposition = 'onboarding', reason = 'awaiting_approval', decided_at = 1, decision_seq = 1`)
		}, "parked 1 message is parked and no request is pending", "restart gated", 1},
		{"parked with a request", func(x *instance) {
			x.message("telegram:1", 30*minute)
			x.sql(`UPDATE messages SET disposition = 'onboarding', reason = 'awaiting_approval', decided_at = 1, decision_seq = 1`)
			x.sql(`INSERT INTO onboarding_requests (code, chat_jid, state, created_at) VALUES ('ABCD-1234', 'telegram:1', 'pending', ?)`, now-30*minute)
		}, "", "", 0},
		{"request that waits", func(x *instance) {
			x.sql(`INSERT INTO onboarding_requests (code, chat_jid, state, created_at) VALUES ('ABCD-1234', 'telegram:1', 'pending', ?)`, now-3*day)
		}, "requests 1 request of a chat waits for an operator, the oldest (ABCD-1234, of telegram:1) for 3 days", "/approve ABCD-1234", 0},
		{"too many requests", func(x *instance) {
			x.message("telegram:1", 2*hour)
			x.message("telegram:1", minute)
			x.sql(`UPDATE messages SET disposition = 'dropped', reason = 'onboarding_limit', decided_at = 1, decision_seq = id`)
		}, "requests-limited 1 message of unknown chats was dropped within an hour", "REQUESTS_PER_HOUR", 0},
		{"queued turn", func(x *instance) { x.turn("queued", hour) }, "queue 1 turn is queued, the oldest (1, of main) for 60 min, and no run takes it", "restart gated", 1},
		{"turn behind a running one", func(x *instance) { x.turn("running", hour); x.turn("queued", hour) }, "", "", 0},
		{"all agents busy", func(x *instance) {
			x.env("MAX_AGENTS=1")
			x.turn("running", hour)
			x.turn("queued", hour)
			x.sql(`UPDATE turns SET folder = 'other' WHERE state = 'queued'`)
		}, "queue-busy 1 turn is queued, the oldest (2, of other) for 60 min: all 1 agents are busy", "MAX_AGENTS", 0},
		{"turn of the future", func(x *instance) { x.turn("queued", minute); x.sql(`UPDATE turns SET not_before = ?`, now+30*day) },
			"clock-turn turn 1 of main does not start for another 30 days", "`gated retry 1`", 1},
		{"running turn without a run", func(x *instance) { x.turn("running", hour); x.sql(`UPDATE runs SET closed_at = 1, ended_at = 1`) },
			"turn-lost turn 1 of main is running, but its run 1 has ended", "restart gated", 1},
		{"failed turn", func(x *instance) { x.turn("failed", hour); x.sql(`UPDATE turns SET error = 'no credit'`) },
			"turns-failed 1 turn failed within a day; the newest is turn 1 of main: no credit", "`gated retry 1`", 0},
	})
}

func TestExamine_Undelivered(t *testing.T) {
	teled := func(x *instance, state string) {
		x.env("TELEGRAM_BOT_TOKEN="+token, "OPERATORS=telegram:42")
		x.program("teled", "exit 0")
		x.daemon("teled", state, second)
	}
	runAll(t, []broken{
		{"no adapter", func(x *instance) { x.outbound("matrix:1", "queued", hour) },
			"unsent 1 message waits for matrix, the oldest (1, to matrix:1) for 60 min: no adapter of this suite serves matrix", "your own adapter", 1},
		{"adapter never started", func(x *instance) { x.outbound("telegram:1", "queued", hour) },
			"unsent 1 message waits for telegram, the oldest (1, to telegram:1) for 60 min: teled has never run with this data folder", "TELEGRAM_BOT_TOKEN", 1},
		{"unsent although connected", func(x *instance) {
			teled(x, "connected")
			x.outbound("telegram:1", "queued", hour)
			x.sql(`INSERT INTO deliveries (message_id, part, state, error_class, error) VALUES (1, 0, 'queued', 'transient', 'Bad Gateway')`)
		}, "unsent 1 message waits for telegram, the oldest (1, to telegram:1) for 60 min: transient, Bad Gateway", "teled check", 1},
		{"sending for long", func(x *instance) {
			teled(x, "connected")
			x.outbound("telegram:1", "sending", hour)
			x.sql(`INSERT INTO deliveries (message_id, part, state, updated_at) VALUES (1, 0, 'sending', ?)`, now-hour)
		}, "unsent 1 message waits for telegram, the oldest (1, to telegram:1) for 60 min, being sent since 60 min ago", "RESEND", 1},
		{"failed delivery", func(x *instance) {
			x.outbound("telegram:1", "failed", hour)
			x.sql(`INSERT INTO deliveries (message_id, part, state, error_class, error) VALUES (1, 0, 'failed', 'permanent', 'bot was blocked')`)
		}, "delivery-failed 1 message was not delivered within a day (1): bot was blocked", "gated why", 0},
		{"ambiguous delivery", func(x *instance) { x.outbound("telegram:1", "ambiguous", hour) },
			"delivery-ambiguous 1 message may have arrived or not within a day (1)", "gated why", 0},
		{"overdue reminder", func(x *instance) { x.reminder(now - hour) },
			"reminders reminder 1 of main in telegram:42 is overdue for 60 min", "gated reminders cancel 1", 1},
		{"reminder that just fell due", func(x *instance) { x.reminder(now - minute) }, "", "", 0},
		{"files", func(x *instance) {
			x.decided(hour)
			x.sql(`UPDATE messages SET pending_files = 1, files_wanted = 1`)
		}, "files the files of 1 message were not downloaded, the oldest (1, in telegram:42) for 60 min", "start teled", 1},
		{"group fails", func(x *instance) {
			x.sql(`INSERT INTO group_failures (folder, problem, count, since) VALUES ('main', 'exit 127', 4, ?)`, now-hour)
		}, "group-fails turns of group main fail alike, one a minute is tried: exit 127 (the last 4, since 60 min ago)", "gated agent try", 1},
	})
}

func TestExamine_Routes(t *testing.T) {
	ran := func(x *instance, runtime string) {
		x.sql(`INSERT INTO runs (folder, topic, chat_jid, runtime, started_at, closed_at, ended_at) VALUES ('main', '', 'telegram:42', ?, 1, 1, 1)`, runtime)
	}
	runAll(t, []broken{
		{"strangers", func(x *instance) { x.sql(`UPDATE routes SET match = 'platform=telegram'`) },
			"route route 1 (platform=telegram) lets any user reach group main", "match a sender or a room", 0},
		{"unregistered group", func(x *instance) { x.sql(`INSERT INTO routes (match, target) VALUES ('room=5', 'gone')`) },
			"route-invalid route 2 matches nothing: folder gone is not registered", "routd groups add", 1},
		{"invalid route", func(x *instance) { x.sql(`INSERT INTO routes (match, target) VALUES ('rom=5', 'main')`) },
			"route-invalid route 2 matches nothing: ", "routd routes rm 2", 1},
		{"missing folder", func(x *instance) { ran(x, "bwrap"); x.ok(os.RemoveAll(filepath.Join(x.cfg.Base.GroupsDir(), "main"))) },
			"group-missing the folder DATA/groups/main of group main is gone", "restore", 1},
		{"folder that was not used yet", func(x *instance) { x.ok(os.RemoveAll(filepath.Join(x.cfg.Base.GroupsDir(), "main"))) }, "", "", 0},
	})
}

func TestExamine_ManyForeignPlatforms_AFewNamed(t *testing.T) {
	t.Parallel()
	x := newInstance(t)
	for i := range 50 {
		x.outbound(fmt.Sprintf("foreign%d:1", i), "queued", hour)
	}
	found := Examine(t.Context(), x.cfg).Findings
	if len(found) != 4 || found[3].Text != "messages wait for 47 more platforms that no adapter of this suite serves" {
		t.Errorf("%d findings: %+v", len(found), found)
	}
}

func TestExamine_UnconfinedAgentElsewhere_ToldByItsLastRun(t *testing.T) {
	t.Parallel()
	x := newInstance(t)
	x.ok(os.RemoveAll(x.cfg.Bin)) // as in compose
	x.sql(`UPDATE routes SET match = ''`)
	x.sql(`INSERT INTO runs (folder, topic, chat_jid, runtime, started_at, closed_at, ended_at) VALUES ('main', '', 'telegram:42', 'process', 1, 1, 1)`)
	var ids []string
	for _, f := range Examine(t.Context(), x.cfg).Findings {
		ids = append(ids, f.Kind)
	}
	if diff := cmp.Diff([]string{"unconfined", "route"}, ids); diff != "" {
		t.Error(diff)
	}
}

func TestExamine_SecretsAndControlCharacters_NotPrinted(t *testing.T) {
	t.Parallel()
	x := newInstance(t)
	x.env("ANTHROPIC_API_KEY=sk-ant-secret", "TELEGRAM_BOT_TOKEN="+token, "OPERATORS=telegram:42")
	x.program("teled", "echo \"teled: refused $TELEGRAM_BOT_TOKEN and $ANTHROPIC_API_KEY\" >&2; exit 1")
	x.detail("teled", "bad_credentials", "\x1b[31m"+token+"\nfix: rm -rf / "+secret)
	x.message("telegram:1\x1b[2J\nproblem: forged", hour)
	x.sql(`UPDATE routes SET match = ?, target = ?`, "room=\x1b[2J\n"+token, strings.Repeat("ü", 3000))
	report := Examine(t.Context(), x.cfg)
	var out bytes.Buffer
	x.ok(report.Print(&out))
	x.ok(report.PrintJSON(&out))
	for _, hidden := range []string{token, secret, "sk-ant-secret", "\x1b", "\nproblem: forged", "\nfix: rm"} {
		if strings.Contains(out.String(), hidden) {
			t.Errorf("%q is in the output:\n%s", hidden, &out)
		}
	}
	if !strings.Contains(out.String(), "[redacted]") || report.Exit() != 1 {
		t.Errorf("exit %d\n%s", report.Exit(), &out)
	}
}

func TestExamine_NoDaemonRuns_LeavesNoLog(t *testing.T) {
	t.Parallel()
	x := newInstance(t)
	x.ok(x.db.Close()) // removes the log
	before := x.tree()
	Examine(t.Context(), x.cfg)
	if diff := cmp.Diff(before[1:], x.tree()[1:]); diff != "" { // without the folder itself, whose time changes
		t.Error("-before +after\n", diff)
	}
	if _, err := os.Lstat(x.cfg.Base.DBPath() + "-shm"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("arizuko.db-shm is left: %v", err)
	}
}

func TestRunCheck_Hangs_ItsChildrenEndToo(t *testing.T) {
	t.Parallel()
	x := newInstance(t)
	pids := filepath.Join(t.TempDir(), "pid")
	x.program("gated", "sleep 1000 & echo $! > "+pids+".new; mv "+pids+".new "+pids+"; wait")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan checks.Result)
	go func() { done <- checks.Run(ctx, filepath.Join(x.cfg.Bin, "gated"), x.cfg.Environ) }()
	var pid int
	for ctx.Err() == nil && pid == 0 {
		text, _ := os.ReadFile(pids)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		runtime.Gosched()
	}
	cancel()
	if c := <-done; c.Problem == "" {
		t.Errorf("the check ended with %+v", c)
	}
	// It was killed, and ends once it is scheduled.
	for deadline := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d lives: %s", pid, stat)
		}
	}
}

func TestExamine_Changes_Nothing(t *testing.T) {
	t.Parallel()
	x := newInstance(t)
	x.turn("queued", hour)
	x.cfg.Deep = true
	before := x.tree()
	Examine(t.Context(), x.cfg)
	if diff := cmp.Diff(before, x.tree()); diff != "" {
		t.Error("-before +after\n", diff)
	}
}

// tree lists the data folder with sizes and times of change.
func (x *instance) tree() (files []string) {
	x.ok(filepath.Walk(x.cfg.Base.Data, func(path string, info os.FileInfo, err error) error {
		if err == nil && !strings.HasSuffix(path, "-shm") { // SQLite's index of the log
			files = append(files, fmt.Sprint(path, info.Size(), info.Mode(), info.ModTime()))
		}
		return err
	}))
	return files
}

func TestReport_Print(t *testing.T) {
	t.Parallel()
	r := Report{Findings: []facts.Fact{{Kind: "a", Level: facts.Problem, Text: "it is broken", Fix: "repair it"}, {Kind: "b", Level: facts.Warning, Text: "it creaks", Fix: "oil it"}}, Facts: []string{"schema: 6"}}
	var out bytes.Buffer
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("problem: it is broken\n  fix: repair it\nwarning: it creaks\n  fix: oil it\nschema: 6\n", out.String()); diff != "" {
		t.Error(diff)
	}
	out.Reset()
	if err := r.PrintJSON(&out); err != nil {
		t.Fatal(err)
	}
	var read struct {
		OK       bool
		Findings []facts.Fact
		Facts    []string
	}
	if err := json.Unmarshal(out.Bytes(), &read); err != nil || read.OK || !cmp.Equal(read.Findings, r.Findings) || !slices.Equal(read.Facts, r.Facts) {
		t.Errorf("%v: %s", err, &out)
	}
	if got := r.Summary(); got != "1 problem, 1 warning" {
		t.Error(got)
	}
}

// hook gives main a hook with settings in JSON, and deliveries that were accepted and refused so long ago.
func (x *instance) hook(settings string, accepted, refused int64) {
	x.t.Helper()
	x.sql(`UPDATE registered_groups SET config = ?`, `{"hooks":{"ci":{"id":"k3q5v7x2m4n6p8r1","kind":"github"`+settings+`}}}`)
	x.ok(hooks.SetSecret(x.cfg.Base.Data, "k3q5v7x2m4n6p8r1", "its-own-secret", 0, x.cfg.Now()))
	x.sql(`INSERT INTO hook_refusals (chat_jid, at, reason) VALUES (?1, 1, 'the first'), (?1, ?2, 'the signature is another')`, "hook:main.k3q5v7x2m4n6p8r1", now-refused)
	for _, source := range []string{"dashd", "replay"} { // an operator's copy is no delivery
		at := max(now-accepted, map[string]int64{"replay": now - second}[source])
		x.sql(`INSERT INTO messages (chat_jid, direction, sender, content, timestamp, received_at, source, disposition, reason, decided_at, decision_seq)
			VALUES (?1, 'in', ?1, 'push', ?2, ?2, ?3, 'observed', 'hook_filter', ?2, ?2)`, "hook:main.k3q5v7x2m4n6p8r1", at, source)
	}
}

func TestExamine_Hooks(t *testing.T) {
	runAll(t, []broken{
		{"refused before one was accepted", func(x *instance) { x.hook("", minute, hour) }, "", "", 0},
		{"refused since", func(x *instance) { x.hook("", hour, minute) }, "hook-refused webhook ci of group main refused its last delivery: the signature is another", "`routd hooks rotate main.k3q5v7x2m4n6p8r1`", 0},
		{"refused, and off", func(x *instance) { x.hook(`,"off":true`, hour, minute) }, "", "", 0},
		{"no secret", func(x *instance) {
			x.hook("", hour, minute)
			x.ok(hooks.RemoveSecrets(x.cfg.Base.Data, "k3q5v7x2m4n6p8r1"))
		}, "hook-secret webhook ci of group main has no secret", "`routd hooks rotate main.k3q5v7x2m4n6p8r1`", 0},
		{"to a chat that leads elsewhere", func(x *instance) { x.hook(`,"to":"telegram:7"`, minute, hour) }, "hook-to no route leads from telegram:7 to the group: only the dashboard shows the answers of webhook ci of group main", "routd routes add --match chat_jid=telegram:7 --target main", 0},
		{"to a chat that leads there", func(x *instance) {
			x.sql(`INSERT INTO routes (match, target) VALUES ('chat_jid=telegram:7', 'main')`)
			x.hook(`,"to":"telegram:7"`, minute, hour)
		}, "", "", 0},
		{"to its web chat", func(x *instance) { x.hook(`,"to":"web:main"`, minute, hour) }, "", "", 0},
	})
}
