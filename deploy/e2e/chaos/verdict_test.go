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

// counts is what a verdict counted.
type counts = map[invariants.Harm]int

func blank() *verdict { return &verdict{count: counts{}, out: io.Discard} }

// expect holds what was counted against what is wanted.
func expect(t *testing.T, v *verdict, want counts) {
	t.Helper()
	if !maps.Equal(v.count, want) {
		t.Errorf("counted %v, want %v", v.count, want)
	}
}

const chat = "telegram:101"

// asked is a history of one message, row 1, told to turn 1, which ended for a reason.
func asked(content, reason string, change func(*history)) *history {
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

// answered has turns say that they were told a text.
func answered(text string, turns ...int64) func(*history) {
	return func(h *history) {
		saying := map[int64]bool{}
		for _, id := range turns {
			saying[id] = true
		}
		h.answers[key{chat, text}] = saying
	}
}

// with does several changes.
func with(changes ...func(*history)) func(*history) {
	return func(h *history) {
		for _, change := range changes {
			change(h)
		}
	}
}

// frames has turn 1 have answered in so many frames.
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

// storedTimes stores a text so often.
func storedTimes(text string, n int) func(*history) {
	return func(h *history) { h.stored[key{chat, text}] = make([]row, n) }
}

// derivedTo derives a row of turn 2 from row 1, and has that turn have answered.
func derivedTo(text string) func(*history) {
	return func(h *history) {
		unrouted(h)
		h.derived[1] = row{id: 2, turn: 2, derivedFrom: 1, content: text, disposition: "routed"}
		h.turns[2] = turn{reason: "answered", frames: 1, last: text}
		answered(text, 2)(h)
	}
}

func TestJudgeAnswers(t *testing.T) {
	lost, doubled := counts{invariants.Lost: 1}, counts{invariants.Doubled: 1}
	for name, tc := range map[string]struct {
		said    said
		history *history
		hostile bool
		want    counts
	}{
		"answered": {
			said: said{chat, "m1", "m1", true}, history: asked("m1", "answered", answered("m1", 1))},
		"observed, as it may": {
			said: said{chat, "m1", "m1", false}, history: asked("m1", "", unrouted)},
		"observed, and was to be answered": {
			said: said{chat, "m1", "m1", true}, history: asked("m1", "", unrouted), want: lost},
		"observed, and answered": {
			said: said{chat, "m1", "m1", false}, history: asked("m1", "answered", with(unrouted, answered("m1", 2))), want: doubled},
		"not stored": {
			said: said{chat, "m1", "m1", false}, history: asked("m1", "answered", storedTimes("m1", 0)), want: lost},
		"stored elsewhere": {
			said: said{"telegram:102", "m1", "m1", true}, history: asked("m1", "answered", answered("m1", 1)), want: lost},
		"stored three times": {
			said: said{chat, "m1", "m1", true}, history: asked("m1", "answered", storedTimes("m1", 3)), want: doubled},
		"never answered": {
			said: said{chat, "m1", "m1", true}, history: asked("m1", "answered", nil), want: lost},
		"never answered, though nobody was to": {
			said: said{chat, "m1", "m1", false}, history: asked("m1", "answered", nil), want: lost},
		"answered elsewhere": {
			said: said{chat, "m1", "m1", true}, history: asked("m1", "answered", func(h *history) {
				h.answers[key{"telegram:102", "m1"}] = map[int64]bool{1: true}
			}), want: lost},
		"answered twice": {
			said: said{chat, "m1", "m1", true}, history: asked("m1", "answered", answered("m1", 1, 2)), want: doubled},
		"answered thrice": {
			said: said{chat, "m1", "m1", true}, history: asked("m1", "answered", answered("m1", 1, 2, 3)),
			want: counts{invariants.Doubled: 2}},
		"answered by another turn": {
			said: said{chat, "m1", "m1", true}, history: asked("m1", "answered", answered("m1", 2)),
			want: counts{invariants.Doubled: 1, invariants.Lost: 1}},
		"silent, as it was told": {
			said: said{chat, "silent m1", "silent m1", true}, history: asked("silent m1", "silent", nil)},
		"silent, as the last of the turn was told": {
			said: said{chat, "m1", "m1", true}, history: asked("m1", "silent", func(h *history) {
				h.turns[1] = turn{reason: "silent", last: "silent m2"}
			})},
		"silent": {
			said: said{chat, "m1", "m1", true}, history: asked("m1", "silent", nil), want: lost},
		"silent, with the word for it in its text": {
			said: said{chat, "be silent m1", "be silent m1", true}, history: asked("be silent m1", "silent", nil), want: lost},
		"silent, and the last of the turn was not told so": {
			said: said{chat, "silent m1", "silent m1", true}, history: asked("silent m1", "silent", func(h *history) {
				h.turns[1] = turn{reason: "silent", last: "m2"}
			}), want: lost},
		"interrupted behind its answer": {
			said: said{chat, "m1", "m1", true}, history: asked("m1", "interrupted", with(frames(1), answered("m1", 1)))},
		"interrupted before its answer": {
			said: said{chat, "m1", "m1", true}, history: asked("m1", "interrupted", nil), want: lost},
		"interrupted behind another's answer": {
			said: said{chat, "m1", "m1", true}, history: asked("m1", "interrupted", frames(1)), want: lost},
		"interrupted, and the answer is of no frame": {
			said: said{chat, "m1", "m1", true}, history: asked("m1", "interrupted", answered("m1", 1)), want: lost},
		"failed": {
			said: said{chat, "m1", "m1", true}, history: asked("m1", "agent_error", nil), want: lost},
		"failed behind some of its answer": {
			said: said{chat, "m1", "m1", true}, history: asked("m1", "partial", with(frames(1), answered("m1", 1))), want: lost},
		"failed among hostile ones": {
			said: said{chat, "crash m1", "crash m1", true}, history: asked("crash m1", "agent_error", nil), hostile: true},
		"failed behind some of its answer among hostile ones": {
			said: said{chat, "m1", "m1", true}, history: asked("m1", "partial", with(frames(1), answered("m1", 1))), hostile: true},
		"silent among hostile ones": {
			said: said{chat, "m1", "m1", true}, history: asked("m1", "silent", nil), hostile: true, want: lost},
		"cancelled": {
			said: said{chat, "m1", "m1", true}, history: asked("m1", "cancelled", nil), hostile: true, want: lost},
		"of a turn that is not there": {
			said: said{chat, "m1", "m1", true}, history: asked("m1", "answered", func(h *history) { delete(h.turns, 1) }), want: lost},
		"derived and answered": {
			said: said{chat, "@eng m1", "m1", true}, history: asked("@eng m1", "", derivedTo("m1"))},
		"derived and not answered": {
			said: said{chat, "@eng m1", "m1", true}, history: asked("@eng m1", "", with(derivedTo("m1"), answered("m1"))), want: lost},
		"derived, and answered with its prefix": {
			said: said{chat, "@eng m1", "m1", true}, history: asked("@eng m1", "answered", answered("@eng m1", 1)), want: lost},
		"command with a reply": {
			said: said{chat, "/ping m1", "", true}, history: asked("/ping m1", "", func(h *history) { h.replies[key{chat, "p1"}] = 1 })},
		"command with a reply elsewhere": {
			said: said{chat, "/ping m1", "", true}, history: asked("/ping m1", "", func(h *history) { h.replies[key{"web:main", "p1"}] = 1 }), want: lost},
		"command with a reply to another": {
			said: said{chat, "/ping m1", "", true}, history: asked("/ping m1", "", func(h *history) { h.replies[key{chat, "p2"}] = 1 }), want: lost},
		"command with three replies": {
			said: said{chat, "/ping m1", "", true}, history: asked("/ping m1", "", func(h *history) { h.replies[key{chat, "p1"}] = 3 }),
			want: counts{invariants.Doubled: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			v := blank()
			v.judgeAnswers(tc.history, []said{tc.said}, tc.hostile)
			expect(t, v, tc.want)
		})
	}
}

// delivered is a history of outbound rows 5 and 6 of one part each, and 7 of two parts, whose ids
// are written down.
func delivered(change func(h *history)) *history {
	at := lane{chat: chat}
	h := &history{
		said: map[int64]string{5: "five", 6: "six", 7: "seven|eight"},
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

// unknown leaves a part without an id.
func unknown(index int) func(*history) {
	return func(h *history) { h.deliveries[index].id = "" }
}

// state has a part be in a state.
func state(index int, state string) func(*history) {
	return func(h *history) { h.deliveries[index].state = state }
}

// received is a world that has received something. It cuts rows at "|".
type received struct {
	chatsim.Platform
	all []chatsim.Arrival
}

func (r *received) Arrivals() []chatsim.Arrival { return r.all }

func (r *received) Info() chatsim.Info {
	return chatsim.Info{
		Platform: "telegram",
		Split:    func(content string) []string { return strings.Split(content, "|") },
	}
}

// The parts of delivered as they arrive.
var (
	five  = chatsim.Arrival{ID: "i5", Chat: chat, Text: "five"}
	six   = chatsim.Arrival{ID: "i6", Chat: chat, Text: "six"}
	seven = chatsim.Arrival{ID: "i7", Chat: chat, Text: "seven"}
	eight = chatsim.Arrival{ID: "i8", Chat: chat, Text: "eight"}
)

// marked says that it may be a copy.
func marked(a chatsim.Arrival) chatsim.Arrival { return saying(chatsim.MarkedCopy(a.Text), a) }

// other is an arrival whose id nobody wrote down.
func other(a chatsim.Arrival) chatsim.Arrival {
	a.ID = "other"
	return a
}

func in(chat, thread string, a chatsim.Arrival) chatsim.Arrival {
	a.Chat, a.Thread = chat, thread
	return a
}

func saying(text string, a chatsim.Arrival) chatsim.Arrival {
	a.Text = text
	return a
}

// elsewhere has a part go into a lane.
func elsewhere(index int, to lane) func(*history) {
	return func(h *history) { h.deliveries[index].lane = to }
}

func TestJudgeSends(t *testing.T) {
	lost, doubled, reordered := counts{invariants.Lost: 1}, counts{invariants.Doubled: 1}, counts{invariants.Reordered: 1}
	for name, tc := range map[string]struct {
		history *history
		arrived []chatsim.Arrival
		want    counts
	}{
		"all of it": {
			history: delivered(nil), arrived: []chatsim.Arrival{five, six, seven, eight}},
		"a copy that says so": {
			history: delivered(nil), arrived: []chatsim.Arrival{five, other(six), marked(six), seven, eight}},
		"copies that say so, none of which is known": {
			history: delivered(unknown(1)), arrived: []chatsim.Arrival{five, other(six), marked(other(six)), marked(other(six)), seven, eight}},
		"a copy that says so, and is alone": {
			history: delivered(nil), arrived: []chatsim.Arrival{five, marked(six), seven, eight}},
		"a copy that does not say so": {
			history: delivered(nil), arrived: []chatsim.Arrival{five, six, other(six), seven, eight}, want: doubled},
		"a copy that does not say so, of what is not known": {
			history: delivered(unknown(1)), arrived: []chatsim.Arrival{five, other(six), other(six), seven, eight}, want: doubled},
		"copies of which one says so": {
			history: delivered(nil), arrived: []chatsim.Arrival{five, other(six), marked(six), other(six), other(six), seven, eight},
			want: counts{invariants.Doubled: 2}},
		"two rows that say the same": {
			history: delivered(func(h *history) { h.said[6] = "five" }), arrived: []chatsim.Arrival{five, saying("five", six), seven, eight}},
		"two rows that say the same, one of which is not known": {
			history: delivered(with(unknown(0), func(h *history) { h.said[6] = "five" })),
			arrived: []chatsim.Arrival{other(five), saying("five", six), seven, eight}},
		"two rows that say the same, of which one arrived": {
			history: delivered(with(unknown(0), func(h *history) { h.said[6] = "five" })),
			arrived: []chatsim.Arrival{saying("five", six), seven, eight}, want: lost},
		"a copy of one that never arrived, and later another that says the same": {
			history: delivered(with(unknown(2), func(h *history) { h.said[5], h.said[7] = "pong", "pong|eight" })),
			arrived: []chatsim.Arrival{saying(chatsim.MarkedCopy("pong"), five), six, saying("pong", other(seven)), eight}},
		"a row that never arrived": {
			history: delivered(nil), arrived: []chatsim.Arrival{five, seven, eight}, want: lost},
		"an ambiguous row that arrived": {
			history: delivered(with(unknown(1), state(1, "ambiguous"))), arrived: []chatsim.Arrival{five, other(six), seven, eight}},
		"an ambiguous row that never arrived": {
			history: delivered(with(unknown(1), state(1, "ambiguous"))), arrived: []chatsim.Arrival{five, seven, eight}, want: lost},
		"a cancelled row": {
			history: delivered(with(unknown(1), state(1, "cancelled"))), arrived: []chatsim.Arrival{five, seven, eight}},
		"a cancelled row that had arrived": {
			history: delivered(with(unknown(1), state(1, "cancelled"))), arrived: []chatsim.Arrival{five, other(six), seven, eight}},
		"a failed row that arrived": {
			history: delivered(state(1, "failed")), arrived: []chatsim.Arrival{five, six, seven, eight}, want: lost},
		"a failed row": {
			history: delivered(with(unknown(1), state(1, "failed"))), arrived: []chatsim.Arrival{five, seven, eight}, want: lost},
		"a queued row that arrived": {
			history: delivered(state(1, "queued")), arrived: []chatsim.Arrival{five, six, seven, eight}, want: lost},
		"a row that arrived while it is being sent": {
			history: delivered(with(unknown(1), state(1, "sending"))), arrived: []chatsim.Arrival{five, other(six), seven, eight}, want: lost},
		"a text that is cut short": {
			history: delivered(nil), arrived: []chatsim.Arrival{five, saying("si", six), seven, eight}, want: lost},
		"a part with the text of another": {
			history: delivered(nil), arrived: []chatsim.Arrival{five, six, seven, saying("seven", eight)}, want: lost},
		"an older row behind a younger": {
			history: delivered(nil), arrived: []chatsim.Arrival{six, five, seven, eight}, want: reordered},
		"an older row behind a younger, both not known": {
			history: delivered(with(unknown(0), unknown(1))), arrived: []chatsim.Arrival{other(six), other(five), seven, eight}, want: reordered},
		"a part behind the next": {
			history: delivered(nil), arrived: []chatsim.Arrival{five, six, eight, seven}, want: reordered},
		"an older row behind a younger, in another thread": {
			history: delivered(elsewhere(0, lane{chat, "7"})), arrived: []chatsim.Arrival{six, in(chat, "7", five), seven, eight}},
		"an older row behind a younger, in another chat": {
			history: delivered(elsewhere(0, lane{"telegram:102", ""})), arrived: []chatsim.Arrival{six, in("telegram:102", "", five), seven, eight}},
		"a row in the wrong thread": {
			history: delivered(nil), arrived: []chatsim.Arrival{five, in(chat, "7", six), seven, eight}, want: lost},
		"a row in the wrong chat": {
			history: delivered(nil), arrived: []chatsim.Arrival{five, in("telegram:102", "", six), seven, eight},
			want: counts{invariants.Lost: 1, invariants.Doubled: 1}},
		"a row that nobody wrote": {
			history: delivered(nil), arrived: []chatsim.Arrival{five, six, seven, eight, saying("nine", other(five))}, want: doubled},
		"a part that nobody cut": {
			history: delivered(func(h *history) { h.said[7] = "seven" }), arrived: []chatsim.Arrival{five, six, seven, eight}, want: lost},
		"a row of another platform, which the world never sees": {
			history: delivered(elsewhere(1, lane{channel, ""})), arrived: []chatsim.Arrival{five, seven, eight}},
		"a row of another platform that the world sees": {
			history: delivered(elsewhere(1, lane{channel, ""})), arrived: []chatsim.Arrival{five, six, seven, eight}, want: doubled},
		"nothing at all": {history: &history{}},
	} {
		t.Run(name, func(t *testing.T) {
			v := blank()
			v.judgeSends(tc.history, &received{all: tc.arrived})
			expect(t, v, tc.want)
		})
	}
}

// until is when a window ends that an answer opened at 1000.
const until = 1000 + int64(engagement/time.Millisecond)

// engaging is a history in which turns of main and of second were called in a place, main last,
// and an answer of main arrived at 1000.
func engaging(change func(*history)) *history {
	at := [2]string{chat, "p"}
	h := &history{
		deliveries: []delivery{
			{part: part{5, 0}, lane: lane{chat: chat}, state: "sent", at: 900, claims: true, calledAt: 400, folder: "second", place: "p"},
			{part: part{6, 0}, lane: lane{chat: chat}, state: "sent", at: 1000, claims: true, calledAt: 500, folder: "main", place: "p"},
		},
		windows: map[[2]string]window{at: {folder: "main", until: until}},
		called:  map[[2]string]wasCalled{at: {"main", 500}},
		pinned:  map[string]bool{},
	}
	if change != nil {
		change(h)
	}
	return h
}

// windowIs has the window of the place be so.
func windowIs(w window) func(*history) {
	return func(h *history) { h.windows[[2]string{chat, "p"}] = w }
}

func noWindow(h *history) { clear(h.windows) }

func TestJudgeEngagement(t *testing.T) {
	lost := counts{invariants.Lost: 1}
	last := func(change func(d *delivery)) func(*history) {
		return with(noWindow, func(h *history) { change(&h.deliveries[1]) })
	}
	for name, tc := range map[string]struct {
		change func(*history)
		want   counts
	}{
		"engaged":                        {change: nil},
		"engaged for longer":             {change: windowIs(window{folder: "main", until: until + 1})},
		"engaged by another since":       {change: windowIs(window{folder: "second", until: 1})},
		"ended since":                    {change: windowIs(window{ended: 1})},
		"not engaged for long enough":    {change: windowIs(window{folder: "main", until: until - 1}), want: lost},
		"neither engaged nor ended":      {change: windowIs(window{}), want: lost},
		"no window":                      {change: noWindow, want: lost},
		"no window, but of its thread":   {change: with(noWindow, func(h *history) { h.windows[[2]string{chat, ""}] = window{folder: "main", until: until} }), want: lost},
		"ambiguous":                      {change: last(func(d *delivery) { d.state = "ambiguous" }), want: lost},
		"an answer that was not sent":    {change: last(func(d *delivery) { d.state = "failed" })},
		"an answer that was cancelled":   {change: last(func(d *delivery) { d.state = "cancelled" })},
		"an answer that claims nothing":  {change: last(func(d *delivery) { d.claims = false })},
		"another was called since":       {change: with(noWindow, func(h *history) { h.called[[2]string{chat, "p"}] = wasCalled{"third", 600} })},
		"the same was called since":      {change: with(noWindow, func(h *history) { h.called[[2]string{chat, "p"}] = wasCalled{"main", 600} })},
		"one message called another":     {change: with(noWindow, func(h *history) { h.called[[2]string{chat, "p"}] = wasCalled{"third", 500} })},
		"called elsewhere since":         {change: with(noWindow, func(h *history) { h.called[[2]string{chat, "q"}] = wasCalled{"third", 600} }), want: lost},
		"pinned":                         {change: with(noWindow, func(h *history) { h.pinned[chat] = true })},
		"another chat is pinned":         {change: with(noWindow, func(h *history) { h.pinned["telegram:102"] = true }), want: lost},
		"two answers, one window behind": {change: func(h *history) { h.deliveries = append(h.deliveries, h.deliveries[1]); h.deliveries[2].at++ }, want: lost},
		"two answers, no window":         {change: with(noWindow, func(h *history) { h.deliveries = append(h.deliveries, h.deliveries[1]) }), want: lost},
		"two places, no window": {change: with(noWindow, func(h *history) {
			h.deliveries = append(h.deliveries, h.deliveries[1])
			h.deliveries[2].place = "q"
			h.called[[2]string{chat, "q"}] = wasCalled{"main", 500}
		}), want: counts{invariants.Lost: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			v := blank()
			v.judgeEngagement(engaging(tc.change))
			expect(t, v, tc.want)
		})
	}
}

func TestVerdictTellsEachCaseAndCountsThem(t *testing.T) {
	var out strings.Builder
	v := &verdict{count: counts{}, out: &out}
	if !v.good() || v.String() != "lost 0, doubled 0, reordered 0, stuck 0" {
		t.Errorf("of nothing it says %q, good %t", v, v.good())
	}
	v.add(invariants.Lost, 1, "row %d", 1)
	v.add(invariants.Lost, 2, "row %d", 2)
	v.add(invariants.Doubled, 1, "row %d", 3)
	v.add(invariants.Reordered, 4, "row %d", 4)
	v.add(invariants.Stuck, 5, "row %d", 5)
	if v.good() || v.String() != "lost 3, doubled 1, reordered 4, stuck 5" {
		t.Errorf("it says %q, good %t", v, v.good())
	}
	want := "lost: row 1\nlost: row 2\ndoubled: row 3\nreordered: row 4\nstuck: row 5\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
