package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"arizuko/pkg/agentproto"
)

const (
	// showTime is how long the agent shows its work if it is not asked to be slow.
	showTime = 2 * time.Second
	// fileInterval is how often the agent looks for the file that it waits for.
	fileInterval = 20 * time.Millisecond
	// pieces is how many there are of a streamed answer.
	pieces = 20
	// bytesPerToken, contextSize and pricePerToken are made up, so that usage and its limits can be seen without a
	// model.
	bytesPerToken = 4
	contextSize   = 8000
	pricePerToken = 0.00001 // US dollars
)

// asks asks the users the questions of a message and returns their answers, "" if it has none.
func (p *performance) asks(ctx context.Context) (said string, err error) {
	if p.order.allow {
		if said, err = p.askPermission(ctx); err != nil {
			return "", err
		}
	}
	if len(p.order.ask) > 0 {
		a, err := p.Ask(ctx, agentproto.Ask{ID: "ask", Question: "Which one?", Options: p.order.ask})
		if err != nil {
			return "", err
		}
		said += fmt.Sprintf("Answer: %s (%s)\n", orDash(a.Option), a.Reason)
	}
	return said, nil
}

// permittedFile is in the group's folder: a line for each permission that the agent has used.
const permittedFile = "permitted.jsonl"

// permitted is a line of permittedFile.
type permitted struct {
	Turn string `json:"turn"`
	Text string `json:"text"`
}

// maxPermitted is the size of the text of a line in bytes: users see the whole line.
const maxPermitted = 200

// askPermission asks whether the agent may append a line to a file, and does it if it may. It returns the outcome of
// it.
func (p *performance) askPermission(ctx context.Context) (string, error) {
	line, err := json.Marshal(permitted{Turn: p.ID, Text: agentproto.Truncate(strings.Join(p.texts, " "),
		maxPermitted)})
	if err != nil {
		return "", err
	}
	ask := agentproto.Ask{
		ID: "permission", Question: "Append a line to " + permittedFile + "?", Detail: string(line),
		Options: []string{"Allow once", "Deny"}, PayloadHash: hash(line), Allow: "Allow once",
	}
	a, err := p.Ask(ctx, ask)
	if err != nil {
		return "", err
	}
	if a.Option != ask.Options[0] || a.PayloadHash != hash(line) {
		return "Permission: denied.\n", nil
	}
	return "Permission: allowed by " + a.By + ".\n", appendOnce(permittedFile, line)
}

func hash(line []byte) string {
	sum := sha256.Sum256(line)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// appendOnce appends a line to a file, unless it has the line: the turn may be retried, and gets the same permission
// again.
func appendOnce(name string, line []byte) error {
	content, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for known := range bytes.Lines(content) {
		if bytes.Equal(bytes.TrimSpace(known), line) {
			return nil
		}
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// performance is the work on one turn.
type performance struct {
	*agentproto.Turn
	order order
	texts []string // of its messages, and of those of the turns that it took in
}

// perform is slow, works, streams, takes turns in and waits for a file, as a message asks.
func (p *performance) perform(ctx context.Context) error {
	if err := p.show(ctx); err != nil || p.order.until == "" {
		return err
	}
	for {
		if _, err := os.Stat(p.order.until); err == nil {
			return nil
		}
		if err := p.wait(ctx, fileInterval); err != nil {
			return err
		}
	}
}

// show is the work on a turn that others see.
func (p *performance) show(ctx context.Context) error {
	if p.order.spend > 0 {
		return p.spend(ctx)
	}
	if !p.order.work && !p.order.stream {
		if p.order.fold {
			return p.wait(ctx, cmp.Or(p.order.slow, showTime))
		}
		return p.wait(ctx, p.order.slow)
	}
	var steps []func() error
	if p.order.work {
		steps = append(steps, work(p.Turn)...)
	}
	if p.order.stream {
		steps = append(steps, stream(p.Turn, p.describe())...)
	}
	steps = append(steps, func() error { return p.Emit(agentproto.Event{Usage: spent(p.Prompt, p.describe())}) })
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
		if err := p.wait(ctx, cmp.Or(p.order.slow, showTime)/time.Duration(len(steps))); err != nil {
			return err
		}
	}
	return nil
}

// spend states the turn's cost ten times, as it grows.
func (p *performance) spend(ctx context.Context) error {
	const times = 10
	for i := range times {
		if err := p.Emit(agentproto.Event{Usage: &agentproto.Usage{CostUSD: p.order.spend * float64(i+
			1) / times}}); err != nil {
			return err
		}
		if err := p.wait(ctx, p.order.slow/times); err != nil {
			return err
		}
	}
	return nil
}

// wait waits, and takes in messages that come meanwhile if it is asked to.
func (p *performance) wait(ctx context.Context, d time.Duration) error {
	newer := p.Newer()
	if !p.order.fold {
		newer = nil
	}
	for end := time.After(d); ; {
		select {
		case t := <-newer:
			if err := p.Fold(t); err != nil {
				return err
			}
			p.texts = append(p.texts, messageTexts(t.Prompt)...)
		case <-end:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// work shows a plan of three steps and a tool for each.
func work(t *agentproto.Turn) (steps []func() error) {
	titles := []string{"Read the messages", "Think about them", "Write the answer"}
	tools := []agentproto.Tool{{Title: "Read inbox.md", Kind: "read"}, {Title: "Consult the rules", Kind: "think"},
		{Title: "Edit answer.md", Kind: "edit"}}
	plan := func(done int) agentproto.Event {
		p := &agentproto.Plan{}
		for i, title := range titles {
			status := agentproto.StepPending
			switch {
			case i < done:
				status = agentproto.StepCompleted
			case i == done:
				status = agentproto.StepInProgress
			}
			p.Entries = append(p.Entries, agentproto.Step{Content: title, Status: status})
		}
		return agentproto.Event{Plan: p}
	}
	tool := func(i int, status agentproto.ToolStatus) agentproto.Event {
		tool := tools[i]
		tool.ID, tool.Status = fmt.Sprint(i+1), status
		return agentproto.Event{Tool: &tool}
	}
	for i := range titles {
		steps = append(steps,
			func() error {
				return emit(t, agentproto.Event{Status: agentproto.StatusRunning}, plan(i),
					tool(i, agentproto.ToolRunning))
			},
			func() error { return emit(t, tool(i, agentproto.ToolDone), plan(i+1)) })
	}
	return steps
}

// stream shows the answer piece by piece, whole words each.
func stream(t *agentproto.Turn, text string) (steps []func() error) {
	words := strings.SplitAfter(text, " ")
	for i := range pieces {
		end := max(1, len(words)*(i+1)/pieces)
		steps = append(steps, func() error {
			return emit(t,
				agentproto.Event{Text: new(strings.Join(words[:end], ""))})
		})
	}
	return steps
}

func emit(t *agentproto.Turn, events ...agentproto.Event) error {
	for _, e := range events {
		if err := t.Emit(e); err != nil {
			return err
		}
	}
	return nil
}

// spent is the usage of a turn.
func spent(prompt, answer string) *agentproto.Usage {
	input, output := int64(len(prompt)/bytesPerToken), int64(len(answer)/bytesPerToken)
	return &agentproto.Usage{
		Input: input, Output: output, ContextUsed: input + output, ContextSize: contextSize,
		CostUSD: float64(input+output) * pricePerToken,
	}
}
