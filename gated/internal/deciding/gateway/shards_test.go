package gateway

import (
	"fmt"
	"testing"
	"time"

	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// another is a gateway on the same database, as on another machine.
func (h *harness) another() *harness {
	other := &harness{t: h.t, path: h.path, st: h.st, routd: h.routd, agents: &fakeAgents{}, clock: h.clock, shards: h.shards,
		posts: 1000}
	other.restart()
	return other
}

// divide gives the gateway the shards that it decides from now on.
func (h *harness) divide(has ...bool) {
	h.t.Helper()
	h.g.divide(h.t.Context(), division{has, make(chan struct{})})
}

// inChat puts a row into a chat of its own.
func inChat(n int) func(*msg.Message) {
	return func(m *msg.Message) {
		m.ChatJID, m.PlatformID = fmt.Sprintf("telegram:%d", 100+n), fmt.Sprintf("c%d", n)
	}
}

func (h *harness) undecided(rows []*msg.Message) (n int) {
	for _, m := range rows {
		if h.row(m.ID).Disposition == "" {
			n++
		}
	}
	return n
}

func TestDivide_TwoGateways_EachDecidesItsChats(t *testing.T) {
	h := parallel(t)
	h.shards = 2
	h.restart()
	other := h.another()
	var rows []*msg.Message
	for n := range 40 {
		rows = append(rows, h.put("hello", inChat(n)))
	}
	h.step()
	if n := h.undecided(rows); n != len(rows) {
		t.Errorf("without a shard, the gateway has decided %d rows", len(rows)-n)
	}
	h.divide(true, false)
	h.step()
	left := h.undecided(rows)
	if left == 0 || left == len(rows) {
		t.Errorf("with one of two shards, %d of %d rows are left", left, len(rows))
	}
	other.divide(false, true)
	other.step()
	if n := h.undecided(rows); n != 0 {
		t.Errorf("%d rows are undecided", n)
	}
	if a, b := len(h.agents.turns), len(other.agents.turns); a != len(rows)-left || b != left {
		t.Errorf("%d and %d turns, want %d and %d", a, b, len(rows)-left, left)
	}
}

// A chat that the gate holds goes to another gateway, with the lookup that is out about it, and comes back.
func TestDivide_ShardMoves_RowsAreDecidedOnceInOrder(t *testing.T) {
	h := parallel(t)
	h.shards = 1
	h.restart()
	other := h.another()
	h.divide(true)
	first := h.put("hello")
	h.g.runOnce(t.Context())
	if h.g.routd.out == nil {
		t.Fatal("routd was not asked")
	}
	h.divide(false)
	second := h.put("hello again")
	h.step()
	if n := h.undecided([]*msg.Message{first, second}); n != 2 {
		t.Errorf("%d rows are undecided, want those of a shard that is left", n)
	}
	other.divide(true)
	other.step()
	other.divide(false)
	h.divide(true)
	third := h.put("and again")
	h.step()
	for _, m := range []*msg.Message{first, second, third} {
		h.is(m, "routed/route main")
	}
	if h.row(first.ID).DecisionSeq > h.row(second.ID).DecisionSeq {
		t.Error("the rows were decided in another order than they came")
	}
}

// Rows that have come when the shards change are decided, of chats that wait, too.
func TestDivide_RowNotReadYet_IsDecided(t *testing.T) {
	h := parallel(t)
	h.shards = 2
	h.restart()
	h.divide(true, true)
	h.routd.route(func(_ routeapi.Item, a *routeapi.Answer) { a.Impulse.QuietMS = time.Minute.Milliseconds() })
	h.is(h.take("hello"), "")
	command := h.put("/ping")
	h.divide(true, true)
	h.step()
	if h.row(command.ID).Disposition == "" {
		t.Error("the command is undecided")
	}
}

// Turns that another gateway has stored count within a second.
func TestDivide_RateOfSender_CountsTurnsOfOthers(t *testing.T) {
	h := parallel(t)
	h.shards = 2
	h.restart()
	h.configure("main", `{"rate":3}`)
	other := h.another()
	h.divide(true, true)
	h.take("hi")
	h.divide(true, false)
	other.divide(false, true)
	var rows []*msg.Message
	for n := range 20 {
		rows = append(rows, h.put("hello", inChat(n)))
		for folder := range h.g.rates.readAt {
			h.g.rates.readAt[folder] = time.Now().Add(-2 * sharedTime)
		}
		for folder := range other.g.rates.readAt {
			other.g.rates.readAt[folder] = time.Now().Add(-2 * sharedTime)
		}
		h.step()
		other.step()
	}
	routed := 0
	for _, m := range rows {
		if h.row(m.ID).Disposition == msg.Routed {
			routed++
		}
	}
	if routed != 2 {
		t.Errorf("%d turns after the first, want 2 of 3 an hour", routed)
	}
}
