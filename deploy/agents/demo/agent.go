package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/agentproto"
)

// maxCount is the longest "1/100 ", in bytes.
const maxCount = 16

// answer answers a turn as the last of its messages says.
func answer(ctx context.Context, t *agentproto.Turn) (r agentproto.Reply, err error) {
	p := &performance{Turn: t, texts: messageTexts(t.Prompt)}
	if len(p.texts) > 0 {
		p.order = parseOrder(p.texts[len(p.texts)-1])
	}
	if t.ID == t.Start.TurnID {
		if err := t.Offer(agentproto.Models{Current: p.model(), Models: models()}); err != nil {
			return r, err
		}
	}
	if !slices.ContainsFunc(models(), func(m agentproto.Model) bool { return m.ID == p.model() }) {
		return r, &agentproto.Failure{Kind: agentproto.KindPermanent,
			Text: fmt.Sprintf("there is no model %q: the demo agent has %s and %s", p.model(), quiet, loud)}
	}
	said, err := p.asks(ctx)
	if err != nil {
		return r, err
	}
	if err := p.perform(ctx); err != nil {
		return r, err
	}
	o := p.order
	if t.Session == "" {
		r.Session = "demo-" + strings.ToLower(rand.Text())
	}
	switch {
	case o.crash:
		fmt.Fprintln(os.Stderr, "demo: crash requested")
		os.Exit(1)
	case o.fail:
		if o.result {
			r.Text = p.describe()
		}
		return r, &agentproto.Failure{Kind: o.kind, Text: "error requested",
			RetryAfter: time.Duration(o.retry * float64(time.Second))}
	case o.silent:
		return r, nil
	}
	room := min(agentproto.MaxResult, agentproto.MaxParts/max(o.frames-1, 1))
	text := agentproto.Cut(said+p.describe(), room-maxCount)
	for i := 1; i < o.frames; i++ {
		if err := t.Send(agentproto.Reply{Text: fmt.Sprintf("%d/%d %s", i, o.frames, text),
			Session: r.Session}); err != nil {
			return r, err
		}
	}
	if o.frames > 1 {
		text = fmt.Sprintf("%d/%d %s", o.frames, o.frames, text)
	}
	r.Text = text
	return r, nil
}

func (p *performance) describe() string {
	if p.order.system {
		return cmp.Or(p.Start.System, "The start line has no system text.")
	}
	var b strings.Builder
	for _, text := range p.texts {
		if p.model() == loud {
			text = strings.ToUpper(text)
		}
		fmt.Fprintf(&b, "You said: %s\n", text)
	}
	for _, text := range transcripts(p.Prompt) {
		fmt.Fprintf(&b, "Transcript: %s\n", text)
	}
	fmt.Fprintf(&b, "(topic %s · place %s · surface %s · turn %s)",
		orDash(p.Start.Topic), orDash(p.Start.EngageTopic), orDash(p.Start.Surface), p.ID)
	return b.String()
}

// The models of the agent.
const (
	quiet = "quiet"
	loud  = "loud"
)

func models() []agentproto.Model {
	return []agentproto.Model{
		{ID: quiet, Name: "Quiet", Description: "your words as they are"},
		{ID: loud, Name: "Loud", Description: "your words in capital letters"},
	}
}

// model is the one that an operator has chosen, else the first.
func (p *performance) model() string { return cmp.Or(p.Start.Model, quiet) }

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
