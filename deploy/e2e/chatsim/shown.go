package chatsim

import (
	"slices"
	"time"

	"arizuko/pkg/adapter"
)

// previewTexts are the first texts of a preview. Its message is no arrival before it shows more.
var previewTexts = []string{adapter.PreviewStart, "⏳ " + adapter.PreviewStart}

// shown collects what the messages of a bot are in the end: a preview may have become an answer, and only the last text
// of it arrived.
type shown struct {
	all      []*shownMessage
	previews map[[2]string]*shownMessage // by chat and id
}

type shownMessage struct {
	Arrival
	isPreview, deleted bool
}

// made notes a new message.
func (s *shown) made(a Arrival) { s.add(a, slices.Contains(previewTexts, a.Text)) }

// previewMade notes a new message that begins as a preview.
func (s *shown) previewMade(a Arrival) {
	a.Text = adapter.PreviewStart
	s.add(a, true)
}

func (s *shown) add(a Arrival, isPreview bool) {
	m := &shownMessage{Arrival: a, isPreview: isPreview}
	s.all = append(s.all, m)
	if !isPreview {
		return
	}
	if s.previews == nil {
		s.previews = map[[2]string]*shownMessage{}
	}
	s.previews[[2]string{a.Chat, a.ID}] = m
}

// changed notes the new text of a message, which counts if that began as a preview.
func (s *shown) changed(chat, id, text string, at time.Time) {
	if m := s.previews[[2]string{chat, id}]; m != nil && m.Text != text {
		m.Text, m.At = text, at
	}
}

func (s *shown) deleted(chat, id string) {
	if m := s.previews[[2]string{chat, id}]; m != nil {
		m.deleted = true
	}
}

// arrivals lists the messages in the order in which they got their texts, without previews that say nothing yet.
func (s *shown) arrivals() (all []Arrival) {
	for _, m := range s.all {
		if !m.isPreview || !m.deleted && !slices.Contains(previewTexts, m.Text) {
			all = append(all, m.Arrival)
		}
	}
	slices.SortStableFunc(all, func(a, b Arrival) int { return a.At.Compare(b.At) })
	return all
}

// leftPreviews lists the previews that are there and say nothing.
func (s *shown) leftPreviews() (all []Arrival) {
	for _, m := range s.all {
		if m.isPreview && !m.deleted && slices.Contains(previewTexts, m.Text) {
			all = append(all, m.Arrival)
		}
	}
	return all
}
