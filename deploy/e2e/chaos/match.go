package main

import (
	"slices"
	"strings"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/msg"
)

// matcher finds the part of an outbound row that an arrival is.
type matcher struct {
	all    []*expectedPart
	byID   map[[2]string]*expectedPart  // by chat and recorded platform id
	byText map[laneText][]*expectedPart // in the order of the rows
}

// expectedPart is a part with its text, and how often it arrived.
type expectedPart struct {
	delivery
	text          string
	markedCopy    string // the text when it is sent again
	matched       string // the text of the last arrival that was matched with it
	changes       bool   // it changes a message: nothing arrives
	plain, copies int    // arrivals with text and with markedCopy
}

// laneText is a text in a lane.
type laneText struct {
	lane
	text string
}

// newMatcher expects the parts of all deliveries to a platform.
func newMatcher(h *history, platform chatsim.Platform) *matcher {
	m := &matcher{byID: map[[2]string]*expectedPart{}, byText: map[laneText][]*expectedPart{}}
	info := platform.Info()
	for _, d := range h.deliveries {
		if !strings.HasPrefix(d.chat, info.Platform+":") {
			continue
		}
		e := &expectedPart{delivery: d}
		parts, messages := partsOf(info, d, h.content[d.row])
		if d.part.part < len(parts) {
			e.text = parts[d.part.part]
			e.markedCopy = chatsim.MarkedCopy(e.text)
		}

		m.all = append(m.all, e)
		if e.changes = !messages || d.kind == msg.KindPoll && d.part.part >= len(parts); e.changes {
			continue
		}
		if d.id != "" {
			m.byID[[2]string{d.chat, d.id}] = e
		}
		for _, text := range []string{e.text, e.markedCopy} {
			m.byText[laneText{d.lane, text}] = append(m.byText[laneText{d.lane, text}], e)
		}
	}
	return m
}

// partsOf returns the texts of the parts of a row; messages is false for one that only changes messages.
func partsOf(info chatsim.Info, d delivery, content string) (parts []string, messages bool) {
	switch {
	case d.kind == msg.KindEdit || d.kind == msg.KindReaction || d.kind == msg.KindPoll && d.target != "":
		return nil, false
	case d.kind != msg.KindPoll:
		return info.Split(content), true
	}
	poll, err := msg.ParsePoll(content)
	if err != nil {
		return []string{content}, true // it never arrives like this
	}
	if limits, _ := msg.PollLimitsOf(d.chat); limits.Native {
		return []string{poll.Question}, true
	}
	return info.Split(poll.Text(msg.OptionEmoji)), true
}

// match returns the part of each arrival, nil for one that matches none.
func (m *matcher) match(arrivals []chatsim.Arrival) []*expectedPart {
	parts := make([]*expectedPart, len(arrivals))
	for i, a := range arrivals {
		if parts[i] = m.byID[[2]string{a.Chat, a.ID}]; parts[i] != nil {
			parts[i].matched = a.Text
		}
	}

	next := make([]*expectedPart, len(arrivals)) // the next recorded arrival in the lane
	last := map[lane]*expectedPart{}
	for i, a := range slices.Backward(arrivals) {
		next[i] = last[laneOf(a)]
		if parts[i] != nil {
			last[laneOf(a)] = parts[i]
		}
	}

	clear(last)
	for i, a := range arrivals {
		if parts[i] == nil {
			parts[i] = m.matchText(a, last[laneOf(a)], next[i])
		}
		if parts[i] != nil {
			last[laneOf(a)] = parts[i]
		}
	}
	return parts
}

func laneOf(a chatsim.Arrival) lane { return lane{a.Chat, a.Thread} }

// matchText returns the part of an arrival whose id is not recorded. Of the parts with its text it
// prefers one that has not arrived and lies between the neighbours, then one that has not arrived.
func (m *matcher) matchText(a chatsim.Arrival, before, after *expectedPart) *expectedPart {
	all := m.byText[laneText{laneOf(a), a.Text}]
	open := slices.DeleteFunc(slices.Clone(all), func(e *expectedPart) bool { return e.matched == a.Text })
	between := func(e *expectedPart) bool {
		return (before == nil || !e.less(before.part)) && (after == nil || !after.less(e.part))
	}
	switch i := slices.IndexFunc(open, between); {
	case len(all) == 0:
		return nil
	case len(open) == 0:
		return all[0]
	default:
		e := open[max(i, 0)]
		e.matched = a.Text
		return e
	}
}
