package scenarios

import (
	"slices"
	"strings"
	"testing"

	"arizuko/pkg/msg"
)

func TestCommandsAnybodyMayUse(t *testing.T) {
	s := start(t, Options{})
	for _, chat := range []string{"telegram:5", "web:main", "discord:55"} { // the last has no home
		s.Replies(s.Say(chat, "/ping"), "pong")
		s.Replies(s.Say(chat, "/chatid"), chat)
		for _, command := range []string{"/new", "/stop", "/status", "/ping", "/chatid", "/help", "/approve", "/reject"} {
			if help := s.Reply(s.Say(chat, "/help")).Content; !strings.Contains(help, command) {
				t.Errorf("no %s in the help:\n%s", command, help)
			}
		}
	}
}

func TestAnUnknownCommandIsText(t *testing.T) {
	s := start(t, Options{})
	s.Say("telegram:5", "/etc/passwd is a file")
	s.HasHeard("telegram:5", "/etc/passwd is a file")
}

func TestACommandForAnotherBotIsText(t *testing.T) {
	s := start(t, Options{})
	s.Replies(s.Say("telegram:5", "/ping@OurBot"), "pong")
	s.Replies(s.Say("telegram:5", "/ping@arizuko"), "pong")
	id := s.Say("telegram:5", "/ping@otherbot")
	s.Becomes(id, msg.Routed, msg.ReasonRoute)
	s.HasHeard("telegram:5", "/ping@otherbot")
}

func TestABotsCommandIsText(t *testing.T) {
	s := start(t, Options{})
	s.Put(msg.Message{ChatJID: "telegram:5", IsBot: true, Content: "/ping"})
	s.HasHeard("telegram:5", "/ping")
}

func TestCommandsRepliesFollowTheThread(t *testing.T) {
	s := start(t, Options{})
	id := s.Put(msg.Message{ChatJID: "telegram:-5", ThreadID: "77", Topic: "77", Content: "/ping"})[0]
	if reply := s.Reply(id); reply.ThreadID != "77" || reply.Source != msg.SourceCommand || reply.OutState != msg.OutQueued {
		t.Errorf("reply: %+v", reply)
	}
}

func TestServicesThatAreDownAreNamed(t *testing.T) {
	s := start(t, Options{})
	status := s.Say("telegram:5", "/status")
	if text := s.Reply(status).Content; !strings.Contains(text, "dashd") {
		t.Errorf("/status says %q", text)
	}
	s.Becomes(status, msg.Command, msg.ReasonCommand)
	for _, command := range []string{"/approve ABCD-1234 main", "/reject ABCD-1234 no thanks"} {
		s.Replies(s.Say("telegram:5", command), "Only operators may do that.")
		id := s.Put(msg.Message{ChatJID: "telegram:5", Sender: operator, Content: command})[0]
		if text := s.Reply(id).Content; !strings.Contains(text, "onbod") {
			t.Errorf("%s says %q", command, text)
		}
		s.Becomes(id, msg.Command, msg.ReasonCommand)
	}
}

func TestNewStartsAFreshSession(t *testing.T) {
	s := start(t, Options{})
	session := func(topic string) string {
		return strings.Join(s.lines(`SELECT session_id FROM sessions WHERE group_folder = 'main' AND topic = ?`, topic), " ")
	}
	s.Answer(s.Say("telegram:5", "hello"))
	before := session("")
	if before == "" {
		t.Fatal("no session")
	}
	s.Replies(s.Say("telegram:5", "/new"), "new session")
	if left := session(""); left != "" {
		t.Errorf("session %s is still there", left)
	}
	s.Answer(s.Say("telegram:5", "hello again"))
	if after := session(""); after == before || after == "" {
		t.Errorf("the session was %q and is %q", before, after)
	}
	s.HasHeard("telegram:5", "hello", "hello again")
}

func TestNewWithATopicAndText(t *testing.T) {
	s := start(t, Options{})
	isFor(t, s.hears("telegram:5", "#deploy ship it", "ship it"), "main", "#deploy")
	s.hears("telegram:5", "hello", "hello")
	s.Put(texts("telegram:5", "one more", "/new #deploy and again", "/new from the start")...)
	s.Settle()
	s.Replies(s.Say("telegram:5", "/new #deploy"), "new session in #deploy")
	got := s.Heard("telegram:5")
	slices.Sort(got) // the topics share an agent lane, not an order
	want := []string{"and again", "from the start", "hello", "one more", "ship it"}
	if !slices.Equal(got, want) {
		t.Errorf("heard %q, not %q", got, want)
	}
	if n := len(s.lines(`SELECT 1 FROM session_log WHERE folder = 'main' AND topic = '#deploy' GROUP BY session_id`)); n != 2 {
		t.Errorf("%d sessions in #deploy", n)
	}
	if left := s.lines(`SELECT topic FROM sessions WHERE topic = '#deploy'`); len(left) != 0 {
		t.Error("the session of #deploy survived its reset")
	}
}

func TestNewWhileATurnRuns(t *testing.T) {
	s := start(t, Options{})
	first := s.Say("telegram:5", "slow 2 first")
	s.Runs(first)
	s.Put(texts("telegram:5", "/new second", "third")...)
	s.HasHeard("telegram:5", "slow 2 first", "second", "third")
}

func TestStopDuringARunWithPipedRows(t *testing.T) {
	s := start(t, Options{})
	running := s.Say("telegram:5", "slow 600 one")
	s.Runs(running)
	piped := []int64{s.Say("telegram:5", "two"), s.Say("telegram:5", "three")}
	for _, id := range piped {
		s.Until("the row is piped", func() bool { return s.Turn(id).State == msg.TurnOffered })
	}
	other := s.Say("telegram:6", "I wait for the same agent")
	s.Decided(other)
	s.Replies(s.Say("telegram:5", "/stop"), "stopped")
	for _, id := range append(piped, running) {
		if turn := s.Ended(id); turn.State != msg.TurnCancelled || turn.Reason != msg.ReasonCancelled {
			t.Errorf("%q ended as %s/%s", s.Row(id).Content, turn.State, turn.Reason)
		}
	}
	s.Say("telegram:5", "four")
	s.HasHeard("telegram:5", "four")
	s.HasHeard("telegram:6", "I wait for the same agent")
}

func TestStopSendsAnotherChatsTurnBackToTheQueue(t *testing.T) {
	s := start(t, Options{})
	theirs := s.Say("telegram:6", "slow 2 not yours")
	s.Runs(theirs)
	s.Replies(s.Say("telegram:5", "/stop"), "stopped")
	s.HasHeard("telegram:6", "slow 2 not yours")
	if turn := s.Turn(theirs); turn.Attempts != 0 {
		t.Errorf("it lost %d attempts", turn.Attempts)
	}
}

func TestStopDropsWhatIsHeld(t *testing.T) {
	s := start(t, Options{})
	s.RouteWith("platform=discord", "main", map[string]any{"threshold": 1000, "max_hold_ms": 3_600_000})
	rows := s.Put(texts("discord:5", "one", "two", "/stop", "three")...)
	s.Becomes(rows[0], msg.Dropped, msg.ReasonStopped)
	s.Becomes(rows[1], msg.Dropped, msg.ReasonStopped)
	s.Replies(rows[2], "stopped")
	passed(s)
	if m := s.Row(rows[3]); m.Disposition != "" {
		t.Errorf("the row behind /stop is %s/%s", m.Disposition, m.Reason)
	}
	s.MayWait(rows[3])
}

func TestStopInAWebChatEndsItsTopicOnly(t *testing.T) {
	s := start(t, Options{})
	row := func(topic, text string) msg.Message {
		return msg.Message{ChatJID: "web:main", Topic: topic, Content: text}
	}
	rows := s.Put(row("#a", "slow 600 a"), row("#b", "slow 3 b"))
	s.Runs(rows[0])
	s.Runs(rows[1])
	s.Replies(s.Put(row("#a", "/stop"))[0], "stopped")
	if turn := s.Ended(rows[0]); turn.State != msg.TurnCancelled {
		t.Errorf("#a is %s", turn.State)
	}
	s.HasHeard("web:main", "slow 3 b")
}
