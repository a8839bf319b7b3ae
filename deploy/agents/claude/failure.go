package main

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
)

// statusOverloaded is the API's own for a lack of room.
const statusOverloaded = 529

// explain says why a turn failed, so that an operator knows what to do. failure is the CLI's own
// word for it, "" if it had none.
func explain(l line, failure string) string {
	switch status := l.APIStatus; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fmt.Sprintf("the model's API refuses the credentials (%d): check ANTHROPIC_API_KEY, or what is used in its place", status)
	case status == http.StatusPaymentRequired, failure == "billing_error":
		return "the account at the model's API has no credit left"
	case status == http.StatusNotFound, failure == "model_not_found":
		return "the model's API does not know the model, or not this account for it (404): check CLAUDE_MODEL"
	case status == http.StatusRequestEntityTooLarge:
		return "the conversation and its pictures have grown too large for the model's API (413)"
	case status == http.StatusTooManyRequests:
		return "the rate limit of the model's API is reached (429)"
	case status == statusOverloaded:
		return "the model's API is overloaded (529)"
	case status >= 500:
		return fmt.Sprintf("the model's API is failing (%d)", status)
	case failure == "authentication_failed":
		return "Claude Code has no credentials: set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN, and name it in AGENT_ENV"
	}
	return "Claude Code failed: " + words(cmp.Or(l.Result, strings.Join(l.Errors, "; "), l.Subtype))
}

// explainExit says why the CLI ended in the middle; how is its exit and its last words.
func explainExit(how string) string {
	if strings.Contains(how, "cannot be used with root") {
		return "Claude Code refuses CLAUDE_PERMISSION_MODE=bypassPermissions as root: run gated as somebody else, " +
			"or set IS_SANDBOX=1, and name it in AGENT_ENV, if the runtime confines the agent"
	}
	return "Claude Code ended in the middle of its work: " + words(how)
}

// words are the beginning of the first line of text, up to what is meant for machines.
func words(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	text, _, _ = strings.Cut(text, "{")
	const longest = 300
	text = strings.TrimSpace(text)
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return cmp.Or(text, "it did not say why")
}
