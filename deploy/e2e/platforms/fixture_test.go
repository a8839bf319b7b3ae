package platforms

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/fakes/slack"
	"arizuko/pkg/testkit/fakes/telegram"
)

const (
	// maxWait is how long anything may take. It says nothing about speed.
	maxWait = 120 * time.Second
	// parallel is how many tests run at once: they mostly wait.
	parallel = "12"
)

var programs = harness.NewPrograms("failpoints", "arizuko/gated", "arizuko/routd", "arizuko/onbod", "arizuko/dashd", "arizuko/teled", "arizuko/discd",
	"arizuko/slakd", "arizuko/migrations/cmd/migrate", "arizuko/deploy/agents/demo", "arizuko/deploy/e2e/agents/caller")

func TestMain(m *testing.M) { os.Exit(programs.RunTests(m, parallel)) }

func telegramOptions() telegram.Options { return telegram.Options{} }

// discordOptions have frequent heartbeats, so that discd soon notices a dead connection. On a busy machine they are late.
func discordOptions() discord.Options {
	return discord.Options{Heartbeat: time.Second, Patience: time.Minute}
}

// slackOptions make Slack retry soon and often: the real Slack retries over an hour.
func slackOptions() slack.Options {
	return slack.Options{AckTimeout: time.Second, RetryDelays: []time.Duration{0, time.Second, 5 * time.Second}}
}

func newTelegram() chatsim.Platform { return chatsim.NewTelegram(chatsim.Size{}, telegramOptions()) }
func newDiscord() chatsim.Platform  { return chatsim.NewDiscord(chatsim.Size{}, discordOptions()) }
func newSlack() chatsim.Platform    { return chatsim.NewSlack(chatsim.Size{}, slackOptions()) }

// instance is an instance with fake platforms.
type instance struct {
	*harness.Fixture
	platforms []*fixture
}

// onEach runs a scenario with each platform, all in parallel.
func onEach(t *testing.T, scenario func(t *testing.T, newPlatform func() chatsim.Platform)) {
	t.Parallel()
	for name, newPlatform := range map[string]func() chatsim.Platform{"telegram": newTelegram, "discord": newDiscord, "slack": newSlack} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario(t, newPlatform)
		})
	}
}

// onEachPlatform runs a scenario on every platform, each with its own instance.
func onEachPlatform(t *testing.T, scenario func(*fixture)) {
	onEach(t, func(t *testing.T, newPlatform func() chatsim.Platform) { scenario(start(t, newPlatform())) })
}

// onEachPlatformWithTools is onEachPlatform with agents that call the tools that messages name. The group has a file
// plan.txt.
func onEachPlatformWithTools(t *testing.T, scenario func(*fixture)) {
	onEach(t, func(t *testing.T, newPlatform func() chatsim.Platform) {
		f := startWith(newInstance(t), newPlatform(), "caller")
		f.ask(f.dm, "say hello")
		f.waitArrival("hello")
		f.OK(os.WriteFile(f.groupFile("plan.txt"), []byte("one, two"), 0o600))
		scenario(f)
	})
}

// groupFile is the path of a file in the folder of the group.
func (i *instance) groupFile(name string) string {
	return filepath.Join(i.Data, "groups", "main", name)
}

// start makes a running instance with one platform.
func start(t *testing.T, p chatsim.Platform) *fixture {
	t.Helper()
	return startWith(newInstance(t), p, "demo")
}

// startWith starts an instance with one platform and a program as its agent.
func startWith(i *instance, p chatsim.Platform, agent string) *fixture {
	i.T.Helper()
	i.Instance.Env = append(i.Instance.Env, "AGENT_COMMAND=exec "+i.Instance.Program(agent))
	f := i.serve(p)
	i.start("routd", "gated", f.info.Daemon)
	i.connect()
	return f
}

// newInstance makes an instance in which no daemon runs.
func newInstance(t *testing.T) *instance {
	t.Helper()
	return newInstanceOf(t, programs)
}

func newInstanceOf(t *testing.T, programs *harness.Programs) *instance {
	t.Helper()
	i := &instance{Fixture: harness.NewFixture(t, programs, harness.Options{
		Env: []string{"IMPULSE_MAX_HOLD=1s"}, Delivers: true, MaxWait: maxWait,
	})}
	i.OnFailure(i.logArrivals)
	i.OnClose(func() {
		for _, f := range i.platforms {
			_ = f.Close()
		}
	})
	return i
}

// serve starts a platform. Its adapter must not run yet.
func (i *instance) serve(p chatsim.Platform) *fixture {
	i.T.Helper()
	f := &fixture{instance: i, Platform: p, info: p.Info()}
	i.platforms = append(i.platforms, f)
	env, err := p.Serve(i.Instance.Host)
	i.OK(err)
	i.Instance.Env = append(i.Instance.Env, env...)
	f.dm = p.NewDM("Alice")
	return f
}

// start creates the database and starts daemons.
func (i *instance) start(daemons ...string) {
	i.T.Helper()
	i.Migrate()
	for _, name := range daemons {
		i.Restart(name)
	}
}

// connect lets the group main answer direct messages, mentions and replies, and waits until the
// adapters know their chats.
func (i *instance) connect() {
	i.T.Helper()
	i.AddGroups("main")
	for _, f := range i.platforms {
		platform := "platform=" + f.info.Platform
		for _, route := range [][2]string{
			{platform + " room=" + f.info.DMPattern, "main"}, {platform + " verb=mention", "main"}, {platform + " verb=reply", "main"},
			{platform, "main#observe"},
		} {
			i.AddRoute(route[0], route[1])
		}
		f.waitConnection("connected")
		f.say(f.dm, "silent hello") // a Discord bot knows a private chat only after a message in it
		f.waitStored("silent hello")
	}
	i.WaitIdle()
}

func (i *instance) logArrivals() {
	for _, f := range i.platforms {
		for _, a := range f.Arrivals() {
			i.T.Logf("%s %s %q ← %q", a.At.Format(time.StampMilli), a.Chat, a.Thread, a.Text)
		}
	}
}

// putOutbound queues an outbound row as an agent's tool does.
func (i *instance) putOutbound(m msg.Message) {
	i.T.Helper()
	now := time.Now().UnixMilli()
	m.Direction, m.OutState, m.Source, m.Sender, m.Timestamp, m.ReceivedAt = msg.Out, msg.OutQueued, msg.SourceAgent, "agent:main", now, now
	i.OK(i.Store.Write(i.T.Context(), func(tx *store.Tx) error { _, _, err := tx.PutMessage(&m); return err }))
}
