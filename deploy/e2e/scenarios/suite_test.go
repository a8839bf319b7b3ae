package scenarios

import (
	"os"
	"testing"

	"arizuko/pkg/msg"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// operator is who may do everything in these tests.
const operator = "telegram:99"

// start is an instance with the groups main, main/eng, main/eng/oncall and
// other, of which main answers everything on Telegram.
func start(t *testing.T, o Options) *Suite {
	t.Helper()
	t.Parallel()
	o.Env = append([]string{"OPERATORS=" + operator, "BOT_NAMES=ourbot"}, o.Env...)
	s := Start(t, o)
	s.Group("main", "main/eng", "main/eng/oncall", "other")
	s.Route("platform=telegram", "main")
	return s
}

// listening is start where main answers whoever calls it and hears the rest.
func listening(t *testing.T, o Options) *Suite {
	t.Helper()
	t.Parallel()
	s := Start(t, o)
	s.Group("main")
	s.Route("verb=mention", "main")
	s.Route("verb=reply", "main")
	s.Route("", "main#observe")
	return s
}

// texts are rows of one chat.
func texts(chat string, all ...string) (rows []msg.Message) {
	for _, text := range all {
		rows = append(rows, msg.Message{ChatJID: chat, Content: text})
	}
	return rows
}

// passed returns when the gateway has looked at everything written before.
func passed(s *Suite) {
	s.t.Helper()
	s.Becomes(s.Say("web:main", "/ping"), msg.Command, msg.ReasonCommand)
}
