package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"arizuko/deploy/agents/internal/failure"
	"arizuko/pkg/agentproto"
)

// noAnswer is the failure of a command that ended well and printed no answer. It is not a silence: a
// model that wants to be silent says so in its answer, by hidden text.
const noAnswer = "it ended without an answer"

// explain makes a failure of how a process ended, with the command's own words if it printed any.
// reported is the error in its output, "" if there is none.
func (c *cli) explain(err error, reported, stderr string) *agentproto.Failure {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return new(failure.Permanent("%s is not installed, or not in PATH", c.program))
	case c.lost != "" && err != nil && strings.Contains(stderr, c.lost):
		return new(failure.SessionLost(c.name + ": " + errorLine(stderr)))
	}
	reason := noAnswer
	if err != nil {
		reason = err.Error()
	}
	if err == nil || errors.Is(err, errHungUp) {
		stderr = reported // the stderr of a program that ends well is no error
	} else {
		stderr = cmp.Or(reported, errorLine(stderr))
	}
	f := failure.Classify(cmp.Or(excerpt(stderr), reason))
	if failure.IsNotFound(err) {
		f.Kind = agentproto.KindPermanent
	}
	f.Text = fmt.Sprintf("%s failed: %s", c.name, f.Text)
	if c.authHelp != "" && strings.Contains(f.Text, authRefused) {
		f.Text += ": " + c.authHelp
	}
	return &f
}

const (
	// authRefused is printed by Gemini CLI behind a gateway, where it does not look for a key by itself.
	authRefused    = "Invalid auth method"
	geminiAuthHelp = `behind a gateway it wants {"security":{"auth":{"selectedType":"gemini-api-key"}}} in ` +
		`.gemini/settings.json below its HOME, ` +
		"and GEMINI_API_KEY and GOOGLE_GEMINI_BASE_URL in AGENT_ENV"
)

// acpCommands are the commands of the Agent Client Protocol of programs that this agent ran before the agent acp
// did; %s is the program.
var acpCommands = map[string]string{"codex": "codex-acp", "opencode": "%s acp"}

// replaced says which line runs a program that this agent no longer runs; nil for other programs.
func (c *cli) replaced() *agentproto.Failure {
	command, moved := acpCommands[c.name]
	if !moved {
		return nil
	}
	bridge := "acp"
	if self, err := os.Executable(); err == nil {
		bridge = filepath.Join(filepath.Dir(self), bridge)
	}
	line := "exec " + bridge + " " + strings.ReplaceAll(command, "%s", c.program)
	return new(failure.Permanent("oneshot no longer runs %s: set AGENT_COMMAND, or agent.command of the "+
		"group, to '%s'; docs/bring-your-agent.md says which package it needs", c.name, line))
}
