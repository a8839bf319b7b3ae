// Package engagement tracks which group answers in a place of a chat without being called. A row
// that fires a turn there, called for or engaged, claims its place while the turn is in progress;
// the first part of the answer that arrives opens a window, and each further answer slides it. All
// of it is read from the rows of turns and deliveries, so nothing is missed while routd is down.
package engagement

import (
	"time"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/routd/internal/rows"
)

// State is the engagement in one place of a chat. Times are unix ms.
type State struct {
	msg.Engagement
	PinnedAt int64        // when the chat was last pinned to a group, 0 for never
	Claims   []rows.Claim // the newest first
}

// Engaged returns the folder that answers a row received at a time, "" for none: of those whose
// window is open or whose claim is in force, the one called last, by a row or on request.
func (s *State) Engaged(at int64) (folder string) {
	called := int64(0)
	if s.Open(at, s.PinnedAt) {
		folder, called = s.Folder, s.At
	}
	for _, c := range s.Claims {
		if since := s.claimedAt(c, at); since > called {
			folder, called = c.Folder, since
		}
	}
	return folder
}

// claimedAt returns when the row arrived by which a claim holds the place at a time, 0 if it does
// not: the last row of its turn that claims, or the first one before the last has come.
func (s *State) claimedAt(c rows.Claim, at int64) int64 {
	if c.OverAt != 0 && at > c.OverAt {
		return 0
	}
	for _, since := range [...]int64{c.LastAt, c.At} {
		if since > s.lastEnd() && since <= at {
			return since
		}
	}
	return 0
}

// latest returns when the newest window or claim began, or the last one was ended: it may be ahead
// of a clock that was set back.
func (s *State) latest(at int64) int64 {
	latest := s.EndedAt
	if s.Open(at, s.PinnedAt) {
		latest = max(latest, s.At)
	}
	for _, c := range s.Claims {
		if c.OverAt == 0 {
			latest = max(latest, c.LastAt)
		}
	}
	return latest
}

// lastEnd is the time up to which all claims and windows have been ended.
func (s *State) lastEnd() int64 { return max(s.EndedAt, s.PinnedAt) }

// apply changes the state by the delivery of an answer. Every one is the place's last reply unless a
// later row is. It slides the window of its folder, or opens one if the folder has a claim, unless
// another was called later.
func (s *State) apply(d factrows.DeliveryChange, ttl time.Duration) {
	s.LastReply = max(s.LastReply, d.MessageID)
	called, open := s.calledAt(d), s.Open(d.At, s.PinnedAt)
	switch {
	case d.At+ttl.Milliseconds() <= 0: // an invalid time from a foreign adapter
		return
	case open && s.Folder == d.Folder:
	case called == 0, open && called < s.At:
		return
	default:
		s.At, s.Until = 0, 0
	}
	s.Folder, s.At = d.Folder, max(s.At, called)
	s.Until = max(s.Until, d.At+ttl.Milliseconds())
}

// calledAt returns when the folder of a delivery was called: by the row that it answers or by
// another one in progress; 0 if it was not.
func (s *State) calledAt(d factrows.DeliveryChange) (at int64) {
	if d.Claims && d.ClaimedAt > s.lastEnd() {
		at = d.ClaimedAt
	}
	for _, c := range s.Claims {
		if c.Folder == d.Folder {
			at = max(at, s.claimedAt(c, d.At))
		}
	}
	return at
}

// isAnswer reports whether users see a delivery as an answer of an agent.
func isAnswer(d factrows.DeliveryChange) bool {
	arrived := d.State == msg.OutSent || d.State == msg.OutAmbiguous
	return arrived && d.Folder != "" && (d.Source == msg.SourceAgent || d.Source == msg.SourceTool)
}
