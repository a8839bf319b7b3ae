package main

import (
	"io"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/invariants"
)

// counts is what a result counted.
type counts = map[invariants.Harm]int

func empty() *result { return &result{count: counts{}, out: io.Discard} }

// expect compares the counts of a result.
func expect(t *testing.T, r *result, want counts) {
	t.Helper()
	if !maps.Equal(r.count, want) {
		t.Errorf("counted %v, want %v", r.count, want)
	}
}

const chat = "telegram:101"

// oneTurn is a history of one message, row 1, and its turn 1, which ended with a reason.
func oneTurn(content, reason string, change func(*history)) *history {
	h := &history{
		stored:  map[key][]row{{chat, content}: {{id: 1, turn: 1, chat: chat, content: content, disposition: "routed", platformID: "p1"}}},
		derived: map[int64]row{}, answers: map[key]map[int64]bool{}, replies: map[key]int{},
		turns: map[int64]turn{1: {reason: reason, last: content}},
	}
	if change != nil {
		change(h)
	}
	return h
}

// foldedInto makes the turn one that another turn answered too.
func foldedInto(other int64) func(*history) {
	return func(h *history) { h.turns[1] = turn{reason: "folded", with: other, last: h.turns[1].last} }
}

// answered makes the answers of turns repeat a prompt.
func answered(text string, turns ...int64) func(*history) {
	return func(h *history) {
		ids := map[int64]bool{}
		for _, id := range turns {
			ids[id] = true
		}
		h.answers[key{chat, text}] = ids
	}
}

// with combines changes.
func with(changes ...func(*history)) func(*history) {
	return func(h *history) {
		for _, change := range changes {
			change(h)
		}
	}
}

// frames sets the number of frames of turn 1.
func frames(n int) func(*history) {
	return func(h *history) {
		t := h.turns[1]
		t.frames = n
		h.turns[1] = t
	}
}

// unrouted leaves row 1 without a turn.
func unrouted(h *history) {
	for k := range h.stored {
		h.stored[k][0].turn, h.stored[k][0].disposition = 0, "observed"
	}
}

// storedTimes makes n rows with a text.
func storedTimes(text string, n int) func(*history) {
	return func(h *history) { h.stored[key{chat, text}] = make([]row, n) }
}

// derivedTo derives a row of turn 2 from row 1. Turn 2 answers it.
func derivedTo(text string) func(*history) {
	return func(h *history) {
		unrouted(h)
		h.derived[1] = row{id: 2, turn: 2, derivedFrom: 1, content: text, disposition: "routed"}
		h.turns[2] = turn{reason: "answered", frames: 1, last: text}
		answered(text, 2)(h)
	}
}

func TestResult_CheckAnswers(t *testing.T) {
	lost, doubled := counts{invariants.Lost: 1}, counts{invariants.Doubled: 1}
	for name, tc := range map[string]struct {
		sent    sentMessage
		history *history
		hostile bool
		want    counts
	}{
		"answered": {
			sent: sentMessage{chat, "m1", "m1", true, ""}, history: oneTurn("m1", "answered", answered("m1", 1))},
		"observed, allowed": {
			sent: sentMessage{chat, "m1", "m1", false, ""}, history: oneTurn("m1", "", unrouted)},
		"observed, must be answered": {
			sent: sentMessage{chat, "m1", "m1", true, ""}, history: oneTurn("m1", "", unrouted), want: lost},
		"observed and answered": {
			sent: sentMessage{chat, "m1", "m1", false, ""}, history: oneTurn("m1", "answered", with(unrouted, answered("m1", 2))), want: doubled},
		"not stored": {
			sent: sentMessage{chat, "m1", "m1", false, ""}, history: oneTurn("m1", "answered", storedTimes("m1", 0)), want: lost},
		"stored in another chat": {
			sent: sentMessage{"telegram:102", "m1", "m1", true, ""}, history: oneTurn("m1", "answered", answered("m1", 1)), want: lost},
		"stored three times": {
			sent: sentMessage{chat, "m1", "m1", true, ""}, history: oneTurn("m1", "answered", storedTimes("m1", 3)), want: doubled},
		"no answer": {
			sent: sentMessage{chat, "m1", "m1", true, ""}, history: oneTurn("m1", "answered", nil), want: lost},
		"routed, allowed to be observed, no answer": {
			sent: sentMessage{chat, "m1", "m1", false, ""}, history: oneTurn("m1", "answered", nil), want: lost},
		"answered in another chat": {
			sent: sentMessage{chat, "m1", "m1", true, ""}, history: oneTurn("m1", "answered", func(h *history) {
				h.answers[key{"telegram:102", "m1"}] = map[int64]bool{1: true}
			}), want: lost},
		"answered twice": {
			sent: sentMessage{chat, "m1", "m1", true, ""}, history: oneTurn("m1", "answered", answered("m1", 1, 2)), want: doubled},
		"answered three times": {
			sent: sentMessage{chat, "m1", "m1", true, ""}, history: oneTurn("m1", "answered", answered("m1", 1, 2, 3)),
			want: counts{invariants.Doubled: 2}},
		"answered by another turn": {
			sent: sentMessage{chat, "m1", "m1", true, ""}, history: oneTurn("m1", "answered", answered("m1", 2)),
			want: counts{invariants.Doubled: 1, invariants.Lost: 1}},
		"answered with another turn": {
			sent: sentMessage{chat, "m1", "m1", true, ""}, history: oneTurn("m1", "folded", with(foldedInto(2), answered("m1", 2)))},
		"taken in, and not in the answer": {
			sent: sentMessage{chat, "m1", "m1", true, ""}, history: oneTurn("m1", "folded", foldedInto(2)), want: lost},
		"taken in, and answered by its own turn as well": {
			sent: sentMessage{chat, "m1", "m1", true, ""}, history: oneTurn("m1", "folded", with(foldedInto(2), answered("m1", 1, 2))), want: doubled},
		"silent on request": {
			sent: sentMessage{chat, "silent m1", "silent m1", true, ""}, history: oneTurn("silent m1", "silent", nil)},
		"silent on request of the turn's last message": {
			sent: sentMessage{chat, "m1", "m1", true, ""}, history: oneTurn("m1", "silent", func(h *history) {
				h.turns[1] = turn{reason: "silent", last: "silent m2"}
			})},
		"silent without request": {
			sent: sentMessage{chat, "m1", "m1", true, ""}, history: oneTurn("m1", "silent", nil), want: lost},
		"silent, request not at the start of the text": {
			sent: sentMessage{chat, "be silent m1", "be silent m1", true, ""}, history: oneTurn("be silent m1", "silent", nil), want: lost},
		"silent, requested by an earlier message": {
			sent: sentMessage{chat, "silent m1", "silent m1", true, ""}, history: oneTurn("silent m1", "silent", func(h *history) {
				h.turns[1] = turn{reason: "silent", last: "m2"}
			}), want: lost},
		"interrupted after its answer": {
			sent: sentMessage{chat, "m1", "m1", true, ""}, history: oneTurn("m1", "interrupted", with(frames(1), answered("m1", 1)))},
		"interrupted before its answer": {
			sent: sentMessage{chat, "m1", "m1", true, ""}, history: oneTurn("m1", "interrupted", nil), want: lost},
		"interrupted after the answer to another": {
			sent: sentMessage{chat, "m1", "m1", true, ""}, history: oneTurn("m1", "interrupted", frames(1)), want: lost},
		"interrupted, answer without a frame": {
			sent: sentMessage{chat, "m1", "m1", true, ""}, history: oneTurn("m1", "interrupted", answered("m1", 1)), want: lost},
		"failed": {
			sent: sentMessage{chat, "m1", "m1", true, ""}, history: oneTurn("m1", "agent_error", nil), want: lost},
		"failed after part of its answer": {
			sent: sentMessage{chat, "m1", "m1", true, ""}, history: oneTurn("m1", "partial", with(frames(1), answered("m1", 1))), want: lost},
		"failed, hostile": {
			sent: sentMessage{chat, "crash m1", "crash m1", true, ""}, history: oneTurn("crash m1", "agent_error", nil), hostile: true},
		"failed like another, hostile": {
			sent: sentMessage{chat, "crash m1", "crash m1", true, ""}, hostile: true,
			history: oneTurn("crash m1", "already_told", func(h *history) {
				h.stored[key{chat, "crash m0"}] = []row{{id: 2, turn: 2, chat: chat}}
				h.turns[2] = turn{reason: "agent_error"}
			})},
		"failed like none": {
			sent: sentMessage{chat, "crash m1", "crash m1", true, ""}, history: oneTurn("crash m1", "already_told", nil), hostile: true, want: lost},
		"failed after part of its answer, hostile": {
			sent: sentMessage{chat, "m1", "m1", true, ""}, history: oneTurn("m1", "partial", with(frames(1), answered("m1", 1))), hostile: true},
		"silent without request, hostile": {
			sent: sentMessage{chat, "m1", "m1", true, ""}, history: oneTurn("m1", "silent", nil), hostile: true, want: lost},
		"cancelled": {
			sent: sentMessage{chat, "m1", "m1", true, ""}, history: oneTurn("m1", "cancelled", nil), hostile: true, want: lost},
		"turn missing": {
			sent: sentMessage{chat, "m1", "m1", true, ""}, history: oneTurn("m1", "answered", func(h *history) { delete(h.turns, 1) }), want: lost},
		"derived and answered": {
			sent: sentMessage{chat, "@eng m1", "m1", true, ""}, history: oneTurn("@eng m1", "", derivedTo("m1"))},
		"derived and not answered": {
			sent: sentMessage{chat, "@eng m1", "m1", true, ""}, history: oneTurn("@eng m1", "", with(derivedTo("m1"), answered("m1"))), want: lost},
		"derived, answered with its prefix": {
			sent: sentMessage{chat, "@eng m1", "m1", true, ""}, history: oneTurn("@eng m1", "answered", answered("@eng m1", 1)), want: lost},
		"command with a reply": {
			sent: sentMessage{chat, "/ping m1", "", true, ""}, history: oneTurn("/ping m1", "", func(h *history) { h.replies[key{chat, "p1"}] = 1 })},
		"command with a reply in another chat": {
			sent: sentMessage{chat, "/ping m1", "", true, ""}, history: oneTurn("/ping m1", "", func(h *history) { h.replies[key{"web:main", "p1"}] = 1 }), want: lost},
		"command with a reply to another message": {
			sent: sentMessage{chat, "/ping m1", "", true, ""}, history: oneTurn("/ping m1", "", func(h *history) { h.replies[key{chat, "p2"}] = 1 }), want: lost},
		"command with three replies": {
			sent: sentMessage{chat, "/ping m1", "", true, ""}, history: oneTurn("/ping m1", "", func(h *history) { h.replies[key{chat, "p1"}] = 3 }),
			want: counts{invariants.Doubled: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			r := empty()
			r.checkAnswers(tc.history, []sentMessage{tc.sent}, tc.hostile)
			expect(t, r, tc.want)
		})
	}
}

// delivered is a history of the outbound rows 5 and 6 with one part and 7 with two parts, all with
// recorded ids.
func delivered(change func(h *history)) *history {
	at := lane{chat: chat}
	h := &history{
		content: map[int64]string{5: "five", 6: "six", 7: "seven|eight"},
		deliveries: []delivery{
			{part: part{5, 0}, lane: at, id: "i5", state: "sent"},
			{part: part{6, 0}, lane: at, id: "i6", state: "sent"},
			{part: part{7, 0}, lane: at, id: "i7", state: "sent"},
			{part: part{7, 1}, lane: at, id: "i8", state: "sent"},
		},
	}
	if change != nil {
		change(h)
	}
	return h
}

// unrecorded removes the id of a part.
func unrecorded(index int) func(*history) {
	return func(h *history) { h.deliveries[index].id = "" }
}

// state sets the state of a part.
func state(index int, state string) func(*history) {
	return func(h *history) { h.deliveries[index].state = state }
}

// receivedPlatform is a platform with given arrivals. It splits rows at "|".
type receivedPlatform struct {
	chatsim.Platform
	all, left []chatsim.Arrival
}

func (p *receivedPlatform) Arrivals() []chatsim.Arrival { return p.all }

func (p *receivedPlatform) LeftPreviews() []chatsim.Arrival { return p.left }

func (p *receivedPlatform) Info() chatsim.Info {
	return chatsim.Info{
		Platform: "telegram",
		Split:    func(content string) []string { return strings.Split(content, "|") },
	}
}

// The arrivals of the parts of delivered.
var (
	five  = chatsim.Arrival{ID: "i5", Chat: chat, Text: "five"}
	six   = chatsim.Arrival{ID: "i6", Chat: chat, Text: "six"}
	seven = chatsim.Arrival{ID: "i7", Chat: chat, Text: "seven"}
	eight = chatsim.Arrival{ID: "i8", Chat: chat, Text: "eight"}
)

// marked is a marked copy of an arrival.
func marked(a chatsim.Arrival) chatsim.Arrival { return withText(chatsim.MarkedCopy(a.Text), a) }

// otherID replaces the id of an arrival by one that is not recorded.
func otherID(a chatsim.Arrival) chatsim.Arrival {
	a.ID = "other"
	return a
}

func in(chat, thread string, a chatsim.Arrival) chatsim.Arrival {
	a.Chat, a.Thread = chat, thread
	return a
}

func withText(text string, a chatsim.Arrival) chatsim.Arrival {
	a.Text = text
	return a
}

// inLane moves a part to a lane.
func inLane(index int, to lane) func(*history) {
	return func(h *history) { h.deliveries[index].lane = to }
}

func TestResult_CheckSends(t *testing.T) {
	lost, doubled, reordered := counts{invariants.Lost: 1}, counts{invariants.Doubled: 1}, counts{invariants.Reordered: 1}
	for name, tc := range map[string]struct {
		history *history
		arrived []chatsim.Arrival
		want    counts
	}{
		"all parts": {
			history: delivered(nil), arrived: []chatsim.Arrival{five, six, seven, eight}},
		"marked copy": {
			history: delivered(nil), arrived: []chatsim.Arrival{five, otherID(six), marked(six), seven, eight}},
		"marked copies, id not recorded": {
			history: delivered(unrecorded(1)), arrived: []chatsim.Arrival{five, otherID(six), marked(otherID(six)), marked(otherID(six)), seven, eight}},
		"marked copy alone": {
			history: delivered(nil), arrived: []chatsim.Arrival{five, marked(six), seven, eight}},
		"unmarked copy": {
			history: delivered(nil), arrived: []chatsim.Arrival{five, six, otherID(six), seven, eight}, want: doubled},
		"unmarked copy, id not recorded": {
			history: delivered(unrecorded(1)), arrived: []chatsim.Arrival{five, otherID(six), otherID(six), seven, eight}, want: doubled},
		"one marked copy, two unmarked": {
			history: delivered(nil), arrived: []chatsim.Arrival{five, otherID(six), marked(six), otherID(six), otherID(six), seven, eight},
			want: counts{invariants.Doubled: 2}},
		"two rows with the same text": {
			history: delivered(func(h *history) { h.content[6] = "five" }), arrived: []chatsim.Arrival{five, withText("five", six), seven, eight}},
		"two rows with the same text, one id not recorded": {
			history: delivered(with(unrecorded(0), func(h *history) { h.content[6] = "five" })),
			arrived: []chatsim.Arrival{otherID(five), withText("five", six), seven, eight}},
		"two rows with the same text, one arrived": {
			history: delivered(with(unrecorded(0), func(h *history) { h.content[6] = "five" })),
			arrived: []chatsim.Arrival{withText("five", six), seven, eight}, want: lost},
		"marked copy alone, and another row with the same text": {
			history: delivered(with(unrecorded(2), func(h *history) { h.content[5], h.content[7] = "pong", "pong|eight" })),
			arrived: []chatsim.Arrival{withText(chatsim.MarkedCopy("pong"), five), six, withText("pong", otherID(seven)), eight}},
		"never arrived": {
			history: delivered(nil), arrived: []chatsim.Arrival{five, seven, eight}, want: lost},
		"ambiguous, arrived": {
			history: delivered(with(unrecorded(1), state(1, "ambiguous"))), arrived: []chatsim.Arrival{five, otherID(six), seven, eight}},
		"ambiguous, never arrived": {
			history: delivered(with(unrecorded(1), state(1, "ambiguous"))), arrived: []chatsim.Arrival{five, seven, eight}, want: lost},
		"cancelled": {
			history: delivered(with(unrecorded(1), state(1, "cancelled"))), arrived: []chatsim.Arrival{five, seven, eight}},
		"cancelled, arrived": {
			history: delivered(with(unrecorded(1), state(1, "cancelled"))), arrived: []chatsim.Arrival{five, otherID(six), seven, eight}},
		"failed, arrived": {
			history: delivered(state(1, "failed")), arrived: []chatsim.Arrival{five, six, seven, eight}, want: lost},
		"failed": {
			history: delivered(with(unrecorded(1), state(1, "failed"))), arrived: []chatsim.Arrival{five, seven, eight}, want: lost},
		"queued, arrived": {
			history: delivered(state(1, "queued")), arrived: []chatsim.Arrival{five, six, seven, eight}, want: lost},
		"sending, arrived": {
			history: delivered(with(unrecorded(1), state(1, "sending"))), arrived: []chatsim.Arrival{five, otherID(six), seven, eight}, want: lost},
		"truncated text": {
			history: delivered(nil), arrived: []chatsim.Arrival{five, withText("si", six), seven, eight}, want: lost},
		"text of another part": {
			history: delivered(nil), arrived: []chatsim.Arrival{five, six, seven, withText("seven", eight)}, want: lost},
		"older row after younger": {
			history: delivered(nil), arrived: []chatsim.Arrival{six, five, seven, eight}, want: reordered},
		"older row after younger, ids not recorded": {
			history: delivered(with(unrecorded(0), unrecorded(1))), arrived: []chatsim.Arrival{otherID(six), otherID(five), seven, eight}, want: reordered},
		"part after the next part": {
			history: delivered(nil), arrived: []chatsim.Arrival{five, six, eight, seven}, want: reordered},
		"older row after younger, in another thread": {
			history: delivered(inLane(0, lane{chat, "7"})), arrived: []chatsim.Arrival{six, in(chat, "7", five), seven, eight}},
		"older row after younger, in another chat": {
			history: delivered(inLane(0, lane{"telegram:102", ""})), arrived: []chatsim.Arrival{six, in("telegram:102", "", five), seven, eight}},
		"wrong thread": {
			history: delivered(nil), arrived: []chatsim.Arrival{five, in(chat, "7", six), seven, eight}, want: lost},
		"wrong chat": {
			history: delivered(nil), arrived: []chatsim.Arrival{five, in("telegram:102", "", six), seven, eight},
			want: counts{invariants.Lost: 1, invariants.Doubled: 1}},
		"arrival without row": {
			history: delivered(nil), arrived: []chatsim.Arrival{five, six, seven, eight, withText("nine", otherID(five))}, want: doubled},
		"part beyond the end of the row": {
			history: delivered(func(h *history) { h.content[7] = "seven" }), arrived: []chatsim.Arrival{five, six, seven, eight}, want: lost},
		"row of another platform, never arrives": {
			history: delivered(inLane(1, lane{foreignChannel, ""})), arrived: []chatsim.Arrival{five, seven, eight}},
		"row of another platform, arrives": {
			history: delivered(inLane(1, lane{foreignChannel, ""})), arrived: []chatsim.Arrival{five, six, seven, eight}, want: doubled},
		"empty": {history: &history{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := empty()
			r.checkSends(tc.history, &receivedPlatform{all: tc.arrived})
			expect(t, r, tc.want)
		})
	}
}

// until is the end of a window opened by an answer at 1000.
const until = 1000 + int64(engagement/time.Millisecond)

// engaging is a history in which turns of second and then of main were called in a place, and an
// answer of main arrived at 1000.
func engaging(change func(*history)) *history {
	at := [2]string{chat, "p"}
	h := &history{
		deliveries: []delivery{
			{part: part{5, 0}, lane: lane{chat: chat}, state: "sent", at: 900, claims: true, calledAt: 400, folder: "second", place: "p"},
			{part: part{6, 0}, lane: lane{chat: chat}, state: "sent", at: 1000, claims: true, calledAt: 500, folder: "main", place: "p"},
		},
		windows:  map[[2]string]window{at: {folder: "main", until: until}},
		lastCall: map[[2]string]call{at: {"main", 500}},
		pinned:   map[string]bool{},
	}
	if change != nil {
		change(h)
	}
	return h
}

// windowIs sets the window of the place.
func windowIs(w window) func(*history) {
	return func(h *history) { h.windows[[2]string{chat, "p"}] = w }
}

func noWindow(h *history) { clear(h.windows) }

func TestResult_CheckEngagement(t *testing.T) {
	lost := counts{invariants.Lost: 1}
	last := func(change func(d *delivery)) func(*history) {
		return with(noWindow, func(h *history) { change(&h.deliveries[1]) })
	}
	for name, tc := range map[string]struct {
		change func(*history)
		want   counts
	}{
		"engaged":                          {change: nil},
		"engaged for longer":               {change: windowIs(window{folder: "main", until: until + 1})},
		"another engaged since":            {change: windowIs(window{folder: "second", until: 1})},
		"ended since":                      {change: windowIs(window{ended: 1})},
		"engaged too short":                {change: windowIs(window{folder: "main", until: until - 1}), want: lost},
		"neither engaged nor ended":        {change: windowIs(window{}), want: lost},
		"no window":                        {change: noWindow, want: lost},
		"window of another place only":     {change: with(noWindow, func(h *history) { h.windows[[2]string{chat, ""}] = window{folder: "main", until: until} }), want: lost},
		"ambiguous":                        {change: last(func(d *delivery) { d.state = "ambiguous" }), want: lost},
		"failed":                           {change: last(func(d *delivery) { d.state = "failed" })},
		"cancelled":                        {change: last(func(d *delivery) { d.state = "cancelled" })},
		"claims nothing":                   {change: last(func(d *delivery) { d.claims = false })},
		"another was called since":         {change: with(noWindow, func(h *history) { h.lastCall[[2]string{chat, "p"}] = call{"third", 600} })},
		"the same was called since":        {change: with(noWindow, func(h *history) { h.lastCall[[2]string{chat, "p"}] = call{"main", 600} })},
		"same message called another":      {change: with(noWindow, func(h *history) { h.lastCall[[2]string{chat, "p"}] = call{"third", 500} })},
		"called in another place since":    {change: with(noWindow, func(h *history) { h.lastCall[[2]string{chat, "q"}] = call{"third", 600} }), want: lost},
		"pinned":                           {change: with(noWindow, func(h *history) { h.pinned[chat] = true })},
		"another chat pinned":              {change: with(noWindow, func(h *history) { h.pinned["telegram:102"] = true }), want: lost},
		"two answers, window of the first": {change: func(h *history) { h.deliveries = append(h.deliveries, h.deliveries[1]); h.deliveries[2].at++ }, want: lost},
		"two answers, no window":           {change: with(noWindow, func(h *history) { h.deliveries = append(h.deliveries, h.deliveries[1]) }), want: lost},
		"two places, no window": {change: with(noWindow, func(h *history) {
			h.deliveries = append(h.deliveries, h.deliveries[1])
			h.deliveries[2].place = "q"
			h.lastCall[[2]string{chat, "q"}] = call{"main", 500}
		}), want: counts{invariants.Lost: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			r := empty()
			r.checkEngagement(engaging(tc.change))
			expect(t, r, tc.want)
		})
	}
}

// An edit or a reaction is tried for seconds, so one that failed in an outage is not lost; an answer is.
func TestResult_CheckPart_FailedChange_IsNotLost(t *testing.T) {
	for changes, want := range map[bool]counts{true: nil, false: {invariants.Lost: 1}} {
		r := empty()
		r.checkPart(&expectedPart{delivery: delivery{state: "failed"}, changes: changes, plain: 1})
		expect(t, r, want)
	}
}

func TestResult_PrintsAndCountsEachCase(t *testing.T) {
	var out strings.Builder
	r := &result{count: counts{}, out: &out}
	if !r.ok() || r.String() != "lost 0, doubled 0, reordered 0, stuck 0" {
		t.Errorf("empty result: %q, ok %t", r, r.ok())
	}
	r.add(invariants.Lost, 1, "row %d", 1)
	r.add(invariants.Lost, 2, "row %d", 2)
	r.add(invariants.Doubled, 1, "row %d", 3)
	r.add(invariants.Reordered, 4, "row %d", 4)
	r.add(invariants.Stuck, 5, "row %d", 5)
	if r.ok() || r.String() != "lost 3, doubled 1, reordered 4, stuck 5" {
		t.Errorf("got %q, ok %t", r, r.ok())
	}
	want := "lost: row 1\nlost: row 2\ndoubled: row 3\nreordered: row 4\nstuck: row 5\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestResult_CheckFile(t *testing.T) {
	lost := counts{invariants.Lost: 1}
	sent := sentMessage{chat, "m1", "m1", true, "file of m1"}
	for name, tc := range map[string]struct {
		files []file
		turn  int64
		want  counts
	}{
		"stored":           {[]file{{Path: "media/1.txt", content: "file of m1"}}, 1, counts{}},
		"given up":         {[]file{{Error: "503"}}, 1, counts{}},
		"never fetched":    {[]file{{}}, 1, lost},
		"another content":  {[]file{{Path: "media/1.txt", content: "file of m2"}}, 1, lost},
		"no entry":         {nil, 1, lost},
		"twice":            {[]file{{Error: "503"}, {Error: "503"}}, 1, lost},
		"observed, no use": {[]file{{}}, 0, counts{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := empty()
			h := oneTurn("m1", "answered", with(answered("m1", 1), func(h *history) {
				rows := h.stored[key{chat, "m1"}]
				rows[0].files, rows[0].turn = tc.files, tc.turn
			}))
			sent := sent
			if sent.mustAnswer = tc.turn != 0; !sent.mustAnswer {
				delete(h.answers, key{chat, "m1"})
			}
			r.checkAnswers(h, []sentMessage{sent}, false)
			expect(t, r, tc.want)
		})
	}
}
