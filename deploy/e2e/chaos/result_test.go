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

// counts are the counters of a result that are not 0.
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

// promptOf is the part of a message that an agent receives, "" for a command.
func promptOf(content string) string {
	if strings.HasPrefix(content, "/ping ") {
		return ""
	}
	return strings.TrimPrefix(content, "@eng ")
}

func TestResult_CheckAnswers(t *testing.T) {
	lost, doubled := counts{invariants.Lost: 1}, counts{invariants.Doubled: 1}
	must := func(content string) sentMessage { return sentMessage{chat, content, promptOf(content), true, ""} }
	may := func(content string) sentMessage { return sentMessage{chat, content, promptOf(content), false, ""} }
	for _, tc := range []struct {
		name    string
		sent    sentMessage
		reason  string // for which turn 1 ended
		change  func(*history)
		hostile bool
		want    counts
	}{
		{"answered", must("m1"), "answered", answered("m1", 1), false, nil},
		{"observed, allowed", may("m1"), "", unrouted, false, nil},
		{"observed, must be answered", must("m1"), "", unrouted, false, lost},
		{"observed and answered", may("m1"), "answered", with(unrouted, answered("m1", 2)), false, doubled},
		{"not stored", may("m1"), "answered", storedTimes("m1", 0), false, lost},
		{"stored in another chat", sentMessage{"telegram:102", "m1", "m1", true, ""}, "answered", answered("m1", 1), false, lost},
		{"stored three times", must("m1"), "answered", storedTimes("m1", 3), false, doubled},
		{"no answer", must("m1"), "answered", nil, false, lost},
		{"routed, allowed to be observed, no answer", may("m1"), "answered", nil, false, lost},
		{"answered in another chat", must("m1"), "answered", func(h *history) {
			h.answers[key{"telegram:102", "m1"}] = map[int64]bool{1: true}
		}, false, lost},
		{"answered twice", must("m1"), "answered", answered("m1", 1, 2), false, doubled},
		{"answered three times", must("m1"), "answered", answered("m1", 1, 2, 3), false, counts{invariants.Doubled: 2}},
		{"answered by another turn", must("m1"), "answered", answered("m1", 2), false, counts{invariants.Doubled: 1, invariants.Lost: 1}},
		{"answered with another turn", must("m1"), "folded", with(foldedInto(2), answered("m1", 2)), false, nil},
		{"taken in, and not in the answer", must("m1"), "folded", foldedInto(2), false, lost},
		{"taken in, and answered by its own turn as well", must("m1"), "folded", with(foldedInto(2), answered("m1", 1, 2)), false, doubled},
		{"silent on request", must("silent m1"), "silent", nil, false, nil},
		{"silent on request of the turn's last message", must("m1"), "silent", func(h *history) {
			h.turns[1] = turn{reason: "silent", last: "silent m2"}
		}, false, nil},
		{"silent without request", must("m1"), "silent", nil, false, lost},
		{"silent, request not at the start of the text", must("be silent m1"), "silent", nil, false, lost},
		{"silent, requested by an earlier message", must("silent m1"), "silent", func(h *history) {
			h.turns[1] = turn{reason: "silent", last: "m2"}
		}, false, lost},
		{"interrupted after its answer", must("m1"), "interrupted", with(frames(1), answered("m1", 1)), false, nil},
		{"interrupted before its answer", must("m1"), "interrupted", nil, false, lost},
		{"interrupted after the answer to another", must("m1"), "interrupted", frames(1), false, lost},
		{"interrupted, answer without a frame", must("m1"), "interrupted", answered("m1", 1), false, lost},
		{"failed", must("m1"), "agent_error", nil, false, lost},
		{"failed after part of its answer", must("m1"), "partial", with(frames(1), answered("m1", 1)), false, lost},
		{"failed, hostile", must("crash m1"), "agent_error", nil, true, nil},
		{"failed like another, hostile", must("crash m1"), "already_told", func(h *history) {
			h.stored[key{chat, "crash m0"}] = []row{{id: 2, turn: 2, chat: chat}}
			h.turns[2] = turn{reason: "agent_error"}
		}, true, nil},
		{"failed like none", must("crash m1"), "already_told", nil, true, lost},
		{"failed after part of its answer, hostile", must("m1"), "partial", with(frames(1), answered("m1", 1)), true, nil},
		{"silent without request, hostile", must("m1"), "silent", nil, true, lost},
		{"cancelled", must("m1"), "cancelled", nil, true, lost},
		{"turn missing", must("m1"), "answered", func(h *history) { delete(h.turns, 1) }, false, lost},
		{"derived and answered", must("@eng m1"), "", derivedTo("m1"), false, nil},
		{"derived and not answered", must("@eng m1"), "", with(derivedTo("m1"), answered("m1")), false, lost},
		{"derived, answered with its prefix", must("@eng m1"), "answered", answered("@eng m1", 1), false, lost},
		{"command with a reply", must("/ping m1"), "", func(h *history) { h.replies[key{chat, "p1"}] = 1 }, false, nil},
		{"command with a reply in another chat", must("/ping m1"), "", func(h *history) { h.replies[key{"web:main", "p1"}] = 1 }, false, lost},
		{"command with a reply to another message", must("/ping m1"), "", func(h *history) { h.replies[key{chat, "p2"}] = 1 }, false, lost},
		{"command with three replies", must("/ping m1"), "", func(h *history) { h.replies[key{chat, "p1"}] = 3 }, false, counts{invariants.Doubled: 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := empty()
			r.checkAnswers(oneTurn(tc.sent.content, tc.reason, tc.change), []sentMessage{tc.sent}, tc.hostile)
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

// arrivals are what a platform received.
type arrivals []chatsim.Arrival

// texts sets the texts of rows.
func texts(of map[int64]string) func(*history) { return func(h *history) { maps.Copy(h.content, of) } }

func TestResult_CheckSends(t *testing.T) {
	lost, doubled, reordered := counts{invariants.Lost: 1}, counts{invariants.Doubled: 1}, counts{invariants.Reordered: 1}
	for _, tc := range []struct {
		name    string
		change  func(*history)
		arrived arrivals
		want    counts
	}{
		{"all parts", nil, arrivals{five, six, seven, eight}, nil},
		{"marked copy", nil, arrivals{five, otherID(six), marked(six), seven, eight}, nil},
		{"marked copies, id not recorded", unrecorded(1), arrivals{five, otherID(six), marked(otherID(six)), marked(otherID(six)), seven, eight}, nil},
		{"marked copy alone", nil, arrivals{five, marked(six), seven, eight}, nil},
		{"unmarked copy", nil, arrivals{five, six, otherID(six), seven, eight}, doubled},
		{"unmarked copy, id not recorded", unrecorded(1), arrivals{five, otherID(six), otherID(six), seven, eight}, doubled},
		{"one marked copy, two unmarked", nil, arrivals{five, otherID(six), marked(six), otherID(six), otherID(six), seven, eight}, counts{invariants.Doubled: 2}},
		{"two rows with the same text", texts(map[int64]string{6: "five"}), arrivals{five, withText("five", six), seven, eight}, nil},
		{"two rows with the same text, one id not recorded", with(unrecorded(0), texts(map[int64]string{6: "five"})),
			arrivals{otherID(five), withText("five", six), seven, eight}, nil},
		{"two rows with the same text, one arrived", with(unrecorded(0), texts(map[int64]string{6: "five"})), arrivals{withText("five", six), seven, eight}, lost},
		{"marked copy alone, and another row with the same text", with(unrecorded(2), texts(map[int64]string{5: "pong", 7: "pong|eight"})),
			arrivals{withText(chatsim.MarkedCopy("pong"), five), six, withText("pong", otherID(seven)), eight}, nil},
		{"never arrived", nil, arrivals{five, seven, eight}, lost},
		{"ambiguous, arrived", with(unrecorded(1), state(1, "ambiguous")), arrivals{five, otherID(six), seven, eight}, nil},
		{"ambiguous, never arrived", with(unrecorded(1), state(1, "ambiguous")), arrivals{five, seven, eight}, lost},
		{"cancelled", with(unrecorded(1), state(1, "cancelled")), arrivals{five, seven, eight}, nil},
		{"cancelled, arrived", with(unrecorded(1), state(1, "cancelled")), arrivals{five, otherID(six), seven, eight}, nil},
		{"failed, arrived", state(1, "failed"), arrivals{five, six, seven, eight}, lost},
		{"failed", with(unrecorded(1), state(1, "failed")), arrivals{five, seven, eight}, lost},
		{"queued, arrived", state(1, "queued"), arrivals{five, six, seven, eight}, lost},
		{"sending, arrived", with(unrecorded(1), state(1, "sending")), arrivals{five, otherID(six), seven, eight}, lost},
		{"truncated text", nil, arrivals{five, withText("si", six), seven, eight}, lost},
		{"text of another part", nil, arrivals{five, six, seven, withText("seven", eight)}, lost},
		{"older row after younger", nil, arrivals{six, five, seven, eight}, reordered},
		{"older row after younger, ids not recorded", with(unrecorded(0), unrecorded(1)), arrivals{otherID(six), otherID(five), seven, eight}, reordered},
		{"part after the next part", nil, arrivals{five, six, eight, seven}, reordered},
		{"older row after younger, in another thread", inLane(0, lane{chat, "7"}), arrivals{six, in(chat, "7", five), seven, eight}, nil},
		{"older row after younger, in another chat", inLane(0, lane{"telegram:102", ""}), arrivals{six, in("telegram:102", "", five), seven, eight}, nil},
		{"wrong thread", nil, arrivals{five, in(chat, "7", six), seven, eight}, lost},
		{"wrong chat", nil, arrivals{five, in("telegram:102", "", six), seven, eight}, counts{invariants.Lost: 1, invariants.Doubled: 1}},
		{"arrival without row", nil, arrivals{five, six, seven, eight, withText("nine", otherID(five))}, doubled},
		{"part beyond the end of the row", func(h *history) { h.content[7] = "seven" }, arrivals{five, six, seven, eight}, lost},
		{"row of another platform, never arrives", inLane(1, lane{foreignChannel, ""}), arrivals{five, seven, eight}, nil},
		{"row of another platform, arrives", inLane(1, lane{foreignChannel, ""}), arrivals{five, six, seven, eight}, doubled},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := empty()
			r.checkSends(delivered(tc.change), &receivedPlatform{all: tc.arrived})
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
