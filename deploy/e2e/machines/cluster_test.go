// Package machines tests several machines that share a database on a Postgres server. A machine is a data folder with daemons
// and an address of its own.
package machines

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the database/sql driver

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/fakes/telegram"
	"arizuko/pkg/testkit/need"
	"arizuko/pkg/testkit/postgres"
)

const (
	startTimeout = time.Minute
	// takeoverTimeout is the promise: a standby, or another gated, goes on so long after the one before has gone.
	takeoverTimeout = 15 * time.Second
)

var programs = harness.NewPrograms("", "arizuko/gated", "arizuko/routd", "arizuko/teled", "arizuko/migrations/cmd/migrate", "arizuko/deploy/agents/demo")

func TestMain(m *testing.M) { os.Exit(programs.RunTests(m, "1")) }

// secret is that of all machines.
const secret = "the-secret-of-all-machines"

// cluster is machines that serve the chats of one Telegram bot.
type cluster struct {
	t        *testing.T
	server   *postgres.Server
	db       *sql.DB
	machines []*harness.Instance
	telegram *chatsim.Telegram

	mu   sync.Mutex
	sent map[string][]string // by chat, in order
}

// start starts so many machines with routd and gated each, and teled on the first two: one routd and one teled work.
func start(t *testing.T, machines, chats int) *cluster {
	t.Helper()
	need.Verify(t)
	c := &cluster{t: t, telegram: chatsim.NewTelegram(chatsim.Size{DMs: chats}, telegram.Options{}), sent: map[string][]string{}}
	var err error
	if c.server, err = postgres.Start(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.check(c.server.Stop()) })
	if c.db, err = sql.Open("pgx", c.server.URL()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.check(c.db.Close()) })
	t.Cleanup(func() { c.check(c.telegram.Close()) })
	bin, err := programs.Bin()
	if err != nil {
		t.Fatal(err)
	}
	var shared []string
	for n := range machines {
		m, err := harness.New(bin)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.check(m.Close()) })
		if n == 0 {
			if shared, err = c.telegram.Serve(m.Host); err != nil {
				t.Fatal(err)
			}
		}
		m.Env = slices.Concat(m.Env, shared, []string{
			"ARIZUKO_DB=" + c.server.URL(), fmt.Sprintf("ARIZUKO_HOST=machine%d", n+1), "ARIZUKO_SECRET=" + secret,
			"POLL_INTERVAL=200ms", "AGENT_COMMAND=exec " + m.Program("demo"), "AGENT_IDLE=1s", "MAX_AGENTS=2", "LOG_LEVEL=info", "ALERTS=off",
		})
		c.machines = append(c.machines, m)
	}
	c.check(c.machines[0].Migrate())
	for n := range c.machines {
		c.startMachine(n)
	}
	c.addGroups()
	return c
}

func (c *cluster) check(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Error(err)
	}
}

// daemonsOf are the daemons of a machine.
func daemonsOf(n int) []string {
	if n < 2 {
		return []string{"routd", "gated", "teled"}
	}
	return []string{"routd", "gated"}
}

// startMachine starts the daemons that do not run, and waits until those that are no standby are ready.
func (c *cluster) startMachine(n int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), startTimeout)
	defer cancel()
	m := c.machines[n]
	for _, name := range daemonsOf(n) {
		if m.Running(name) {
			continue
		}
		err := m.Start(name)
		if err == nil && (name == "gated" || c.holder(name) < 0) {
			err = m.AwaitReady(ctx, name)
		}
		if err != nil {
			c.report()
			c.t.Fatal(err)
		}
	}
}

// killMachine kills all daemons of a machine at once.
func (c *cluster) killMachine(n int) {
	c.t.Helper()
	var all sync.WaitGroup
	for _, name := range daemonsOf(n) {
		all.Go(func() { c.check(c.machines[n].Kill(name)) })
	}
	all.Wait()
}

// chats are conversations in chats of their own: a forum has several.
func (c *cluster) chats() (all []chatsim.Conversation) {
	for _, conversation := range c.telegram.Conversations() {
		if !slices.ContainsFunc(all, func(known chatsim.Conversation) bool { return known.Chat == conversation.Chat }) {
			all = append(all, conversation)
		}
	}
	return all
}

// addGroups makes a group for each chat.
func (c *cluster) addGroups() {
	c.t.Helper()
	routd := httpx.NewClient("routd", c.machines[0].URL("routd"), secret)
	for i, conversation := range c.chats() {
		folder := fmt.Sprintf("group%d", i)
		group := msg.Group{Folder: folder, Config: []byte(harness.NoRate)}
		if err := routd.Do(c.t.Context(), http.MethodPost, "/v1/groups", group, nil); err != nil {
			c.t.Fatal(err)
		}
		route := msg.Route{Match: "chat_jid=" + conversation.Chat, Target: folder}
		if err := routd.Do(c.t.Context(), http.MethodPost, "/v1/routes", route, nil); err != nil {
			c.t.Fatal(err)
		}
	}
}

// say sends a message to each chat. It may begin with instructions for the demo agent.
func (c *cluster) say(n int, instructions ...string) {
	c.t.Helper()
	for _, conversation := range c.chats() {
		text := strings.Join(append(instructions, fmt.Sprintf("message %d to %s", n, conversation.Chat)), " ")
		if _, err := c.telegram.Do(chatsim.Action{Conversation: conversation, Verb: msg.VerbMessage, Text: text}); err != nil {
			c.t.Fatal(err)
		}
		c.mu.Lock()
		c.sent[conversation.Chat] = append(c.sent[conversation.Chat], text)
		c.mu.Unlock()
	}
}

// answers returns, by chat and in order, the texts that were echoed.
func (c *cluster) answers() map[string][]string {
	all := map[string][]string{}
	for _, a := range c.telegram.Arrivals() {
		for line := range strings.Lines(a.Text) {
			if text, found := strings.CutPrefix(strings.TrimSpace(line), "You said: "); found {
				all[a.Chat] = append(all[a.Chat], text)
			}
		}
	}
	return all
}

// awaitAnswers waits until each message was answered, but for those of which it is not known whether they have arrived.
func (c *cluster) awaitAnswers(timeout time.Duration) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), timeout)
	defer cancel()
	err := harness.Await(ctx, "all answers", func() (bool, error) {
		missing, ambiguous := 0, c.count(`SELECT count(*) FROM messages WHERE out_state = 'ambiguous'`)
		answers := c.answers()
		for chat, sent := range c.sent {
			for _, text := range sent {
				if !slices.Contains(answers[chat], text) {
					missing++
				}
			}
		}
		return missing <= ambiguous, nil
	})
	if err != nil {
		c.report()
		c.t.Fatal(err)
	}
}

// wantEachOnceInOrder fails the test if a message was answered twice, or before one that was sent earlier.
func (c *cluster) wantEachOnceInOrder() {
	c.t.Helper()
	for chat, answers := range c.answers() {
		last := -1
		for _, text := range answers {
			at := slices.Index(c.sent[chat], text)
			if at <= last {
				c.t.Errorf("%s: %q was answered after %q", chat, text, c.sent[chat][max(last, 0)])
			}
			last = max(last, at)
		}
	}
}

func (c *cluster) count(query string, args ...any) (n int) {
	c.t.Helper()
	if err := c.db.QueryRowContext(c.t.Context(), query, args...).Scan(&n); err != nil {
		c.t.Fatal(err)
	}
	return n
}

// holder is the machine, by its number from 0, whose process has a lease that runs; -1 for none.
func (c *cluster) holder(lease string) int {
	c.t.Helper()
	var place string
	err := c.db.QueryRowContext(c.t.Context(), `SELECT m.place FROM leases l JOIN processes m ON m.id = l.process
		WHERE l.name = $1 AND m.until > extract(epoch FROM clock_timestamp()) * 1000`, lease).Scan(&place)
	if errors.Is(err, sql.ErrNoRows) {
		return -1
	}
	c.check(err)
	host, _, _ := strings.Cut(place, ":")
	for n := range c.machines {
		if host == fmt.Sprintf("machine%d", n+1) {
			return n
		}
	}
	return -1
}

// awaitHolder waits until another machine than one has a lease.
func (c *cluster) awaitHolder(lease string, but int, timeout time.Duration) (n int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), timeout)
	defer cancel()
	err := harness.Await(ctx, "another machine to have the lease "+lease, func() (bool, error) {
		n = c.holder(lease)
		return n >= 0 && n != but, nil
	})
	if err != nil {
		c.report()
		c.t.Fatal(err)
	}
	return n
}

// turnElsewhere waits for a turn that agents of another machine than one work on.
func (c *cluster) turnElsewhere(n int) (turn int64, chat string, owner int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), startTimeout)
	defer cancel()
	var place string
	err := harness.Await(ctx, fmt.Sprintf("a turn of another machine than machine%d", n+1), func() (bool, error) {
		err := c.db.QueryRowContext(ctx, `SELECT t.id, t.chat_jid, m.place FROM turns t JOIN runs r ON r.id = t.run_id
			JOIN processes m ON m.id = r.owner WHERE t.state = 'running' AND m.place NOT LIKE $1 LIMIT 1`,
			fmt.Sprintf("machine%d:%%", n+1)).Scan(&turn, &chat, &place)
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		}
		return true, err
	})
	if err != nil {
		c.report()
		c.t.Fatal(err)
	}
	_, err = fmt.Sscanf(place, "machine%d:", &owner)
	c.check(err)
	return turn, chat, owner - 1
}

// awaitCount waits until a query counts a number.
func (c *cluster) awaitCount(want int, query string, args ...any) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), takeoverTimeout)
	defer cancel()
	err := harness.Await(ctx, fmt.Sprintf("%d: %s", want, query), func() (bool, error) { return c.count(query, args...) == want, nil })
	if err != nil {
		c.report()
		c.t.Fatal(err)
	}
}

// awaitExit waits until a daemon ends by itself.
func (c *cluster) awaitExit(n int, name string, timeout time.Duration) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), timeout)
	defer cancel()
	err := harness.Await(ctx, name+" to end", func() (bool, error) { return !c.machines[n].Running(name), nil })
	if err != nil {
		c.report()
		c.t.Fatal(err)
	}
}

func (c *cluster) signal(n int, name string, s syscall.Signal) {
	c.t.Helper()
	c.check(c.machines[n].Process(name).Signal(s))
}

// report logs the end of each daemon's log.
func (c *cluster) report() {
	for n, m := range c.machines {
		for _, name := range daemonsOf(n) {
			c.t.Logf("machine%d %s:\n%s", n+1, name, m.LogTail(name, 3000))
		}
	}
}
