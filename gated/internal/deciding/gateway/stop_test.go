package gateway

import (
	"testing"
	"time"

	"arizuko/pkg/msg"
)

func TestStop_DropsWhatIsHeldAndCancelsTurns(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	queued := h.take("queued")
	h.routd.route(quietly)
	held := h.take("held")
	stop, after := h.put("/stop"), h.put("after")
	h.wait(5 * time.Second)
	h.is(held, "dropped/stopped ")
	h.is(stop, "command/command ")
	h.is(after, "routed/route main")
	turn := h.row(queued.ID).TurnID
	h.turnIs(turn, msg.TurnCancelled)
	diff(t, "stopped", h.agents.stopped, [][]int64{{turn}})
}

// A /stop leaves alone what belongs to another thread or chat: rows and turns.
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

func TestNew_ResetsTheSessionAndAsksTheTextBehindIt(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	m := h.take("/new tell me more")
	h.is(m, "command/command main")
	diff(t, "turns", h.dispatched(), [][]string{{"tell me more"}})
	bare := h.take("/new")
	diff(t, "replies", h.replies(bare), []string{"new session"})
}
