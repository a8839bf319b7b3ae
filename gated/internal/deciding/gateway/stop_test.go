package gateway

import (
	"testing"
	"time"

	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

func TestStop_DropsWhatIsHeldAndCancelsTurns(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	queued := h.put("queued")
	h.step()
	h.routd.route(quietly)
	held := h.put("held")
	h.step()
	stop, after := h.put("/stop"), h.put("after")
	h.wait(5 * time.Second)
	h.is(held, "dropped/stopped ")
	h.is(stop, "command/command ")
	h.is(after, "routed/route main")
	turn, err := h.st.Turn(t.Context(), h.row(queued.ID).TurnID)
	if err != nil || turn.State != msg.TurnCancelled {
		t.Errorf("the turn is %+v, %v", turn, err)
	}
	diff(t, "stopped", h.agents.stopped, [][]int64{{turn.ID}})
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
			stop := h.put("/stop", places[at], verb(msg.VerbMessage))
			h.step()
			diff(t, "replies", h.replies(stop), []string{"stopped"})
			h.wait(2 * maxHold)
			for place := range places {
				state, fate := msg.TurnQueued, "routed/route main"
				if place == at {
					state, fate = msg.TurnCancelled, "dropped/stopped "
				}
				h.is(held[place], fate)
				if turn, err := h.st.Turn(t.Context(), h.row(turns[place].ID).TurnID); err != nil || turn.State != state {
					t.Errorf("%q: the turn is %+v, %v", place, turn, err)
				}
			}
		})
	}
}

func TestStop_RouteRemoved_CancelsTurns(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	queued := h.put("queued")
	h.step()
	h.routd.route(func(it routeapi.Item, a *routeapi.Answer) { unrouted(it, a); a.Home = "" })
	stop := h.put("/stop")
	h.step()
	diff(t, "replies", h.replies(stop), []string{"stopped"})
	turn, err := h.st.Turn(t.Context(), h.row(queued.ID).TurnID)
	if err != nil || turn.State != msg.TurnCancelled {
		t.Errorf("the turn is %+v, %v", turn, err)
	}
}

func TestNew_ResetsTheSessionAndAsksTheTextBehindIt(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	m := h.put("/new tell me more")
	h.step()
	h.is(m, "command/command main")
	diff(t, "turns", h.dispatched(), [][]string{{"tell me more"}})
	bare := h.put("/new")
	h.step()
	diff(t, "replies", h.replies(bare), []string{"new session"})
}
