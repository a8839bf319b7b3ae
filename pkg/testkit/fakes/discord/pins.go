package discord

import (
	"fmt"
	"slices"
	"time"
)

// The documented limits of pins.
const (
	maxPins     = 250
	maxPinsPage = 50
)

// pin is a pinned message of a channel.
type pin struct {
	id string
	at time.Time
}

// lastPin is when the latest message was pinned, nil without one.
func (ch *channel) lastPin() *time.Time {
	if len(ch.pins) == 0 {
		return nil
	}
	return &ch.pins[0].at
}

// setPin pins or unpins a message: the message and the channel change, and a system message says who has pinned it.
func (s *Server) setPin(ch *channel, m *Message, by User, on bool) {
	if m.Pinned == on {
		return
	}
	m.Pinned = on
	ch.pins = slices.DeleteFunc(ch.pins, func(p pin) bool { return p.id == m.ID })
	if on {
		ch.pins = slices.Insert(ch.pins, 0, pin{id: m.ID, at: s.now()})
	}
	s.emitMessage("MESSAGE_UPDATE", ch, m)
	need := ch.intent(Guilds, DirectMessages)
	s.emitOf(ch, need, "CHANNEL_PINS_UPDATE", map[string]any{"last_pin_timestamp": ch.lastPin()})
	if on {
		note := s.add(ch, &Message{
			Author: by, Type: PinnedMessage, Reference: &Reference{MessageID: m.ID, ChannelID: ch.info.ID,
				GuildID: ch.info.GuildID},
		})
		s.emitMessage("MESSAGE_CREATE", ch, note)
	}
}

// Pin pins a message.
func (p Place) Pin(by User, id string) { p.setPin(by, id, true) }

// Unpin unpins a message.
func (p Place) Unpin(by User, id string) { p.setPin(by, id, false) }

func (p Place) setPin(by User, id string, on bool) {
	must(p.withMessage(id, func(ch *channel, m *Message) error {
		if !ch.in(by) || m.isSystem() || on && len(ch.pins) >= maxPins {
			return fmt.Errorf("%s cannot pin message %s", by.Name(), id)
		}
		p.s.setPin(ch, m, by, on)
		return nil
	}))
}

// pinning is the message of a request that pins or unpins.
func (s *Server) pinning(q *request) (*channel, *Message, error) {
	ch, m, err := s.message(q)
	switch {
	case err != nil:
		return nil, nil, err
	case ch.isThread() && ch.info.Metadata.Archived:
		return nil, nil, archived()
	case !s.may(ch, PinMessages|ReadMessageHistory):
		return nil, nil, missingPermissions()
	}
	return ch, m, nil
}

func (s *Server) pinMessage(q *request) (any, error) {
	ch, m, err := s.pinning(q)
	switch {
	case err != nil:
		return nil, err
	case m.isSystem():
		return nil, refuse(403, 50021, "Cannot execute action on a system message")
	case !m.Pinned && len(ch.pins) >= maxPins:
		return nil, refuse(400, 30003, fmt.Sprintf("Maximum number of pins reached for the channel (%d)", maxPins))
	}
	s.setPin(ch, m, s.me, true)
	return nil, nil
}

func (s *Server) unpinMessage(q *request) (any, error) {
	ch, m, err := s.pinning(q)
	if err != nil {
		return nil, err
	}
	s.setPin(ch, m, s.me, false)
	return nil, nil
}

// pinsOf are the pins that the bot may read in the channel of a request, the latest first.
func (s *Server) pinsOf(q *request) (*channel, []pin, error) {
	ch, err := s.readable(q)
	if err != nil || !s.may(ch, ReadMessageHistory) {
		return ch, nil, err
	}
	return ch, ch.pins, nil
}

// shownPin is a pinned message as in answers.
func (s *Server) shownPin(ch *channel, p pin) Message {
	m := s.inAnswer(ch, ch.messages[p.id])
	m.Nonce = nil
	return s.visible(m, ch.guild != nil, ^s.denied)
}

// getPins answers with a page of pins.
func (s *Server) getPins(q *request) (any, error) {
	limit, err := q.number("limit", maxPinsPage, 1, maxPinsPage)
	if err != nil {
		return nil, err
	}
	before, err := q.moment("before")
	if err != nil {
		return nil, err
	}
	ch, pins, err := s.pinsOf(q)
	if err != nil {
		return nil, err
	}
	items, more := []map[string]any{}, false
	for _, p := range pins {
		if !before.IsZero() && !p.at.Before(before) {
			continue
		}
		if more = len(items) == limit; more {
			break
		}
		items = append(items, map[string]any{"pinned_at": p.at, "message": s.shownPin(ch, p)})
	}
	return map[string]any{"items": items, "has_more": more}, nil
}

// getFirstPins answers the old route, which has one page.
func (s *Server) getFirstPins(q *request) (any, error) {
	ch, pins, err := s.pinsOf(q)
	if err != nil {
		return nil, err
	}
	all := []Message{}
	for _, p := range pins[:min(maxPinsPage, len(pins))] {
		all = append(all, s.shownPin(ch, p))
	}
	return all, nil
}
