package gateway

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/pkg/chatmove"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

// poisoned opens a database that refuses decisions about rows that say "poison", or only those with a disposition.
func poisoned(t *testing.T, disposition string) *harness {
	t.Helper()
	h := newHarness(t)
	h.exec(fmt.Sprintf(`CREATE TRIGGER poison BEFORE UPDATE OF disposition ON messages WHEN old.content = 'poison' AND '%s' IN ('', new.disposition)
		BEGIN SELECT RAISE(ABORT, 'poisoned'); END`, disposition))
	return h
}

// retry makes passes for as long as a row that cannot be stored is retried.
func (h *harness) retry() {
	h.t.Helper()
	for range 2 * maxRowFailures {
		h.wait(dbRetryDelay)
	}
}

// TestRowThatCannotBeStored_OthersGoOn: it is dropped, or if that is refused too, left out.
func TestRowThatCannotBeStored_OthersGoOn(t *testing.T) {
	t.Parallel()
	for refused, want := range map[string]string{"routed": "dropped/bad_row ", "": ""} {
		h := poisoned(t, refused)
		before, poison, after := h.put("before"), h.put("poison"), h.put("after")
		h.retry()
		h.is(before, "routed/route main")
		h.is(poison, want)
		h.is(after, "routed/route main")
		if problem := h.row(poison.ID).Error; want != "" && !strings.Contains(problem, "poisoned") {
			t.Errorf("the row does not say why: %q", problem)
		}
		diff(t, "turns", h.dispatched(), [][]string{{"before", "after"}})
	}
}

func TestRowThatCannotBeStored_BehindRowsThatWait_IsFound(t *testing.T) {
	t.Parallel()
	for _, waiting := range []int{20, pageRows + 100} {
		t.Run(fmt.Sprint(waiting), func(t *testing.T) { poisonBehindRowsThatWait(t, waiting) })
	}
}

func poisonBehindRowsThatWait(t *testing.T, count int) {
	h := poisoned(t, "routed")
	h.routd.route(func(it routeapi.Item, a *routeapi.Answer) {
		switch it.Sender {
		case "telegram:unrouted":
			unrouted(it, a)
		case "telegram:patient":
			a.Impulse.Threshold, a.Impulse.QuietMS = 1, time.Minute.Milliseconds()
		}
	})
	var waiting []*msg.Message
	for range count {
		waiting = append(waiting, h.put("no route", from("telegram:unrouted"), verb(msg.VerbMention)))
	}
	poison, after := h.put("poison"), h.put("after")
	held := h.put("held", in("telegram:2"), from("telegram:patient"))
	h.put("poison", in("telegram:2"))
	h.retry()
	h.are("", waiting[0], held)
	h.is(poison, "dropped/bad_row ")
	h.is(after, "routed/route main")
	h.wait(time.Minute)
	h.retry()
	h.is(held, "routed/route main")
}

func TestPanic_WhileReadingARow_CostsThatRow(t *testing.T) {
	h := parallel(t)
	r := decide.Row{Message: &msg.Message{ID: 1}}
	if err := h.g.reader.ofRow(&r, func() error { panic("no") }); err != nil || !strings.HasPrefix(r.Problem, "panic: no\n") {
		t.Errorf("%v, %q", err, r.Problem)
	}
	if err := h.g.reader.ofRow(&r, func() error { return store.ErrLocked }); !errors.Is(err, store.ErrLocked) {
		t.Error(err)
	}
}

func TestPanic_WhileStoringARow_CostsThatRow(t *testing.T) {
	h := parallel(t)
	m := h.put("hi")
	h.g.floor.At = m.ID
	for range maxRowFailures { // each pass has an effect about a row that was not read
		p := &plan{cfg: &h.g.cfg, batch: &batch{chat: h.g.waits.chat(dm)}, effects: []decide.Effect{decide.Reply{Row: m.ID}}}
		h.g.commit(t.Context(), []*plan{p})
		h.g.dispatch(t.Context(), []*plan{p})
	}
	h.is(m, "dropped/bad_row ")
	if problem := h.row(m.ID).Error; !strings.Contains(problem, "panic: an effect names row") {
		t.Errorf("the row says %q", problem)
	}
}

func TestPanic_OfTheAgents_StopsNoOtherChat(t *testing.T) {
	h := parallel(t)
	h.agents.panics = true
	one, two := h.put("one"), h.put("two", in("telegram:2"))
	h.step()
	h.are("routed/route main", one, two)
	if !strings.Contains(h.log.String(), "panic after decisions were stored") {
		t.Errorf("log:\n%s", h.log.String())
	}
}

func TestSweep_RowUndecidedByHand_IsFound(t *testing.T) {
	h := parallel(t)
	m := h.take("hi")
	h.exec(fmt.Sprintf(`UPDATE messages SET disposition = NULL, reason = NULL, decided_at = NULL, decision_seq = NULL, turn_id = NULL WHERE id = %d`, m.ID))
	h.step()
	h.is(m, "")
	h.g.sweep(t.Context())
	h.step()
	h.is(m, "routed/route main")
}

func TestSweep_ChatThatWaits_IsReadAgainFromTimeToTime(t *testing.T) {
	h := parallel(t)
	m := h.take("hi")
	h.routd.route(quietly)
	h.take("held")
	h.exec(fmt.Sprintf(`UPDATE messages SET disposition = NULL, reason = NULL, decided_at = NULL, decision_seq = NULL, turn_id = NULL WHERE id = %d`, m.ID))
	for range sweepsPerRestart {
		h.g.sweep(t.Context())
		h.step()
	}
	h.wait(5 * time.Second)
	h.is(m, "routed/route main")
}

func TestMovedChat_PokedRightAfterAnotherLook_IsNoticed(t *testing.T) {
	h := parallel(t)
	const soon = 20 * time.Second // after another look: a busy machine may take more than lookEvery for what follows
	h.routd.route(func(_ routeapi.Item, a *routeapi.Answer) { a.Impulse.QuietMS = 2 * soon.Milliseconds() })
	m := h.take("held")
	poke := func() {
		h.g.afterPoke(t.Context())
		h.step()
	}
	poke() // looks for moves
	h.g.outside.lookAt = time.Now().Add(soon)
	h.write(func(tx *store.Tx) error { return chatmove.Move(tx, dm, "telegram:-1001", h.clock.UnixMilli()) })
	poke() // too soon after that
	if until := h.g.untilDue(); until > soon+lookEvery {
		t.Fatalf("the gateway sleeps for %v", until)
	}
	h.g.outside.lookAt = time.Time{}
	h.g.outside.check(t.Context())
	h.step()
	h.wait(2 * soon)
	h.is(m, "routed/route main")
}

func TestMovedChat_HeldRows_AreReleasedInTheNewOne(t *testing.T) {
	h := parallel(t)
	h.routd.route(quietly)
	m := h.take("held")
	h.write(func(tx *store.Tx) error { return chatmove.Move(tx, dm, "telegram:-1001", h.clock.UnixMilli()) })
	h.poke()
	h.wait(5 * time.Second)
	h.is(m, "routed/route main")
	if turn := h.agents.turns[0]; turn.ChatJID != "telegram:-1001" {
		t.Errorf("turn %+v", turn)
	}
}

func TestRestart_NewRows_AreNotBehindChatsThatWait(t *testing.T) {
	h := parallel(t)
	h.routd.route(unrouted)
	for chat := range 2 * passChats {
		h.put("hello?", in(fmt.Sprintf("telegram:%d", 1000+chat)))
	}
	h.step()
	h.restart()
	h.routd.route(nil)
	m := h.put("hi")
	h.g.runOnce(t.Context())
	if first := h.g.routd.out.batches[0].chat.jid; first != m.ChatJID {
		t.Errorf("the first chat is %s", first)
	}
	h.step()
}

func TestStatus_ServiceHangs_CallsAreBounded(t *testing.T) {
	h := parallel(t)
	hang := make(chan struct{})
	slow := hanging(t, hang)
	h.g.calls.to.Dashd.Base = slow
	for chat := range maxCalls + 20 {
		for range 3 {
			h.put("/status", in(fmt.Sprintf("telegram:%d", 1000+chat)))
		}
	}
	h.step()
	if running := h.g.calls.running; running != maxCalls {
		t.Errorf("%d calls at once, want %d", running, maxCalls)
	}
	h.is(h.take("/ping"), "command/command ")
	close(hang)
	h.finishCalls()
	if n := len(h.g.calls.lines); n != 0 {
		t.Errorf("%d lines of calls are left", n)
	}
}

func TestStop_UnderWay_RowsItCoversAreNotDecided(t *testing.T) {
	h := parallel(t)
	covered := h.put("before the /stop")
	h.exec(fmt.Sprintf(`INSERT INTO stops (chat_jid, before_message, through_turn, created_at) VALUES ('%s', %d, 0, 1)`, dm, covered.ID+1))
	after := h.take("after it")
	h.is(covered, "")
	h.is(after, "routed/route main")
}

func TestPanic_OfTheLoop_StateIsDerivedAgain(t *testing.T) {
	h := parallel(t)
	h.routd.route(quietly)
	m := h.take("held")
	h.g.waits.add(h.g.waits.chat("telegram:2"))
	h.g.guard(t.Context(), func() { panic("no") })
	h.step()
	h.is(m, "")
	h.wait(5 * time.Second)
	h.is(m, "routed/route main")
	diff(t, "turns", h.dispatched(), [][]string{{"held"}})
}
