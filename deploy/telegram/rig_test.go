package telegram

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"arizuko/deploy/instance"
	fake "arizuko/pkg/fakeplatform/telegram"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

// patience is how long anything may take. It says nothing about speed.
const patience = 60 * time.Second

var bin string

func TestMain(m *testing.M) {
	var err error
	bin, err = instance.Build("faultpoints", "arizuko/gated", "arizuko/routd", "arizuko/teled", "arizuko/migrations/cmd/migrate", "arizuko/deploy/agents/demo")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(bin)
	os.Exit(code)
}

// rig is the suite with a Telegram of its own.
type rig struct {
	*instance.Instance
	*fake.Server
	t     *testing.T
	ctx   context.Context
	db    *sql.DB
	alice fake.User
}

// start has main answer who calls it in groups, and everybody in private.
func start(t *testing.T, env ...string) *rig {
	t.Helper()
	i, err := instance.New(bin)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	r := &rig{Instance: i, Server: fake.New(fake.Options{PrivacyOff: true}), t: t, ctx: ctx}
	t.Cleanup(func() {
		if t.Failed() {
			for _, name := range i.Started() {
				log, _ := i.Log(name)
				t.Logf("%s:\n%s", name, log[max(0, len(log)-6000):])
			}
			for _, c := range r.Calls() {
				t.Logf("%s %v → %d", c.Method, c.Params, c.Status)
			}
		}
		cancel()
		_ = r.Server.Close()
		if r.db != nil {
			_ = r.db.Close()
		}
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	base, err := r.Server.Start("127.0.0.1:0")
	r.ok(err)
	i.Env = append(append(i.Env, "TELEGRAM_BOT_TOKEN="+r.Token(), "TELEGRAM_API_URL="+base, "POLL_INTERVAL=100ms",
		"AGENT_COMMAND=exec "+i.Program("demo")), env...)
	r.ok(i.Migrate())
	for _, name := range []string{"routd", "gated", "teled"} {
		r.up(name)
	}
	secret, err := i.Secret()
	r.ok(err)
	routd := httpx.NewClient(i.URL("routd"), secret)
	r.ok(routd.Do(ctx, http.MethodPost, "/v1/groups", msg.Group{Folder: "main"}, nil))
	for _, route := range [][2]string{
		{"room=-* verb=mention", "main"}, {"room=-* verb=reply", "main"}, {"room=-*", "main#observe"}, {"platform=telegram", "main"},
	} {
		r.ok(routd.Do(ctx, http.MethodPost, "/v1/routes", map[string]string{"match": route[0], "target": route[1]}, nil))
	}
	r.db, err = sql.Open("sqlite3", "file:"+i.Database()+"?_busy_timeout=20000&mode=ro")
	r.ok(err)
	r.alice = r.User("Alice", "alice")
	return r
}

func (r *rig) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// up starts a daemon and waits for it.
func (r *rig) up(name string) {
	r.t.Helper()
	r.ok(r.Instance.Start(name))
	r.ok(r.AwaitReady(r.ctx, name))
}

// until waits for something to become true.
func (r *rig) until(what string, holds func() bool) {
	r.t.Helper()
	r.ok(instance.Await(r.ctx, what, func() (bool, error) { return holds(), nil }))
}

// answer waits for a text of the bot's that repeats what it was told.
func (r *rig) answer(told string) fake.Call {
	r.t.Helper()
	c, err := r.Wait(r.ctx, func(c fake.Call) bool {
		return c.Method == "sendMessage" && c.Accepted && strings.Contains(c.Text, "You said: "+told+"\n")
	})
	if err != nil {
		r.t.Fatalf("%q is not answered: %v", told, err)
	}
	return c
}

// copies counts the messages in which the bot repeats what it was told.
func (r *rig) copies(told string) (plain, marked int) {
	for _, c := range r.Sent() {
		switch {
		case c.Method != "sendMessage" || !strings.Contains(c.Text, "You said: "+told+"\n"):
		case strings.HasPrefix(c.Text, "(possibly sent twice) "):
			marked++
		default:
			plain++
		}
	}
	return plain, marked
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
