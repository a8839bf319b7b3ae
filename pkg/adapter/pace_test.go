package adapter

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"arizuko/gated/gatedtest"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// checkPace holds moments, in order, to a limit: no stretch of time has more than Burst and what
// has been added since it began.
func checkPace(t *testing.T, who string, moments []time.Time, l Limit) {
	t.Helper()
	for i, first := range moments {
		for n, last := range moments[i:] {
			if most := l.Burst + int(last.Sub(first)/l.Every); n+1 > most {
				t.Errorf("%s: %d in %v, want at most %d", who, n+1, last.Sub(first), most)
				return
			}
		}
	}
}

// sentTo lists when parts were sent to each chat, and to all of them.
func (r *fixture) sentTo() (chats map[string][]time.Time, all []time.Time) {
	chats = map[string][]time.Time{}
	for _, c := range r.platform.calls {
		chat := r.row(c.Row).ChatJID
		chats[chat] = append(chats[chat], c.At)
		all = append(all, c.At)
	}
	return chats, all
}

func paced(p Pace) func(*Options) { return func(o *Options) { o.Pace = p } }

// each returns the same limits for every chat, which its threads share.
func each(limits ...Limit) func(store.Lane) (string, []Limit) {
	return func(l store.Lane) (string, []Limit) { return l.ChatJID, limits }
}

// taken reports whether a call may be made at once.
func taken(p *pacer, l store.Lane) bool {
	wait, _ := p.take(l)
	return wait == 0
}

// inChat is the lane of a chat outside of its threads.
func inChat(chat string) store.Lane { return store.Lane{ChatJID: chat} }

// A hundred chats share an account that is slower than all of them together.
func TestPace_ThousandRows(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		const chats, rows = 100, 10
		account := Limit{Every: time.Second / 30, Burst: 1}
		perChat := []Limit{{Every: time.Second, Burst: 1}, {Every: 3 * time.Second, Burst: 20}}
		r.write(func(tx *store.Tx) error {
			for i := range chats * rows {
				m := &msg.Message{
					ChatJID: fmt.Sprintf("irc:%d", i%chats), Direction: msg.Out, OutState: msg.OutQueued, Content: fmt.Sprint(i / chats),
				}
				if _, _, err := tx.PutMessage(m); err != nil {
					return err
				}
			}
			return nil
		})
		begin := time.Now()
		r.start(paced(Pace{Account: account, Lane: each(perChat...)}))
		pass(chats * rows * account.Every)
		byChat, all := r.sentTo()
		if len(all) != chats*rows {
			t.Fatalf("%d were sent in time, want %d", len(all), chats*rows)
		}
		checkPace(t, "the account", all, account)
		for i, at := range all {
			if late := at.Sub(begin) - time.Duration(i)*account.Every; late > time.Millisecond {
				t.Fatalf("part %d was %v late", i, late)
			}
		}
		for chat, moments := range byChat {
			checkPace(t, chat, moments, perChat[0])
			checkPace(t, chat, moments, perChat[1])
		}
		served := map[string]int{}
		for i, c := range r.platform.calls {
			chat := r.row(c.Row).ChatJID
			served[chat]++
			if round := i/chats + 1; served[chat] < round-1 || served[chat] > round+1 { // they all begin at once
				t.Fatalf("part %d is number %d of its chat: the chats were not served in turn", i, served[chat])
			}
		}
	})
}

func TestPace_ChatsShareAnAccount(t *testing.T) {
	slow := Limit{Every: 3 * time.Second, Burst: 1}
	tests := []struct {
		name    string
		account Limit
		quick   []Limit       // of the chats that are not the slow one
		chats   int           // quick ones
		rows    int           // in each chat
		took    time.Duration // until the quick ones have theirs
	}{
		{"a slow chat delays no other", Limit{Every: 100 * time.Millisecond, Burst: 1}, nil, 10, 20, 201*100*time.Millisecond + 6*100*time.Millisecond},
		{"none is limited but the slow one", Limit{}, nil, 10, 20, 0},
		{"the quick ones wait for themselves", Limit{Every: 10 * time.Millisecond, Burst: 5}, []Limit{{Every: time.Second, Burst: 2}}, 10, 5, 3*time.Second + 110*time.Millisecond},
		{"waits end together", Limit{Every: 200 * time.Millisecond, Burst: 2}, []Limit{{Every: 2 * time.Second, Burst: 1}}, 20, 4, 84 * 200 * time.Millisecond},
		{"a limit of none", Limit{Every: 100 * time.Millisecond, Burst: 1}, []Limit{{}}, 2, 5, 1100 * time.Millisecond},
	}
	for _, tt := range tests {
		runInBubble(t, tt.name, func(t *testing.T, r *fixture) {
			for n := range tt.rows {
				r.outIn("irc:slow", "", fmt.Sprint(n))
				for i := range tt.chats {
					r.outIn(fmt.Sprintf("irc:quick%d", i), "", fmt.Sprint(n))
				}
			}
			begin := time.Now()
			r.start(paced(Pace{Account: tt.account, Lane: func(l store.Lane) (string, []Limit) {
				if l.ChatJID == "irc:slow" {
					return l.ChatJID, []Limit{slow}
				}
				return l.ChatJID, tt.quick
			}}))
			pass(2 * time.Minute)
			chats, all := r.sentTo()
			if tt.account.Burst > 0 {
				checkPace(t, "the account", all, tt.account)
			}
			for chat, moments := range chats {
				last := moments[len(moments)-1].Sub(begin)
				switch {
				case len(moments) != tt.rows:
					t.Errorf("%s got %d of %d", chat, len(moments), tt.rows)
				case chat == "irc:slow":
					checkPace(t, chat, moments, slow)
				case last > tt.took:
					t.Errorf("%s had its last after %v, want %v", chat, last, tt.took)
				case len(tt.quick) > 0 && tt.quick[0].Burst > 0:
					checkPace(t, chat, moments, tt.quick[0])
				}
			}
		})
	}
}

// Every part fails at first.
func TestPace_CountsRetries(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		account, chat := Limit{Every: 500 * time.Millisecond, Burst: 1}, Limit{Every: 4 * time.Second, Burst: 1}
		for i := range 10 {
			text := fmt.Sprint(i)
			r.platform.script(text, fails(failure(msg.Transient, 0)))
			r.outIn("irc:"+text, "", text)
		}
		r.start(paced(Pace{Account: account, Lane: each(chat)}))
		pass(time.Minute)
		chats, all := r.sentTo()
		if len(all) != 20 {
			t.Errorf("%d tries", len(all))
		}
		checkPace(t, "the account", all, account)
		for who, moments := range chats {
			checkPace(t, who, moments, chat)
		}
	})
}

// Rows whose turn came while nothing may be sent are not sent all at once after that.
func TestPace_AfterAStop_NoBurst(t *testing.T) {
	unsent := &Failure{Class: msg.Transient, Err: ErrUnsent}
	for name, script := range map[string][]outcome{
		"the account waits":       {fails(&Failure{Class: msg.Rate, Account: true, After: 3 * time.Second, Err: errCause})},
		"nothing is answered":     slices.Repeat([]outcome{fails(unsent)}, 4),
		"the account waits twice": {fails(&Failure{Class: msg.Rate, Account: true, After: time.Second, Err: errCause}), fails(&Failure{Class: msg.Rate, Account: true, After: time.Second, Err: errCause})},
	} {
		runInBubble(t, name, func(t *testing.T, r *fixture) {
			account := Limit{Every: time.Second / 10, Burst: 1}
			r.platform.script("0", script...)
			const chats, rows = 40, 3
			for i := range chats * rows {
				r.outIn(fmt.Sprintf("irc:%d", i%chats), "", fmt.Sprint(i))
			}
			r.start(paced(Pace{Account: account, Lane: each(Limit{Every: 2 * time.Second, Burst: 3})}))
			pass(chats*rows*account.Every + 20*time.Second)
			_, all := r.sentTo()
			if len(all) < chats*rows+1 {
				t.Fatalf("%d calls", len(all))
			}
			checkPace(t, "the account", all, account)
		})
	}
}

// Whatever is called beside rows that wait for the account comes after them, also in the moment in which the account is
// free again.
func TestPacer_RowWaits_OthersComeAfterIt(t *testing.T) {
	for name, call := range map[string]func(*pacer) bool{
		"a preview":     func(p *pacer) bool { return p.spare(inChat("live")) },
		"a typing call": (*pacer).spareCall,
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPacer(Pace{Account: Limit{Every: time.Second, Burst: 1}})
			if !call(p) {
				t.Errorf("%s: not at once", name)
			}
			if wait, all := p.take(inChat("row")); wait != time.Second || !all {
				t.Errorf("%s: the row waits %v, all: %t", name, wait, all)
			}
			pass(time.Second)
			if call(p) {
				t.Errorf("%s: before the row", name)
			}
			if wait, _ := p.take(inChat("row")); wait != 0 {
				t.Errorf("%s: the row waits another %v", name, wait)
			}
			pass(time.Second)
			if !call(p) {
				t.Errorf("%s: not after the row", name)
			}
		})
	}
}

// A call that was not made counts for no limit.
func TestPacer_Refund_CountsForNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(Pace{Account: Limit{Every: time.Second, Burst: 1}, Lane: each(Limit{Every: time.Minute, Burst: 2})})
		for range 10 {
			if wait, _ := p.take(inChat("chat")); wait != 0 {
				t.Fatalf("waits %v", wait)
			}
			p.refund(inChat("chat"))
		}
		var waits []time.Duration
		for range 3 {
			wait, _ := p.reserve(inChat("chat"))
			waits = append(waits, wait)
		}
		if want := []time.Duration{0, time.Second, time.Minute}; !slices.Equal(waits, want) {
			t.Errorf("waits %v, want %v", waits, want)
		}
	})
}

// A call that a lane's own limit delays is not counted before, so that it delays no other lane.
func TestPacer_Reserve_InABusyLane_OthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(Pace{Account: Limit{Every: time.Second / 10, Burst: 1},
			Lane: each(Limit{Every: time.Minute, Burst: 1})})
		for i, want := range []struct {
			wait    time.Duration
			counted bool
		}{{0, true}, {time.Minute, false}} {
			if wait, counted := p.reserve(inChat("busy")); wait != want.wait || counted != want.counted {
				t.Errorf("call %d waits %v, counted: %t", i, wait, counted)
			}
		}
		pass(time.Second)
		if wait, _ := p.take(inChat("other")); wait != 0 {
			t.Errorf("another lane waits %v", wait)
		}
	})
}

// TestPace_KilledWhileWaiting_IsNotAmbiguous kills a shell while a part, and while a row, waits for its turn: neither is
// on its way.
func TestPace_KilledWhileWaiting_IsNotAmbiguous(t *testing.T) {
	for _, tt := range []struct {
		name string
		pace Pace
	}{
		{"chat", Pace{Lane: each(Limit{Every: time.Minute, Burst: 1})}},
		{"account", Pace{Account: Limit{Every: time.Minute, Burst: 1}}},
		{"both", Pace{Account: Limit{Every: time.Minute, Burst: 1}, Lane: each(Limit{Every: 30 * time.Second, Burst: 1})}},
	} {
		runInBubble(t, tt.name, func(t *testing.T, r *fixture) {
			first, other, next := r.out("", "a|b"), r.out("t", "c"), r.out("", "d")
			stop := r.start(paced(tt.pace))
			pass(50 * time.Second) // in which one part is sent
			states := []string{r.states(first), r.states(other)}
			slices.Sort(states)
			if got := strings.Join(states, ", "); got != "queued:, sending: sent queued" && got != "queued:, sent: sent" {
				t.Errorf("while they wait: %s", got)
			}
			for _, id := range []int64{first, other, next} {
				if strings.Contains(r.states(id), " sending") {
					t.Errorf("row %d is on its way: %s", id, r.states(id))
				}
			}
			r.crash(stop)
			r.start()
			synctest.Wait()
			r.expect(first, "sent: sent sent")
			r.expect(other, "sent: sent")
			r.expect(next, "sent: sent")
			got := r.platform.sent()
			if slices.Sort(got); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
				t.Errorf("sent %q", got)
			}
		})
	}
}

func TestPace_CancelledWhileWaiting_IsNotSent(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		r.out("", "first")
		m := &msg.Message{ChatJID: room, Direction: msg.Out, OutState: msg.OutQueued, TurnID: 7, Content: "cancelled"}
		r.write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(m); return err })
		r.out("", "last")
		r.start(paced(Pace{Lane: each(Limit{Every: time.Minute, Burst: 1})}))
		pass(time.Second)
		r.write(func(tx *store.Tx) error { return gatedtest.CancelReplies(tx, 7) })
		pass(3 * time.Minute)
		r.expectSent("first", "last")
	})
}

// Chats whose limits are in use are kept.
func TestPace_ForgetsUnusedChats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := map[string]Limit{"busy": {Every: time.Hour, Burst: 2}}
		p := newPacer(Pace{Lane: func(in store.Lane) (string, []Limit) {
			if l, ok := limits[in.ChatJID]; ok {
				return in.ChatJID, []Limit{l}
			}
			return in.ChatJID, []Limit{{Every: time.Second, Burst: 1}}
		}})
		free := []bool{taken(p, inChat("busy")), taken(p, inChat("busy"))}
		for i := range maxKeys - 1 {
			p.take(inChat(fmt.Sprint("quiet ", i)))
		}
		if len(p.keys) != maxKeys {
			t.Errorf("%d chats are remembered", len(p.keys))
		}
		pass(time.Minute)
		p.take(inChat("one more"))
		if len(p.keys) != 2 {
			t.Errorf("%d chats are remembered, want the busy one and the new one", len(p.keys))
		}
		free = append(free, taken(p, inChat("busy")), taken(p, inChat("quiet 7")), taken(p, inChat("one more")))
		if want := []bool{true, true, false, true, false}; !slices.Equal(free, want) {
			t.Errorf("free: %v, want %v", free, want)
		}
	})
}

func TestPace_NoLimits(t *testing.T) {
	for _, p := range []Pace{{}, {Lane: each()}, {Lane: each(Limit{}, Limit{})}, {Account: Limit{Every: time.Hour}}} {
		pc := newPacer(p)
		for range 100 {
			if !taken(pc, inChat("chat")) {
				t.Fatalf("%+v: waits", p)
			}
		}
	}
}

// Two threads of a chat share the chat's limit, or have one each.
func TestPace_Key_SaysWhatIsShared(t *testing.T) {
	limits := []Limit{{Every: time.Minute, Burst: 1}}
	for name, tt := range map[string]struct {
		key  func(store.Lane) string
		want bool // the second thread may be sent to at once
	}{
		"the chat":   {func(l store.Lane) string { return l.ChatJID }, false},
		"the thread": {func(l store.Lane) string { return l.ThreadID }, true},
	} {
		p := newPacer(Pace{Lane: func(l store.Lane) (string, []Limit) { return tt.key(l), limits }})
		if !taken(p, store.Lane{ChatJID: room, ThreadID: "1"}) {
			t.Errorf("%s: the first thread waits", name)
		}
		if got := taken(p, store.Lane{ChatJID: room, ThreadID: "2"}); got != tt.want {
			t.Errorf("%s: the second thread may be sent to: %v", name, got)
		}
	}
}
