package adaptertest

import (
	"slices"
	"strings"
	"time"

	"arizuko/pkg/msg"
)

// undoCases are the cases of answers, which have a button that takes their turn back for a time.
func undoCases() []testCase {
	has := func(p Platform) bool { return p.Questions }
	return []testCase{
		{"undo button", has, undoButton},
		{"undo button of a long answer", has, undoButtonOfLongAnswer},
		{"undo button that is refused", has, undoButtonRefused},
		{"undo button over a restart", has, undoButtonOverRestart},
	}
}

// answer lets an agent answer, and returns the turn with the messages that users see then.
func (b *fixture) answer(text string) (w *work, shown []Shown) {
	b.Helper()
	before := len(b.remote.Shown())
	w = b.agent()
	w.answers(text)
	return w, b.remote.Shown()[before:]
}

// expectButtons waits until the messages of the bot have these buttons, and compares their texts.
func (b *fixture) expectButtons(texts []Shown, want ...string) {
	b.Helper()
	var got []Shown
	b.within(time.Hour, "the buttons", func() bool {
		got = b.remote.Shown()
		return slices.EqualFunc(got, want, func(s Shown, buttons string) bool { return s.Buttons == buttons })
	})
	if !slices.EqualFunc(got, texts, func(a, b Shown) bool { return a.ID == b.ID && a.Text == b.Text }) {
		b.Errorf("users see %+v, and saw %+v", got, texts)
	}
}

// undoButton is there for ten minutes. The text stays as it is.
func undoButton(b *fixture) {
	b.start()
	first, one := b.answer("**one**")
	if len(one) != 1 || one[0].Buttons != first.undo() {
		b.Fatalf("users see %+v", one)
	}
	b.pass(msg.UndoTime / 2)
	second, two := b.answer("two")
	b.expectButtons(append(one, two...), first.undo(), second.undo())
	b.expectButtons(append(one, two...), "", second.undo())
	b.expectButtons(append(one, two...), "", "")
}

// undoButtonOfLongAnswer stands below the last part, which may be too long for one.
func undoButtonOfLongAnswer(b *fixture) {
	b.start()
	w, shown := b.answer(strings.Repeat("0123456789 ", 1000) + "\n\nend")
	for i, s := range shown {
		if last := i == len(shown)-1; s.Buttons != "" && (!last || s.Buttons != w.undo()) {
			b.Errorf("part %d of %d has the buttons %q", i, len(shown), s.Buttons)
		}
	}
	b.pass(msg.UndoTime)
	b.expectButtons(shown, make([]string, len(shown))...)
}

// undoButtonRefused is left out.
func undoButtonRefused(b *fixture) {
	b.remote.RefuseButtons()
	b.start()
	if _, shown := b.answer("one"); len(shown) != 1 || shown[0].Buttons != "" || shown[0].Text != "one" {
		b.Errorf("users see %+v", shown)
	}
}

func undoButtonOverRestart(b *fixture) {
	stop := b.start()
	w, shown := b.answer("one")
	stop()
	b.start()
	b.pass(msg.UndoTime / 2)
	b.expectButtons(shown, w.undo())
	b.pass(msg.UndoTime / 2)
	b.expectButtons(shown, "")
}
