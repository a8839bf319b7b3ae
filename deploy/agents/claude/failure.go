package main

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
)

// statusOverloaded is the API's own status for overload.
const statusOverloaded = 529

// explain is the reason of a failed turn, in words that help an operator. failure is the CLI's own name
// for it, "" if there is none.
func explain(l line, failure string) string {
	switch status := l.APIStatus; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fmt.Sprintf("the model's API refuses the credentials (%d): check ANTHROPIC_API_KEY or the other credentials", status)
	case status == http.StatusPaymentRequired, failure == "billing_error":
		return "the account at the model's API has no credit left"
	case status == http.StatusNotFound, failure == "model_not_found":
		return "the model's API does not know the model, or not this account for it (404): check CLAUDE_MODEL"
	case status == http.StatusRequestEntityTooLarge:
		return "the conversation with its images is too large for the model's API (413)"
	case status == http.StatusTooManyRequests:
		return "the rate limit of the model's API is reached (429)"
	case status == statusOverloaded:
		return "the model's API is overloaded (529)"
	case status >= 500:
		return fmt.Sprintf("the model's API is failing (%d)", status)
	case failure == "authentication_failed":
		return "Claude Code has no credentials: set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN, and name it in AGENT_ENV"
	}
	return "Claude Code failed: " + excerpt(cmp.Or(l.Result, strings.Join(l.Errors, "; "), l.Subtype))
}

// explainExit is the reason of an exit during a turn; how is the exit and the last line of stderr.
func explainExit(how string) string {
	if strings.Contains(how, "cannot be used with root") {
		return "Claude Code refuses CLAUDE_PERMISSION_MODE=bypassPermissions as root: run gated as another user, " +
			"or set IS_SANDBOX=1, and name it in AGENT_ENV, if the runtime confines the agent"
	}
	return "Claude Code exited during a turn: " + excerpt(how)
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
