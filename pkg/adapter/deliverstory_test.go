package adapter

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"arizuko/pkg/msg"
)

// deliverStory is the delivery of one row, by several shells one after another.
type deliverStory struct {
	content string
	as      func(*fixture) Platform // nil: it can neither look for a part nor mark one
	script  func(*fixture)
	ends    []func(*fixture, func()) // of the shells before the last one, each after a second
	set     []func(*Options)

	left string // the row's states after each of these shells
	want string // and after the last one
	sent []string
	part int    // whose record is compared
	why  string // the record
}

func marks(r *fixture) Platform { return markingPlatform{r.platform} }

func TestDeliver_Stories(t *testing.T) {
	crash, stop := (*fixture).crash, func(_ *fixture, stop func()) { stop() }
	again, asMarker := marked("b"), []func(*Options){marking, redacting}
	for name, tt := range map[string]deliverStory{
		"a remark is recorded": {content: "a|b", set: asMarker, script: func(r *fixture) {
			r.platform.script("a", fails(fmt.Errorf("sending: %w", &Remark{"without its colours, near " + secret})))
		}, want: "sent: sent sent", sent: []string{"a", "b"}, why: "without its colours, near [redacted]"},

		"the same other form again and again": {content: "a|b", script: func(r *fixture) {
			r.platform.script("a", slices.Repeat([]outcome{refusedAs("a", "again")}, 2*maxForms)...)
		}, want: "failed: failed cancelled", sent: slices.Repeat([]string{"a"}, maxForms), why: "permanent: no " + secret},
		// The part is in doubt, and its marked copy takes the same way.
		"killed while the other form is on its way": {content: "a|b", as: marks, set: asMarker, script: func(r *fixture) {
			r.platform.script("a", refusedAs("A", "louder"))
			r.platform.script("A", r.crashing(nil))
			r.platform.script(marked("a"), refusedAs(marked("A"), "louder"))
		}, ends: []func(*fixture, func()){crash}, left: "sending: sending queued", want: "sent: sent sent",
			sent: []string{"a", "A", marked("a"), marked("A"), "b"}, why: remark + "; louder"},
		// Nothing was sent: the next shell starts over.
		"stopped between two forms": {content: "a|b", as: marks, set: asMarker, script: func(r *fixture) {
			r.platform.script("a", func(ctx context.Context) error {
				Pause(ctx, time.Minute)
				return refusedAs("A", "louder")(ctx)
			})
		}, ends: []func(*fixture, func()){stop}, left: "sending: queued queued", want: "sent: sent sent", sent: []string{"a", "a", "b"}},

		"killed again and again: each copy but the first is marked": {content: "a|b|c", as: marks, set: asMarker, script: func(r *fixture) {
			r.platform.script("b", r.crashing(nil))
			r.platform.script(again, r.crashing(errCause), r.crashing(nil))
		}, ends: []func(*fixture, func()){crash, crash, crash}, left: "sending: sent sending queued", want: "sent: sent sent sent",
			sent: []string{"a", "b", again, again, again, "c"}, part: 1, why: remark},
		"killed, with marks switched off": {content: "a|b|c|d", as: marks, script: func(r *fixture) {
			r.platform.script("b", fails(errCause))
			r.platform.script("c", r.crashing(nil))
		}, ends: []func(*fixture, func()){crash}, left: "sending: sent ambiguous sending queued", want: "ambiguous: sent ambiguous ambiguous sent",
			sent: []string{"a", "b", "c", "d"}, part: 2, why: "the daemon ended while this was being sent"},
		"marking panics": {content: "a|b", as: func(r *fixture) Platform { return panickingMarker{r.platform} }, set: asMarker, script: func(r *fixture) {
			r.platform.script("a", fails(errCause))
		}, want: "ambiguous: ambiguous sent", sent: []string{"a", "b"}, why: "panic while marking: no mark near [redacted]"},
	} {
		runInBubble(t, name, func(t *testing.T, r *fixture) {
			if tt.as != nil {
				r.as = tt.as(r)
			}
			tt.script(r)
			id, next := r.out("", tt.content), r.out("", "next")
			for _, end := range tt.ends {
				running := r.start(tt.set...)
				pass(time.Second)
				end(r, running)
				r.expect(id, tt.left)
				r.expect(next, "queued:")
			}
			r.start(tt.set...)
			pass(time.Hour)
			r.expect(id, tt.want)
			r.expect(next, "sent: sent")
			r.expectSent(append(tt.sent, "next")...)
			if got := r.deliveries(id)[tt.part]; got.Error != tt.why || tt.why != "" && got.State == msg.OutSent && got.ErrorClass != "" {
				t.Errorf("part %+v, want %q", got, tt.why)
			}
		})
	}
}

// The shell is killed before a part has arrived, after it, and during the search: the part arrives once.
func TestFind_AfterCrashes(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		crash := r.crashing(nil)
		e := &scriptedFinder{fake: r.platform, answers: map[string][]func() (string, error){"b": {
			finds("", nil), // it had not arrived
			func() (string, error) { return "7", crash(context.Background()) }, // and has now, while the shell dies
			finds("7", nil),
		}}}
		r.as = e
		r.platform.script("b", r.crashing(errCause), crash)
		id, next := r.out("", "a|b|c"), r.out("", "next")
		for range 3 {
			stop := r.start()
			pass(time.Second)
			r.crash(stop)
			r.expect(id, "sending: sent sending queued")
		}
		r.start()
		pass(time.Second)
		r.expectSent("a", "b", "b", "c", "next")
		r.expect(id, "sent: sent sent sent")
		r.expect(next, "sent: sent")
		if got := r.deliveries(id)[1].PlatformID; got != "7" || len(e.asked) != 3 {
			t.Errorf("id %q, asked for %q", got, e.asked)
		}
	})
}
