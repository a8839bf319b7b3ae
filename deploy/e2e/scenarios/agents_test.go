package scenarios

import (
	"fmt"
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
