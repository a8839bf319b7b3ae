package scenarios

import (
	"fmt"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/need"
)

// Rows are answered in the order in which they are stored, whatever time they claim.
func TestRows_OddTimestamps_AreAnsweredInOrder(t *testing.T) {
	f := start(t, harness.Options{})
	now := time.Now().UnixMilli()
	const hour = 3_600_000
	var sent []string
	for i, at := range []int64{now, now, now - hour, now + 24*hour, now} {
		sent = append(sent, fmt.Sprintf("row %d", i))
		f.Put(msg.Message{ChatJID: "telegram:5", Content: sent[i], Timestamp: at, ReceivedAt: max(at, now)})
	}
	f.WantEchoes("telegram:5", sent...)
}

func TestRows_WithoutPoke_AreFoundByPolling(t *testing.T) {
	f := start(t, harness.Options{})
	f.WantDecision(f.PutWithoutPoke(texts("telegram:5", "no poke")...)[0], msg.Routed, msg.ReasonRoute)
	f.WantEchoes("telegram:5", "no poke")
}

func TestRows_BacklogOfTenThousand_AnsweredInOrder(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	f := harness.NewFixture(t, programs, harness.Options{})
	f.Migrate()
	f.Exec(`INSERT INTO registered_groups (folder, config) VALUES ('main', '{"rate":0}')`)
	f.Exec(`INSERT INTO routes (match, target) VALUES ('platform=telegram', 'main')`)
	var rows []msg.Message
	sent := map[string][]string{}
	for i := range 10_000 {
		chat := fmt.Sprintf("telegram:%d", 1+i%3*i%7) // chats with different numbers of rows
		text := fmt.Sprintf("message %d", i)
		rows = append(rows, msg.Message{ChatJID: chat, Content: text})
		sent[chat] = append(sent[chat], text)
	}
	f.PutWithoutPoke(rows...)
	f.StartDaemon(harness.Routd)
	f.StartDaemon(harness.Gated)
	for chat, texts := range sent {
		f.WantEchoes(chat, texts...)
	}
}
