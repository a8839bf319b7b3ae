package scenarios

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/testkit/need"
)

const (
	newcomer = "telegram:7" // the address of the direct chat, too
	team     = "telegram:-5"
)

// startOnboarding makes an instance with onbod in which no route leads anywhere. The operator has
// written to the bot.
func startOnboarding(t *testing.T, env ...string) *harness.Fixture {
	t.Helper()
	t.Parallel()
	f := harness.Start(t, programs, harness.Options{Env: append([]string{"OPERATORS=" + operator, "BOT_NAMES=ourbot"}, env...)})
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

func wantAll(f *harness.Fixture, disposition msg.Disposition, reason msg.Reason, rows ...int64) {
	f.T.Helper()
	for _, id := range rows {
		f.WantDecision(id, disposition, reason)
	}
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

func TestOnboarding_DirectChat_ApprovedInChat_RowsAreAnsweredInOrder(t *testing.T) {
	f := startOnboarding(t)
	rows := writes(f, newcomer, newcomer, "one", "two")
	code := waitRequest(f, newcomer)
	wantAll(f, msg.Onboarding, msg.ReasonAwaitingApproval, rows...)
	wantAll(f, msg.Onboarding, msg.ReasonAwaitingApproval, writes(f, newcomer, newcomer, "three")...)
	if n, m := notices(f, newcomer, code), notices(f, operator, code); n != 1 || m != 1 {
		t.Errorf("%d notices in the chat, %d to the operator", n, m)
	}
	f.WantReply(writes(f, newcomer, newcomer, "/status")[0],
		"This chat is not connected to a group yet. It waits for an operator to approve request "+code+".")
	commands(f, "/approve "+strings.ToLower(code), "new group")
	wantEchoes(f, newcomer, "one", "two", "three")
	writes(f, newcomer, newcomer, "four")
	wantEchoes(f, newcomer, "one", "two", "three", "four")
	commands(f, "/approve "+code, "approved by "+operator)
	if n := f.Value(`SELECT count(*) FROM onboarding_requests`); n != "1" {
		t.Errorf("%s requests, want one", n)
	}
}

func TestOnboarding_OnlyOperators_BySender(t *testing.T) {
	f := startOnboarding(t)
	rows := writes(f, newcomer, newcomer, "one")
	code := waitRequest(f, newcomer)
	const refused = "Only operators can do that."
	f.WantReply(writes(f, newcomer, newcomer, "/approve "+code)[0], refused)
	f.WantReply(writes(f, operator, newcomer, "/approve "+code)[0], refused) // in the operator's chat
	wantAll(f, msg.Onboarding, msg.ReasonAwaitingApproval, rows...)
	reply := f.Reply(writes(f, team, operator, "/approve "+code+" acme/eng")[0]) // in a chat without a group
	if !strings.Contains(reply.Content, "acme/eng") {
		t.Errorf("the operator got %q", reply.Content)
	}
	wantEchoes(f, newcomer, "one")
}

func TestOnboarding_Reject_RowsAreDropped_ChatGetsTheReason(t *testing.T) {
	f := startOnboarding(t)
	rows := writes(f, newcomer, newcomer, "one", "two")
	code := waitRequest(f, newcomer)
	commands(f, "/reject "+code+" wrong number", "rejected")
	for _, id := range rows {
		f.Until("the row to be dropped", func() bool { return f.Row(id).Reason == msg.ReasonRejected })
	}
	if n := notices(f, newcomer, "wrong number"); n != 1 {
		t.Errorf("%d notices with the reason", n)
	}
	wantAll(f, msg.Dropped, msg.ReasonRejected, writes(f, newcomer, newcomer, "please")...)
	commands(f, "/approve "+code, "rejected by "+operator)
	wantEchoes(f, newcomer)
}

func TestOnboarding_GroupChat_AnswersMentions_ObservesTheRest(t *testing.T) {
	f := startOnboarding(t)
	ignored := writes(f, team, newcomer, "morning")
	wantAll(f, msg.Dropped, msg.ReasonNoRoute, ignored...)
	writes(f, team, newcomer, "@ourbot one")
	code := waitRequest(f, team)
	wantAll(f, msg.Dropped, msg.ReasonNoRoute, writes(f, team, newcomer, "lunch?")...)
	commands(f, "/approve "+code+" team", "team")
	wantEchoes(f, team, "one")
	writes(f, team, "telegram:8", "@ourbot two")
	wantEchoes(f, team, "one", "two")
	routes := f.Query(`SELECT match, target FROM routes ORDER BY seq, id`)
	want := []string{"verb=mention team", "verb=reply team", "team#observe"}
	if len(routes) != len(want) {
		t.Fatalf("routes are %q", routes)
	}
	for i := range want {
		if !strings.HasSuffix(routes[i], want[i]) {
			t.Errorf("route %d is %q, want …%s", i, routes[i], want[i])
		}
	}
}

func TestOnboarding_RouteToOnbod_NeedsNoDaemons(t *testing.T) {
	f := startOnboarding(t)
	f.AddRoute("", "daemon:onbod")
	row := writes(f, team, newcomer, "one")
	code := waitRequest(f, team)
	wantAll(f, msg.Onboarding, msg.ReasonAwaitingApproval, row...)
	writes(f, newcomer, newcomer, "mine")
	mine := waitRequest(f, newcomer)
	commands(f, "/approve "+code+" team", "team")
	commands(f, "/approve "+mine, "new group")
	wantEchoes(f, newcomer, "mine")
	waitTakenUp(f, team)
	wantAll(f, msg.Observed, msg.ReasonRouteObserve, row...)
}

func TestOnboarding_SecondChatIntoAFolder_SaysWhatTheyShare(t *testing.T) {
	f := startOnboarding(t)
	writes(f, newcomer, newcomer, "one")
	commands(f, "/approve "+waitRequest(f, newcomer)+" acme", "acme")
	const other = "telegram:8"
	writes(f, other, other, "two")
	commands(f, "/approve "+waitRequest(f, other)+" acme", newcomer)
	wantEchoes(f, other, "two")
}

func TestOnboarding_UnknownAndExpiredCodes_AreErrors(t *testing.T) {
	f := startOnboarding(t)
	commands(f, "/approve ZZZZ-9999", "ZZZZ-9999")
	commands(f, "/approve", "Which request?")
	rows := writes(f, newcomer, newcomer, "one")
	code := waitRequest(f, newcomer)
	commands(f, "/approve "+code+" ../etc", "")
	wantAll(f, msg.Onboarding, msg.ReasonAwaitingApproval, rows...)
	f.Kill(harness.Onbod)
	f.Exec(`UPDATE onboarding_requests SET created_at = created_at - ?`, (8 * 24 * time.Hour).Milliseconds())
	f.Restart(harness.Onbod)
	f.Until("the request to expire", func() bool { return f.Row(rows[0]).Reason == msg.ReasonExpired })
	commands(f, "/approve "+code, "expired")
	writes(f, newcomer, newcomer, "two")
	commands(f, "/approve "+waitRequest(f, newcomer), "new group")
	wantEchoes(f, newcomer, "two")
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

func TestOnboarding_RouteAddedByHand_AnswersParkedRows(t *testing.T) {
	f := startOnboarding(t)
	writes(f, newcomer, newcomer, "one")
	code := waitRequest(f, newcomer)
	f.AddGroups("main")
	f.AddRoute("chat_jid="+newcomer, "main")
	wantEchoes(f, newcomer, "one")
	f.Until("the request to end", func() bool {
		return f.Value(`SELECT state FROM onboarding_requests WHERE code = ?`, code) == "approved"
	})
}

func TestOnboarding_ChatMigratesWhilePending_AnsweredThere(t *testing.T) {
	f := startOnboarding(t)
	const super = "telegram:-1005"
	writes(f, team, newcomer, "@ourbot one")
	code := waitRequest(f, team)
	f.Until("the row to be parked", func() bool { return f.Value(`SELECT count(*) FROM messages WHERE disposition = 'onboarding'`) == "1" })
	f.OK(f.Store.Write(f.T.Context(), func(tx *store.Tx) error { return tx.MoveChat(team, super, time.Now().UnixMilli()) }))
	writes(f, super, newcomer, "@ourbot two")
	commands(f, "/approve "+code, "new group")
	wantEchoes(f, super, "one", "two")
}

func TestOnboarding_FloodOfOneStranger_IsBounded(t *testing.T) {
	need.Verify(t)
	f := startOnboarding(t)
	const flood = 20_000
	for range flood / 1000 {
		writes(f, newcomer, newcomer, strings.Split(strings.Repeat("x,", 999)+"x", ",")...)
	}
	code := waitRequest(f, newcomer)
	f.WaitIdle()
	if got := f.Query(`SELECT disposition, reason, count(*) FROM messages WHERE direction = 'in' AND chat_jid = ? GROUP BY 1, 2 ORDER BY 3`, newcomer); fmt.Sprint(got) !=
		fmt.Sprintf("[onboarding awaiting_approval 50 dropped onboarding_full %d]", flood-50) {
		t.Errorf("rows are %q", got)
	}
	if n := len(f.Outbound(newcomer)); n != 1 {
		t.Errorf("%d notices in the chat", n)
	}
	commands(f, "/approve "+code, "new group")
	waitTakenUp(f, newcomer)
	f.WaitIdle()
	if n := len(f.Echoes(newcomer)); n != 50 {
		t.Errorf("%d rows answered, want 50", n)
	}
}

func TestOnboarding_ManyUnknownChats_AreBounded(t *testing.T) {
	need.Verify(t)
	f := startOnboarding(t, "REQUESTS_PER_HOUR=20")
	const chats = 2000
	for first := 0; first < chats; first += 500 {
		var rows []msg.Message
		for n := range 500 {
			jid := fmt.Sprint("telegram:", 10_000+first+n)
			rows = append(rows, msg.Message{ChatJID: jid, Sender: jid, Content: "hi"})
		}
		f.Put(rows...)
	}
	f.WaitIdle()
	if got := f.Query(`SELECT disposition, reason, count(*) FROM messages WHERE direction = 'in' AND content = 'hi' GROUP BY 1, 2 ORDER BY 3`); fmt.Sprint(got) !=
		fmt.Sprintf("[onboarding awaiting_approval 20 dropped onboarding_limit %d]", chats-20) {
		t.Errorf("rows are %q", got)
	}
	// One in each of the 20 chats, and to the operator the first 10 and one about the others.
	if n := f.Value(`SELECT count(*) FROM messages WHERE direction = 'out' AND source = 'notice'`); n != "31" {
		t.Errorf("%s notices, want 31", n)
	}
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
