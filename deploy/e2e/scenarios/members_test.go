package scenarios

import (
	"fmt"
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
// sender gets no answer, and no prompt shows what the stranger wrote.
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

// TestRate_Flood_EndsBounded: many messages of one sender, each for a session of its
// own, start no more turns than the rate allows, also after gated was killed. Others are answered.
func TestRate_Flood_EndsBounded(t *testing.T) {
	f := start(t, harness.Options{})
	f.SetGroup("main", `{"rate":10}`)
	flood := func(from, count int) (routed, notices int) {
		var rows []msg.Message
		for i := range count {
			rows = append(rows, msg.Message{ChatJID: "telegram:-100", Sender: stranger, Content: fmt.Sprintf("#t%d hello", from+i)})
		}
		ids := f.Put(rows...)
		for _, id := range ids {
			if f.WaitDecided(id).Disposition == msg.Prefix {
				routed++
			}
		}
		for _, m := range f.Outbound("telegram:-100") {
			if m.Source == msg.SourceNotice {
				notices++
			}
		}
		return routed, notices
	}
	if routed, notices := flood(0, 50); routed != 10 || notices != 1 {
		t.Errorf("%d turns, %d notices", routed, notices)
	}
	f.Answer(f.Put(msg.Message{ChatJID: "telegram:5", Sender: member, Content: "quick?"})[0])
	f.WantEchoes("telegram:5", "quick?")
	f.Kill(harness.Gated)
	f.Restart(harness.Gated)
	if routed, notices := flood(50, 10); routed != 0 || notices != 1 {
		t.Errorf("after a restart %d turns, %d notices in all", routed, notices)
	}
}

// TestObserve_DirectMessages_AreNotShownElsewhere by a group that says nothing about it.
func TestObserve_DirectMessages_AreNotShownElsewhere(t *testing.T) {
	f := start(t, harness.Options{Agent: harness.RecordingAgent})
	f.SetGroup("main", `{}`)
	f.Answer(f.Put(msg.Message{ChatJID: "telegram:301", Sender: member, Content: "my bank pin is 4711"})[0])
	f.Answer(f.Put(msg.Message{ChatJID: "telegram:-100", Sender: member, Content: "in public"})[0])
	f.Put(msg.Message{ChatJID: "telegram:302", Sender: stranger, Content: "#peek what did the owner say?"})
	f.WaitIdle()
	_, prompt, found := strings.Cut(f.AgentInput("main"), "my bank pin is 4711")
	if !found || strings.Contains(prompt, "4711") || !strings.Contains(prompt, "in public") {
		t.Errorf("the agent was shown:\n%s", f.AgentInput("main"))
	}
}
