package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	_ "github.com/mattn/go-sqlite3" // to read the rows, as anybody may

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/foreign"
	"arizuko/deploy/e2e/harness"
	"arizuko/deploy/e2e/invariants"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/fakes/slack"
	"arizuko/pkg/testkit/fakes/telegram"
)

const (
	// readyMost is how long a daemon may take to come up, and stopMost to go.
	readyMost = 60 * time.Second
	stopMost  = 30 * time.Second
	// engagement is how long a window is open: short, so that some run out.
	engagement = 2 * time.Second
	// stillMost is how long nothing at all may happen before what is open counts as stuck. It is
	// above the longest pause of the path, the one between two attempts of a turn.
	stillMost = 45 * time.Second
)

// crowded is the size of each platform: none takes more than one message a second into a chat for
// long, so that people who write much need many.
var crowded = chatsim.Size{DMs: 12, Groups: 6}

// daemons of the instance, in the order in which they start.
var daemons = []string{"routd", "gated", "dashd", "teled", "discd", "slakd"}

// worlds are the platforms. Who dies that often needs Slack to try more often, and Discord to
// notice sooner that nobody hears it.
func worlds() []chatsim.Platform {
	return []chatsim.Platform{
		chatsim.NewTelegram(crowded, telegram.Options{}),
		chatsim.NewDiscord(crowded, discord.Options{Heartbeat: time.Second}),
		chatsim.NewSlack(crowded, slack.Options{AckTimeout: time.Second, Retries: 100}),
	}
}

// trial is an instance under load.
type trial struct {
	*harness.Instance
	random *rand.Rand
	worlds []chatsim.Platform
	crowd  *crowd

	clockSet bool // times of rows can't be compared
	db       *sql.DB

	stop context.CancelFunc // of what the crowd does by itself
	busy sync.WaitGroup     // as long as it does
}

// build makes the programs.
func build() (bin string, err error) {
	return harness.Build("failpoints", "arizuko/gated", "arizuko/routd", "arizuko/dashd", "arizuko/migrations/cmd/migrate",
		"arizuko/deploy/agents/demo", "arizuko/teled", "arizuko/discd", "arizuko/slakd")
}

// open starts an instance with groups and routes. env is more of its environment.
func open(ctx context.Context, bin string, seed uint64, env ...string) (*trial, error) {
	i, err := harness.New(bin)
	if err != nil {
		return nil, err
	}
	t := &trial{Instance: i, random: rand.New(rand.NewPCG(seed, 0)), worlds: worlds()}
	i.Env = append(append(i.Env, "POLL_INTERVAL=200ms", "ENGAGEMENT_TTL="+engagement.String(), "AGENT_IDLE=300ms", "IMPULSE_MAX_HOLD=1s", "LOG_LEVEL=warn",
		"AGENT_COMMAND=exec "+i.Program("demo")), env...)
	if err := t.start(ctx); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

func (t *trial) start(ctx context.Context) error {
	for _, w := range t.worlds {
		env, err := w.Serve(t.Host)
		if err != nil {
			return err
		}
		t.Env = append(t.Env, env...)
	}
	if err := t.Migrate(); err != nil {
		return err
	}
	var err error
	if t.db, err = sql.Open("sqlite3", "file:"+t.Database()+"?_busy_timeout=20000&mode=ro"); err != nil {
		return err
	}
	secret, err := t.Secret()
	if err != nil {
		return err
	}
	for _, name := range daemons {
		if err := t.up(ctx, name); err != nil {
			return err
		}
	}
	if err := t.connect(ctx, httpx.NewClient(t.URL("routd"), secret)); err != nil {
		return err
	}
	f, err := foreign.Open(t.Data, func(string, error) {}) // who is killed cannot be woken
	if err != nil {
		return err
	}
	t.crowd = newCrowd(rand.New(rand.NewPCG(t.random.Uint64(), 0)), t.worlds, httpx.NewClient(t.URL("dashd"), secret), &foreignChat{adapter: f})
	running, stop := context.WithCancel(ctx)
	t.stop = stop
	t.busy.Go(func() { t.crowd.run(running) })
	t.crowd.greet(ctx)
	return t.settle(ctx)
}

// connect makes the groups and the routes: whoever has no child to call by name is second's.
func (t *trial) connect(ctx context.Context, routd *httpx.Client) error {
	for _, folder := range groups {
		if err := routd.Do(ctx, http.MethodPost, "/v1/groups", msg.Group{Folder: folder}, nil); err != nil {
			return err
		}
	}
	all := routes("matrix", "dm-*")
	for _, w := range t.worlds {
		all = append(all, routes(w.Info().Platform, w.Info().DMPattern)...)
		for _, p := range w.Conversations() {
			if p.NoChildGroup {
				all = append([]msg.Route{{Match: "chat_jid=" + p.Chat, Target: "second"}}, all...)
			}
		}
	}
	for _, r := range all {
		if err := routd.Do(ctx, http.MethodPost, "/v1/routes", map[string]string{"match": r.Match, "target": r.Target}, nil); err != nil {
			return err
		}
	}
	return nil
}

// up starts a daemon and waits until it is ready.
func (t *trial) up(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, readyMost)
	defer cancel()
	if err := t.Start(name); err != nil {
		return err
	}
	return t.AwaitReady(ctx, name)
}

// settle waits until everything is acknowledged, decided, answered and delivered. errStuck means
// that it never will be, which the verdict tells in numbers.
func (t *trial) settle(ctx context.Context) error {
	return t.await(ctx, func() bool { return false })
}

// await is settle, or until something else has come.
func (t *trial) await(ctx context.Context, come func() bool) error {
	var last progress
	moved := time.Now()
	return harness.Await(ctx, "everything to come to rest", func() (bool, error) {
		now, err := t.count()
		err = errors.Join(err, t.crowd.failure.get())
		rests := false
		if err == nil && now.open == 0 && t.crowd.quiet() {
			rests, err = t.crowd.stored(t.db)
		}
		switch {
		case err != nil, come():
			return true, err
		case now != last:
			last, moved = now, time.Now()
		case rests:
			return true, nil
		case time.Since(moved) > stillMost:
			return false, errStuck
		}
		return false, nil
	})
}

// errStuck says that something is open and nothing has happened for a long time.
var errStuck = errors.New("nothing happens any more")

// progress counts what is open, and what changes as it gets closed.
type progress struct{ open, all, attempts, delivered int }

func (t *trial) count() (r progress, err error) {
	err = t.db.QueryRow(`SELECT (SELECT count(*) FROM messages WHERE direction = 'in' AND disposition IS NULL)
		+ (SELECT count(*) FROM turns WHERE ended_at IS NULL)
		+ (SELECT count(*) FROM messages WHERE direction = 'out' AND out_state IN ('queued', 'sending')),
		(SELECT max(id) FROM messages), (SELECT ifnull(sum(attempts), 0) FROM turns), (SELECT ifnull(max(seq), 0) FROM deliveries)`,
	).Scan(&r.open, &r.all, &r.attempts, &r.delivered)
	if err != nil {
		err = fmt.Errorf("count what is open: %w", err)
	}
	return r, err
}

// finish stops the daemons as an operator does, adapters first. Agents must be gone with them.
func (t *trial) finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopMost)
	defer cancel()
	t.quiet()
	var errs []error
	for _, name := range slices.Backward(daemons) {
		errs = append(errs, t.Stop(ctx, name))
	}
	strays, err := t.Strays()
	if len(strays) > 0 {
		err = fmt.Errorf("agents are left running: %v", strays)
	}
	return errors.Join(append(errs, err)...)
}

// quiet has nobody write any more.
func (t *trial) quiet() {
	if t.stop != nil {
		t.stop()
		t.busy.Wait()
	}
}

func (t *trial) close() error {
	t.quiet()
	var errs []error
	for _, w := range t.worlds {
		errs = append(errs, w.Close())
	}
	if t.db != nil {
		errs = append(errs, t.db.Close())
	}
	if t.crowd != nil {
		errs = append(errs, t.crowd.foreign.adapter.Close())
	}
	return errors.Join(append(errs, t.Close())...)
}

// complaints is what is open, and the end of each daemon's log.
func (t *trial) complaints() string {
	var all strings.Builder
	for _, query := range []string{
		`SELECT 'turn', id, run_id, folder, chat_jid, topic, state, attempts, not_before, created_at FROM turns WHERE ended_at IS NULL`,
		`SELECT 'run', id, folder, topic, pid, started_at, closed_at FROM runs WHERE ended_at IS NULL`,
		`SELECT 'row', id, chat_jid, direction, disposition, out_state, content FROM messages WHERE disposition IS NULL AND direction = 'in'
			OR out_state IN ('queued', 'sending')`,
	} {
		open, err := invariants.Lines(t.db, query)
		if err != nil {
			open = []string{err.Error()}
		}
		for _, line := range open[:min(len(open), 30)] {
			fmt.Fprintln(&all, line)
		}
	}
	for _, name := range daemons {
		log, err := t.Log(name)
		if err != nil {
			log = err.Error()
		}
		fmt.Fprintf(&all, "%s:\n%s\n", name, log[max(0, len(log)-4000):])
	}
	return all.String()
}

// pause waits for as long as it takes people to write, not for anything to happen.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
