package scenarios

import (
	"strings"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
)

// askUser is a message that makes the agent ask its user.
const askUser = `call ask_user {"question":"Where to?","options":["staging","production"]}`

// askOn makes the agent ask in a chat of a platform without buttons, whose adapter is a foreign one. It returns the row of
// the message that made it ask.
func askOn(t *testing.T, kind msg.ChatKind) (f *harness.Fixture, chat string, row int64) {
	t.Helper()
	f = start(t, harness.Options{Agent: caller})
	f.AddRoute("platform=matrix", "main")
	chat = "matrix:!room"
	f.Exec(`INSERT INTO chats (jid, platform, kind, last_seen_at) VALUES (?, 'matrix', ?, 0)`, chat, kind)
	row = f.Say(chat, askUser)
	var question *msg.Message
	f.Until("the question", func() bool {
		for _, m := range f.Outbound(chat) {
			if strings.Contains(m.Content, "Where to?") {
				question = m
			}
		}
		return question != nil
	})
	if !strings.Contains(question.Content, "1. staging\n2. production") || !strings.Contains(question.Content, "reply with its number") {
		t.Errorf("the question is %q", question.Content)
	}
	f.OK(f.Adapter.Sent(t.Context(), question.ID, "q1", time.Time{}))
	return f, chat, row
}

// wantChosen fails the test unless the agent gets an option, and the question's message is changed to say so.
func wantChosen(f *harness.Fixture, row int64, option string) {
	f.T.Helper()
	if got := toolAnswer(f, row); !strings.Contains(got, `"option":"`+option+`"`) {
		f.T.Errorf("the agent got %q, want %s", got, option)
	}
	got := f.Query(`SELECT e.content FROM messages e JOIN messages q ON q.id = e.derived_from WHERE e.kind = 'edit' AND q.platform_id = 'q1'`)
	if len(got) != 1 || !strings.Contains(got[0], "**"+option+"** — answered by bob") {
		f.T.Errorf("the question is changed to %q", got)
	}
}

// In a group the number is a reply to the question. Others may not answer.
func TestQuestion_GroupWithoutButtons_ReplyWithItsNumberAnswers(t *testing.T) {
	f, chat, row := askOn(t, msg.ChatGroup)
	other := f.Put(msg.Message{ChatJID: chat, Sender: "matrix:8", SenderName: "eve", Content: "1", ReplyToID: "q1"})[0]
	f.WantDecision(other, msg.Dropped, msg.ReasonChoiceDenied)
	f.WantReply(other, "Only bob may answer this.")
	own := f.Put(msg.Message{ChatJID: chat, Content: "2", ReplyToID: "q1"})[0]
	f.WantDecision(own, msg.Observed, msg.ReasonChosen)
	wantChosen(f, row, "production")
}

// The number comes while gated is down: the turn is asked again, and its call gets the answer to the question of before.
func TestQuestion_WithoutButtons_NumberWhileGatedIsDownCounts(t *testing.T) {
	f, chat, row := askOn(t, msg.ChatDM)
	f.Kill(harness.Gated)
	number := f.PutWithoutPoke(msg.Message{ChatJID: chat, Content: "2"})[0]
	f.Restart(harness.Gated)
	f.WantDecision(number, msg.Observed, msg.ReasonChosen)
	wantChosen(f, row, "production")
	if questions := f.Value(`SELECT count(*) FROM asks`); questions != "1" {
		t.Errorf("%s questions were asked", questions)
	}
}
