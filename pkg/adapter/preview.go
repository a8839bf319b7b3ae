package adapter

import (
	"context"
	"strings"
	"time"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Previewer is a platform that can show the progress of a turn while it runs: a preview. The shell says when, and keeps
// the platform's limits. It calls no method of a lane while it sends there, or while it calls another one there.
type Previewer interface {
	// PreviewEvery returns the smallest time between two changes of a preview in a lane. 0 means that there are none.
	PreviewEvery(in store.Lane) time.Duration
	// ShowPreview makes a message if p.PlatformID is "", or else changes that one, and returns its id. A new message is
	// of the line PreviewStart alone, so that one which a crash leaves behind says nothing; its content comes with the
	// next call, and so does a button that stops the turn, see msg.StopData, if a message can have one. An error is a
	// *Failure. After a permanent one the message is removed, if there is one, and the turn gets no other. After an
	// ambiguous one it is also removed, and the turn gets another.
	ShowPreview(ctx context.Context, p *Preview) (platformID string, err error)
	// RemovePreview deletes the message of a preview. An error is a *Failure. After a permanent one, which is no error
	// if the message is gone already, it is not tried again.
	RemovePreview(ctx context.Context, in store.Lane, platformID string) error
	// TakeOver returns the part that is sent in place of part, the first one of an answer: it makes the message of a
	// preview into the answer, without the button. Sending it twice does no harm, see Repeatable; if it is refused for
	// good, part is sent as it is, and the preview is removed. ok is false if a part of this kind, such as a file, or
	// an id of this form cannot be taken over.
	TakeOver(part Part, platformID string) (edit Part, ok bool)
}

// PreviewStart is the whole text of a preview that was just made.
const PreviewStart = "Working on it…"

// Preview is the content of a turn's preview. All texts are redacted.
type Preview struct {
	Turn       int64 // its id
	In         store.Lane
	ReplyTo    string          // platform id of the message that a new preview answers, "" for none
	Mode       msg.PreviewMode // not off
	PlatformID string          // of the message that shows the preview, "" if none does yet
	BeganAt    int64           // when the turn began, unix ms

	Text string // the answer so far, in markdown, which may end anywhere; "" in mode status
	Line string // the agent's present action, one line of plain text; "" if Text says it all

	// Line is made from these; some platforms show more of them.
	State agentproto.Status
	Plan  []agentproto.Step
	Tools []agentproto.Tool
}

// LineMarkdown is Line in markdown that forges nothing, with a sign before it; "" without a line.
func (p *Preview) LineMarkdown() string {
	if p.Line == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString("⏳ ")
	for _, r := range p.Line {
		if r < 0x80 && strings.ContainsRune("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
