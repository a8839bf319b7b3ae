package decide

import (
	"slices"

	"arizuko/pkg/msg"
)

// changes applies an edit or a deletion to its target: an undecided target is
// replaced or dropped, a decided one gets a note in the next prompt.
func (w *step) changes(r *Row) bool {
	c := r.Change
	if c == nil || c.Fires {
		return false
	}
	switch {
	case c.Target != nil && w.decided[c.Target.ID]:
		w.ended = true // the next step reads the target as it is then
		return true
	case c.Target == nil || c.Target.Direction == msg.Out:
		w.decide(r, msg.Dropped, msg.ReasonEditOrphan, "")
	case c.same(r):
		w.decide(r, msg.Dropped, msg.ReasonEditSame, "")
	case c.Target.Disposition == "" || c.Target.Disposition == msg.Onboarding:
		w.changeUndecided(r, c.Target)
		return true
	case c.Subject.RoutedTo == "":
		w.decide(r, msg.Dropped, msg.ReasonEditUntaken, "")
	case r.Verb == msg.VerbEdit && !r.admitted(r.Group):
		w.refuse(r)
	default:
		w.add(SupersedeNotes{Row: r.ID, Target: r.TargetID})
		w.add(Decide{
			Row: r.ID, Disposition: msg.Observed, Reason: msg.ReasonEditNote, RoutedTo: c.Subject.RoutedTo,
			Topic: c.Subject.Topic, ThreadID: c.Subject.ThreadID,
		})
	}
	if r.Verb == msg.VerbDelete && c.Target != nil {
		w.add(EndObjects{Row: r.ID, Messages: slices.Compact([]int64{c.Target.ID, c.Subject.ID})})
	}
	return true
}

// same reports whether an edit leaves the words, the files and whom it addresses as they are: platforms report many
// such edits, of what only apps show. The files of an edit are known on some platforms only.
func (c *Change) same(r *Row) bool {
	now := c.Target
	if c.Latest != nil {
		now = c.Latest
	}
	return r.Verb == msg.VerbEdit && r.Content == now.Content && (now.Addressed || !r.Addressed) &&
		(len(r.Attachments) == 0 || slices.EqualFunc(r.Attachments, now.Attachments, sameFile))
}

// sameFile compares the file of an edit with one that may have been downloaded, of which the size is known from then
// on.
func sameFile(edited, f msg.Attachment) bool {
	return edited.Name == f.Name && edited.MIME == f.MIME && (edited.Size == 0 || edited.Size == f.Size)
}

// changeUndecided changes an undecided or parked row. The chat's rows are then loaded
// again: their text, or whether they address the bot, may have changed.
func (w *step) changeUndecided(r *Row, target *msg.Message) {
	w.decide(r, msg.Dropped, msg.ReasonEditApplied, "")
	w.ended = true
	if target.Disposition == msg.Onboarding {
		w.add(TakeUpRow{Row: target.ID})
	}
	if r.Verb == msg.VerbDelete {
		w.add(Decide{
			Row: target.ID, Disposition: msg.Dropped, Reason: msg.ReasonDeleted, Topic: target.Topic,
			ThreadID: target.ThreadID,
		})
		return
	}
	verb := target.Verb
	if r.Addressed && verb == msg.VerbMessage {
		verb = msg.VerbMention
	}
	w.add(ReplaceContent{
		Row: r.ID, Target: target.ID, Content: r.Content, Addressed: target.Addressed || r.Addressed, Verb: verb,
	})
}
