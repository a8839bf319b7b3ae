package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"time"

	"arizuko/pkg/agentproto"
)

// maxCount is what "1/100 " takes at most, in bytes.
const maxCount = 16

// answer answers a turn as the last of its messages says.
func answer(ctx context.Context, t *agentproto.Turn) (r agentproto.Reply, err error) {
	texts := messageTexts(t.Prompt)
	var o order
	if len(texts) > 0 {
		o = parseOrder(texts[len(texts)-1])
	}
	select {
	case <-time.After(o.slow):
	case <-ctx.Done():
		return r, context.Cause(ctx)
	}
	if t.Session == "" {
		r.Session = "demo-" + strings.ToLower(rand.Text())
	}
	switch {
	case o.crash:
		fmt.Fprintln(os.Stderr, "demo: crash requested")
		os.Exit(1)
	case o.fail:
		if o.result {
			r.Text = describe(t, texts, o)
		}
		return r, &agentproto.Failure{Kind: o.kind, Text: "error requested", RetryAfter: time.Duration(o.retry * float64(time.Second))}
	case o.silent:
		return r, nil
	}
	room := min(agentproto.MaxResult, agentproto.MaxParts/max(o.frames-1, 1))
	text := agentproto.Cut(describe(t, texts, o), room-maxCount)
	for i := 1; i < o.frames; i++ {
		if err := t.Send(agentproto.Reply{Text: fmt.Sprintf("%d/%d %s", i, o.frames, text), Session: r.Session}); err != nil {
			return r, err
		}
	}
	if o.frames > 1 {
		text = fmt.Sprintf("%d/%d %s", o.frames, o.frames, text)
	}
	r.Text = text
	return r, nil
}

func describe(t *agentproto.Turn, texts []string, o order) string {
	if o.system {
		return cmp.Or(t.Start.System, "The start line has no system text.")
	}
	var b strings.Builder
	for _, text := range texts {
		fmt.Fprintf(&b, "You said: %s\n", text)
	}
	fmt.Fprintf(&b, "(topic %s · place %s · surface %s · turn %s)",
		orDash(t.Start.Topic), orDash(t.Start.EngageTopic), orDash(t.Start.Surface), t.ID)
	return b.String()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
