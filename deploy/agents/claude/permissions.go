package main

import (
	"cmp"
	"fmt"
	"regexp"

	"arizuko/deploy/agents/internal/permission"
	"arizuko/pkg/agentproto"
)

// askPermission asks users whether a tool may run with exactly the input that the CLI names. The answer is
// handled between the CLI's lines.
func (r *run) askPermission(l line) error {
	w := r.running
	fields := []permission.Field{{Name: "tool", Words: l.Request.ToolName}, {Name: "input", Value: l.Request.Input}}
	if l.Request.BlockedPath != "" {
		fields = append(fields, permission.Field{Name: "outside of my working folder", Words: l.Request.BlockedPath})
	}
	request, err := permission.New(question(l), fields...)
	if w == nil || w.dropped || err != nil {
		return r.cli.program.Send(answer(l, refusal(l, agentproto.Answer{Problem: problem(err)})))
	}
	question := request.Ask(w.Count(request.Hash), r.cfg.redact)
	question.Tool = l.Request.ToolName
	r.log("%s %s: asking", l.Request.Subtype, l.Request.ToolName)
	c := r.cli
	w.Ask(func(ask func(agentproto.Ask) agentproto.Answer) func() error {
		a := ask(question)
		return func() error { return r.decide(c, l, a, request.Allowed(a)) }
	})
	return nil
}

// decide gives the answer of users to the CLI that has asked. A tool runs only with the input whose hash they have
// allowed, once.
func (r *run) decide(c *cli, l line, a agentproto.Answer, allowed bool) error {
	switch {
	case c != r.cli:
		return nil // it has ended
	case allowed:
		r.log("%s %s: allowed by %s", l.Request.Subtype, l.Request.ToolName, a.By)
		return c.program.Send(newAllowance(l))
	}
	r.log("%s %s: denied (%s %s)", l.Request.Subtype, l.Request.ToolName, a.Reason, cmp.Or(a.By, a.Problem))
	return c.program.Send(answer(l, refusal(l, a)))
}

// refusal tells the model why a permission was not given, and how to go on.
func refusal(l line, a agentproto.Answer) string {
	switch a.Reason {
	case agentproto.AskAnswered:
		return "A user has denied this. Do not try it again in another way: do without, or ask what to do instead."
	case agentproto.AskExpired:
		return "No user has answered the permission request in time, which counts as no. " +
			"Do without, and say what you could not do."
	}
	if a.Problem == "" {
		return denial(l)
	}
	return denial(l) + " The reason: " + a.Problem + "."
}

// problem is an error in words, "" for none.
func problem(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// question is the question to users. The name of the tool is the CLI's; its input is shown below.
func question(l line) string {
	tool := permission.Quoted(l.Request.ToolName)
	if plainTool.MatchString(l.Request.ToolName) {
		tool = l.Request.ToolName
	}
	if l.Request.BlockedPath != "" {
		return fmt.Sprintf("May I use %s outside of my working folder, with this input?", tool)
	}
	return fmt.Sprintf("May I use %s with this input?", tool)
}

// plainTool matches the names of tools that stand in a question without quotes.
var plainTool = regexp.MustCompile(`^\w{1,100}$`)

// newAllowance lets the CLI use a tool with the input of its request, byte for byte.
func newAllowance(l line) controlResponse {
	return supported(l, map[string]any{"behavior": "allow", "updatedInput": l.Request.Input})
}
