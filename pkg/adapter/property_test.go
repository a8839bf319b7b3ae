package adapter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"arizuko/gated/gatedtest"
	"arizuko/pkg/adapter/rows"

	"pgregory.net/rapid"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// incident is one thing that happens to a shell.
type incident struct {
	What    string
	Lane    store.Lane    // of a new row
	Endings [][]string    // of the tries to send each of its parts, the next one succeeds
	Row     int           // which row is cancelled
	Time    time.Duration // that passes
}

func drawIncidents(t *rapid.T) []incident {
	what := []string{"put", "put", "put", "cancel", "wait", "wait", "restart"}
	endings := []string{"transient", "rate", "auth", "permanent", "lost", "arrived", "arrives slowly", "never ends"}
	if rapid.Bool().Draw(t, "kills") {
		what, endings = append(what, "crash"), append(endings, "killed before", "killed after")
	}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) (s incident) {
		switch s.What = rapid.SampledFrom(what).Draw(t, "what"); s.What {
		case "put":
			s.Lane.ChatJID = rapid.SampledFrom([]string{room, "irc:other"}).Draw(t, "chat")
			s.Lane.ThreadID = rapid.SampledFrom([]string{"", "t"}).Draw(t, "thread")
			tries := rapid.SliceOfN(rapid.SampledFrom(endings), 0, 3)
			s.Endings = rapid.SliceOfN(tries, 1, 3).Draw(t, "endings")
		case "cancel":
			s.Row = rapid.IntRange(0, 20).Draw(t, "row")
		case "wait":
			s.Time = rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Minute, 2 * time.Hour}).Draw(t, "time")
		}
		return s
	}), 1, 25).Draw(t, "steps")
}

// model is what must be true of a shell's deliveries, for any behavior of the platform, and however
// often the shell is stopped or killed.
type model struct {
	*fixture
	power    string // what the shell can do about a part that may have arrived
	stop     func()
	rows     []*modelRow
	crashes  int
	refusals map[string]int // tries to send a part of which the shell knows that it did not arrive
	arrived  map[string]int // what the platform has, how often
	looks    int            // for parts
	problems []string
}

// The powers: none, to send it again, to do so with a mark, and to look for it.
const (
	powerless  = "none"
	repeats    = "repeat"
	remarks    = "mark"
	looksForIt = "find"
)

// recordingPlatform is a platform that remembers what arrived.
type recordingPlatform struct{ m *model }

func (w recordingPlatform) Cut(m *msg.Message) ([]Part, error) { return w.m.platform.Cut(m) }

func (w recordingPlatform) Send(ctx context.Context, m *msg.Message, part Part) (string, error) {
	id, err := w.m.platform.Send(ctx, m, part)
	if err == nil {
		w.arrives(textOf(part))
	}
	return id, err
}

func (w recordingPlatform) arrives(text string) {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	w.m.arrived[text]++
}

// markingRecorder can mark a part.
type markingRecorder struct{ recordingPlatform }

func (markingRecorder) Mark(part Part) Part { return marked(part.(string)) }

// findingRecorder finds what arrived, if it is up to it.
type findingRecorder struct{ recordingPlatform }

func (w findingRecorder) Find(_ context.Context, _ *msg.Message, part Part) (string, error) {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	w.m.looks++
	switch {
	case w.m.looks%3 == 0:
		return "", errCause
	case w.m.arrived[part.(string)] > 0:
		return idOf(part.(string)), nil
	}
	return "", nil
}

type modelRow struct {
	id    int64
	lane  store.Lane
	parts []string
}

func (m *model) problem(format string, args ...any) {
	m.problems = append(m.problems, fmt.Sprintf(format, args...))
}

func (m *model) do(s incident) {
	switch s.What {
	case "put":
		m.put(s)
	case "cancel":
		m.write(func(tx *store.Tx) error { return gatedtest.CancelReplies(tx, turnOf(s.Row)) })
	case "wait":
		pass(s.Time)
	case "restart":
		m.restart()
	case "crash":
		m.kill()
	}
	m.revive()
}

// turnOf gives each row a turn of its own, by which it can be cancelled.
func turnOf(row int) int64 { return int64(row + 1) }

func (m *model) put(s incident) {
	row := &modelRow{lane: s.Lane}
	for part, endings := range s.Endings {
		text := fmt.Sprintf("row %d part %d", len(m.rows), part)
		row.parts = append(row.parts, text)
		for i, name := range endings { // the last ones are those of a marked copy, if there is one
			on := text
			if m.power == remarks && i > 0 {
				on = marked(text)
			}
			m.platform.script(on, m.ending(on, name))
		}
	}
	out := &msg.Message{
		ChatJID: s.Lane.ChatJID, ThreadID: s.Lane.ThreadID, Direction: msg.Out, OutState: msg.OutQueued,
		Content: strings.Join(row.parts, "|"), TurnID: turnOf(len(m.rows)), ReceivedAt: time.Now().UnixMilli(),
	}
	m.write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(out); return err })
	row.id = out.ID
	m.rows = append(m.rows, row)
}

// ending makes a try to send. A shell is killed by taking its database away.
func (m *model) ending(text, name string) outcome {
	switch name {
	case "transient", "rate", "auth":
		return func(context.Context) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.refusals[text]++
			return failure(msg.ErrorClass(name), time.Hour)
		}
	case "permanent":
		return fails(failure(msg.Permanent, 0))
	case "lost":
		return fails(failure(msg.Ambiguous, 0))
	case "arrived":
		return func(context.Context) error { recordingPlatform{m}.arrives(text); return errCause }
	case "arrives slowly":
		return takes(3 * time.Second)
	case "never ends":
		return func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	case "killed before":
		return func(context.Context) error { m.kill(); return errCause }
	}
	return func(context.Context) error { m.kill(); return nil } // killed after
}

func (m *model) kill() {
	if err := m.store.Close(); err != nil {
		m.t.Error(err)
	}
}

// revive starts a shell in place of one that was killed, until one lives.
func (m *model) revive() {
	for synctest.Wait(); m.killed(); synctest.Wait() {
		m.crashes++
		m.stop()
		m.store = storetest.OpenAt(m.t, m.path, nil)
		m.begin()
	}
}

func (m *model) killed() bool {
	return m.store.Write(context.Background(), func(*store.Tx) error { return nil }) != nil
}

func (m *model) begin() {
	m.as = recordingPlatform{m}
	switch m.power {
	case remarks:
		m.as = markingRecorder{recordingPlatform{m}}
	case looksForIt:
		m.as = findingRecorder{recordingPlatform{m}}
	}
	m.platform.repeats = m.power == repeats
	m.stop = m.start(marking)
}

func (m *model) restart() {
	m.stop()
	m.begin()
}

// finish gives everything the time it needs; a try that never ends is ended by a stop.
func (m *model) finish() {
	for range 200 {
		pass(2 * time.Hour)
		m.revive()
		if lanes, err := rows.OutboxLanes(m.t.Context(), m.store.Reader, platform); err == nil && len(lanes) == 0 {
			break
		}
		m.restart()
		m.revive()
	}
	m.stop()
}

func (m *model) check() {
	calls := map[int64][]string{}
	for _, c := range m.platform.calls {
		calls[c.Row] = append(calls[c.Row], c.Text)
	}
	m.checkLanes()
	for _, row := range m.rows {
		if m.row(row.id).OutState != msg.OutCancelled {
			m.checkRow(row, calls[row.id])
		} else if len(calls[row.id]) > 0 || len(m.deliveries(row.id)) > 0 {
			m.problem("row %d was cancelled, and sent: %v", row.id, calls[row.id])
		}
	}
	m.checkSettled()
}

func (m *model) checkLanes() {
	laneOf, last := map[int64]store.Lane{}, map[store.Lane]int64{}
	for _, row := range m.rows {
		laneOf[row.id] = row.lane
	}
	for _, c := range m.platform.calls {
		if lane := laneOf[c.Row]; c.Row < last[lane] {
			m.problem("row %d was sent after row %d", c.Row, last[lane])
		} else {
			last[lane] = c.Row
		}
	}
}

// checkRow compares what is stored of a row with the tries to send it.
func (m *model) checkRow(row *modelRow, calls []string) {
	number := func(text string) int { return slices.Index(row.parts, strings.TrimPrefix(text, marked(""))) }
	if !slices.IsSortedFunc(calls, func(a, b string) int { return number(a) - number(b) }) {
		m.problem("row %d: parts were sent in the order %v", row.id, calls)
	}
	deliveries := m.deliveries(row.id)
	if len(deliveries) != len(row.parts) {
		m.problem("row %d has the deliveries %+v", row.id, deliveries)
		return
	}
	want := msg.OutSent
	for i, d := range deliveries {
		if d.State == msg.OutFailed || d.State == msg.OutAmbiguous {
			want = d.State
		}
		m.checkPart(row.parts[i], d, calls)
	}
	if got := m.row(row.id).OutState; got != want {
		m.problem("row %d is %s: %s", row.id, got, m.states(row.id))
	}
}

func count(calls []string, text string) (n int) {
	for _, c := range calls {
		if c == text {
			n++
		}
	}
	return n
}

func (m *model) checkPart(text string, d store.Delivery, calls []string) {
	unmarked, again := count(calls, text), count(calls, marked(text))
	tries := unmarked + again
	switch d.State {
	case msg.OutSent, msg.OutFailed:
		if tries == 0 {
			m.problem("%s is %s without a try", text, d.State)
		}
	case msg.OutAmbiguous: // also where the shell was killed just before
		if tries == 0 && m.crashes == 0 {
			m.problem("%s is %s without a try", text, d.State)
		}
	case msg.OutCancelled:
		if tries > 0 {
			m.problem("%s is %s after %d tries", text, d.State, tries)
		}
	default:
		m.problem("%s has no end: %+v", text, d)
	}
	if m.power != looksForIt { // which may send again what it knows to be lost
		if doubtful := unmarked - m.refusals[text]; doubtful > 1 && m.power != repeats {
			m.problem("%s may have arrived %d times", text, doubtful)
		}
	}
	if doubtful := again - m.refusals[marked(text)]; doubtful > len(copyPauses())+m.crashes {
		m.problem("%s may have arrived %d times with a mark, after %d crashes", text, doubtful, m.crashes)
	}
	m.checkArrival(text, d.State, again)
}

// checkArrival compares how a part is said to have ended with what the platform has.
func (m *model) checkArrival(text string, state msg.OutState, again int) {
	plain, copies := m.arrived[text], m.arrived[marked(text)]
	if plain > 1 && m.power != repeats {
		m.problem("%s arrived %d times", text, plain)
	}
	if state == msg.OutSent && plain+copies == 0 {
		m.problem("%s is lost, and said to be sent", text)
	}
	if state == msg.OutAmbiguous && m.power == remarks && again == 0 {
		m.problem("%s was not sent again", text)
	}
	if state == msg.OutAmbiguous && (m.power == looksForIt || m.power == repeats) {
		m.problem("%s was given up", text)
	}
}

// checkSettled checks that each settled row is reported once; a killed shell may report none.
func (m *model) checkSettled() {
	reported := map[int64]int{}
	for _, s := range m.settled {
		reported[s.ID]++
		if stored := m.row(s.ID).OutState; s.OutState != stored {
			m.problem("row %d: reported %s, stored %s", s.ID, s.OutState, stored)
		}
	}
	for _, row := range m.rows {
		want := 1
		if m.row(row.id).OutState == msg.OutCancelled {
			want = 0
		}
		if n := reported[row.id]; n > want || n < want && m.crashes == 0 {
			m.problem("row %d: reported %d times", row.id, n)
		}
	}
}

func TestShell_AnyFailuresAndStops_KeepsInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		power := rapid.SampledFrom([]string{powerless, repeats, remarks, looksForIt}).Draw(rt, "power")
		steps := drawIncidents(rt)
		synctest.Test(t, func(t *testing.T) {
			m := &model{fixture: newFixture(t), power: power, refusals: map[string]int{}, arrived: map[string]int{}}
			m.begin()
			for _, s := range steps {
				m.do(s)
			}
			m.finish()
			m.check()
			for _, problem := range m.problems {
				rt.Error(problem)
			}
		})
	})
}
