package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// screen shows previews.
type screen struct{ *memory }

func (w *memory) shown() []Shown {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.messages)
}

func (w *memory) failEdit(f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failing = append(w.failing, f)
}

func (w *memory) deleteShown(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.messages = slices.DeleteFunc(w.messages, func(m Shown) bool { return m.ID == id })
}

// put makes a message, or changes the one with an id.
func (w *memory) put(id, text, stop string, buttons ...string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.messages, func(m Shown) bool { return m.ID == id })
	switch {
	case i >= 0 && w.wrong != "makes a new message each time":
		w.messages[i] = Shown{id, text, stop, strings.Join(buttons, "")}
		return id, nil
	case id != "" && i < 0 && w.wrong != "brings deleted ones back":
		return "", &adapter.Failure{Class: msg.Permanent, Err: errors.New("no such message")}
	}
	w.made++
	m := Shown{fmt.Sprint("s", w.made), text, stop, strings.Join(buttons, "")}
	w.messages = append(w.messages, m)
	return m.ID, nil
}

func (s screen) PreviewEvery(store.Lane) time.Duration { return time.Second }

func (s screen) ShowPreview(_ context.Context, p *adapter.Preview) (string, error) {
	text, stop := p.Text+p.Line, ""
	if len(text) > longest && s.wrong != "shows all of a text" {
		text = text[len(text)-longest:]
	}
	if p.PlatformID == "" && s.wrong == "begins with the text" {
		text = "half of"
	}
	if p.PlatformID != "" && s.wrong != "has no button" {
		stop = msg.StopData(p.Turn)
	}
	return s.put(p.PlatformID, text, stop)
}

func (s screen) RemovePreview(_ context.Context, _ store.Lane, id string) error {
	if s.wrong != "removes nothing" {
		s.deleteShown(id)
	}
	return nil
}

// takenOver is the part that makes a preview the answer.
type takenOver struct{ id, text string }

func (takenOver) Repeatable() bool { return true }

func (s screen) TakeOver(part adapter.Part, id string) (adapter.Part, bool) {
	return takenOver{id, textOf(part)}, strings.HasPrefix(id, "s") && s.wrong != "forgets what it has shown"
}

func (s screen) Send(ctx context.Context, m *msg.Message, part adapter.Part) (string, error) {
	edit, ok := part.(takenOver)
	if !ok {
		id, err := s.memory.Send(ctx, m, part)
		if err == nil && (m.TurnID != 0 || m.Kind == msg.KindEdit) {
			return s.sendShown(m, textOf(part))
		}
		return id, err
	}
	s.mu.Lock()
	var f Fault
	if len(s.failing) > 0 {
		f, s.failing = s.failing[0], s.failing[1:]
	}
	s.mu.Unlock()
	if f.Class != "" && !f.Arrived {
		if s.wrong == "takes a refused edit for made" {
			return edit.id, nil
		}
		return "", &adapter.Failure{Class: f.Class, After: f.After, Err: errors.New("as asked for")}
	}
	stop := ""
	if s.wrong == "keeps the button" {
		stop = msg.StopData(m.TurnID)
	}
	to := edit.id
	if s.wrong == "edits by another message" {
		to = ""
	}
	id, err := s.put(to, edit.text, stop, Buttons(s.undo(m, edit.text)))
	if err == nil && f.Arrived {
		err = &adapter.Failure{Class: f.Class, Err: errors.New("as asked for")}
	}
	return id, err
}

// undo is the button of the last part of an answer.
func (s screen) undo(m *msg.Message, text string) map[string]string {
	buttons := map[string]string{}
	parts, err := s.Cut(m)
	isLast := err == nil && textOf(parts[len(parts)-1]) == text
	if m.UndoUntil != 0 && (isLast || s.wrong == "has undo buttons on all parts") && s.wrong != "has no undo button" {
		buttons[msg.UndoLabel] = msg.UndoData(m.TurnID)
	}
	return buttons
}

func (s screen) RemoveUndo(_ context.Context, _ *msg.Message, part adapter.Part, id string) (err error) {
	switch s.wrong {
	case "keeps the undo button":
	case "changes a text with its button":
		_, err = s.put(id, "no button", "")
	default:
		_, err = s.put(id, textOf(part), "")
	}
	return err
}

// sendShown makes a message that users see, or edits one. It has a button for each option of an open question.
func (s screen) sendShown(m *msg.Message, text string) (string, error) {
	id, buttons := "", s.undo(m, text)
	if m.Kind == msg.KindEdit {
		id = m.Target.Parts[0].PlatformID
	}
	if m.Ask != nil && (m.Kind != msg.KindEdit || s.wrong == "keeps the buttons of a question") {
		for i, option := range m.Ask.Options {
			buttons[option] = msg.ButtonData(m.Ask.ID, i+1)
		}
	}
	remark := error(nil)
	if s.bare && m.Ask != nil && len(buttons) > 0 && s.wrong != "loses buttons silently" {
		remark = &adapter.Remark{Text: "sent without buttons"}
	}
	if s.bare {
		buttons = nil
	}
	id, err := s.put(id, text, "", Buttons(buttons))
	return id, errors.Join(err, remark)
}
