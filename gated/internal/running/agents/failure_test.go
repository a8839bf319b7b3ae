package agents

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// shFrame is a shell command that prints an answer.
func shFrame(result string) string { return fmt.Sprintf("printf '%%s' '%s'", jsonFrame(result)) }

func TestAgent_Fails_TurnFails(t *testing.T) {
	tests := []struct{ name, command, problem string }{
		{"dies before reading", "exit 3", "the agent ended without an answer: exit code 3"},
		{"ends without an answer", "cat >/dev/null & exit 0", "exit code 0"},
		{"is killed", "kill -KILL $$", "ended by signal 9 (killed)"},
		{"says why", "echo no hunter2 >&2; exit 1", "exit code 1: no ***"},
		{"is not there", "nosuchagent --fast", "nosuchagent: "},
		{"is nonsense", "((", "exit code 2"},
		{"closes its output", "exec >&-; cat >/dev/null", "exit code 0"},
		{"closes its output and stays", "exec >&-; exec sleep 1000", "it closed its stdout"},
		{"closes its output and will not go", "trap '' TERM; exec >&-; sleep 1000; sleep 1000", "it closed its stdout"},
		{"closes its input", "exec <&-; exit 4", "exit code 4"},
		{"closes everything", "exec <&- >&- 2>&-; exit 5", "exit code 5"},
		{"says nothing", "sleep 1000", "the agent wrote no frame for 300ms"},
		{"says nothing and will not go", "trap '' TERM; sleep 1000; sleep 1000", "the agent wrote no frame for 300ms"},
		{"prints noise for ever", "yes", "the agent wrote no frame for 300ms"},
		{"prints errors for ever", "yes >&2", "the agent wrote no frame for 300ms"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			wait, graces := time.Minute, impatient // on a busy machine others take their time, too
			switch {
			case strings.Contains(tt.problem, "no frame"):
				wait = 300 * time.Millisecond
			case strings.HasPrefix(tt.problem, "exit code"): // it exits by itself
				graces = patient
			}
			r := newHarness(t, command(tt.command), attempts(1), timeout(wait), graces)
			failed := r.await(r.ask("hi"), msg.TurnFailed)
			if failed.Reason != msg.ReasonAgentError || !strings.Contains(failed.Error, tt.problem) {
				t.Errorf("failed with %s, %q", failed.Reason, failed.Error)
			}
			r.onlyNotice(failed)
			r.noRun()
		})
	}
}

func TestAgent_ReadsNothing_Fails(t *testing.T) {
	t.Run("and answers", func(t *testing.T) {
		r := newHarness(t, command("exec <&-; "+shFrame("hi")))
		diff(t, "answer", r.answered(r.ask("hello")), []string{"hi"})
	})
	t.Run("until its input is full", func(t *testing.T) {
		t.Parallel()
		r := newHarness(t, command("sleep 1000"), attempts(1), timeout(500*time.Millisecond), impatient,
			func(cfg *Config) { cfg.Probe = time.Millisecond })
		var turns []*msg.Turn
		for range 5 {
			turns = append(turns, r.ask(strings.Repeat("x", 1<<20)))
		}
		for i, asked := range turns {
			failed := r.await(asked, msg.TurnFailed)
			if i == 0 {
				r.onlyNotice(asked)
			} else if failed.Reason != msg.ReasonAlreadyTold || len(r.replies(asked)) > 0 {
				t.Errorf("turn %d failed with %s, %q", asked.ID, failed.Reason, r.replies(asked))
			} else if !must[bool](r)(rows.HasMark(t.Context(), r.st.Reader, asked.ID)) {
				t.Errorf("the message of turn %d does not show that it stays unanswered", asked.ID)
			}
		}
	})
}

// An agent for one prompt that stays is ended once it has answered: the other turns lose no attempt and no session.
func TestAgent_AnswersAndClosesPipe_OthersAreAskedAgain(t *testing.T) {
	for name, closes := range map[string]string{
		"stdin before the answer": "exec <&-; ANSWER", "stdin after it": "ANSWER; exec <&-", "stdout": "ANSWER; exec >&-", "both": "ANSWER; exec <&- >&-",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent := strings.ReplaceAll("read -r line; "+closes+"; exec sleep 1000", "ANSWER", "read -r x <gate; "+shFrame("hi"))
			r := newHarness(t, command(agent), impatient)
			open := r.gate("main", "gate")
			first := r.ask("1")
			r.await(first, msg.TurnRunning)
			all := []*msg.Turn{first, r.ask("2"), r.ask("3")}
			for _, asked := range all {
				open()
				if got := r.await(asked, msg.TurnDone); got.Attempts != 0 || r.replies(got)[0] != "hi" {
					t.Errorf("turn %d has lost %d attempts and is answered %q: %s", got.ID, got.Attempts, r.replies(got), got.Error)
				}
			}
		})
	}
}

func TestAgent_FolderCannotBeMade_Fails(t *testing.T) {
	t.Parallel()
	r := newHarness(t, attempts(1))
	if err := os.MkdirAll(r.cfg.Groups, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.cfg.Groups, "main"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	failed := r.await(r.ask("hi"), msg.TurnFailed)
	if !strings.HasPrefix(failed.Error, "cannot run the agent: ") {
		t.Errorf("failed with %q", failed.Error)
	}
	diff(t, "another group", r.answered(r.ask("hi", group("other"), chat("telegram:2"))), []string{"re: hi"})
}

func TestRetry_EveryAttemptFails_TurnFailsOnce(t *testing.T) {
	var mu sync.Mutex
	var backoffs []int
	r := newHarness(t, attempts(3), func(cfg *Config) {
		cfg.Backoff = func(n int) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			backoffs = append(backoffs, n)
			return time.Millisecond
		}
	})
	r.answered(r.ask("!session s1; say hi"))
	failed := r.await(r.ask("!exit 1"), msg.TurnFailed)
	r.onlyNotice(failed)
	mu.Lock()
	defer mu.Unlock()
	diff(t, "backoffs after attempts", backoffs, []int{1, 2})
	var sessions []string
	for _, g := range r.inputs("main") {
		if s := g.start(); s.TurnID == fmt.Sprint(failed.ID) {
			sessions = append(sessions, s.SessionID)
		}
	}
	// The first attempt was piped into the live run.
	diff(t, "sessions of the retries", sessions, []string{"", ""})
}

func TestRetry_OnlyTheOldestTurnLosesAnAttempt(t *testing.T) {
	t.Parallel()
	r := newHarness(t, hourly)
	open := r.gate("main", "gate")
	first := r.ask("!once hold gate; once exit 1; say 1")
	r.await(first, msg.TurnRunning)
	second, third := r.ask("2"), r.ask("3")
	open()
	r.until("the first is back in the queue", func() bool { return r.turn(first.ID).Attempts == 1 })
	newer := r.ask("4")

	diff(t, "another chat of the group", r.answered(r.ask("hello", chat("telegram:2"))), []string{"re: hello"})
	diff(t, "another topic of the chat", r.answered(r.ask("hello", topic("#x"))), []string{"re: hello"})
	for _, waiting := range []*msg.Turn{first, second, third, newer} {
		now := r.turn(waiting.ID)
		if now.State != msg.TurnQueued || now.RunID != 0 || now.Attempts != 0 && now.ID != first.ID {
			t.Errorf("turn %+v", now)
		}
	}

	r.ahead.Add(time.Hour.Milliseconds())
	diff(t, "answers", r.answered(first, second, third, newer), []string{"1", "re: 2", "re: 3", "re: 4"})
	if done := r.turn(first.ID); done.Attempts != 1 || done.Error != "" || done.Reason != msg.ReasonAnswered {
		t.Errorf("turn %+v", done)
	}
	r.noneDoubled([]*msg.Turn{first, second, third, newer})
}

func TestAgent_ExitsAfterAnswer_IsNoFailure(t *testing.T) {
	t.Parallel()
	r := newHarness(t, attempts(1))
	open := r.gate("main", "gate")
	turns := []*msg.Turn{r.ask("!hold gate; session s1; say 1; exit 0")}
	r.await(turns[0], msg.TurnRunning)
	for i := 2; i < 6; i++ {
		turns = append(turns, r.ask(fmt.Sprintf("!say %d; exit 0", i)))
	}
	open()
	diff(t, "answers", r.answered(turns...), []string{"1", "2", "3", "4", "5"})
	for _, asked := range turns {
		if done := r.turn(asked.ID); done.Attempts != 0 {
			t.Errorf("turn %d lost an attempt", done.ID)
		}
	}
	for _, g := range r.inputs("main")[1:] {
		if g.start().TurnID != "" && g.start().SessionID != "s1" {
			t.Errorf("started with session %q", g.start().SessionID)
		}
	}
}

func TestRetry_ByAnOperator_RunsAtOnce(t *testing.T) {
	t.Parallel()
	for allowed, state := range map[int]msg.TurnState{1: msg.TurnFailed, 2: msg.TurnQueued} {
		r := newHarness(t, attempts(allowed), hourly)
		asked := r.ask("!once exit 1; say fine")
		r.until("it has failed", func() bool { now := r.turn(asked.ID); return now.State == state && now.Attempts == 1 })
		r.revive(asked)
		if answers := r.answered(asked)[0]; !strings.HasSuffix(answers, "fine") {
			t.Errorf("%s: answers %q", state, answers)
		}
	}
}

// revive retries a failed turn, as an operator does.
func (r *harness) revive(t *msg.Turn) {
	r.t.Helper()
	r.write(func(tx *store.Tx) error { return rows.ReviveTurn(tx, t.ID) })
	r.m.Retry(r.turn(t.ID))
}

// sabotage opens the database beside the store.
func (r *harness) sabotage() *sql.DB {
	r.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+r.db)
	if err != nil {
		r.t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	r.t.Cleanup(func() { _ = db.Close() })
	return db
}

func (r *harness) exec(db *sql.DB, statement string) {
	r.t.Helper()
	if _, err := db.Exec(statement); err != nil {
		r.t.Fatal(err)
	}
}

func TestDatabase_TurnsUnreadable_TimeLimitHolds(t *testing.T) {
	r := newHarness(t, impatient, timeout(2*time.Second), attempts(1))
	r.gate("main", "never")
	ready := r.gate("main", "ready")
	first := r.ask("!hold ready; hold never")
	ready()
	r.await(first, msg.TurnRunning)
	pid := r.processes("main")[0]
	db := r.sabotage()
	r.exec(db, `ALTER TABLE turns RENAME COLUMN surface TO surface2`)
	r.m.sweep()
	r.until("the silent agent is stopped", func() bool { return syscall.Kill(pid, 0) != nil })
	r.exec(db, `ALTER TABLE turns RENAME COLUMN surface2 TO surface`)
	r.await(first, msg.TurnFailed)
}

func TestDatabase_RefusesWrites_AreRetried(t *testing.T) {
	tests := []struct{ name, refuse, allow string }{
		{"answers", `CREATE TRIGGER no BEFORE INSERT ON messages WHEN new.direction = 'out' BEGIN SELECT raise(ABORT, 'refused'); END`, `DROP TRIGGER no`},
		{"runs", `CREATE TRIGGER no BEFORE INSERT ON runs BEGIN SELECT raise(ABORT, 'refused'); END`, `DROP TRIGGER no`},
		{"ends of runs", `CREATE TRIGGER no BEFORE UPDATE OF ended_at ON runs BEGIN SELECT raise(ABORT, 'refused'); END`, `DROP TRIGGER no`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newHarness(t)
			db := r.sabotage()
			r.exec(db, tt.refuse)
			turns := []*msg.Turn{r.ask("!session s1; say 1"), r.ask("!say 2", chat("telegram:2"))}
			r.until("it complains", func() bool { return strings.Contains(r.log.String(), "database access failed; retrying") })
			r.exec(db, tt.allow)
			diff(t, "answers", r.answered(turns...), []string{"1", "2"})
			for _, asked := range turns {
				if done := r.turn(asked.ID); done.Attempts != 0 {
					t.Errorf("turn %d lost an attempt", done.ID)
				}
			}
			if s := r.session("main", ""); s != "s1" {
				t.Errorf("session %q", s)
			}
		})
	}
}

func TestDatabase_Locked_IsWaitedFor(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	ready, lock, answers := r.gate("main", "ready"), r.gate("main", "locked"), r.gate("main", "answers")
	asked := r.ask("!hold ready; hold locked; say hi; hold answers; exit 0")
	ready()
	db := r.sabotage()
	r.exec(db, "BEGIN IMMEDIATE")
	lock()
	answers()
	if now := r.turn(asked.ID); now.State != msg.TurnRunning {
		t.Errorf("turn is %s past a locked database", now.State)
	}
	r.exec(db, "ROLLBACK")
	diff(t, "answer", r.answered(asked), []string{"hi"})
}

// TestManager_RandomLoad_EndsEveryTurn mixes all kinds of turns, failures and stops:
// every turn ends, and the answers of each conversation come in order.
func TestManager_RandomLoad_EndsEveryTurn(t *testing.T) {
	t.Parallel()
	r := newHarness(t, attempts(2), idle(time.Millisecond), func(cfg *Config) { cfg.MaxAgents = 3 })
	scripts := []string{"hi", "!say x", "!more a; say b", "!once exit 1; say x", "!error bad", "!exit 0", "!say x; exit 0", "!anon x", "!say"}
	places := []func(*msg.Turn){
		chat("telegram:1"), chat("telegram:2"), topic("#x"),
		func(t *msg.Turn) { t.ChatJID = "web:main" },
		func(t *msg.Turn) { t.ChatJID, t.Topic = "web:main", "#tab" },
		func(t *msg.Turn) { t.Folder, t.ChatJID = "other", "telegram:3" },
		func(t *msg.Turn) { t.Folder, t.ChatJID = "other", "telegram:4" },
	}
	byPlace := map[int][]*msg.Turn{}
	var all []*msg.Turn
	for i := range 105 {
		p := i % len(places)
		asked := r.ask(scripts[(i*5+i/len(places))%len(scripts)], places[p])
		byPlace[p], all = append(byPlace[p], asked), append(all, asked)
		switch i {
		case 30:
			r.cancelChat("telegram:2")
		case 45, 75:
			r.reset("main", "")
		case 60:
			r.cancelChat("telegram:4")
		case 90:
			r.stop()
			r.start()
		}
	}
	for _, asked := range all {
		r.until(fmt.Sprintf("turn %d has ended", asked.ID), func() bool { return r.turn(asked.ID).EndedAt != 0 })
	}
	r.noRun()
	for p, turns := range byPlace {
		var rows []int64
		for _, asked := range turns {
			replies := must[[]*msg.Message](r)(factrows.TurnReplies(t.Context(), r.st.Reader, asked.ID))
			for _, m := range replies {
				rows = append(rows, m.ID)
			}
			if now := r.turn(asked.ID); len(replies) == 0 && now.Reason != msg.ReasonSilent &&
				now.Reason != msg.ReasonAlreadyTold && now.State != msg.TurnCancelled {
				t.Errorf("turn %d ended unseen: %s %s", now.ID, now.State, now.Reason)
			}
		}
		if !slices.IsSorted(rows) {
			t.Errorf("place %d was answered in the order %v", p, rows)
		}
	}
}

// TestLog_TurnFails_NamesRunAndTurn: the lines that operators look for are there at
// level info, with ids and without secrets.
func TestLog_TurnFails_NamesRunAndTurn(t *testing.T) {
	t.Parallel()
	r := newHarness(t, attempts(1))
	failed := r.await(r.ask("!error no hunter2 left"), msg.TurnFailed)
	r.until("both lines are logged", func() bool { return strings.Contains(r.log.String(), `msg="turn failed"`) })
	for _, want := range []string{
		`level=WARN msg="run failed" run=1 folder=main reason="no *** left"`,
		fmt.Sprintf(`level=WARN msg="turn failed" turn=%d folder=main chat=telegram:1 reason="no *** left"`, failed.ID),
	} {
		if !strings.Contains(r.log.String(), want) {
			t.Errorf("no %s in\n%s", want, r.log)
		}
	}
}
