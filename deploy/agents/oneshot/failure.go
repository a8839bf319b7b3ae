package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"

	"arizuko/deploy/agents/internal/failure"
	"arizuko/pkg/agentproto"
)

// noAnswer is the failure of a command that ended well and printed no answer. It is not a silence: a
// model that wants to be silent says so in its answer, by hidden text.
const noAnswer = "it ended without an answer"

// explain makes a failure of how the command ended, with its own words if it printed any.
func (c *cli) explain(err error, stderr string) *agentproto.Failure {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return new(failure.Permanent("%s is not installed, or not in PATH", c.program))
	case err == nil: // the stderr of a command that ends well is no error
		return new(failure.Transient("%s failed: %s", c.name(), noAnswer))
	}
	reason := err.Error()
	if !errors.Is(err, errHungUp) {
		reason = cmp.Or(excerpt(errorLine(stderr)), reason)
	}
	f := failure.Classify(reason)
	if failure.IsNotFound(err) {
		f.Kind = agentproto.KindPermanent
	}
	f.Text = fmt.Sprintf("%s failed: %s", c.name(), f.Text)
	return &f
}
