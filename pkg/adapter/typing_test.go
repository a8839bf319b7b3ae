package adapter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"arizuko/gated/gatedtest"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// refresh is how often the typist shows the indicator again.
const refresh = 4 * time.Second

// typist is a platform that notes what it shows, among what it sends.
type typist struct {
	*fake
	how    outcome // of each indicator that is shown; nil succeeds
	stays  bool    // the indicator does not expire
	ending outcome // of each that is removed; nil succeeds
	began  time.Time
}

func (p *typist) TypingFor() time.Duration { return refresh }

func (p *typist) Type(ctx context.Context, in store.Lane, works bool) error {
	verb, how := "type ", p.how
	if !works {
		verb, how = "end ", p.ending
	}
	if works || p.stays {
		p.note(verb + strings.TrimSuffix(in.ChatJID+" "+in.ThreadID, " "))
	}
	if how == nil {
		return nil
	}
	if works {
		defer p.note("typed")
	}
	return how(ctx)
}

func (p *typist) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, call{Text: text, At: time.Now()})
}

// shown lists what was shown or sent, each with the seconds that had passed.
func (p *typist) shown() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		all = append(all, c.Text+" "+c.At.Sub(p.began).String())
	}
	return all
}

func (r *fixture) typist(how outcome) *typist {
	p := &typist{fake: r.platform, how: how, began: time.Now()}
	r.as = p
	return p
}

// endTypist is a typist whose indicator stays until it is removed.
func (r *fixture) endTypist(ending outcome) *typist {
	p := r.typist(nil)
	p.stays, p.ending = true, ending
	return p
}

func expectShown(t *testing.T, p *typist, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, p.shown()); diff != "" {
		t.Errorf("shown and sent (-want +got):\n%s", diff)
	}
}

// typingStory is what users see while agents work.
type typingStory struct {
	stays  bool // the indicator stays until it is removed
	script map[string]outcome
	act    func(*fixture)
	want   []string // in any order, by their text
}

func TestTyping_Stories(t *testing.T) {
	tick := func(r *fixture, d time.Duration) { r.look(); pass(d) }
	for name, tt := range map[string]typingStory{
		"shown while an agent works": {act: func(r *fixture) {
			r.start()
			pass(time.Second)
			end := r.works(room, "")
			for range 9 { // pokes don't put it off
				tick(r, 900*time.Millisecond)
			}
			r.look()
			end("done")
			r.look()
		}, want: []string{"done 9.1s", "type irc:room 1s", "type irc:room 5s", "type irc:room 9s"}},
		"in threads, until the last agent is done": {act: func(r *fixture) {
			ends := []func(string){r.works(room, ""), r.works(room, "t"), r.works(room, "t"), r.works("irc:other", "")}
			r.works("ircs:room", "")
			r.works("web:acme", "")
			r.start()
			pass(time.Second)
			ends[1]("") // one of two agents that work for the thread
			ends[3]("")
			pass(refresh)
			ends[0]("")
			ends[2]("")
		}, want: []string{"type irc:other 0s", "type irc:room 0s", "type irc:room 4s", "type irc:room t 0s", "type irc:room t 4s"}},
		"not for turns that wait or have ended": {act: func(r *fixture) {
			r.works(room, "ended")("")
			seen := &msg.Message{ChatJID: room, Direction: msg.In, Content: "observed"}
			r.write(func(tx *store.Tx) error {
				if _, _, err := tx.PutMessage(seen); err != nil {
					return err
				}
				_, err := gatedtest.PutTurn(tx, &msg.Turn{Kind: msg.Conversation, Folder: "acme", ChatJID: room, ThreadID: "waits", TriggerMessageID: seen.ID, CreatedAt: 1}, 0)
				return err
			})
			r.start()
		}},
		"not while a part is sent": {script: map[string]outcome{"slow": takes(30*time.Second + time.Second)}, act: func(r *fixture) {
			r.start()
			r.out("", "slow")
			r.look()
			pass(time.Second)
			end := r.works(room, "")
			tick(r, 29*time.Second+2*refresh)
			end("")
		}, want: []string{"slow 0s", "type irc:room 33s", "type irc:room 37s"}},
		"not if the turn ends before the call": {act: func(r *fixture) {
			end := r.works(room, "")
			shown := r.shell().typing()
			shown.update(r.t.Context(), store.Lane{ChatJID: room}, false)
			end("")
			shown.update(r.t.Context(), store.Lane{ChatJID: room}, false)
		}, want: []string{"type irc:room 0s"}},

		"removed after the turn": {stays: true, act: func(r *fixture) {
			end, other := r.works(room, ""), r.works(room, "t")
			r.start()
			pass(time.Second)
			end("")
			tick(r, refresh)
			other("")
		}, want: []string{"end irc:room 1s", "end irc:room t 8s", "type irc:room 0s", "type irc:room t 0s", "type irc:room t 4s"}},
		// It begins before the shell looks, and then after it has looked.
		"kept for the next turn": {stays: true, act: func(r *fixture) {
			end := r.works(room, "")
			stop := r.start()
			pass(time.Second)
			end("")
			r.works(room, "")
			tick(r, refresh)
			stop()
			r.running.typing().end(r.t.Context(), store.Lane{ChatJID: room})
		}, want: []string{"type irc:room 0s", "type irc:room 4s"}},
		// No indicator can appear in between.
		"removed after a part is sent": {stays: true, script: map[string]outcome{"slow": takes(10 * time.Second)}, act: func(r *fixture) {
			end := r.works(room, "")
			r.start()
			pass(time.Second)
			r.out("", "slow")
			r.look()
			end("")
			r.look()
		}, want: []string{"end irc:room 11s", "slow 1s", "type irc:room 0s"}},
		// The next turn ends before it could show its own.
		"removed after the next turn": {stays: true, script: map[string]outcome{"slow": takes(10 * time.Second)}, act: func(r *fixture) {
			end := r.works(room, "")
			r.start()
			pass(time.Second)
			r.out("", "slow")
			r.look()
			end("")
			r.look()
			end = r.works(room, "")
			r.look()
			pass(11 * time.Second)
			end("")
			r.look()
		}, want: []string{"end irc:room 12s", "slow 1s", "type irc:room 0s"}},
	} {
		runInBubble(t, name, func(t *testing.T, r *fixture) {
			p := r.typist(nil)
			p.stays = tt.stays
			for text, how := range tt.script {
				r.platform.script(text, how)
			}
			tt.act(r)
			pass(time.Hour)
			got := p.shown()
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("shown and sent (-want +got):\n%s", diff)
			}
		})
	}
}

// A call that fails is logged, without secrets, and delays no row for longer than its timeout.
func TestTyping_CallFails(t *testing.T) {
	for name, how := range map[string]outcome{
		"error":      fails(errors.New("no " + secret)),
		"panic":      func(context.Context) error { panic("no fingers") },
		"never ends": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		late := map[bool]time.Duration{true: typingTimeout}[name == "never ends"]
		for _, removes := range []bool{false, true} {
			runInBubble(t, fmt.Sprint(name, ", removes ", removes), func(t *testing.T, r *fixture) {
				var log strings.Builder
				p, began, logs := r.typist(nil), time.Duration(0), ""
				if removes {
					p.stays, p.ending, began, logs = true, how, time.Second, "typing indicator not removed"
				} else {
					p.how = how
				}
				end := r.works(room, "")
				r.start(logged(&log), redacting)
				pass(time.Second)
				other := r.outIn("irc:other", "", "other")
				end(map[bool]string{false: "done"}[removes])
				r.look()
				r.expect(other, "sent: sent") // at once
				if removes {
					r.out("", "done")
					r.look()
				}
				pass(time.Hour)
				if want := "done " + max(began+late, time.Second).String(); !slices.Contains(p.shown(), want) {
					t.Errorf("shown and sent: %q, want %q", p.shown(), want)
				}
				if removes && !slices.Contains(p.shown(), "end irc:room 1s") || !strings.Contains(log.String(), logs) || strings.Contains(log.String(), secret) {
					t.Errorf("shown and sent: %q, logged %s", p.shown(), log.String())
				}
			})
		}
	}
}

// Type takes some time, and answers come at every moment of it.
func TestTyping_NeverAfterTheAnswer(t *testing.T) {
	for _, after := range []time.Duration{0, time.Millisecond, time.Second, refresh - time.Millisecond, refresh, refresh + time.Millisecond} {
		runInBubble(t, after.String(), func(t *testing.T, r *fixture) {
			p := r.typist(takes(2 * time.Second))
			r.platform.script("a", takes(2*refresh))
			r.platform.script("b", takes(time.Second))
			end := r.works(room, "")
			r.start()
			pass(after)
			end("a|b")
			r.look()
			pass(time.Hour)
			shown := p.shown()
			if typed := len(shown) - 2; typed < 2 || typed%2 != 0 || !strings.HasPrefix(shown[typed], "a ") ||
				!strings.HasPrefix(shown[typed-1], "typed ") || !strings.HasPrefix(shown[typed+1], "b ") {
				t.Errorf("shown and sent: %q", shown)
			}
		})
	}
}

func TestTyping_Stop_Ends(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		r.typist(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		r.works(room, "")
		stop := r.start()
		pass(time.Second)
		begin := time.Now()
		stop()
		if took := time.Since(begin); took != 0 {
			t.Errorf("the stop took %v", took)
		}
	})
}

func TestTyping_DatabaseFails_DoesNotSpin(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		var log strings.Builder
		p := r.typist(nil)
		r.works(room, "")
		stop := r.start(logged(&log))
		synctest.Wait()
		if err := r.store.Close(); err != nil {
			t.Error(err)
		}
		pass(time.Minute)
		stop()
		expectShown(t, p, "type irc:room 0s")
		if n := strings.Count(log.String(), "reading active lanes failed; retrying"); n == 0 || n > 20 {
			t.Errorf("complained %d times", n)
		}
	})
}

func TestLaneLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLaneLocks()
		a, b := store.Lane{ChatJID: room}, store.Lane{ChatJID: room, ThreadID: "t"}
		unlock := l.lock(a)
		got := make(chan func())
		go func() { got <- l.lock(a) }()
		synctest.Wait()
		if _, free := l.tryLock(a); free || len(l.held) != 1 {
			t.Errorf("free while it is held, and waited for: %v", l.held)
		}
		other, free := l.tryLock(b)
		if !free {
			t.Fatal("another lane is not free")
		}
		other()
		unlock()
		(<-got)()
		if len(l.held) != 0 {
			t.Errorf("kept: %v", l.held)
		}
	})
}

func TestTyping_AccountHasToWait_ShowsAndEndsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p := r.endTypist(nil)
		ends := r.works(room, "")
		r.start()
		pass(time.Second)
		r.platform.script("flood", fails(&Failure{Class: msg.Rate, After: 30 * time.Second, Account: true, Err: errCause}))
		r.outIn("irc:flood", "", "flood")
		r.look()
		r.works("irc:other", "")
		ends("")
		pass(29 * time.Second)
		expectShown(t, p, "type irc:room 0s", "flood 1s")
		pass(refresh)
		r.look()
		got := p.shown()[2:]
		for _, want := range []string{"end irc:room", "type irc:other", "flood"} {
			if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want) }) {
				t.Errorf("no %q after the wait: %q", want, got)
			}
		}
	})
}

// Rows come first: while some wait, an indicator is shown only if the account has a call to spare.
func TestTyping_AccountIsBusy_RowsComeFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p := r.typist(nil)
		const rows = 12
		for i := range rows {
			r.outIn(fmt.Sprintf("irc:%d", i%4), "", fmt.Sprint(i))
		}
		r.start(paced(Pace{Account: Limit{Every: time.Second, Burst: 1}}))
		synctest.Wait()
		for i := range 3 {
			r.works(fmt.Sprintf("irc:typing%d", i), "")
		}
		r.look()
		pass(20 * time.Second)
		shown := p.shown()
		if len(shown) < rows+3 {
			t.Fatalf("rows and indicators %q", shown)
		}
		for i, s := range shown[:rows+3] {
			if isRow := !strings.HasPrefix(s, "type "); isRow != (i < rows) || !strings.HasSuffix(s, fmt.Sprintf(" %ds", i)) {
				t.Fatalf("%d: %q of %q", i, s, shown)
			}
		}
	})
}
