package gateway

import (
	"testing"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// TestGateway_WorkOfAnAgent_IsThatOfItsOrigin: a group's access and rate are asked for the sender whose request an agent
// works on, also after a restart.
func TestGateway_WorkOfAnAgent_IsThatOfItsOrigin(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.take("hi")
	root := h.agents.turns[0].ID
	h.configure("main/eng", `{"access":["telegram:5","telegram:6"],"rate":2}`)
	work := func(payer string) *msg.Message {
		return h.put("do it", func(m *msg.Message) {
			m.PlatformID, m.ChatJID, m.Sender, m.OnBehalfOf = "", "group:main/eng", "agent:main", payer
			m.ForwardedFrom = &msg.ReturnAddress{Kind: msg.Delegation, RootTurnID: root, Depth: 1, Folder: "main", ChatJID: dm}
		})
	}
	first, stranger, second := work("telegram:5"), work("telegram:7"), work("telegram:5")
	h.step()
	h.is(first, "routed/delegated main/eng")
	h.is(stranger, "dropped/no_access ")
	h.is(second, "routed/delegated main/eng")
	h.restart()
	third, other := work("telegram:5"), work("telegram:6")
	h.step()
	h.is(third, "dropped/rate_limit ")
	h.is(other, "routed/delegated main/eng")
}

// TestGateway_InjectedToken_ElsewhereIsText also has the injected row's access: that of its origin.
func TestGateway_InjectedToken_ElsewhereIsText(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.take("hi")
	root := h.agents.turns[0].ID
	h.configure("main", `{"access":["telegram:1"]}`)
	inject := func(chat, payer, text string) *msg.Message {
		return h.put(text, func(m *msg.Message) {
			m.PlatformID, m.ChatJID, m.Sender, m.OnBehalfOf = "", chat, "agent:main", payer
			m.ForwardedFrom = &msg.ReturnAddress{Kind: msg.Injection, RootTurnID: root, Depth: 1, Folder: "main"}
		})
	}
	own, other, command, stranger := inject(dm, "telegram:1", "#mine"), inject("telegram:2", "telegram:1", "#evil"), inject("telegram:2", "telegram:1", "/new"), inject(dm, "telegram:66", "hi")
	h.step()
	h.is(own, "sticky/sticky_topic ")
	h.is(other, "routed/route main")
	h.is(command, "routed/route main")
	h.is(stranger, "dropped/no_access ")
}

// TestRates_TurnStoredByAnother_IsCounted is about the turns of reminders.
func TestRates_TurnStoredByAnother_IsCounted(t *testing.T) {
	t.Parallel()
	h, first := newRated(t, 2)
	h.write(func(tx *store.Tx) error {
		prompt := &msg.Message{ChatJID: "group:main", Direction: msg.In, Sender: "reminder:1", OnBehalfOf: first.Sender, Source: msg.SourceReminder, Content: "water the plants"}
		if _, _, err := tx.PutMessage(prompt); err != nil {
			return err
		}
		turn := &msg.Turn{Kind: msg.Broadcast, Folder: "main", ChatJID: dm, TriggerMessageID: prompt.ID, Surface: "telegram-dm", Ceiling: 200}
		if _, err := rows.PutTurn(tx, turn, 1); err != nil {
			return err
		}
		return tx.Decide(prompt.ID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonReminder, RoutedTo: "main", TurnID: turn.ID}, h.g.now())
	})
	h.g.Recount("main")
	second := h.take("#fix go")
	h.is(second, "dropped/rate_limit ")
}
