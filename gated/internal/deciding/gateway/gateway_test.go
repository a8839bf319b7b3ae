package gateway

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func diff(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestMessage_Routed_BecomesATurn(t *testing.T) {
	h := parallel(t)
	h.is(h.take("hi"), "routed/route main")
	diff(t, "turns", h.dispatched(), [][]string{{"hi"}})
	if n := len(h.g.waits.chats); n != 0 {
		t.Errorf("%d chats are remembered", n)
	}
}

func TestGate_Reactions_AreHeldAndThenObserved(t *testing.T) {
	h := parallel(t)
	h.routd.route(func(_ routeapi.Item, a *routeapi.Answer) { a.Reason = msg.ReasonToSticky })
	first, second := h.put("👍", verb(msg.VerbReaction)), h.put("👎", verb(msg.VerbReaction))
	h.step()
	h.is(first, "")
	if !strings.Contains(h.log.String(), fmt.Sprintf("msg=\"row held\" row=%d chat=%s until=", first.ID, dm)) {
		t.Errorf("log:\n%s", h.log.String())
	}
	h.wait(maxHold - time.Second)
	h.is(first, "")
	h.wait(time.Second)
	h.are("observed/reaction_only main", first, second)
	diff(t, "turns", h.dispatched(), [][]string(nil))
}

// quietly makes a route wait for five seconds of silence.
func quietly(_ routeapi.Item, a *routeapi.Answer) { a.Impulse.QuietMS = 5000 }

func TestGate_Restart_IsRebuiltFromTheRows(t *testing.T) {
	h := parallel(t)
	h.routd.route(func(_ routeapi.Item, a *routeapi.Answer) { a.Impulse.Threshold = 1000 })
	m := h.take("one")
	h.wait(maxHold / 2)
	h.restart()
	h.take("two")
	h.is(m, "")
	h.wait(maxHold/2 - time.Second)
	h.is(m, "")
	h.wait(time.Second) // since the first row came, not since the restart
	diff(t, "turns", h.dispatched(), [][]string{{"one", "two"}})
}

// unrouted is routd's answer for a chat that no route matches.
func unrouted(_ routeapi.Item, a *routeapi.Answer) {
	a.Action, a.Folder, a.Home, a.Reason = routeapi.None, "", "", msg.ReasonNoRoute
}

func TestUnrouted_AddressedToTheBot_WaitsForARoute(t *testing.T) {
	h := parallel(t)
	h.routd.route(unrouted)
	m := h.take("hi", verb(msg.VerbMention))
	h.is(m, "")
	h.g.checkRoutes(h.t.Context())
	h.step()
	h.is(m, "")
	h.routd.route(nil)
	h.g.checkRoutes(h.t.Context())
	h.step()
	h.is(m, "routed/route main")
}

func TestPrefix_NamesGroup_DerivesARow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want, derived, topic string }{
		{"@eng ship it", "prefix/prefix_group main/eng", "routed/prefix_group main/eng", ""},
		{"#deploy ship it", "prefix/prefix_topic main", "routed/prefix_topic main", "#deploy"},
	} {
		h := newHarness(t)
		m := h.take(tt.text)
		h.is(m, tt.want)
		rows, err := h.st.DerivedFrom(t.Context(), m.ID)
		if err != nil || len(rows) != 1 {
			t.Fatalf("%s: derived %v, %v", tt.text, rows, err)
		}
		h.is(rows[0], tt.derived)
		if topic := h.agents.turns[0].Topic; topic != tt.topic {
			t.Errorf("%s: topic %q", tt.text, topic)
		}
		diff(t, tt.text, h.dispatched(), [][]string{{"ship it"}})
	}
}

// The copy of a replayed row has no post of its own: its answer replies to the original.
func TestReplay_OfAnEvent_IsAnsweredAtTheOriginal(t *testing.T) {
	t.Parallel()
	for _, v := range []string{msg.VerbJoin, msg.VerbMessage} {
		h := newHarness(t)
		original := h.take("hi", verb(v))
		h.take("hi", verb(v), func(m *msg.Message) { m.PlatformID, m.DerivedFrom, m.Source = "", original.ID, msg.SourceReplay })
		for _, turn := range h.agents.turns {
			if turn.ReplyTo != original.PlatformID {
				t.Errorf("%s: turn %d replies to %q", v, turn.ID, turn.ReplyTo)
			}
		}
		if len(h.agents.turns) != 2 {
			t.Errorf("%s: %d turns", v, len(h.agents.turns))
		}
	}
}

func TestSticky_BareToken_PinsWhatFollows(t *testing.T) {
	h := parallel(t)
	before, token, after := h.put("before"), h.put("#deploy"), h.put("after")
	h.step()
	h.is(token, "sticky/sticky_topic ")
	diff(t, "replies", h.replies(token), []string{"topic → deploy"})
	h.are("routed/route main", before, after)
	var topics []string
	for _, turn := range h.agents.turns {
		topics = append(topics, turn.Topic)
	}
	diff(t, "topics", topics, []string{"", "#deploy"})

	clear := h.take("#")
	h.is(clear, "sticky/sticky_reset ")
	diff(t, "replies", h.replies(clear), []string{"topic reset to default"})
}

func TestSticky_Group_IsResolvedFromTheChatsHome(t *testing.T) {
	h := parallel(t)
	h.is(h.take("@eng"), "sticky/sticky_group ")
	chat, err := h.st.Chat(t.Context(), dm)
	if err != nil || chat.StickyGroup != "main/eng" {
		t.Errorf("chat %+v, %v", chat, err)
	}
	h.is(h.take("@nowhere"), "routed/route main")
}

func TestRoutdDown_RowsWait_CommandsGoOn(t *testing.T) {
	h := parallel(t)
	h.routd.down.Store(true)
	m := h.take("hi")
	ping, fresh, web := h.put("/ping"), h.put("/new more"), h.put("hi", in("web:main"))
	stop := h.take("/stop", in("telegram:2"))
	h.is(fresh, "")
	h.is(stop, "command/command ")
	h.is(m, "")
	h.is(ping, "command/command ")
	h.is(web, "")
	if !strings.Contains(h.log.String(), "routd is not answering") || len(h.waits) != 1 || !strings.Contains(h.waits[0], "routd does not answer") {
		t.Errorf("reported %q, log:\n%s", h.waits, h.log.String())
	}
	h.routdBack()
	h.is(m, "routed/route main")
	h.is(fresh, "command/command main")
	h.is(web, "routed/route main")
	if !strings.Contains(h.log.String(), "routd is back") || len(h.waits) > 0 {
		t.Errorf("log:\n%s", h.log.String())
	}
}

// Chats that wait for routd cost nothing until it is back, however often it is probed.
func TestRoutdDown_Probed_ChatsThatWaitAreNotReadAgain(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.routd.down.Store(true)
	h.take("hi")
	for first := h.g.routd.probeAt; h.g.routd.probeAt.Equal(first); { // until a probe has failed
		h.g.listen(h.t.Context(), nil, nil, false)
	}
	if h.g.waits.listed() {
		t.Error("a chat that waits for routd is read again")
	}
}

func TestStale_IsObserved_WithOneNotice(t *testing.T) {
	h := parallel(t)
	for _, notices := range [][]string{{decide.OfflineNotice}, nil} {
		m := h.take("hi", func(m *msg.Message) { m.Timestamp -= (25 * time.Hour).Milliseconds() })
		h.is(m, "observed/stale main")
		diff(t, "notices", h.replies(m), notices)
		h.clock = h.clock.Add(time.Hour)
	}
}

func TestForwarded_DelegationRunsInTheGroupAndAnswersTheOrigin(t *testing.T) {
	h := parallel(t)
	h.take("hi")
	root := h.agents.turns[0]
	h.dispatched()
	delegation := func(depth int, rootTurn int64) func(*msg.Message) {
		return func(m *msg.Message) {
			m.PlatformID, m.ChatJID = "", "group:main/eng"
			m.ForwardedFrom = &msg.ReturnAddress{Kind: msg.Delegation, TurnID: root.ID, RootTurnID: rootTurn, Depth: depth,
				Folder: "main", ChatJID: dm, Surface: "telegram-dm", Ceiling: 4000}
		}
	}
	answer := func(folder string) func(*msg.Message) {
		return func(m *msg.Message) {
			delegation(1, root.ID)(m)
			m.ForwardedFrom.Kind, m.ForwardedFrom.Folder = msg.Answer, folder
		}
	}
	good, deep, lost := h.put("do it", delegation(1, root.ID)), h.put("do it", delegation(9, root.ID)), h.put("do it", delegation(1, 999))
	path, unknown := h.put("done", answer("../../evil")), h.put("done", answer("unknown"))
	h.step()
	h.is(path, "dropped/bad_row ")
	h.is(unknown, "dropped/bad_row ")
	h.is(good, "routed/delegated main/eng")
	h.is(deep, "dropped/fan_out ")
	h.is(lost, "dropped/bad_row ")
	if turn := h.agents.turns[0]; turn.ChatJID != dm || turn.Folder != "main/eng" || turn.RootTurnID != root.ID || turn.Kind != msg.Delegated {
		t.Errorf("turn %+v", turn)
	}
}

func (h *harness) exec(query string) {
	h.t.Helper()
	db := storetest.Must(sql.Open("sqlite3", h.path))(h.t)
	defer db.Close()
	if _, err := db.ExecContext(h.t.Context(), query); err != nil {
		h.t.Fatal(err)
	}
}

func TestRowDecidedByAnotherWriter_IsNotDispatched(t *testing.T) {
	h := parallel(t)
	m := h.put("late")
	h.g.runOnce(h.t.Context())         // asks routd
	h.write(func(tx *store.Tx) error { // between the read and the commit
		return tx.Decide(m.ID, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonStopped}, 1)
	})
	h.step()
	diff(t, "turns", h.dispatched(), [][]string(nil))
	h.is(m, "dropped/stopped ")
}

// A backlog of reactions is longer than a page and than a turn. It is folded again after a restart.
func TestGate_ReactionBacklog_OneTurnRestObserved(t *testing.T) {
	h := parallel(t)
	const count = 1000
	rows := h.putMany(count, func(_ int, m *msg.Message) { m.Verb, m.Content, m.TargetID = msg.VerbReaction, "👍", "p0" })
	h.step()
	h.are("", rows[0], rows[count-1])

	h.clock = h.clock.Add(maxHold)
	h.restart()
	h.step()
	h.wait(maxHold)

	turns := h.dispatched()
	if len(turns) != 1 || len(turns[0]) > msg.MaxTurnRows {
		t.Fatalf("%d turns, want one of at most %d rows", len(turns), msg.MaxTurnRows)
	}
	for i, m := range rows {
		want := "observed/reaction_overflow main"
		if i >= count-len(turns[0]) {
			want = "routed/route main"
		}
		h.is(m, want)
	}
}
