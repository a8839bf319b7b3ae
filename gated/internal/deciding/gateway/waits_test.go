package gateway

import (
	"slices"
	"testing"
	"time"

	"arizuko/gated/internal/deciding/decide"
)

// TestWaits_Lists_GiveEachChatOnce: a chat that is on a list already is not put there a second time.
func TestWaits_Lists_GiveEachChatOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fill func(w *waits)
		want []string
	}{
		"none":              {func(*waits) {}, nil},
		"in order, once":    {func(w *waits) { w.add(w.chat("a")); w.add(w.chat("b")); w.add(w.chat("a")) }, []string{"a", "b"}},
		"later ones last":   {func(w *waits) { w.addLater(w.chat("a")); w.add(w.chat("b")); w.addLater(w.chat("b")) }, []string{"b", "a"}},
		"put back is first": {func(w *waits) { w.add(w.chat("a")); w.add(w.chat("b")); w.putBack(w.pop(false)) }, []string{"a", "b"}},
		"due":               {func(w *waits) { w.addAt(w.chat("a"), 5); w.addAt(w.chat("b"), 6); w.addDue(5) }, []string{"a"}},
		"clock was set":     {func(w *waits) { w.addAt(w.chat("a"), 5); w.endDue(); w.addDue(9) }, []string{"a"}},
		"never due":         {func(w *waits) { w.addAt(w.chat("a"), 5); w.addAt(w.chat("a"), 0); w.addDue(9) }, nil},
		"routd answers":     {func(w *waits) { w.routd[w.chat("a")] = true; w.endRoutd(); w.endRoutd() }, []string{"a"}},
		"routes change":     {func(w *waits) { w.routes[w.chat("a")] = true; w.endRoutes(); w.endRoutes() }, []string{"a"}},
		"restarted":         {func(w *waits) { w.addAt(w.chat("a"), 5); w.restart(w.chat("a")); w.addDue(9) }, nil},
		"reset": {func(w *waits) {
			w.add(w.chat("a"))
			w.chat("b").skip(1)
			w.reset()
		}, []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWaits(newMeter(nil, nil, nil))
			tc.fill(w)
			var got []string
			for c := w.pop(false); c != nil; c = w.pop(false) {
				got = append(got, c.jid)
			}
			if !slices.Equal(got, tc.want) || w.listed() {
				t.Errorf("got %q, want %q; still listed: %t", got, tc.want, w.listed())
			}
		})
	}
}

// TestWaits_Keep_ForgetsChatsThatWaitForNothing: memory must not grow with the chats that have ever written.
func TestWaits_Keep_ForgetsChatsThatWaitForNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		next    decide.State
		prepare func(w *waits, c *chat)
		kept    bool
	}{
		"nothing":             {},
		"a time":              {next: decide.State{Due: 7}, kept: true},
		"a route":             {next: decide.State{Awaits: decide.AwaitsRoute}, kept: true},
		"routd":               {prepare: func(w *waits, c *chat) { w.routd[c] = true }, kept: true},
		"a service":           {prepare: func(_ *waits, c *chat) { c.skip(1) }, kept: true},
		"another look":        {next: decide.State{Again: true}, kept: true},
		"an answer under way": {prepare: func(_ *waits, c *chat) { c.asked = &batch{} }, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWaits(newMeter(nil, nil, nil))
			c := w.chat("a")
			if tc.prepare != nil {
				tc.prepare(w, c)
			}
			w.keep(&batch{chat: c}, tc.next, time.UnixMilli(5))
			if kept := w.chats["a"] != nil; kept != tc.kept {
				t.Errorf("kept: %t, want %t", kept, tc.kept)
			}
		})
	}
}
