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

// failure is why a turn has no answer.
type failure struct {
	kind       agentproto.Kind
	text       string        // for operators
	retryAfter time.Duration // 0 if the command did not say
}

// noAnswer is the failure of a command that ended well and printed no answer. It is not a silence: a
// model that wants to be silent says so in its answer, by hidden text.
const noAnswer = "it ended without an answer"

// explain makes a failure of how a process ended, with the command's own words if it printed any.
// reported is the error in its output, "" if there is none.
func (c *cli) explain(err error, reported, stderr string) *failure {
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return &failure{kind: agentproto.KindPermanent, text: c.program + " is not installed, or not in PATH"}
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
		f.kind = agentproto.KindPermanent
	}
	f.text = fmt.Sprintf("%s failed: %s", c.name, f.text)
	return &f
}

func (c *cli) sessionLost(why string) *failure {
	return &failure{kind: agentproto.KindSession, text: fmt.Sprintf("%s cannot resume the session: %s", c.name, why)}
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
func classify(text string) failure {
	f := failure{kind: agentproto.KindTransient, text: text, retryAfter: retryAfter(text)}
	switch {
	case f.retryAfter > 0:
	case creditText.MatchString(text):
		f.kind = agentproto.KindPermanent
	case transientText.MatchString(text):
	case permanentText.MatchString(text):
		f.kind = agentproto.KindPermanent
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
