package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/foreign"
	"arizuko/deploy/e2e/harness"
	"arizuko/deploy/e2e/invariants"
	"arizuko/pkg/daemon"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
	"arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/fakes/slack"
	"arizuko/pkg/testkit/fakes/telegram"
)

const (
	readyTimeout = 60 * time.Second // of a daemon that starts
	stopTimeout  = time.Minute      // of a daemon that stops, or of all
	// engagement is how long a window stays open: short, so that some expire during a run.
	engagement = 2 * time.Second
	// stuckTimeout is how long nothing may change before open work counts as stuck, apart from work that
	// waits until a time that it has set itself, of at most maxWait. It exceeds the minute that a call to a
	// platform that hangs may take.
	stuckTimeout = 90 * time.Second
	maxWait      = 6 * time.Minute
)

// logTail is how much of a daemon's log is printed, in bytes.
const logTail = 4000

// platformSize is large because no platform accepts more than about one message per second and chat.
var platformSize = chatsim.Size{DMs: 12, Groups: 6}

// daemons of the instance, in starting order.
var daemons = daemon.Suite()

// newPlatforms makes the simulated platforms. Frequent kills need more retries of Slack, and a Discord
// that notices sooner that its client is gone.
func newPlatforms() []chatsim.Platform {
	return []chatsim.Platform{
		chatsim.NewTelegram(platformSize, telegram.Options{}),
		chatsim.NewDiscord(platformSize, discord.Options{Heartbeat: time.Second}),
		chatsim.NewSlack(platformSize, slack.Options{AckTimeout: time.Second,
			RetryDelays: []time.Duration{0, time.Second, 5 * time.Second}}),
	}
}

// loadedInstance is an instance under load.
type loadedInstance struct {
	instance  *harness.Instance
	random    *rand.Rand
	platforms []chatsim.Platform
	load      *generator

	sites    []site
	outages  map[string]outage // by name of the site
	provoked bool              // there is no load but provocations
	clockSet bool              // timestamps of rows can't be compared
	db       *sql.DB
	gated    *httpx.Client

	stop       context.CancelFunc // ends the generator's goroutines
	background sync.WaitGroup     // the generator's goroutines
}

// build builds the programs, with failpoints.
func build() (bin string, err error) {
	return harness.Build("failpoints", "arizuko/gated", "arizuko/routd", "arizuko/onbod", "arizuko/dashd",
		"arizuko/migrations/cmd/migrate",
		"arizuko/deploy/agents/demo", "arizuko/deploy/e2e/agents/caller", "arizuko/teled", "arizuko/discd",
		"arizuko/slakd")
}

// start starts an instance with groups and routes. env is added to its environment.
func start(ctx context.Context, o options, env ...string) (*loadedInstance, error) {
	i, err := harness.New(o.bin)
	if err != nil {
		return nil, err
	}
	if o.database != "" {
		i.UseDatabase(o.database)
	}
	l := &loadedInstance{instance: i, random: rand.New(rand.NewPCG(o.seed, 0)), platforms: newPlatforms(),
		outages: map[string]outage{}}
	i.Env = slices.Concat(i.Env, settings(i), env)
	if err := l.setUp(ctx); err != nil {
		return nil, errors.Join(err, l.tearDown())
	}
	return l, nil
}

// settings are those of the daemons of an instance under load.
func settings(i *harness.Instance) []string {
	return []string{
		"POLL_INTERVAL=200ms", "ENGAGEMENT_TTL=" + engagement.String(), "AGENT_IDLE=300ms", "IMPULSE_MAX_HOLD=1s",
		"ASK_TIMEOUT=" + askTimeout,
		"LOG_LEVEL=warn", "ALERTS=off", "REQUESTS_PER_SENDER=10000", "REQUESTS_PER_HOUR=10000",
		"AGENT_COMMAND=exec " + i.Program("demo"),
	}
}

func (l *loadedInstance) setUp(ctx context.Context) error {
	for _, p := range l.platforms {
		env, err := p.Serve(l.instance.Host)
		if err != nil {
			return err
		}
		l.instance.Env = append(l.instance.Env, env...)
	}
	if err := l.instance.Migrate(); err != nil {
		return err
	}
	var err error
	if l.db, err = storetest.OpenSQL(l.instance.Database()); err != nil {
		return err
	}

	for _, name := range daemons {
		if err := l.startDaemon(ctx, name); err != nil {
			return err
		}
	}
	// pokes to killed daemons fail
	adapter, err := foreign.Open(l.instance.Database(), l.instance.Data, func(string, error) {})
	if err != nil {
		return err
	}
	return l.beginLoad(ctx, l.instance.Client, &foreignChat{adapter: adapter})
}

// beginLoad makes the groups and routes, and the generator, whose users greet. client makes clients of daemons. Without
// a foreign adapter users write to the platforms and the web chat alone.
func (l *loadedInstance) beginLoad(ctx context.Context, client func(daemon string) (*httpx.Client, error),
	f *foreignChat) error {
	routd, err := client("routd")
	if err != nil {
		return err
	}
	toolChats := newToolChats(l.platforms)
	var newcomers []chatsim.Conversation
	if f == nil {
		toolChats = withoutForeign(toolChats)
		newcomers = newNewcomers(l.platforms[0])
	}
	if err := l.createRoutes(ctx, routd, toolChats, newcomers); err != nil {
		return err
	}
	dashd, err := client("dashd")
	if err != nil {
		return err
	}
	web := newWebNetwork(dashd.HTTP.Transport)
	dashd.HTTP.Transport = web
	l.sites = sitesOf(l.platforms, web)

	if l.gated, err = client("gated"); err != nil {
		return err
	}
	onbod, err := client("onbod")
	if err != nil {
		return err
	}
	l.load = newGenerator(rand.New(rand.NewPCG(l.random.Uint64(), 0)), l.platforms, toolChats, dashd, f)
	if f == nil {
		l.load.leaveOutForeign(newcomers)
	}
	l.load.approver = &approver{onbod: onbod}
	running, stop := context.WithCancel(ctx)
	l.stop = stop
	l.background.Go(func() { l.load.run(running) })
	l.load.greet(ctx)
	if err := l.awaitIdle(ctx); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(l.instance.Data, "groups", msg.DirName(toolsGroup), sharedFile), []byte("notes"),
		0o600)
}

// createRoutes creates the groups and routes. Conversations whose group must have no child are routed
// to second.
func (l *loadedInstance) createRoutes(ctx context.Context, routd *httpx.Client, toolChats,
	newcomers []chatsim.Conversation) error {
	config := map[string]string{}
	for _, folder := range groups {
		// so that groups have previews too, and permissions
		config[folder] = `{"rate":0,"progress":"live","roles":{"approve":"everyone"}}`
	}
	for _, folder := range []string{toolsGroup, toolsChild, provokedTools} {
		config[folder] = fmt.Sprintf(`{"rate":0,"agent":{"command":%q}}`, "exec "+l.instance.Program("caller"))
	}
	for _, folder := range slices.Sorted(maps.Keys(config)) {
		if err := routd.Do(ctx, http.MethodPost, "/v1/groups",
			msg.Group{Folder: folder, Config: json.RawMessage(config[folder])}, nil); err != nil {
			return err
		}
	}

	all := append(append(append(unknownRoutes(newcomers), toolRoutes(toolChats)...), []msg.Route{
		{Match: "platform=matrix room=" + provokedRoom + "*", Target: provokedGroup},
		{Match: "platform=matrix room=" + unknownRoom + "*", Target: "daemon:onbod"},
	}...), routes("matrix", "dm-*")...)
	for _, p := range l.platforms {
		all = append(all, routes(p.Info().Platform, p.Info().DMPattern)...)
		for _, c := range p.Conversations() {
			if c.NoChildGroup {
				all = append([]msg.Route{{Match: "chat_jid=" + c.Chat, Target: "second"}}, all...)
			}
		}
	}
	for _, r := range all {
		if err := routd.Do(ctx, http.MethodPost, "/v1/routes", map[string]string{"match": r.Match, "target": r.Target},
			nil); err != nil {
			return err
		}
	}
	return nil
}

// startDaemon starts a daemon and waits until it is ready.
func (l *loadedInstance) startDaemon(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return l.instance.StartReady(ctx, name)
}

// awaitIdle waits until everything is acknowledged, decided, answered and delivered. It returns
// errStuck if that stops making progress; the result then counts stuck work.
func (l *loadedInstance) awaitIdle(ctx context.Context) error {
	return l.awaitIdleOr(ctx, func() bool { return false })
}

// awaitIdleOr is awaitIdle that also returns when done does.
func (l *loadedInstance) awaitIdleOr(ctx context.Context, done func() bool) error {
	var last progress
	changed := time.Now()
	return harness.Await(ctx, "instance to become idle", func() (bool, error) {
		now, err := l.readProgress()
		err = errors.Join(err, l.load.failure.get())
		idle := false
		if err == nil && now.open == 0 && l.load.allAcknowledged() {
			idle, err = l.load.allStored(l.db)
		}

		switch {
		case err != nil, done():
			return true, err
		case now != last, l.waits(now):
			last, changed = now, time.Now()
		case idle:
			return true, nil
		case time.Since(changed) > stuckTimeout:
			return false, errStuck
		}
		return false, nil
	})
}

// waits reports whether open work waits for a time that it has set itself.
func (l *loadedInstance) waits(p progress) bool {
	wait := time.Until(time.UnixMilli(p.due))
	return !l.clockSet && wait > 0 && wait < maxWait
}

// errStuck means that there is open work and nothing has changed for stuckTimeout.
var errStuck = errors.New("no progress for " + stuckTimeout.String())

// progress counts open work, and rows that change when work is done.
type progress struct {
	open, messages, attempts, deliveries int
	due                                  int64 // when the first open work that waits is tried again, unix ms
}

func (l *loadedInstance) readProgress() (p progress, err error) {
	err = l.db.QueryRow(`SELECT (SELECT count(*) FROM messages WHERE direction = 'in' AND (disposition IS NULL OR disposition = 'onboarding'))
		+ (SELECT count(*) FROM turns WHERE ended_at IS NULL)
		+ (SELECT count(*) FROM messages WHERE direction = 'out' AND out_state IN ('queued', 'sending'))
		+ (SELECT count(*) FROM messages WHERE pending_files > 0 AND files_wanted = 1)
		+ (SELECT count(*) FROM previews WHERE state = 'open'),
		(SELECT max(id) FROM messages), (SELECT ifnull(sum(attempts), 0) FROM turns), (SELECT ifnull(max(seq), 0) FROM deliveries),
		min(ifnull((SELECT min(not_before) FROM turns WHERE ended_at IS NULL AND not_before > ?1), ?2),
		ifnull((SELECT min(d.not_before) FROM deliveries d JOIN messages m ON m.id = d.message_id
			WHERE m.out_state IN ('queued', 'sending') AND d.not_before > ?1), ?2))`, time.Now().UnixMilli(), int64(math.MaxInt64),
	).Scan(&p.open, &p.messages, &p.attempts, &p.deliveries, &p.due)
	if err != nil {
		err = fmt.Errorf("read progress: %w", err)
	}
	return p, err
}

// stopDaemons stops the daemons as an operator does, adapters first. Agents must exit with them.
func (l *loadedInstance) stopDaemons(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	l.stopLoad()

	stopErr := l.instance.StopAll(ctx)
	left, err := l.instance.Agents()
	if len(left) > 0 {
		err = fmt.Errorf("agents still running: pids %v", left)
	}
	return errors.Join(stopErr, err)
}

// stopLoad ends the generator's goroutines.
func (l *loadedInstance) stopLoad() {
	if l.stop != nil {
		l.stop()
		l.background.Wait()
	}
}

// tearDown kills and closes everything.
func (l *loadedInstance) tearDown() error {
	l.stopLoad()
	for _, p := range l.sites {
		l.endOutage(p)
	}
	var errs []error
	for _, p := range l.platforms {
		errs = append(errs, p.Close())
	}
	if l.db != nil {
		errs = append(errs, l.db.Close())
	}
	if l.load != nil && l.load.foreign != nil {
		errs = append(errs, l.load.foreign.adapter.Close())
	}
	return errors.Join(append(errs, l.instance.Close())...)
}

// diagnostics lists open work and the end of each daemon's log.
func (l *loadedInstance) diagnostics() string {
	var all strings.Builder
	for _, query := range []string{
		`SELECT 'turn', id, run_id, folder, chat_jid, topic, state, attempts, not_before, created_at FROM turns WHERE ended_at IS NULL`,
		`SELECT 'request', code, chat_jid, state, folder, decided_by FROM onboarding_requests WHERE state = 'pending'`,
		`SELECT 'preview', id, turn_id, chat_jid, thread_id, platform_id, ending FROM previews WHERE state = 'open'`,
		`SELECT 'run', id, folder, topic, pid, started_at, closed_at FROM runs WHERE ended_at IS NULL`,
		`SELECT 'row', id, chat_jid, direction, disposition, out_state, content FROM messages WHERE disposition IS NULL AND direction = 'in'
			OR disposition = 'onboarding' OR out_state IN ('queued', 'sending')`,
	} {
		open, err := invariants.Lines(l.db, query)
		if err != nil {
			open = []string{err.Error()}
		}
		for _, line := range open[:min(len(open), 30)] {
			fmt.Fprintln(&all, line)
		}
	}
	return all.String() + logTails(l.instance)
}

// logTails is the end of each daemon's log.
func logTails(i *harness.Instance) string {
	var all strings.Builder
	for _, name := range daemons {
		fmt.Fprintf(&all, "%s:\n%s\n", name, i.LogTail(name, logTail))
	}
	return all.String()
}

// findPanics returns an error with the lines of the daemons' logs that report a panic. Daemons recover from
// those of a single message or turn.
func findPanics(i *harness.Instance) error {
	var errs []error
	for _, name := range daemons {
		log, err := i.Log(name)
		errs = append(errs, err)
		for line := range strings.Lines(log) {
			if strings.Contains(line, "panic") {
				errs = append(errs, fmt.Errorf("log of %s: %s", name, strings.TrimSpace(line)))
			}
		}
	}
	return errors.Join(errs...)
}

// pause simulates the time that users take to write. It must not be used to wait for an event.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
