package upkeep

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/harness"
	"arizuko/deploy/e2e/invariants"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/fakes/telegram"
	"arizuko/pkg/testkit/need"
)

// daemons of the drills, in the order of their start.
var daemons = []string{harness.Routd, harness.Gated, "dashd", "teled"}

// drill is an instance with Telegram.
type drill struct {
	*harness.Fixture
	platform *chatsim.Telegram
	dms      []chatsim.Conversation
}

// newDrill makes an instance without a database.
func newDrill(t *testing.T) *drill {
	t.Helper()
	d := &drill{Fixture: newFixture(t), platform: chatsim.NewTelegram(chatsim.Size{DMs: 4}, telegram.Options{})}
	d.dms = d.platform.Conversations()[:4]
	env, err := d.platform.Serve(d.Instance.Host)
	d.OK(err)
	d.OnClose(func() { _ = d.platform.Close() })
	d.Instance.Env = append(d.Instance.Env, env...)
	return d
}

// elsewhere makes an instance without a database as on another machine, with the same Telegram.
func (d *drill) elsewhere(t *testing.T) *drill {
	t.Helper()
	e := &drill{Fixture: newFixture(t), platform: d.platform, dms: d.dms}
	for _, variable := range d.Instance.Env {
		if strings.HasPrefix(variable, "TELEGRAM_") {
			e.Instance.Env = append(e.Instance.Env, variable)
		}
	}
	return e
}

func newFixture(t *testing.T) *harness.Fixture {
	t.Helper()
	return harness.NewFixture(t, programs, harness.Options{
		Env: []string{"IMPULSE_MAX_HOLD=1s", "DASH_PRINT_LINK=false"}, Delivers: true, MaxWait: 2 * time.Minute, Agent: harness.RecordingAgent,
	})
}

func (d *drill) startAll() {
	d.T.Helper()
	for _, name := range daemons {
		d.Restart(name)
	}
	d.Until("teled to be connected", d.platform.Connected)
}

// load writes messages and files until the context ends.
type load struct {
	d     *drill
	mutex sync.Mutex
	texts []string
	done  chan struct{}
}

func (d *drill) startLoad(ctx context.Context) *load {
	l := &load{d: d, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		tick := time.NewTicker(25 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				l.write(n)
			}
		}
	}()
	return l
}

// write is one message; each fifth has a file whose content is its name.
func (l *load) write(n int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	text := fmt.Sprintf("load %d.", n)
	a := chatsim.Action{Conversation: l.d.dms[n%len(l.d.dms)], Verb: msg.VerbMessage, Text: text}
	if n%5 == 0 {
		a.File = &chatsim.File{Name: fmt.Sprintf("file-%d.txt", n), Data: []byte(text)}
	}
	if _, err := l.d.platform.Do(a); err != nil {
		l.d.T.Errorf("%s: %v", text, err)
	}
	l.texts = append(l.texts, text)
}

// reach waits until so many messages are written.
func (l *load) reach(count int) {
	l.d.T.Helper()
	l.d.Until(fmt.Sprintf("%d messages to be written", count), func() bool {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		return len(l.texts) >= count
	})
}

// acknowledged holds the load up until all that was written is acknowledged and all files of it are fetched, and
// returns the texts so far.
func (l *load) acknowledged() []string {
	l.d.T.Helper()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.d.Until("updates to be acknowledged", l.d.platform.AllAcknowledged)
	l.d.Until("files to be fetched", func() bool {
		return len(l.d.Query(`SELECT id FROM messages WHERE direction = 'in' AND pending_files > 0`)) == 0
	})
	return append([]string{}, l.texts...)
}

// command runs a subcommand of dashd, which must succeed, and returns its output.
func (d *drill) command(args ...string) string {
	d.T.Helper()
	out, err := d.Instance.Command("dashd", args...).CombinedOutput()
	if err != nil {
		d.T.Fatalf("dashd %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestBackup_UnderLoadAndKills_RestoredElsewhereAnswers(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	d := newDrill(t)
	d.Migrate()
	d.startAll()
	d.AddGroups("main")
	d.AddRoute("platform=telegram", "main")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	l := d.startLoad(ctx)
	d.Until("answers", func() bool { return len(d.Query(`SELECT id FROM turns WHERE state = 'done' LIMIT 5`)) == 5 })

	var last string
	var before []string
	for n, killed := range []string{"", harness.Gated, "teled", harness.Routd, "dashd"} {
		l.reach(5 * (n + 1)) // a quick machine makes five backups in a few messages' time
		before = l.acknowledged()
		last = filepath.Join(d.Instance.Dir, fmt.Sprintf("b%d.tgz", n))
		cmd := d.Instance.Command("dashd", "backup", last)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		d.OK(cmd.Start())
		if killed != "" {
			d.Kill(killed)
			d.Restart(killed)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("backup: %v\n%s", err, &out)
		}
		if out := d.command("backup", "--verify", last); !strings.Contains(out, "is whole") {
			t.Errorf("verify: %s", out)
		}
	}
	stop()
	<-l.done
	d.WaitIdle()
	stopping, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d.OK(d.Instance.StopAll(stopping))

	restored := d.elsewhere(t)
	restored.command("restore", last)
	restored.Migrate()
	restored.wantRows(before)
	restored.startAll()
	if _, err := restored.platform.Do(chatsim.Action{Conversation: restored.dms[0], Verb: msg.VerbMessage, Text: "after the restore"}); err != nil {
		t.Fatal(err)
	}
	restored.Until("an answer to a new message", func() bool { return strings.Contains(arrived(restored.platform), "You said: after the restore") })
	restored.WaitIdle()
	restored.CheckInvariants(invariants.AllDelivered())
}

func arrived(p *chatsim.Telegram) string {
	var all strings.Builder
	for _, a := range p.Arrivals() {
		fmt.Fprintln(&all, a.Text)
	}
	return all.String()
}

// wantRows fails the test unless the database is sound and has these texts, with their files.
func (d *drill) wantRows(texts []string) {
	d.T.Helper()
	if got := d.Value(`PRAGMA integrity_check`); got != "ok" {
		d.T.Errorf("integrity_check: %s", got)
	}
	files := 0
	for _, text := range texts {
		if n := len(d.Query(`SELECT id FROM messages WHERE direction = 'in' AND derived_from IS NULL AND content = ?`, text)); n != 1 {
			d.T.Errorf("%q has %d rows", text, n)
		}
		path := d.Value(`SELECT attachments ->> '$[0].path' FROM messages WHERE direction = 'in' AND content = ? AND attachments IS NOT NULL`, text)
		if path == "" {
			continue
		}
		files++
		if got, err := os.ReadFile(filepath.Join(d.Data, path)); err != nil || string(got) != text {
			d.T.Errorf("the file of %q is %q, %v", text, got, err)
		}
	}
	if len(texts) < 20 || files < 4 {
		d.T.Errorf("only %d texts and %d files were backed up", len(texts), files)
	}
	if !strings.Contains(d.AgentInput("main"), texts[0]) {
		d.T.Error("the group's folder is not restored")
	}
}

func TestBackupAndRestore_KilledAnyTime_RepeatWorks(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	d := newDrill(t)
	d.Migrate()
	for n := range 500 {
		path := filepath.Join(d.Data, "groups", "main", fmt.Sprint(n%20), fmt.Sprint(n))
		d.OK(os.MkdirAll(filepath.Dir(path), 0o700))
		d.OK(os.WriteFile(path, bytes.Repeat([]byte{byte(n)}, 20_000), 0o600))
	}
	whole := filepath.Join(d.Instance.Dir, "whole.tgz")
	for delay := time.Duration(0); d.killAfter(delay, "backup", whole); delay = longer(delay) {
		if _, err := os.Stat(whole); err == nil {
			break // it was killed between the rename and its end
		}
	}
	d.command("backup", "--verify", whole)
	left, err := filepath.Glob(whole + ".partial*")
	if err != nil || len(left) > 0 {
		t.Errorf("the backup that succeeded leaves %v, %v", left, err)
	}

	restored := d.elsewhere(t)
	kills := 0
	for delay := time.Duration(0); restored.killAfter(delay, "restore", "--force", whole); delay = longer(delay) {
		kills++
		if _, err := os.Stat(filepath.Join(restored.Data, "restoring")); err != nil {
			continue // it had not begun, or was done
		}
		out, err := restored.Instance.Command("migrate", "up").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "dashd restore") {
			t.Errorf("migrate up in a half restored folder: %v, %s", err, out)
		}
	}
	if kills == 0 {
		t.Error("the restore was never killed")
	}
	restored.Migrate()
	if got, err := os.ReadFile(filepath.Join(restored.Data, "groups/main/19/499")); err != nil || len(got) != 20_000 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// killAfter starts a subcommand of dashd and kills it after a delay. It returns false if the command succeeded before
// that; it must not fail.
func (d *drill) killAfter(delay time.Duration, args ...string) (killed bool) {
	d.T.Helper()
	cmd := d.Instance.Command("dashd", args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	d.OK(cmd.Start())
	timer := time.AfterFunc(delay, func() { _ = cmd.Process.Signal(syscall.SIGKILL) })
	defer timer.Stop()
	err := cmd.Wait()
	if err != nil && cmd.ProcessState.Exited() {
		d.T.Fatalf("dashd %s: %v\n%s", strings.Join(args, " "), err, &out)
	}
	return err != nil
}

// longer is the delay of the next kill.
func longer(delay time.Duration) time.Duration { return delay + delay/4 + 10*time.Millisecond }
