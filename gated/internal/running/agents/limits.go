package agents

import (
	"fmt"
	"slices"
	"strings"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/store"
)

// minPart is the least room for a part of a result, in bytes: shorter ones say nothing.
const minPart = 1 << 10

// output counts the frames of the run for one of its turns.
type output struct {
	frames         int // that were stored
	bytes          int // of their results
	discarded      int // frames over the limits
	brokenOff      bool
	sessionRefused bool
}

// outputs count the frames of the run. Its goroutine owns them.
type outputs struct {
	*runInfo
	turns   map[int64]*output
	ignored int // frames for no turn of the run
}

// of returns the output of a turn.
func (o *outputs) of(t *msg.Turn) *output {
	out := o.turns[t.ID]
	if out == nil {
		out = &output{}
		o.turns[t.ID] = out
	}
	return out
}

// ignore counts a frame for no turn of the run. The first one is logged.
func (o *outputs) ignore(f agentproto.Frame) {
	if o.ignored++; o.ignored == 1 {
		o.env.log.Warn("frame ignored: it names no turn of this run; further ones are not logged", "run", o.row.ID,
			"turn", agentproto.Truncate(strings.Join(f.Turns(), ","), 40), "folder", o.row.Folder, "chat",
			o.row.ChatJID)
	}
}

// admit reports whether a frame is within the limits of its turn, and returns its
// result as it is stored. The frame that ends a turn is always within them, and has
// room for a whole result. open means that the turn is unanswered.
func (o *outputs) admit(t *msg.Turn, f agentproto.Frame, open bool) (text string, ok bool) {
	out := o.of(t)
	maxFrames, maxBytes := agentproto.MaxFrames, agentproto.MaxResults
	if open && !ends(f) {
		maxFrames, maxBytes = agentproto.MaxFrames-1, agentproto.MaxParts
	}
	if out.frames >= maxFrames {
		return "", false
	}
	room := max(maxBytes-out.bytes, 0)
	if text = o.setup.redact(agentproto.Strip(f.Result)); render.Blank(text) {
		text = "" // silence: it would be an empty message
		if agentproto.BrokenOff(f.Result) {
			out.brokenOff, text = true, brokenOff
		}
	}
	if len(text) > room && room < minPart {
		return "", false
	}
	text = agentproto.Cut(text, min(max(room, minPart), agentproto.MaxResult))
	out.frames++
	out.bytes += len(text)
	return text, true
}

// ends reports whether a frame is the last of its turn.
func ends(f agentproto.Frame) bool { return !f.More() || f.Status == agentproto.StatusError }

const brokenOff = "(The agent's answer broke off while it was thinking, so there is nothing to show. Please ask again.)"

const overLimit = "(The agent wrote more than I pass on for one message. A part of it is left out.)"

// discard counts a frame over the limits of its turn. The first one is logged, and the
// chat gets a line about it.
func (o *outputs) discard(t *msg.Turn) error {
	out := o.of(t)
	if out.discarded++; out.discarded > 1 {
		return nil
	}
	o.env.log.Warn("frame discarded: the turn is over its limit; further ones are not logged", "run", o.row.ID, "turn",
		t.ID,
		"folder", t.Folder, "frames", out.frames, "bytes", out.bytes)
	return o.env.persist(o.env.ctx, func(tx *store.Tx) error {
		now, err := tx.Turn(o.env.ctx, t.ID)
		if err != nil || now == nil || now.RunID != o.row.ID ||
			now.State != msg.TurnRunning && now.State != msg.TurnDone {
			return err
		}
		return rows.PutInterimNotice(tx, now, overLimit, o.env.now())
	})
}

// lost describes the missing part of a turn's answer, "" if none is missing.
func (o *outputs) lost(t *msg.Turn) string {
	out := o.of(t)
	switch {
	case out.discarded == 0 && out.brokenOff:
		return "the result is nothing but hidden text that is not closed, such as <think>"
	case out.discarded == 0:
		return ""
	}
	return fmt.Sprintf("%d frames were discarded: a turn has at most %d, with results of %d bytes in all",
		out.discarded, agentproto.MaxFrames, agentproto.MaxResults)
}

// session is the session that a frame names, "" if there is none or its id is too long.
func (o *outputs) session(t *msg.Turn, f agentproto.Frame) string {
	if len(f.NewSessionID) <= agentproto.MaxSessionID {
		return f.NewSessionID
	}
	if out := o.of(t); !out.sessionRefused {
		out.sessionRefused = true
		o.env.log.Warn("session refused: its id is too long", "run", o.row.ID, "turn", t.ID, "folder", t.Folder,
			"bytes", len(f.NewSessionID))
	}
	return ""
}

// maxOffers is how often one run may change the models that it offers. Further changes are ignored.
const maxOffers = 20

// offers are the models that the agent of a run offers. The run's goroutine owns them.
type offers struct {
	*runInfo
	last    agentproto.Models
	changes int
}

// store stores the models that the agent offers, unless they are as before.
func (o *offers) store(m agentproto.Models) {
	m.Current, m.Models = o.setup.redact(m.Current), slices.Clone(m.Models)
	for i := range m.Models {
		model := &m.Models[i]
		model.ID, model.Name, model.Description = o.setup.redact(model.ID), o.setup.redact(model.Name),
			o.setup.redact(model.Description)
	}
	if o.changes == maxOffers || o.changes > 0 && o.last.Equal(m) {
		return
	}
	o.changes++
	o.last = m
	err := o.env.st.Write(o.env.ctx, func(tx *store.Tx) error {
		return rows.PutAgentModels(tx, o.row.Folder, o.row.Agent, m, o.env.now())
	})
	if err != nil && o.env.ctx.Err() == nil { // the next run says it again
		o.env.log.Warn("models of an agent not stored", "run", o.row.ID, "folder", o.row.Folder, "err", err)
	}
}
