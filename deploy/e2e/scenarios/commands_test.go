package scenarios

import (
	"slices"
	"strings"
	"testing"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
)

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

// wantEcho writes a text and returns its turn, or that of the row derived from it. It fails the test
// unless the agent has echoed that.
func wantEcho(f *harness.Fixture, chat, text, echo string) *msg.Turn {
	f.T.Helper()
	id := f.Say(chat, text)
	if f.WaitDecided(id).Disposition == msg.Prefix {
		derived, err := f.Store.DerivedFrom(f.T.Context(), id)
		if err != nil || len(derived) != 1 {
			f.T.Fatalf("derived from %d: %v, %v", id, derived, err)
		}
		id = derived[0].ID
	}
	answer := f.Answer(id)
	if !strings.HasPrefix(answer, "You said: "+echo+"\n(topic ") {
		f.T.Errorf("answer to %q: %q", text, answer)
	}
	return f.Turn(id)
}

// wantTurnOf fails the test unless a turn is of that folder and topic.
func wantTurnOf(t *testing.T, turn *msg.Turn, folder, topic string) {
	t.Helper()
	if turn.Folder != folder || turn.Topic != topic {
		t.Errorf("turn %d is of %s, topic %q, want %s, topic %q", turn.ID, turn.Folder, turn.Topic, folder, topic)
	}
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
