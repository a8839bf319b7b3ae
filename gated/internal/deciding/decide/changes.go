package decide

import (
	"slices"
	"strings"

	"arizuko/pkg/msg"
)

// change applies an edit or a deletion to its target: an undecided target, or one whose turn no agent has yet, is
// replaced or dropped. Else there is a note in the next prompt, and a deletion cancels the turn if the target is all of
// it.
func (w *step) change(r *Row) {
	c := r.Change
	switch {
	case c.Target != nil && w.decided[c.Target.ID]:
		w.ended = true // the next step reads the target as it is then
		return
	case c.Target == nil || c.Target.Direction == msg.Out:
		w.decide(r, msg.Dropped, msg.ReasonEditOrphan, "")
	case c.Deleted:
		w.decide(r, msg.Dropped, msg.ReasonEditSuperseded, "")
	case c.same(r):
		w.decide(r, msg.Dropped, msg.ReasonEditSame, "")
	case c.Target.Disposition == "" || c.Target.Disposition == msg.Onboarding:
		w.changeUndecided(r, c.Target)
		return
	case c.Subject.RoutedTo == "" || c.Turn != nil && c.Turn.UndoneAt != 0:
		w.decide(r, msg.Dropped, msg.ReasonEditUntaken, "")
	case r.Verb == msg.VerbEdit && !r.admitted(r.Group):
		w.refuse(r)
	case c.Turn != nil && c.Turn.State == msg.TurnQueued:
		w.changeQueued(r)
	default:
		if c.Turn != nil && c.Turn.State == msg.TurnRunning {
			w.add(TakeBack{r.ID, msg.Takeback{Turn: c.Turn.ID, Target: c.Target.ID, Subject: c.Subject.ID,
				Deletes: r.Verb == msg.VerbDelete}})
		}
		w.add(SupersedeNotes{Row: r.ID, Target: r.TargetID})
		w.add(Decide{
			Row: r.ID, Disposition: msg.Observed, Reason: msg.ReasonEditNote, RoutedTo: c.Subject.RoutedTo,
			Topic: c.Subject.Topic, ThreadID: c.Subject.ThreadID,
		})
	}
	if r.Verb == msg.VerbDelete && c.Target != nil {
		w.add(EndObjects{Row: r.ID, Messages: slices.Compact([]int64{c.Target.ID, c.Subject.ID})})
	}
}

// same reports whether an edit leaves the words, the files and the addressee as they are: platforms report many such
// edits, which change only how apps show the message.
func (c *Change) same(r *Row) bool {
	now := c.Target
	if c.Subject.Verb == msg.VerbEdit {
		now = c.Subject
	}
	if c.Latest != nil && c.Latest.Reason != msg.ReasonEditSuperseded { // else the target has been changed since
		now = c.Latest
	}
	return r.Verb == msg.VerbEdit && r.Content == now.Content && (now.Addressed || !r.Addressed) &&
		!otherFiles(r, now)
}

// otherFiles reports whether an edit has put other files in place of a message's. Its files are known on some platforms
// only.
func otherFiles(edit *Row, m *msg.Message) bool {
	return len(edit.Attachments) > 0 && !slices.EqualFunc(edit.Attachments, m.Attachments, sameFile)
}

// changeQueued changes a message in its turn, which no agent has. One whose new text may be for something else, such
// as a command or another group, or which has other files, is decided again.
func (w *step) changeQueued(r *Row) {
	c := r.Change
	w.decide(r, msg.Dropped, msg.ReasonEditApplied, "")
	w.ended = true
	text, plain := c.inTurn(r.Content)
	files := r.Verb == msg.VerbEdit && otherFiles(r, c.Subject)
	e := TakeBack{r.ID, msg.Takeback{
		Turn: c.Turn.ID, Queued: true, Target: c.Target.ID, Subject: c.Subject.ID, TargetID: r.TargetID,
		Deletes: r.Verb == msg.VerbDelete, Again: (!plain || files) && r.Verb == msg.VerbEdit, Content: r.Content,
		Text: text, Addressed: c.Subject.Addressed || r.Addressed, Verb: c.Subject.Verb,
	}}
	if c.Subject.Verb == msg.VerbEdit && !e.Deletes { // which fired the turn: the target was observed, and stays so
		e.Target = c.Subject.ID
	}
	if r.Addressed && e.Verb == msg.VerbMessage {
		e.Verb = msg.VerbMention
	}
	w.add(e)
	if files {
		w.add(ReplaceFiles{Row: r.ID, Target: e.Target})
	}
}

// inTurn returns the part of a new text of the target that goes into its turn. plain is false if that could be for
// something else than the text before: it begins with another word that may be a command or name a group or topic.
func (c *Change) inTurn(text string) (in string, plain bool) {
	if c.Subject.Verb == msg.VerbEdit {
		return text, true
	}
	if c.Subject.ID != c.Target.ID {
		prefix, cut := strings.CutSuffix(c.Target.Content, c.Subject.Content)
		rest, same := strings.CutPrefix(text, prefix)
		return rest, cut && same && prefix != "" && strings.TrimSpace(rest) != ""
	}
	words, before := strings.Fields(text), strings.Fields(c.Target.Content)
	named := len(words) > 0 && strings.ContainsAny(words[0][:1], "/!@#")
	return text, !named || len(words) > 1 && len(before) > 1 && words[0] == before[0]
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
	if otherFiles(r, target) {
		w.add(ReplaceFiles{Row: r.ID, Target: target.ID})
	}
}
