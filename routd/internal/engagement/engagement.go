// Package engagement knows who answers in a place of a chat without being called. A mention
// or a reply to the bot claims its place while its turn is under way; the first part of the
// answer that arrives opens a window there, and each further answer slides it. What happened
// is read from the rows of turns and deliveries, so nothing is missed while routd is down.
package engagement

import (
	"time"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// State is what is known of one place of a chat.
type State struct {
	msg.Engagement
	PinnedAt int64         // when the chat was last pinned to a group, 0 for never
	Claims   []store.Claim // the newest first
}

// Engaged is who answers what came at a time, "" for nobody: whoever was called last, by a
// mention or by word, of those whose window is open or whose claim is in force.
func (s *State) Engaged(at int64) (folder string) {
	called := int64(0)
	if s.Open(at, s.PinnedAt) {
		folder, called = s.Folder, s.At
	}
	for _, c := range s.Claims {
		if s.inForce(c, at) && c.At > called {
			folder, called = c.Folder, c.At
		}
	}
	return folder
}

// inForce says whether a claim holds the place at a time.
func (s *State) inForce(c store.Claim, at int64) bool {
	return c.At > s.since() && c.At <= at && (c.OverAt == 0 || at <= c.OverAt)
}

// latest is when what holds the place at a time began, or was ended last: it may be ahead of a
// clock that was set back.
func (s *State) latest(at int64) int64 {
	latest := s.EndedAt
	if s.Open(at, s.PinnedAt) {
		latest = max(latest, s.At)
	}
	for _, c := range s.Claims {
		if c.OverAt == 0 {
			latest = max(latest, c.At)
		}
	}
	return latest
}

// since is up to when claims and windows are over for good.
func (s *State) since() int64 { return max(s.EndedAt, s.PinnedAt) }

// delivered is what a delivery makes of the place; false if nothing. It slides the window of its
// folder, or opens one on the strength of a claim, unless another's was called later.
func (s *State) delivered(d store.DeliveryChange, ttl time.Duration) (msg.Engagement, bool) {
	next, called, open := s.Engagement, s.called(d), s.Open(d.At, s.PinnedAt)
	switch {
	case d.At+ttl.Milliseconds() <= 0: // a foreign adapter's time that is none
		return next, false
	case open && s.Folder == d.Folder:
	case called == 0, open && called < s.At:
		return next, false
	default:
		next.At, next.Until = 0, 0
	}
	next.Folder, next.At, next.LastReply = d.Folder, max(next.At, called), d.MessageID
	next.Until = max(next.Until, d.At+ttl.Milliseconds())
	return next, true
}

// called is when the folder of a delivery was called, by the mention that this answers or by
// another one it is working on; 0 if it was not.
func (s *State) called(d store.DeliveryChange) (at int64) {
	if d.Claims && d.ClaimedAt > s.since() {
		at = d.ClaimedAt
	}
	for _, c := range s.Claims {
		if c.Folder == d.Folder && s.inForce(c, d.At) {
			at = max(at, c.At)
		}
	}
	return at
}

// conversational reports whether a delivery is one that people see as an answer.
func conversational(d store.DeliveryChange) bool {
	arrived := d.State == msg.OutSent || d.State == msg.OutAmbiguous
	return arrived && d.Folder != "" && (d.Source == msg.SourceAgent || d.Source == msg.SourceTool)
}
