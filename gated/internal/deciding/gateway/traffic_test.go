package gateway

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// traffic is random traffic of some chats, while routd is quick, slow, or away.
type traffic struct {
	*harness
	rand *rand.Rand
	rows map[string][]*msg.Message // by chat
}

// act does one random thing.
func (w *traffic) act() {
	jid := fmt.Sprintf("telegram:%d", w.rand.IntN(3))
	texts := []string{"text", "text", "text", "text", "/ping", "/new again", "/help", "@eng go", "#fix go", "/status"}
	switch w.rand.IntN(12) {
	case 0:
		w.routd.delay(time.Duration(w.rand.IntN(8)) * time.Millisecond)
	case 1:
		w.routd.down.Store(w.rand.IntN(2) == 0)
	case 2:
		if w.g.calls.running > 0 { // they read the clock
			return
		}
		w.clock = w.clock.Add(time.Duration(w.rand.IntN(3000)) * time.Millisecond)
	case 3:
		w.g.sweep(w.t.Context())
	case 4:
		if w.g.routd.out == nil && w.g.calls.running == 0 && !w.g.routd.away() {
			w.restart()
			w.g.routd.patience = time.Millisecond
		}
	case 5, 6, 7, 8:
		text := texts[w.rand.IntN(len(texts))]
		m := w.put(text, in(jid), func(m *msg.Message) {
			if w.rand.IntN(8) == 0 {
				m.GroupKey = "album"
			}
		})
		w.rows[jid] = append(w.rows[jid], m)
	default:
		if w.g.routd.out != nil || w.g.hasWork() {
			w.g.listen(w.t.Context(), nil, nil, w.g.hasWork())
		}
		w.g.runOnce(w.t.Context())
	}
}

// settle lets everything that waits be decided.
func (w *traffic) settle() {
	w.routd.delay(0)
	w.routdBack()
	for range 4 {
		w.finishCalls()
		w.wait(maxHold)
	}
	w.finishCalls()
}

// TestGateway_AnyTraffic_EachRowOnceInOrder: whatever happens, each row is decided,
// and those that a group answers are dispatched in their order, each once.
func TestGateway_AnyTraffic_EachRowOnceInOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		h := newHarness(t)
		h.g.routd.patience = time.Millisecond
		h.routd.route(func(it routeapi.Item, a *routeapi.Answer) {
			if it.ChatJID == "telegram:2" {
				a.Impulse.QuietMS = 500
			}
		})
		w := &traffic{harness: h, rand: rand.New(rand.NewPCG(seed, 1)), rows: map[string][]*msg.Message{}}
		for range 150 {
			w.act()
		}
		w.settle()
		w.check(seed)
	}
}

func (w *traffic) check(seed uint64) {
	w.t.Helper()
	dispatched := map[string][]int64{}
	for _, turn := range w.agents.turns {
		if slices.Contains(dispatched[turn.ChatJID], turn.ID) { // it has taken in newer rows
			continue
		}
		dispatched[turn.ChatJID] = append(dispatched[turn.ChatJID], turn.ID)
	}
	for jid, rows := range w.rows {
		last := map[string]int64{} // turn of each topic's last row
		for _, m := range rows {
			now := w.row(m.ID)
			if now.Disposition == "" {
				w.t.Fatalf("seed %d: row %d %q of %s is undecided:\n%s", seed, m.ID, m.Content, jid, w.tail())
			}
			if now.TurnID == 0 || now.Disposition != msg.Routed {
				continue
			}
			if now.TurnID < last[now.Topic] {
				w.t.Fatalf("seed %d: row %d is in turn %d, one before it in %d:\n%s", seed, m.ID, now.TurnID, last[now.Topic], w.tail())
			}
			last[now.Topic] = now.TurnID
			if !slices.Contains(dispatched[jid], now.TurnID) {
				w.t.Fatalf("seed %d: turn %d was not dispatched", seed, now.TurnID)
			}
		}
	}
	if n := len(w.g.waits.chats); n != 0 {
		w.t.Errorf("seed %d: %d chats are remembered", seed, n)
	}
}

// tail is the end of the log.
func (w *traffic) tail() string {
	lines := strings.Split(w.log.String(), "\n")
	return strings.Join(lines[max(len(lines)-60, 0):], "\n")
}
