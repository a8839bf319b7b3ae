package adaptertest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"arizuko/gated/gatedtest"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// questionCases are the cases of questions, which have buttons until they end.
func questionCases() []testCase {
	asks := func(p Platform) bool { return p.Questions }
	return []testCase{
		{"question", asks, questionHasButtons},
		{"question whose buttons are refused", asks, questionWithoutButtons},
	}
}

// Buttons are the buttons of a message, as Shown has them.
func Buttons(buttons map[string]string) string {
	var all []string
	for _, label := range slices.Sorted(maps.Keys(buttons)) {
		all = append(all, label+"="+buttons[label])
	}
	return strings.Join(all, " ")
}

// asks asks a question, and waits until it is shown. It returns the question with its message.
func (w *work) asks(options ...string) (asked *msg.Ask, shown Shown) {
	w.Helper()
	w.write(func(tx *store.Tx) (err error) {
		now := time.Now().UnixMilli()
		asked, err = gatedtest.PutAsk(tx, w.turn, &gatedtest.Question{
			AskID: "1", Question: "Sure?", Options: options, Who: msg.Who{Everyone: true}, Name: "bot",
			ExpiresAt: now + time.Hour.Milliseconds(),
		}, now)
		return err
	})
	w.ends(msg.OutSent, asked.MessageID)
	for _, s := range w.remote.Shown() {
		if strings.Contains(s.Text, "Sure?") {
			shown = s
		}
	}
	return asked, shown
}

// questionHasButtons asks a question with options of any length. Once it is answered, its message has the answer and no
// buttons.
func questionHasButtons(b *fixture) {
	b.start()
	w := b.agent()
	options := []string{"a", "b", "c", "d", "e", strings.Repeat("x", 60)}
	asked, shown := w.asks(options...)
	want := map[string]string{}
	for i, option := range options {
		want[option] = msg.ButtonData(asked.ID, i+1)
	}
	if shown.Buttons != Buttons(want) {
		b.Errorf("the question has the buttons %q, want %q", shown.Buttons, Buttons(want))
	}
	now := time.Now().UnixMilli()
	b.write(func(tx *store.Tx) error { return gatedtest.AnswerAsk(tx, asked.ID, 2, "ada", "Ada", now, now) })
	answered := func(s Shown) bool { return s.ID == shown.ID && s.Buttons == "" && strings.Contains(s.Text, "Ada") }
	b.until("the answer, in place of the buttons", func() bool {
		return slices.ContainsFunc(b.remote.Shown(),
			answered)
	})
}

// questionWithoutButtons is sent once more without them: its text has the numbers of the options.
func questionWithoutButtons(b *fixture) {
	b.remote.RefuseButtons()
	b.start()
	asked, shown := b.agent().asks("yes", "no")
	if shown.Buttons != "" || !strings.Contains(shown.Text, "1. yes") {
		b.Errorf("users see %+v", shown)
	}
	if p := b.parts(asked.MessageID)[0]; !strings.Contains(p.Error, "sent without buttons") {
		b.Errorf("the record of the part: %s", fmt.Sprint(p))
	}
}
