package scenarios

import (
	"strings"
	"testing"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
)

const (
	member   = "telegram:42"
	stranger = "telegram:777"
)

// TestAccess_Stranger_ReachesNoGroup: a stranger in a chat of a group that admits one
// sender gets no answer, and no prompt shows the stranger's words.
func TestAccess_Stranger_ReachesNoGroup(t *testing.T) {
	f := start(t, harness.Options{Agent: harness.RecordingAgent})
	for _, folder := range []string{"main", "main/eng"} {
		f.SetGroup(folder, `{"access":["`+member+`"],"observe":"all"}`)
	}
	f.AddRoute("platform=discord", "main#observe")
	says := func(chat, sender, text string) int64 {
		return f.Put(msg.Message{ChatJID: chat, Sender: sender, SenderName: member, Content: text})[0]
	}
	f.Answer(says("telegram:-100", member, "hello"))
	for _, text := range []string{"stranger-words", "@eng stranger-words", "@eng", "#peek stranger-words", "#peek", "/new stranger-words", "/stop", "/status"} {
		f.WantDecision(says("telegram:-100", stranger, text), msg.Dropped, msg.ReasonNoAccess)
	}
	f.WantDecision(says("discord:5", stranger, "stranger-words overheard"), msg.Dropped, msg.ReasonNoAccess)
	f.WantDecision(says("discord:5", member, "member-words overheard"), msg.Observed, msg.ReasonRouteObserve)
	f.WantReply(says("telegram:-100", stranger, "/ping"), "pong")
	says("telegram:-100", member, "#peek what did they say?")
	says("telegram:-100", operator, "#other and now?")
	f.WaitIdle()
	if in := f.AgentInput("main"); strings.Contains(in, "stranger-words") || !strings.Contains(in, "member-words") {
		t.Errorf("the agent was shown:\n%s", in)
	}
	if out := f.Outbound("telegram:-100"); len(out) != 4 {
		t.Errorf("%d messages were written to the chat, want three answers and pong", len(out))
	}
}
