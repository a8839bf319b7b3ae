package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"syscall"

	"arizuko/pkg/agentproto"
)

// statusOverloaded is the API's own status for overload.
const statusOverloaded = 529

func permanent(format string, args ...any) agentproto.Failure {
	return agentproto.Failure{Kind: agentproto.KindPermanent, Text: fmt.Sprintf(format, args...)}
}

func transient(format string, args ...any) agentproto.Failure {
	return agentproto.Failure{Kind: agentproto.KindTransient, Text: fmt.Sprintf(format, args...)}
}

func sessionLost(why string) agentproto.Failure {
	return agentproto.Failure{Kind: agentproto.KindSession, Text: "the session cannot be resumed: " + excerpt(why)}
}

// resultFailure is the failure of a result. name is the CLI's own name for it, "" if
// there is none. A failure of the model's API says nothing against the session.
func resultFailure(l line, name string) agentproto.Failure {
	status := l.APIStatus
	switch {
	case l.promptTooLong():
		return permanent("the conversation is too long for the model: send less, or /new for a new one")
	case status == http.StatusPaymentRequired, name == "billing_error":
		return permanent("the account at the model's API has no credit left")
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return permanent("the model's API refuses the credentials (%d): check ANTHROPIC_API_KEY or the other credentials", status)
	case name == "authentication_failed":
		return permanent("Claude Code has no credentials: set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN, and name it in AGENT_ENV")
	case status == http.StatusNotFound, name == "model_not_found":
		return permanent("the model's API does not know the model, or not this account for it (404): check CLAUDE_MODEL")
	case status == http.StatusRequestEntityTooLarge:
		return permanent("the conversation with its images is too large for the model's API (413)")
	case status == http.StatusTooManyRequests:
		return transient("the rate limit of the model's API is reached (429)")
	case status == statusOverloaded:
		return transient("the model's API is overloaded (529)")
	case status >= 500:
		return transient("the model's API is failing (%d)", status)
	}
	f := agentproto.Failure{Kind: agentproto.KindTransient, Text: "Claude Code failed: " + excerpt(cmp.Or(l.Result, strings.Join(l.Errors, "; "), l.Subtype))}
	if l.refused() || strings.HasPrefix(l.Subtype, "error_max") { // a limit that is set in CLAUDE_ARGS
		f.Kind = agentproto.KindPermanent
	}
	return f
}

// promptTooLong: older versions have the text only.
func (l *line) promptTooLong() bool {
	return l.TerminalReason == "prompt_too_long" || strings.HasPrefix(l.Result, "Prompt is too long")
}

// refused reports whether the API will refuse the same request again.
func (l *line) refused() bool {
	switch l.APIStatus {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return l.APIStatus >= 400 && l.APIStatus < 500
}

// resumeFailures begin the CLI's errors about a session that it cannot resume: there is
// no such file, it has no conversation, or it cannot be read.
var resumeFailures = []string{"No conversation found", "Failed to resume session"}

// resumeFailure is the error of a failed resume, "" if the line is not one.
func (l *line) resumeFailure() string {
	for _, text := range l.Errors {
		for _, prefix := range resumeFailures {
			if strings.HasPrefix(text, prefix) {
				return text
			}
		}
	}
	return ""
}

var (
	// usageError matches what the CLI prints about its arguments before it exits.
	usageError = regexp.MustCompile(`(^|: )error: |cannot be used with root`)
	// lackOfSystem matches errors that pass with the state of the machine.
	lackOfSystem = regexp.MustCompile(`ENOSPC|EDQUOT|EMFILE|ENFILE|ENOMEM|EAGAIN|EIO\b|[Oo]ut of memory`)
)

// exitFailure is the failure of a turn in which the CLI exited with err; how describes
// that, with the last line of stderr. loading means that it was resuming a session
// and had not begun the turn: unless it was killed, the session made it exit.
func exitFailure(err error, how string, loading bool) agentproto.Failure {
	switch {
	case strings.Contains(how, "cannot be used with root"):
		return permanent("Claude Code refuses CLAUDE_PERMISSION_MODE=bypassPermissions as root: run gated as another user, " +
			"or set IS_SANDBOX=1, and name it in AGENT_ENV, if the runtime confines the agent")
	case usageError.MatchString(how):
		return permanent("Claude Code exited during a turn: %s", excerpt(how))
	case loading && !signalled(err) && !lackOfSystem.MatchString(how):
		return sessionLost("Claude Code exited: " + how)
	}
	return transient("Claude Code exited during a turn: %s", excerpt(how))
}

func signalled(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}

// startFailure is the failure to start the CLI. A program that is missing stays
// missing; a lack of memory or processes passes.
func startFailure(err error, text string) agentproto.Failure {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, exec.ErrNotFound) ||
		errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENOEXEC) {
		return permanent("%s", text)
	}
	return transient("%s", text)
}

// excerpt is the beginning of the first line of a text, without JSON.
func excerpt(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	text, _, _ = strings.Cut(text, "{")
	const maxExcerpt = 300
	text = strings.TrimSpace(text)
	if len(text) > maxExcerpt {
		text = strings.ToValidUTF8(text[:maxExcerpt], "") + "…"
	}
	return cmp.Or(text, "no error was printed")
}
