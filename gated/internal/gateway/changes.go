package gateway

import (
	"context"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// change is an edit or delete row with the row it acts on.
type change struct {
	target  *msg.Message // nil if it is not stored
	subject *msg.Message // the target, or the row derived from it
	fires   bool         // the edit addresses the bot, which the observed original did not
}

func (g *Gateway) findChange(ctx context.Context, r *row) (*change, error) {
	c := &change{}
	if r.TargetID == "" {
		return c, nil
	}
	var err error
	if c.target, err = g.st.MessageByPlatformID(ctx, r.ChatJID, r.TargetID); err != nil || c.target == nil {
		return c, err
	}
	c.subject = c.target
	if c.target.Disposition == msg.Prefix || c.target.Disposition == msg.Command {
		derived, err := g.st.DerivedFrom(ctx, c.target.ID)
		if err != nil {
			return c, err
		}
		if len(derived) > 0 {
			c.subject = derived[0]
		}
	}
	if r.Verb == msg.VerbEdit && r.Addressed && c.subject.Disposition == msg.Observed {
		fired, err := g.st.EditFired(ctx, r.ChatJID, r.TargetID)
		c.fires = !fired
		return c, err
	}
	return c, nil
}

// applyChange applies an edit or a deletion to its target: an undecided target
// is replaced or dropped, a decided one gets a note in the next prompt.
func (d *decider) applyChange(r *row) {
	c := r.change
	switch {
	case c.target != nil && d.decided[c.target.ID]:
		d.reload = true // the next pass reads the target as it is then
	case c.target == nil || c.target.Direction == msg.Out:
		d.decide(r, msg.Dropped, msg.ReasonEditOrphan, "", d.now)
	case c.target.Disposition == "":
		d.changeUndecided(r, c.target)
	case c.subject.RoutedTo == "":
		d.decide(r, msg.Dropped, msg.ReasonEditUntaken, "", d.now)
	default:
		d.step(func(tx *store.Tx) error { return tx.SupersedeNotes(r.ChatJID, r.TargetID) })
		d.decideAs(r.ID, store.Decision{
			Disposition: msg.Observed, Reason: msg.ReasonEditNote, RoutedTo: c.subject.RoutedTo,
			Topic: c.subject.Topic, ThreadID: c.subject.ThreadID,
		}, d.now)
	}
}

// changeUndecided changes an undecided row. The chat's rows are then loaded
// again: their text, or whether they address the bot, may have changed.
func (d *decider) changeUndecided(r *row, target *msg.Message) {
	d.decide(r, msg.Dropped, msg.ReasonEditApplied, "", d.now)
	if r.Verb == msg.VerbDelete {
		d.decide(&row{Message: target}, msg.Dropped, msg.ReasonDeleted, "", d.now)
	} else {
		addressed, verb := target.Addressed || r.Addressed, target.Verb
		if r.Addressed && verb == msg.VerbMessage {
			verb = msg.VerbMention
		}
		d.step(func(tx *store.Tx) error { return tx.ReplaceContent(target.ID, r.Content, addressed, verb) })
	}
	d.reload = true
}
