// Package failure makes failures of agents from the output of a program and its end.
package failure

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"arizuko/pkg/agentproto"
)

// Permanent is a failure that only an operator or a user can fix.
func Permanent(format string, args ...any) agentproto.Failure {
	return agentproto.Failure{Kind: agentproto.KindPermanent, Text: fmt.Sprintf(format, args...)}
}

// Transient is a failure after which a retry may succeed.
func Transient(format string, args ...any) agentproto.Failure {
	return agentproto.Failure{Kind: agentproto.KindTransient, Text: fmt.Sprintf(format, args...)}
}

// SessionLost is the failure of a session that cannot be resumed.
func SessionLost(why string) agentproto.Failure {
	return agentproto.Failure{Kind: agentproto.KindSession, Text: "the session cannot be resumed: " + Excerpt(why)}
}

// OfStart is the failure to start a program. One that is missing stays missing; a lack of memory or processes passes.
func OfStart(err error, text string) agentproto.Failure {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, exec.ErrNotFound) ||
		errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENOEXEC) {
		return Permanent("%s", text)
	}
	return Transient("%s", text)
}

// IsNotFound reports whether a shell or an interpreter, whose end is err, could not find or execute its program.
func IsNotFound(err error) bool {
	const notExecutable, notFound = 126, 127
	var exit *exec.ExitError
	return errors.As(err, &exit) && (exit.ExitCode() == notExecutable || exit.ExitCode() == notFound)
}

// Signalled reports whether a signal has ended the program whose end is err.
func Signalled(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}

// lackOfSystem matches errors that pass with the state of the machine.
var lackOfSystem = regexp.MustCompile(`ENOSPC|EDQUOT|EMFILE|ENFILE|ENOMEM|EAGAIN|EIO\b|[Oo]ut of memory`)

// IsLackOfSystem reports whether a program's error passes with the state of the machine, such as a full disk.
func IsLackOfSystem(text string) bool { return lackOfSystem.MatchString(text) }

// Excerpt is the beginning of the first line of a text, without JSON.
func Excerpt(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	text, _, _ = strings.Cut(text, "{")
	const maxExcerpt = 300
	text = strings.TrimSpace(text)
	if len(text) > maxExcerpt {
		text = strings.ToValidUTF8(text[:maxExcerpt], "") + "…"
	}
	return cmp.Or(text, "no error was printed")
}

// Programs report errors of a model's API in its own words, in any case.
var (
	retryText = regexp.MustCompile(`(?i)(?:(?:try again|retry) (?:in|after)|retry-after:?) (\d[\d.hms]*)( ?min)?`)
	// transientText is looked for before permanentText: a rate limit may mention the key.
	transientText = regexp.MustCompile(`(?i)\b(408|429|5\d\d)\b|rate.?limit|overloaded|unavailable|timed? ?out`)
	creditText    = regexp.MustCompile(`(?i)insufficient_quota|billing|credit balance|\b402\b`)
	permanentText = regexp.MustCompile(`(?i)\b(401|403)\b|unauthorized|bad key|api.?key|authenticat|auth method|` +
		`not logged in|permission_denied|` +
		`model\b.*\b(not found|not exist|not supported)|unknown model|model_not_found|context.?(length|window)|` +
		`too (long|large)`)
)

// Classify tells the kind of a failure by its text. The session is kept when a model's API fails.
func Classify(text string) agentproto.Failure {
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
