package main

import (
	"cmp"
	"net/http"
	"regexp"
	"strings"

	"arizuko/deploy/agents/internal/failure"
	"arizuko/pkg/agentproto"
)

// statusOverloaded is the API's own status for overload.
const statusOverloaded = 529

// resultFailure is the failure of a result. name is the CLI's own name for it, "" if
// there is none. A failure of the model's API says nothing against the session.
func resultFailure(l line, name string) agentproto.Failure {
	status := l.APIStatus
	switch {
	case l.promptTooLong():
		return failure.Permanent("the conversation is too long for the model: send less, or /new for a new one")
	case status == http.StatusPaymentRequired, name == "billing_error":
		return failure.Permanent("the account at the model's API has no credit left")
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return failure.Permanent("the model's API refuses the credentials (%d): check ANTHROPIC_API_KEY or the "+
			"other credentials", status)
	case name == "authentication_failed":
		return failure.Permanent("Claude Code has no credentials: set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN, " +
			"and name it in AGENT_ENV")
	case status == http.StatusNotFound, name == "model_not_found":
		return failure.Permanent("the model's API does not know the model, or not this account for it (404): " +
			"check CLAUDE_MODEL")
	case status == http.StatusRequestEntityTooLarge:
		return failure.Permanent("the conversation with its images is too large for the model's API (413)")
	case status == http.StatusTooManyRequests:
		return failure.Transient("the rate limit of the model's API is reached (429)")
	case status == statusOverloaded:
		return failure.Transient("the model's API is overloaded (529)")
	case status >= 500:
		return failure.Transient("the model's API is failing (%d)", status)
	}
	f := agentproto.Failure{Kind: agentproto.KindTransient,
		Text: "Claude Code failed: " + failure.Excerpt(cmp.Or(l.Result, strings.Join(l.Errors, "; "), l.Subtype))}
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
// no such file, it has no conversation, it cannot be read, or it has no such message, or
// only before a compaction.
var resumeFailures = []string{"No conversation found", "Failed to resume session", "No message found"}

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

// usageError matches the CLI's complaints about its arguments before it exits.
var usageError = regexp.MustCompile(`(^|: )error: |cannot be used with root`)

// exitFailure is the failure of a turn in which the CLI exited with err; how describes
// that, with the last line of stderr. loading means that it was resuming a session
// and had not begun the turn: unless it was killed, the session made it exit.
func exitFailure(err error, how string, loading bool) agentproto.Failure {
	switch {
	case strings.Contains(how, "cannot be used with root"):
		return failure.Permanent("Claude Code refuses CLAUDE_PERMISSION_MODE=bypassPermissions as root: " +
			"run gated as another user, or set IS_SANDBOX=1, and name it in AGENT_ENV, if the runtime " +
			"confines the agent")
	case usageError.MatchString(how):
		return failure.Permanent("Claude Code exited during a turn: %s", failure.Excerpt(how))
	case loading && !failure.Signalled(err) && !failure.IsLackOfSystem(how):
		return failure.SessionLost("Claude Code exited: " + how)
	}
	return failure.Transient("Claude Code exited during a turn: %s", failure.Excerpt(how))
}
