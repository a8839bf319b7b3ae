package gateway

import (
	"testing"

	"arizuko/pkg/msg"
)

// A /stop leaves rows and turns of other threads and chats alone.
func TestStop_OtherThreadsAndChats_GoOn(t *testing.T) {
	t.Parallel()
	const forum = "telegram:-5"
	inThread := func(id string) func(*msg.Message) {
		return func(m *msg.Message) { m.ChatJID, m.ThreadID, m.Verb = forum, id, msg.VerbMention }
	}
	h := newHarness(t)
	places := map[string]func(*msg.Message){"": inThread(""), "7": inThread("7"), "8": inThread("8"), "another chat": in("telegram:-6")}
	for at := range places {
		if at == "another chat" {
			continue
		}
		t.Run("in thread "+at, func(t *testing.T) {
			turns, held := map[string]*msg.Message{}, map[string]*msg.Message{}
			h.routd.route(nil)
			for place, put := range places {
				turns[place] = h.put("queued", put)
			}
			h.step()
			h.routd.route(quietly)
			for place, put := range places {
				held[place] = h.put("held", put, verb(msg.VerbMessage))
			}
			h.step()
			stop := h.take("/stop", places[at], verb(msg.VerbMessage))
			diff(t, "replies", h.replies(stop), []string{"stopped"})
			h.wait(2 * maxHold)
			for place := range places {
				state, fate := msg.TurnQueued, "routed/route main"
				if place == at {
					state, fate = msg.TurnCancelled, "dropped/stopped "
				}
				h.is(held[place], fate)
				h.turnIs(h.row(turns[place].ID).TurnID, state)
			}
		})
	}
}
