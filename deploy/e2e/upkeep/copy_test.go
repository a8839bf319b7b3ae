package upkeep

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the database/sql driver

	"arizuko/deploy/e2e/harness"
	"arizuko/deploy/e2e/invariants"
	"arizuko/pkg/testkit/need"
	"arizuko/pkg/testkit/postgres"
)

// An instance moves to a server and back while users write: each message is answered once, whatever was under way.
func TestCopy_ToAServerAndBackUnderLoad_AnswersEachMessageOnce(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	need.Full(t)
	server, err := postgres.Start(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	d := newDrill(t)
	d.OnClose(func() { d.OK(server.Stop()) })
	d.Migrate()
	d.startAll()
	d.AddGroups("main")
	d.AddRoute("platform=telegram", "main")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	l := d.startLoad(ctx)
	d.Until("answers", func() bool { return len(d.Query(`SELECT id FROM turns WHERE state = 'done' LIMIT 5`)) == 5 })
	onServer := "ARIZUKO_DB=" + server.URL()

	if out, code := d.migrate(onServer, "copy", "--to", "server"); code != 75 || !strings.Contains(out, "stop all daemons") {
		t.Errorf("while daemons run: exit %d, %s", code, out)
	}
	d.interrupt()
	d.Reopen(func() {
		d.mustMigrate(onServer, "copy", "--to", "server")
		d.refusesMoved()
		d.Instance.Env = append(d.Instance.Env, onServer)
		d.startAll()
		db, err := sql.Open("pgx", server.URL())
		d.OK(err)
		defer db.Close()
		done := func() (n int) {
			d.OK(db.QueryRow(`SELECT count(*) FROM turns WHERE state = 'done'`).Scan(&n))
			return n
		}
		first := done()
		d.Until("answers on the server", func() bool { return done() >= first+10 })
		if out, code := d.migrate(onServer, "copy", "--to", "file"); code != 75 {
			t.Errorf("while daemons run: exit %d, %s", code, out)
		}
		d.interrupt()
		d.Until("the copy back, when the leases of the killed daemons have ended", func() bool {
			out, code := d.migrate(onServer, "copy", "--to", "file")
			if code != 0 && (code != 75 || !strings.Contains(out, "those that were killed count for 12 s more")) {
				t.Fatalf("exit %d, %s", code, out)
			}
			return code == 0
		})
		d.refusesMoved()
		d.Instance.Env = d.Instance.Env[:len(d.Instance.Env)-1]
	})
	d.startAll()
	l.reach(len(l.written()) + 20)
	stop()
	<-l.done
	d.Until("updates to be acknowledged", d.platform.AllAcknowledged)
	d.WaitIdle()
	d.wantRows(l.written())
	all := arrived(d.platform)
	for _, text := range l.written() {
		if n := strings.Count(all, text); n != 1 {
			t.Errorf("%q was answered %d times", text, n)
		}
	}
	d.CheckInvariants(invariants.AllDelivered())
}

// interrupt ends all daemons in the middle of their work. The adapter ends its calls: a part that was sent is stored.
func (d *drill) interrupt() {
	d.T.Helper()
	d.Stop("teled")
	for _, name := range []string{harness.Gated, harness.Routd, "dashd"} {
		d.Kill(name)
	}
}

func (l *load) written() []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return append([]string{}, l.texts...)
}

func (d *drill) migrate(env string, args ...string) (out string, code int) {
	d.T.Helper()
	cmd := d.Instance.Command("migrate", args...)
	cmd.Env = append(cmd.Env, env)
	text, _ := cmd.CombinedOutput() // the exit code says it
	return string(text), cmd.ProcessState.ExitCode()
}

func (d *drill) mustMigrate(env string, args ...string) {
	d.T.Helper()
	began := time.Now()
	out, code := d.migrate(env, args...)
	if code != 0 || !strings.Contains(out, "counts and checksums are the same") {
		d.T.Fatalf("exit %d, %s", code, out)
	}
	d.T.Logf("copied in %s", time.Since(began).Round(time.Millisecond))
}

// refusesMoved checks that no daemon starts on the database that was copied.
func (d *drill) refusesMoved() {
	d.T.Helper()
	out, err := d.Instance.Command(harness.Routd).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "the database was moved") {
		d.T.Errorf("routd on a moved database: %v, %s", err, out)
	}
}
