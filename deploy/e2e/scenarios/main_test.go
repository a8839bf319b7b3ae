package scenarios

import (
	"os"
	"testing"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
)

// parallel is how many instances run at once.
const parallel = "3"

var programs = harness.NewPrograms("failpoints", "arizuko/gated", "arizuko/routd", "arizuko/onbod", "arizuko/dashd", "arizuko/migrations/cmd/migrate",
	"arizuko/deploy/agents/demo", "arizuko/deploy/e2e/agents/caller", "arizuko/deploy/agents/acp", "arizuko/pkg/testkit/fakes/cmd/fakeagent")

func TestMain(m *testing.M) { os.Exit(programs.RunTests(m, parallel)) }

// operator is the sender with all permissions.
const operator = "telegram:99"

// start makes an instance with the groups main, main/eng, main/eng/oncall and other, in which main
// answers everything on Telegram.
func start(t *testing.T, o harness.Options) *harness.Fixture {
	t.Helper()
	t.Parallel()
	o.Env = append([]string{"OPERATORS=" + operator, "BOT_NAMES=ourbot"}, o.Env...)
	f := harness.Start(t, programs, o)
	f.AddGroups("main", "main/eng", "main/eng/oncall", "other")
	f.AddRoute("platform=telegram", "main")
	return f
}

// startOnMention makes an instance in which main answers mentions and replies and observes the rest.
func startOnMention(t *testing.T, o harness.Options) *harness.Fixture {
	t.Helper()
	t.Parallel()
	f := harness.Start(t, programs, o)
	f.AddGroups("main")
	f.AddRoute("verb=mention", "main")
	f.AddRoute("verb=reply", "main")
	f.AddRoute("", "main#observe")
	return f
}

// texts makes rows of one chat.
func texts(chat string, all ...string) (rows []msg.Message) {
	for _, text := range all {
		rows = append(rows, msg.Message{ChatJID: chat, Content: text})
	}
	return rows
}

// waitScanned waits until the gateway has scanned all rows written before.
func waitScanned(f *harness.Fixture) {
	f.T.Helper()
	f.WantDecision(f.Say("web:main", "/ping"), msg.Command, msg.ReasonCommand)
}
