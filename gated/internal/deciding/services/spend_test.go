package services

import (
	"testing"
	"time"

	"arizuko/gated/gatedtest"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestSpend_OwnTurns_AndForOperatorsThoseOfTheChat(t *testing.T) {
	h := parallel(t)
	now := time.Now()
	h.Now = func() time.Time { return now }
	uses := func(sender string, days int, u agentproto.Usage) {
		at := now.AddDate(0, 0, -days)
		m := storetest.Stored(t, h.st, &msg.Message{ChatJID: "telegram:1", Direction: msg.In, Sender: sender, Timestamp: at.UnixMilli()})
		turn := &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: "telegram:1", TriggerMessageID: m.ID, CreatedAt: at.UnixMilli()}
		h.write(func(tx *store.Tx) error {
			if _, err := gatedtest.PutTurn(tx, turn, 0); err != nil {
				return err
			}
			return gatedtest.AddUsage(tx, turn.ID, u, at.Format(time.DateOnly))
		})
	}
	uses("telegram:7", 0, agentproto.Usage{Input: 10, Output: 5, CostUSD: 0.25})
	uses("telegram:7", 3, agentproto.Usage{Input: 100, CostUSD: 1})
	uses("telegram:7", 40, agentproto.Usage{Input: 1000, CostUSD: 9})
	uses("telegram:9", 0, agentproto.Usage{Input: 7})
	uses("telegram:7", 0, agentproto.Usage{}) // reports nothing
	own := map[string]string{
		"telegram:7": "You in the group main:\n- today: 1 turn, 15 tokens, $0.25\n- 30 days: 2 turns, 115 tokens, $1.25",
		"telegram:9": "You in the group main:\n- today: 1 turn, 7 tokens, dollars not reported\n- 30 days: 1 turn, 7 tokens, dollars not reported\n" +
			"All users of this chat:\n- today: 2 turns, 22 tokens, $0.25\n- 30 days: 3 turns, 122 tokens, $1.25", // an operator
		"telegram:8": "You in the group main:\n- today: nothing reported\n- 30 days: nothing reported",
	}
	for sender, want := range own {
		if got := h.asks("/spend", "", func(m *msg.Message) { m.Sender = sender }); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", sender, got, want)
		}
	}
}
