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

// Engaged is who answers what came at a time, "" for nobody.
func (s *State) Engaged(at int64) (folder string) {
	if s.Open(at, s.PinnedAt) {
		folder = s.Folder
	}
	if claim := s.claim(at); claim != nil && (folder == "" || claim.At > s.At) {
		folder = claim.Folder
	}
	return folder
}

// claim is the newest claim in force at a time, nil if there is none.
func (s *State) claim(at int64) *store.Claim {
	for i := range s.Claims {
		c := &s.Claims[i]
		if c.At > s.since() && c.At <= at && (c.EndedAt == 0 || c.EndedAt > at || c.Sending) {
			return c
		}
	}
	return nil
}

// since is up to when claims and windows are over for good.
func (s *State) since() int64 { return max(s.EndedAt, s.PinnedAt) }

// delivered is what a delivery makes of the place; false if nothing.
func (s *State) delivered(d store.Delivered, ttl time.Duration) (msg.Engagement, bool) {
	next, open, claim := s.Engagement, s.Open(d.At, s.PinnedAt), s.claim(d.At)
	own := d.Claims && d.ClaimedAt > s.since() && (!open || d.ClaimedAt >= s.At)
	switch {
	case own, open && s.Folder == d.Folder, claim != nil && claim.Folder == d.Folder:
	default:
		return next, false
	}
	if !open || s.Folder != d.Folder {
		next.At, next.Until = 0, 0
	}
	next.Folder, next.LastReply = d.Folder, d.MessageID
	next.At, next.Until = max(next.At, d.At), max(next.Until, d.At+ttl.Milliseconds())
	return next, true
}

// conversational reports whether a delivery is one that people see as an answer.
func conversational(d store.Delivered) bool {
	arrived := d.State == msg.OutSent || d.State == msg.OutAmbiguous
	return arrived && d.Folder != "" && (d.Source == msg.SourceAgent || d.Source == msg.SourceTool)
}
