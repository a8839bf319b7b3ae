package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"arizuko/pkg/agentproto"
)

// noAnswer is the failure of a command that ended well and printed no answer. It is not a silence: a
// model that wants to be silent says so in its answer, by hidden text.
const noAnswer = "it ended without an answer"

// explain makes a failure of how a process ended, with the command's own words if it printed any.
// reported is the error in its output, "" if there is none.
func (c *cli) explain(err error, reported, stderr string) *agentproto.Failure {
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return &agentproto.Failure{Kind: agentproto.KindPermanent, Text: c.program + " is not installed, or not in PATH"}
	case c.lost != "" && err != nil && strings.Contains(stderr, c.lost):
		return c.sessionLost(excerpt(errorLine(stderr)))
	}
	reason := noAnswer
	if err != nil {
		reason = err.Error()
		stderr = cmp.Or(reported, errorLine(stderr))
	} else {
		stderr = reported // what a program prints as it ends well is no error
	}
	f := classify(cmp.Or(excerpt(stderr), reason))
	if errors.As(err, &exit) && (exit.ExitCode() == exitNotExecutable || exit.ExitCode() == exitNotFound) {
		f.Kind = agentproto.KindPermanent
	}
	f.Text = fmt.Sprintf("%s failed: %s", c.name, f.Text)
	return &f
}

func (c *cli) sessionLost(why string) *agentproto.Failure {
	return &agentproto.Failure{Kind: agentproto.KindSession, Text: fmt.Sprintf("%s cannot resume the session: %s", c.name, why)}
}

// A shell's exit codes for a program that it cannot execute or find.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// The commands report errors of a model's API in its own words, in any case.
var (
	retryText = regexp.MustCompile(`(?i)(?:(?:try again|retry) (?:in|after)|retry-after:?) (\d[\d.hms]*)( ?min)?`)
	// transientText is looked for before permanentText: a rate limit may mention the key.
	transientText = regexp.MustCompile(`(?i)\b(408|429|5\d\d)\b|rate.?limit|overloaded|unavailable|timed? ?out`)
	creditText    = regexp.MustCompile(`(?i)insufficient_quota|billing|credit balance|\b402\b`)
	permanentText = regexp.MustCompile(`(?i)\b(401|403)\b|unauthorized|bad key|api.?key|authenticat|auth method|not logged in|permission_denied|` +
		`model\b.*\b(not found|not exist|not supported)|unknown model|model_not_found|context.?(length|window)|too (long|large)`)
)

// classify tells the kind of a failure by its text. The session survives a failure of the API.
func classify(text string) agentproto.Failure {
	f := agentproto.Failure{Kind: agentproto.KindTransient, Text: text, RetryAfter: retryAfter(text)}
	switch {
	case f.RetryAfter > 0:
	case creditText.MatchString(text):
		f.Kind = agentproto.KindPermanent
	case transientText.MatchString(text):
	case permanentText.MatchString(text):
		f.Kind = agentproto.KindPermanent
	}
	return f
}

// retryAfter is the delay that a text asks for, as in "try again in 6m0s", "retry after 20 seconds" or "in 2 min".
func retryAfter(text string) time.Duration {
	found := retryText.FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	number := strings.TrimRight(strings.ToLower(found[1]), ".")
	if d, err := time.ParseDuration(number); err == nil {
		return d
	}
	unit := "s"
	if found[2] != "" {
		unit = "m"
	}
	d, err := time.ParseDuration(number + unit)
	if err != nil {
		return 0
	}
	return d
}
