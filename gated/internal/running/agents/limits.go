package agents

import (
	"errors"
	"fmt"
	"slices"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/store"
)

// minPart is the least room for a part of a result, in bytes: shorter ones say nothing.
const minPart = 1 << 10

// output is what the run has written for one of its turns.
type output struct {
	frames         int // that were stored
	bytes          int // of their results
	discarded      int // frames over the limits
	sessionRefused bool
}

// output returns the output of a turn of this run.
func (r *run) output(t *msg.Turn) *output {
	out := r.outputs[t.ID]
	if out == nil {
		out = &output{}
		r.outputs[t.ID] = out
	}
	return out
}

// admit reports whether a frame is within the limits of its turn, and returns its
// result as it is stored. The frame that ends a turn is always within them, and has
// room for a whole result.
func (r *run) admit(t *msg.Turn, f agentproto.Frame) (text string, ok bool) {
	out := r.output(t)
	maxFrames, maxBytes := agentproto.MaxFrames, agentproto.MaxResults
	if r.isOpen(t.ID) && !ends(f) {
		maxFrames, maxBytes = agentproto.MaxFrames-1, agentproto.MaxParts
	}
	if out.frames >= maxFrames {
		return "", false
	}
	room := max(maxBytes-out.bytes, 0)
	if text = r.setup.redact(agentproto.Strip(f.Result)); render.Blank(text) {
		text = "" // silence: it would be an empty message
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

func (r *run) isOpen(turn int64) bool {
	return slices.ContainsFunc(r.unanswered, func(t *msg.Turn) bool { return t.ID == turn })
}

const overLimit = "(The agent wrote more than I pass on for one message. A part of it is left out.)"

// discard counts a frame over the limits of its turn. The first one is logged, and the
// chat gets a line about it.
func (r *run) discard(t *msg.Turn) {
	out := r.output(t)
	if out.discarded++; out.discarded > 1 {
		return
	}
	r.m.log.Warn("frame discarded: the turn is over its limit; further ones are not logged", "run", r.row.ID, "turn", t.ID,
		"folder", t.Folder, "frames", out.frames, "bytes", out.bytes)
	err := r.m.persist(r.m.ctx, func(tx *store.Tx) error {
		now, err := tx.Turn(r.m.ctx, t.ID)
		if err != nil || now == nil || now.RunID != r.row.ID || now.State != msg.TurnRunning && now.State != msg.TurnDone {
			return err
		}
		return tx.PutInterimNotice(now, overLimit, r.m.now())
	})
	if errors.Is(err, store.ErrPanic) {
		r.costTurn(t, err)
	}
}

// problem is the text of an agent's error as it is stored.
func (r *run) problem(text string) string {
	return agentproto.Truncate(r.setup.redact(text), agentproto.MaxError)
}

// lost describes the discarded frames of a turn, "" if there are none.
func (r *run) lost(t *msg.Turn) string {
	out := r.output(t)
	if out.discarded == 0 {
		return ""
	}
	return fmt.Sprintf("%d frames were discarded: a turn has at most %d, with results of %d bytes in all",
		out.discarded, agentproto.MaxFrames, agentproto.MaxResults)
}

// session is the session that a frame names, "" if there is none or its id is too long.
func (r *run) session(t *msg.Turn, f agentproto.Frame) string {
	if len(f.NewSessionID) <= agentproto.MaxSessionID {
		return f.NewSessionID
	}
	if out := r.output(t); !out.sessionRefused {
		out.sessionRefused = true
		r.m.log.Warn("session refused: its id is too long", "run", r.row.ID, "turn", t.ID, "folder", t.Folder, "bytes", len(f.NewSessionID))
	}
	return ""
}
