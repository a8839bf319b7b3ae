package scenarios

import (
	"slices"
	"strings"
	"testing"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
)

func TestCommands_AnyUserAndChat_AreAnswered(t *testing.T) {
	f := start(t, harness.Options{})
	for chat, addresses := range map[string]string{
		"telegram:5": "telegram:5\nyou are telegram:7", "web:main": "web:main", "discord:55": "discord:55\nyou are discord:7", // the last one is unrouted
	} {
		f.WantReply(f.Say(chat, "/ping"), "pong")
		f.WantReply(f.Say(chat, "/chatid"), addresses)
		help := f.Reply(f.Say(chat, "/help")).Content
		for _, command := range []string{"/new", "/stop", "/status", "/ping", "/chatid", "/help"} {
			if !strings.Contains(help, command) {
				t.Errorf("/help lacks %s:\n%s", command, help)
			}
		}
		ofOperator := f.Reply(f.Put(msg.Message{ChatJID: chat, Sender: operator, Content: "/help"})[0]).Content
		for _, command := range []string{"/approve", "/reject"} {
			if strings.Contains(help, command) || !strings.Contains(ofOperator, command) {
				t.Errorf("%s is for operators; /help for users:\n%s\nfor operators:\n%s", command, help, ofOperator)
			}
		}
	}
}

func TestCommands_Unknown_IsText(t *testing.T) {
	f := start(t, harness.Options{})
	f.Say("telegram:5", "/etc/passwd is a file")
	f.WantEchoes("telegram:5", "/etc/passwd is a file")
}

func TestCommands_ForOtherBot_IsText(t *testing.T) {
	f := start(t, harness.Options{})
	f.WantReply(f.Say("telegram:5", "/ping@OurBot"), "pong")
	f.WantReply(f.Say("telegram:5", "/ping@arizuko"), "pong")
	id := f.Say("telegram:5", "/ping@otherbot")
	f.WantDecision(id, msg.Routed, msg.ReasonRoute)
	f.WantEchoes("telegram:5", "/ping@otherbot")
}

func TestCommands_OfBot_IsText(t *testing.T) {
	f := start(t, harness.Options{})
	f.Put(msg.Message{ChatJID: "telegram:5", IsBot: true, Content: "/ping"})
	f.WantEchoes("telegram:5", "/ping")
}

// A chat whose only route asks for mentions has a home for every message.
func TestCommands_RouteByVerb_AnyMessageHasAHome(t *testing.T) {
	f := start(t, harness.Options{})
	const chat = "discord:1400"
	f.AddRoute("chat_jid=discord:1400 verb=mention", "main")
	f.WantReply(f.Say(chat, "/new"), "new session")
	f.WantReply(f.Say(chat, "#deploy"), "topic → deploy")
	f.WantReply(f.Say(chat, "#"), "topic reset to default")
	wantTurnOf(t, wantEcho(f, chat, "#deploy ship it", "ship it"), "main", "#deploy")
	wantTurnOf(t, wantEcho(f, chat, "@eng do it", "do it"), "main/eng", "")
	f.WantDecision(f.Say(chat, "hello"), msg.Dropped, msg.ReasonNoRoute)
}

func TestCommands_InThread_ReplyInThread(t *testing.T) {
	f := start(t, harness.Options{})
	id := f.Put(msg.Message{ChatJID: "telegram:-5", ThreadID: "77", Topic: "77", Content: "/ping"})[0]
	if reply := f.Reply(id); reply.ThreadID != "77" || reply.Source != msg.SourceCommand || reply.OutState != msg.OutQueued {
		t.Errorf("reply %+v", reply)
	}
}

func TestCommands_ServiceDown_ReplyNamesIt(t *testing.T) {
	f := start(t, harness.Options{})
	status := f.Say("telegram:5", "/status")
	if text := f.Reply(status).Content; !strings.Contains(text, "dashd") {
		t.Errorf("/status replies %q", text)
	}
	f.WantDecision(status, msg.Command, msg.ReasonCommand)
	for _, command := range []string{"/approve ABCD-1234 main", "/reject ABCD-1234 no thanks"} {
		f.WantReply(f.Say("telegram:5", command), "Only operators can do that.")
		id := f.Put(msg.Message{ChatJID: "telegram:5", Sender: operator, Content: command})[0]
		if text := f.Reply(id).Content; !strings.Contains(text, "onbod") {
			t.Errorf("%s replies %q", command, text)
		}
		f.WantDecision(id, msg.Command, msg.ReasonCommand)
	}
}

func TestNew_Session_IsReplaced(t *testing.T) {
	f := start(t, harness.Options{})
	session := func(topic string) string {
		return strings.Join(f.Query(`SELECT session_id FROM sessions WHERE group_folder = 'main' AND topic = ?`, topic), " ")
	}
	f.Answer(f.Say("telegram:5", "hello"))
	before := session("")
	if before == "" {
		t.Fatal("no session")
	}
	f.WantReply(f.Say("telegram:5", "/new"), "new session")
	if left := session(""); left != "" {
		t.Errorf("session %s still exists", left)
	}
	f.Answer(f.Say("telegram:5", "hello again"))
	if after := session(""); after == before || after == "" {
		t.Errorf("the session was %q and is %q", before, after)
	}
	f.WantEchoes("telegram:5", "hello", "hello again")
}

func TestNew_TopicAndText_ResetsTopicAndAsks(t *testing.T) {
	f := start(t, harness.Options{})
	wantTurnOf(t, wantEcho(f, "telegram:5", "#deploy ship it", "ship it"), "main", "#deploy")
	wantEcho(f, "telegram:5", "hello", "hello")
	f.Put(texts("telegram:5", "one more", "/new #deploy and again", "/new from the start")...)
	f.WaitIdle()
	f.WantReply(f.Say("telegram:5", "/new #deploy"), "new session in #deploy")
	got := f.Echoes("telegram:5")
	slices.Sort(got) // topics of one chat have no common order
	want := []string{"and again", "from the start", "hello", "one more", "ship it"}
	if !slices.Equal(got, want) {
		t.Errorf("echoes %q, want %q", got, want)
	}
	if n := len(f.Query(`SELECT 1 FROM session_log WHERE folder = 'main' AND topic = '#deploy' GROUP BY session_id`)); n != 2 {
		t.Errorf("%d sessions in #deploy", n)
	}
	if left := f.Query(`SELECT topic FROM sessions WHERE topic = '#deploy'`); len(left) != 0 {
		t.Error("the session of #deploy survived its reset")
	}
}

func TestNew_DuringTurn_KeepsOrder(t *testing.T) {
	f := start(t, harness.Options{})
	f.WaitRunning(f.Say("telegram:5", "until go first"))
	rows := f.Put(texts("telegram:5", "/new second", "third")...)
	f.WaitDecided(rows[1])
	f.LetGo("main", "go")
	f.WantEchoes("telegram:5", "until go first", "second", "third")
}

func TestStop_PipedRows_CancelsAllOfChat(t *testing.T) {
	f := start(t, harness.Options{})
	running := f.Say("telegram:5", "slow 600 one")
	f.WaitRunning(running)
	piped := []int64{f.Say("telegram:5", "two"), f.Say("telegram:5", "three")}
	for _, id := range piped {
		f.WaitRunning(id)
	}
	other := f.Say("telegram:6", "I wait for the same agent")
	f.WaitDecided(other)
	f.WantReply(f.Say("telegram:5", "/stop"), "stopped")
	for _, id := range append(piped, running) {
		if turn := f.WaitEnded(id); turn.State != msg.TurnCancelled || turn.Reason != msg.ReasonCancelled {
			t.Errorf("%q ended as %s/%s", f.Row(id).Content, turn.State, turn.Reason)
		}
	}
	f.Say("telegram:5", "four")
	f.WantEchoes("telegram:5", "four")
	f.WantEchoes("telegram:6", "I wait for the same agent")
}

func TestStop_OtherChatsTurn_GoesOn(t *testing.T) {
	f := start(t, harness.Options{})
	theirs := f.Say("telegram:6", "until go not yours")
	f.WaitRunning(theirs)
	before := f.Turn(theirs)
	f.WantReply(f.Say("telegram:5", "/stop"), "stopped")
	f.LetGo("main", "go")
	f.WantEchoes("telegram:6", "until go not yours")
	if turn := f.Turn(theirs); turn.Attempts != 0 || turn.RunID != before.RunID {
		t.Errorf("%d attempts, want 0; run %d, first %d", turn.Attempts, turn.RunID, before.RunID)
	}
}

func TestStop_HeldRows_AreDropped(t *testing.T) {
	f := start(t, harness.Options{})
	f.AddRouteWithImpulse("platform=discord", "main", map[string]any{"threshold": 1000, "max_hold_ms": 3_600_000})
	rows := f.Put(texts("discord:5", "one", "two", "/stop", "three")...)
	f.WantDecision(rows[0], msg.Dropped, msg.ReasonStopped)
	f.WantDecision(rows[1], msg.Dropped, msg.ReasonStopped)
	f.WantReply(rows[2], "stopped")
	waitScanned(f)
	if m := f.Row(rows[3]); m.Disposition != "" {
		t.Errorf("the row after /stop is %s/%s", m.Disposition, m.Reason)
	}
	f.AllowUndecided(rows[3])
}

func TestStop_WebChat_CancelsItsTopicOnly(t *testing.T) {
	f := start(t, harness.Options{})
	row := func(topic, text string) msg.Message {
		return msg.Message{ChatJID: "web:main", Topic: topic, Content: text}
	}
	rows := f.Put(row("#a", "slow 600 a"), row("#b", "until go b"))
	f.WaitRunning(rows[0])
	f.WaitRunning(rows[1])
	f.WantReply(f.Put(row("#a", "/stop"))[0], "stopped")
	if turn := f.WaitEnded(rows[0]); turn.State != msg.TurnCancelled {
		t.Errorf("#a is %s", turn.State)
	}
	f.LetGo("main", "go")
	f.WantEchoes("web:main", "until go b")
}
