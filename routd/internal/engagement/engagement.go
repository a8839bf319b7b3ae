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
func (s *State) Engaged(at int64) string {
	folder, _ := s.holder(at)
	return folder
}

// holder is who answers what came at a time, "" for nobody, and since when: whoever was called
// last, by a mention or by word, of those whose window is open or whose claim is in force.
func (s *State) holder(at int64) (folder string, since int64) {
	if s.Open(at, s.PinnedAt) {
		folder, since = s.Folder, s.At
	}
	for _, c := range s.Claims {
		if c.At > max(since, s.since()) && c.At <= at && (c.OverAt == 0 || at <= c.OverAt) {
			folder, since = c.Folder, c.At
		}
	}
	return folder, since
}

// since is up to when claims and windows are over for good.
func (s *State) since() int64 { return max(s.EndedAt, s.PinnedAt) }

// delivered is what a delivery makes of the place; false if nothing. It slides what its folder
// holds, and leaves another folder what that one holds.
func (s *State) delivered(d store.Delivered, ttl time.Duration) (msg.Engagement, bool) {
	next := s.Engagement
	folder, since := s.holder(d.At)
	if folder == "" && d.Claims && d.ClaimedAt > s.since() {
		// Its own claim is older than those that were read, or the clock was set back.
		folder, since = d.Folder, d.ClaimedAt
	}
	if folder != d.Folder {
		return next, false
	}
	if s.Folder != folder || !s.Open(d.At, s.PinnedAt) {
		next.Until = 0
	}
	next.Folder, next.At, next.LastReply = folder, since, d.MessageID
	next.Until = max(next.Until, d.At+ttl.Milliseconds())
	return next, true
}

// conversational reports whether a delivery is one that people see as an answer.
func conversational(d store.Delivered) bool {
	arrived := d.State == msg.OutSent || d.State == msg.OutAmbiguous
	return arrived && d.Folder != "" && (d.Source == msg.SourceAgent || d.Source == msg.SourceTool)
}
