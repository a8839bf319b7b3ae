package scenarios

import (
	"strings"
	"testing"

	"arizuko/deploy/e2e/harness"
	fp "arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

const (
	newcomer = "telegram:7" // the address of the direct chat, too
	team     = "telegram:-5"
)

// startOnboarding makes an instance with onbod in which no route leads anywhere. The operator has
// written to the bot.
func startOnboarding(t *testing.T) *harness.Fixture {
	t.Helper()
	t.Parallel()
	f := harness.Start(t, programs, harness.Options{Env: []string{"OPERATORS=" + operator, "BOT_NAMES=ourbot"}})
	f.Restart(harness.Onbod)
	f.WantReply(writes(f, operator, operator, "/ping")[0], "pong")
	return f
}

// writes stores messages of a sender in a chat.
func writes(f *harness.Fixture, chat, sender string, all ...string) []int64 {
	f.T.Helper()
	var rows []msg.Message
	for _, text := range all {
		verb := msg.VerbMessage
		if strings.HasPrefix(text, "@ourbot ") {
			verb, text = msg.VerbMention, strings.TrimPrefix(text, "@ourbot ")
		}
		rows = append(rows, msg.Message{ChatJID: chat, Sender: sender, SenderName: "Ada", Verb: verb, Content: text})
	}
	return f.Put(rows...)
}

// waitRequest waits until a chat has a pending request and returns its code.
func waitRequest(f *harness.Fixture, chat string) (code string) {
	f.T.Helper()
	f.Until("a request of "+chat, func() bool {
		code = f.Value(`SELECT code FROM onboarding_requests WHERE chat_jid = ? AND state = 'pending'`, chat)
		return code != ""
	})
	return code
}

// commands writes a command of the operator and waits for a reply that contains a text.
func commands(f *harness.Fixture, command, want string) {
	f.T.Helper()
	if got := f.Reply(writes(f, operator, operator, command)[0]).Content; !strings.Contains(got, want) {
		f.T.Errorf("%q is answered with %q, want %q", command, got, want)
	}
}

// notices counts the outbound rows of a chat that contain a text.
func notices(f *harness.Fixture, chat, text string) (n int) {
	f.T.Helper()
	for _, m := range f.Outbound(chat) {
		if strings.Contains(m.Content, text) {
			n++
		}
	}
	return n
}

// wantEchoes waits until no row of a chat waits for an approval and fails the test unless the agent has
// echoed exactly these texts there.
func wantEchoes(f *harness.Fixture, chat string, texts ...string) {
	f.T.Helper()
	waitTakenUp(f, chat)
	f.WantEchoes(chat, texts...)
}

// waitTakenUp waits until each row of a chat is decided and none is parked: onbod may have made a request
// of a row that gated has yet to park.
func waitTakenUp(f *harness.Fixture, chat string) {
	f.T.Helper()
	f.Until("no row of "+chat+" to be parked", func() bool {
		return f.Value(`SELECT count(*) FROM messages WHERE chat_jid = ? AND direction = 'in' AND
			(disposition IS NULL OR disposition = 'onboarding')`, chat) == "0"
	})
}

func TestOnboarding_OnbodDown_NothingIsLost(t *testing.T) {
	f := startOnboarding(t)
	f.Kill(harness.Onbod)
	row := writes(f, newcomer, newcomer, "one")
	waitScanned(f)
	commands(f, "/approve ABCD-1234", "(onbod) is not answering")
	if m := f.Row(row[0]); m.Disposition != "" {
		t.Errorf("the row is %s/%s", m.Disposition, m.Reason)
	}
	f.Restart(harness.Onbod)
	code := waitRequest(f, newcomer)
	f.Kill(harness.Onbod)
	commands(f, "/approve "+code, "(onbod) is not answering")
	writes(f, newcomer, newcomer, "two")
	f.Kill(harness.Gated)
	f.Restart(harness.Gated)
	f.Restart(harness.Onbod)
	commands(f, "/approve "+code, "new group")
	wantEchoes(f, newcomer, "one", "two")
}

// A user becomes an operator by a code, of which no daemon needs a restart: commands, requests and the answer about access
// know it at once, and once the operator is removed none does.
func TestOnboarding_OperatorByACode_CountsEverywhereAtOnce(t *testing.T) {
	f := startOnboarding(t)
	writes(f, team, newcomer, "@ourbot one")
	request := waitRequest(f, team)
	const refused = "Only operators can do that."
	f.WantReply(writes(f, newcomer, newcomer, "/approve "+request)[0], refused)
	gated := f.Client(harness.Gated)
	makeCode := func() string {
		t.Helper()
		var made struct{ Code string }
		f.OK(gated.Do(t.Context(), "POST", "/v1/operators/code", nil, &made))
		return made.Code
	}
	says := func(sender, text, want string) {
		t.Helper()
		if got := f.Reply(writes(f, sender, sender, text)[0]).Content; !strings.Contains(got, want) {
			t.Errorf("%q is answered with %q, want %q", text, got, want)
		}
	}
	isOperator := func(want bool) {
		t.Helper()
		var access struct{ Operator bool }
		f.OK(f.Routd.Do(t.Context(), "GET", "/v1/access?jid="+newcomer+"&sender="+newcomer, nil, &access))
		if access.Operator != want {
			t.Errorf("routd takes %s for an operator: %t", newcomer, access.Operator)
		}
	}
	isOperator(false)
	code := makeCode()
	says(newcomer, "/operator "+code, "You are an operator now, as "+newcomer)
	says("telegram:8", "/operator "+code, "That code does not work")
	isOperator(true)
	writes(f, "telegram:-6", "telegram:9", "@ourbot hello")
	other := waitRequest(f, "telegram:-6")
	f.Until("the notice to the new operator", func() bool { return notices(f, newcomer, other) == 1 })
	says(newcomer, "/approve "+request, "new group")
	wantEchoes(f, team, "one")
	says(newcomer, "/reject "+other, "rejected")
	f.OK(gated.Do(t.Context(), "POST", "/v1/operators/remove", map[string]string{"sender": newcomer}, nil))
	f.WantReply(writes(f, newcomer, newcomer, "/approve "+request)[0], refused)
	isOperator(false)
	if left := f.Value(`SELECT count(*) FROM messages WHERE instr(content, ?) > 0`, code); left != "0" {
		t.Errorf("%s messages have the code", left)
	}
}

// Wherever gated, onbod or routd is killed, its next start finishes the accepted work: the request, the group, its
// routes and the notices are there once, and each message is answered once.
func TestOnboarding_KilledAtEachStep_FinishedOnce(t *testing.T) {
	t.Parallel()
	steps := map[string][]fp.Point{
		harness.Gated: {fp.Requested, fp.Decide.Before(), fp.Decide.After(), fp.TakeUp.Before(), fp.TakeUp.After(), fp.PutTurn.Before()},
		harness.Onbod: {fp.PutRequest.Before(), fp.PutRequest.After(), fp.NoteApproval.Before(), fp.NoteApproval.After(),
			fp.Connected, fp.DecideRequest.Before(), fp.DecideRequest.After()},
		harness.Routd: {fp.ConnectChat.Before(), fp.ConnectChat.After()},
	}
	for daemon, points := range steps {
		for _, point := range points {
			t.Run(daemon+" "+string(point), func(t *testing.T) {
				t.Parallel()
				crashOnboarding(t, daemon, point)
			})
		}
	}
}

func crashOnboarding(t *testing.T, daemon string, point fp.Point) {
	f := harness.NewFixture(t, programs, harness.Options{Env: []string{"OPERATORS=" + operator}})
	f.Migrate()
	for _, name := range []string{harness.Routd, harness.Gated, harness.Onbod} {
		if name == daemon {
			f.Restart(name, "FAILPOINT="+string(point))
		} else {
			f.Restart(name)
		}
	}
	crashes := 0
	revive := func() { // as a supervisor does
		if !f.Instance.Running(daemon) {
			crashes++
			f.Restart(daemon)
		}
	}
	writes(f, newcomer, newcomer, "one")
	writes(f, newcomer, newcomer, "two")
	f.Until("both rows to be parked", func() bool {
		revive()
		return f.Value(`SELECT count(*) FROM messages WHERE disposition = 'onboarding'`) == "2"
	})
	code := f.Value(`SELECT code FROM onboarding_requests WHERE state = 'pending'`)
	approve := writes(f, operator, operator, "/approve "+code)[0]
	writes(f, newcomer, newcomer, "three")
	f.Until("the request to be approved, and its rows to be decided", func() bool {
		revive()
		again := f.Row(approve).Disposition == msg.Command &&
			f.Value(`SELECT count(*) FROM onboarding_requests WHERE state = 'pending' AND folder IS NULL`) == "1"
		if again { // a crash before anything was stored: the reply says so
			approve = writes(f, operator, operator, "/approve "+code)[0]
		}
		return f.Value(`SELECT state FROM onboarding_requests WHERE code = ?`, code) == "approved" &&
			f.Value(`SELECT count(*) FROM messages WHERE direction = 'in' AND (disposition IS NULL OR disposition = 'onboarding')`) == "0"
	})
	f.WantEchoes(newcomer, "one", "two", "three")
	if revive(); crashes != 1 {
		t.Errorf("%s was killed %d times at %s, want once", daemon, crashes, point)
	}
	for query, want := range map[string]string{
		`SELECT count(*) FROM onboarding_requests`: "1", `SELECT count(*) FROM registered_groups`: "1", `SELECT count(*) FROM routes`: "1",
		`SELECT group_concat(what, ', ') FROM (SELECT what FROM audit ORDER BY id) a`:                                   "add group, add route, approve",
		`SELECT count(*) FROM messages WHERE source = 'notice' AND direction = 'out' AND chat_jid = '` + newcomer + `'`: "2", // the request's and the greeting
	} {
		if got := f.Value(query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}
