package platforms

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/harness"
	"arizuko/deploy/e2e/invariants"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/fakes/slack"
	"arizuko/pkg/testkit/fakes/telegram"
)

const (
	// patience is how long a test may take. It says nothing about speed.
	patience = 120 * time.Second
	// atOnce is how many tests run at a time: most of what they do is wait.
	atOnce = "12"
)

var bin string

func TestMain(m *testing.M) {
	flag.Parse()
	err := flag.Set("test.parallel", atOnce)
	if err == nil {
		bin, err = harness.Build("failpoints", "arizuko/gated", "arizuko/routd", "arizuko/dashd", "arizuko/teled", "arizuko/discd",
			"arizuko/slakd", "arizuko/migrations/cmd/migrate", "arizuko/deploy/agents/demo")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(bin)
	os.Exit(code)
}

func telegramOptions() telegram.Options { return telegram.Options{} }

// discordOptions have heartbeats often, so that a silence is noticed soon.
func discordOptions() discord.Options { return discord.Options{Heartbeat: time.Second} }

// slackOptions have Slack tell again soon, and not give up: the real one does over an hour.
func slackOptions() slack.Options { return slack.Options{AckTimeout: time.Second, Retries: 100} }

func newTelegram() chatsim.Platform { return chatsim.NewTelegram(chatsim.Size{}, telegramOptions()) }
func newDiscord() chatsim.Platform  { return chatsim.NewDiscord(chatsim.Size{}, discordOptions()) }
func newSlack() chatsim.Platform    { return chatsim.NewSlack(chatsim.Size{}, slackOptions()) }

// rig is an instance with platforms in front of it.
type rig struct {
	*harness.Instance
	t      *testing.T
	ctx    context.Context
	db     *sql.DB // nil until there is one
	fronts []*front
}

// each plays a scenario on every platform, each with an instance of its own.
func each(t *testing.T, play func(*front)) {
	t.Parallel()
	for name, fresh := range map[string]func() chatsim.Platform{"telegram": newTelegram, "discord": newDiscord, "slack": newSlack} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(start(t, fresh()))
		})
	}
}

// start has one platform.
func start(t *testing.T, w chatsim.Platform) *front {
	t.Helper()
	r := newRig(t)
	f := r.serve(w)
	r.run("routd", "gated", f.about.Daemon)
	r.connect()
	return f
}

// newRig makes an instance in which nothing runs.
func newRig(t *testing.T) *rig {
	t.Helper()
	i, err := harness.New(bin)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience) // the test's own is over when it is cleaned up
	r := &rig{Instance: i, t: t, ctx: ctx}
	t.Cleanup(func() {
		cancel()
		r.close()
	})
	t.Cleanup(r.show)
	t.Cleanup(r.check)
	i.Env = append(i.Env, "POLL_INTERVAL=100ms", "IMPULSE_MAX_HOLD=1s", "AGENT_COMMAND=exec "+i.Program("demo"))
	return r
}

// serve puts a platform in front of the instance, before its adapter runs.
func (r *rig) serve(w chatsim.Platform) *front {
	r.t.Helper()
	f := &front{rig: r, Platform: w, about: w.Info()}
	r.fronts = append(r.fronts, f)
	env, err := w.Serve(r.Host)
	r.ok(err)
	r.Env = append(r.Env, env...)
	f.dm = w.NewDM("Alice")
	return f
}

// run starts daemons on a new database.
func (r *rig) run(daemons ...string) {
	r.t.Helper()
	r.ok(r.Migrate())
	var err error
	r.db, err = sql.Open("sqlite3", "file:"+r.Database()+"?_busy_timeout=20000&mode=ro")
	r.ok(err)
	for _, name := range daemons {
		r.up(name)
	}
}

// connect has main answer who calls it in groups, and everybody in private, and waits until it
// has heard of who is there.
func (r *rig) connect() {
	r.t.Helper()
	routd := r.client("routd")
	r.ok(routd.Do(r.ctx, http.MethodPost, "/v1/groups", msg.Group{Folder: "main"}, nil))
	for _, f := range r.fronts {
		platform := "platform=" + f.about.Platform
		for _, route := range [][2]string{
			{platform + " room=" + f.about.DMPattern, "main"}, {platform + " verb=mention", "main"}, {platform + " verb=reply", "main"},
			{platform, "main#observe"},
		} {
			r.ok(routd.Do(r.ctx, http.MethodPost, "/v1/routes", map[string]string{"match": route[0], "target": route[1]}, nil))
		}
		f.connection("connected")
		f.say(f.dm, "silent hello") // Discord tells a bot of private chats by what is said there
		f.stored("silent hello")
	}
	r.settle()
}

func (r *rig) client(daemon string) *httpx.Client {
	r.t.Helper()
	secret, err := r.Secret()
	r.ok(err)
	return httpx.NewClient(r.URL(daemon), secret)
}

// check looks, when a test has passed, whether what must never be is nowhere found.
func (r *rig) check() {
	if r.t.Failed() || r.db == nil {
		return
	}
	r.settle()
	for _, name := range []string{"teled", "discd", "slakd", "dashd", "gated", "routd"} {
		if r.Running(name) {
			r.ok(r.Stop(r.ctx, name))
		}
	}
	found, err := invariants.Check(r.db, invariants.Path())
	r.ok(err)
	for _, f := range found {
		r.t.Error(f)
	}
}

// show tells what a failed test leaves behind.
func (r *rig) show() {
	if !r.t.Failed() {
		return
	}
	for _, f := range r.fronts {
		for _, a := range f.Arrivals() {
			r.t.Logf("%s %s %q ← %q", a.At.Format(time.StampMilli), a.Chat, a.Thread, a.Text)
		}
	}
	for _, name := range r.Started() {
		log, _ := r.Log(name)
		r.t.Logf("%s:\n%s", name, log[max(0, len(log)-6000):])
	}
}

func (r *rig) close() {
	for _, f := range r.fronts {
		_ = f.Close()
	}
	if r.db != nil {
		_ = r.db.Close()
	}
	if err := r.Close(); err != nil {
		r.t.Error(err)
	}
}

func (r *rig) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// up starts a daemon and waits for it.
func (r *rig) up(name string, env ...string) {
	r.t.Helper()
	r.ok(r.Start(name, env...))
	r.ok(r.AwaitReady(r.ctx, name))
}

// down kills a daemon.
func (r *rig) down(name string) {
	r.t.Helper()
	r.ok(r.Kill(name))
}

// until waits for something to become true.
func (r *rig) until(what string, holds func() bool) {
	r.t.Helper()
	r.ok(harness.Await(r.ctx, what, func() (bool, error) { return holds(), nil }))
}

// settle waits until everything is decided, answered and delivered.
func (r *rig) settle() {
	r.t.Helper()
	r.until("all is said", func() bool {
		return r.value(`SELECT (SELECT count(*) FROM messages WHERE direction = 'in' AND disposition IS NULL)
			+ (SELECT count(*) FROM turns WHERE ended_at IS NULL)
			+ (SELECT count(*) FROM messages WHERE direction = 'out' AND out_state IN ('queued', 'sending'))`) == "0"
	})
}

// value is the one value that a query finds, "" if there is none.
func (r *rig) value(query string, args ...any) (value string) {
	r.t.Helper()
	var found sql.NullString
	if err := r.db.QueryRow(query, args...).Scan(&found); err != nil && err != sql.ErrNoRows {
		r.t.Fatal(err)
	}
	return found.String
}

// put has the instance say something as an agent does by a tool.
func (r *rig) put(m msg.Message) {
	r.t.Helper()
	st, err := store.Open(r.ctx, store.Options{Path: r.Database(), Autocheckpoint: store.DefaultAutocheckpoint})
	r.ok(err)
	defer st.Close()
	now := time.Now().UnixMilli()
	m.Direction, m.OutState, m.Source, m.Sender, m.Timestamp, m.ReceivedAt = msg.Out, msg.OutQueued, msg.SourceAgent, "agent:main", now, now
	r.ok(st.Write(r.ctx, func(tx *store.Tx) error { _, _, err := tx.PutMessage(&m); return err }))
}
