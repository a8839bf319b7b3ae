package engagement_test

import (
	"slices"

	"pgregory.net/rapid"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// post writes an outbound row beside the frames of a turn, or without one.
func (w *simulation) post(t *rapid.T) {
	source := rapid.SampledFrom([]string{msg.SourceTool, msg.SourceTool, msg.SourceNotice, msg.SourceCommand, "reminder", "broadcast"}).Draw(t, "source")
	row := &msg.Message{Direction: msg.Out, Source: source, OutState: msg.OutQueued, Content: "x"}
	tn := &turn{place: w.drawPlace(t)}
	if rapid.Bool().Draw(t, "of a turn") {
		tn = w.drawTurn(t)
		tn.whole, row.TurnID = true, tn.ID
	}
	row.ChatJID, row.ThreadID = tn.chat, tn.in
	w.write(t, func(tx *store.Tx) error { _, _, err := tx.PutMessage(row); return err })
	w.queued(row.ID, tn, source == msg.SourceTool && tn.answersFor != "")
}

// deliver takes an outbound row one step further: it is claimed, or its next part is delivered.
func (w *simulation) deliver(t *rapid.T) {
	if len(w.out) == 0 {
		t.Skip("nothing to deliver")
	}
	r := w.out[rapid.IntRange(0, len(w.out)-1).Draw(t, "reply")]
	if !r.claimed {
		parts := rapid.IntRange(1, 2).Draw(t, "parts")
		w.write(t, func(tx *store.Tx) error { return tx.ClaimOutbound(r.id, parts, w.now) })
		r.claimed = true
		if rapid.Bool().Draw(t, "slowly") {
			return
		}
	}
	w.sendPart(t, r)
}

func (w *simulation) sendPart(t *rapid.T, r *reply) {
	state := rapid.SampledFrom([]msg.OutState{msg.OutSent, msg.OutSent, msg.OutAmbiguous, msg.OutFailed, msg.OutQueued}).Draw(t, "becomes")
	parts, err := w.st.Deliveries(t.Context(), r.id)
	if err != nil {
		t.Fatal(err)
	}
	done := len(r.parts)
	part := parts[done]
	part.State = state
	if state != msg.OutQueued { // to be tried again
		r.parts = append(r.parts, state)
	}
	over := state == msg.OutFailed || len(r.parts) == len(parts)
	w.write(t, func(tx *store.Tx) error {
		if err := tx.PutDelivery(part, w.now); err != nil || !over {
			return err
		}
		return tx.SettleOutbound(r.id, state, "")
	})
	w.delivered(r, state, over)
}

// delivered passes the result of a part to the model.
func (w *simulation) delivered(r *reply, state msg.OutState, over bool) {
	p := r.turn.place
	if r.answers && (state == msg.OutSent || state == msg.OutAmbiguous) {
		w.countDelivery(p, r.turn.answersFor, state)
		w.model.delivered(p, r.turn.answersFor, w.now)
		w.shown[p] = w.now
	}
	if !over {
		return
	}
	w.out = slices.DeleteFunc(w.out, func(other *reply) bool { return other == r })
	if r.answers && r.turn.claim != nil {
		r.turn.claim.unsent--
		r.turn.claim.checkOver(w.now)
	}
}

func (w *simulation) countDelivery(p place, folder string, state msg.OutState) {
	by := w.model.holder(p, w.now)
	switch {
	case by.folder != folder:
		w.sawCase("a delivery engages no group")
	case by == w.model.history(p).window:
		w.sawCase("a delivery slides a window")
	default:
		w.sawCase("a delivery engages: " + string(state))
	}
	if w.down {
		w.sawCase("a delivery while routd is down")
	}
}
