package scenarios

import (
	"fmt"
	"strings"
	"testing"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
)

// sayOneByOne writes messages, each after the answer to the one before.
func sayOneByOne(f *harness.Fixture, chat string, n int) (sent []string) {
	f.T.Helper()
	for i := range n {
		sent = append(sent, fmt.Sprintf("message %d", i))
		f.Answer(f.Say(chat, sent[i]))
	}
	return sent
}

// wantNoRetries fails the test if a turn was retried.
func wantNoRetries(f *harness.Fixture) {
	f.T.Helper()
	for _, line := range f.Query(`SELECT id, attempts, error FROM turns WHERE attempts > 0`) {
		f.T.Errorf("turn %s", line)
	}
}

func TestAgents_ExitAfterEachAnswer_AllMessagesAnswered(t *testing.T) {
	f := start(t, harness.Options{Agent: "head -n 1 | exec %demo"})
	f.WantEchoes("telegram:5", sayOneByOne(f, "telegram:5", 15)...)
	var sent []string
	for i := range 15 {
		sent = append(sent, fmt.Sprintf("at once %d", i))
		f.Say("telegram:6", sent[i])
	}
	f.WantEchoes("telegram:6", sent...)
	wantNoRetries(f)
}

func TestAgents_NoIdleTime_AllMessagesAnswered(t *testing.T) {
	f := start(t, harness.Options{Env: []string{"AGENT_IDLE=0s"}})
	f.WantEchoes("telegram:5", sayOneByOne(f, "telegram:5", 15)...)
	wantNoRetries(f)
}

func TestAgents_OneSlot_AllChatsAnswered(t *testing.T) {
	f := start(t, harness.Options{Env: []string{"MAX_AGENTS=1"}})
	sent := map[string][]string{}
	for i := range 8 {
		for _, chat := range []string{"telegram:5", "telegram:6", "web:main", "web:main/eng", "web:other", "group:other"} {
			text := fmt.Sprintf("%d to %s", i, chat)
			f.Put(msg.Message{ChatJID: chat, Content: text})
			sent[chat] = append(sent[chat], text)
		}
	}
	for chat, texts := range sent {
		f.WantEchoes(chat, texts...)
	}
	wantNoRetries(f)
}

func TestAgents_FirstRunFails_TurnIsRetried(t *testing.T) {
	f := start(t, harness.Options{Agent: `if mkdir failed; then exit 3; fi; exec %demo`})
	first := f.Say("telegram:5", "one")
	var failed *msg.Turn
	f.Until("the first run to fail", func() bool { failed = f.Turn(first); return failed.Attempts == 1 })
	f.Say("telegram:5", "two") // queued after it
	f.Answer(f.Say("telegram:6", "three"))
	if turn := f.Turn(first); turn.EndedAt != 0 && turn.EndedAt < failed.NotBefore {
		t.Errorf("the failed turn has ended before its time: %+v", turn)
	}
	f.WantEchoes("telegram:5", "one", "two")
	if turn := f.Turn(first); turn.Attempts != 1 || turn.State != msg.TurnDone {
		t.Errorf("turn %+v", turn)
	}
}

func TestAgents_EveryRunFails_TurnFailsWithNotice(t *testing.T) {
	f := start(t, harness.Options{Env: []string{"TURN_ATTEMPTS=1"}})
	for chat, order := range map[string]string{"telegram:5": "crash", "telegram:6": "error"} {
		id := f.Say(chat, order)
		if turn := f.WaitEnded(id); turn.State != msg.TurnFailed || turn.Reason != msg.ReasonAgentError || turn.Error == "" {
			t.Errorf("turn of %q: %+v", order, turn)
		}
		if notice := f.Answer(id); !strings.Contains(notice, "could not answer") {
			t.Errorf("notice %q", notice)
		}
	}
	f.Say("telegram:5", "hello")
	f.WantEchoes("telegram:5", "hello")
}

func TestAgents_CommandNotFound_TurnFailsCommandsWork(t *testing.T) {
	f := start(t, harness.Options{Agent: "exec /nowhere/agent", Env: []string{"TURN_ATTEMPTS=1"}})
	row := f.Say("telegram:5", "hello")
	if turn := f.WaitEnded(row); turn.State != msg.TurnFailed || !strings.Contains(turn.Error, "/nowhere/agent") {
		t.Errorf("turn %+v", turn)
	}
	f.WantReply(f.Say("telegram:5", "/ping"), "pong")
}

func TestAgents_SeveralFramesOrSilence_EachDelivered(t *testing.T) {
	f := start(t, harness.Options{})
	frames := f.Say("telegram:5", "frames 3 long answer")
	if n := strings.Count(f.Answer(frames), "You said: "); n != 3 {
		t.Errorf("%d frames, want 3", n)
	}
	silent := f.Say("telegram:5", "silent please")
	if turn := f.WaitEnded(silent); turn.Reason != msg.ReasonSilent || f.Answer(silent) != "" {
		t.Errorf("silent turn: %+v", turn)
	}
	f.Say("telegram:5", "hello")
	f.WaitIdle()
}
