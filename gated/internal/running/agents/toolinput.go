package agents

import (
	"regexp"

	"arizuko/pkg/agentproto"
)

// title is the line about a tool call that users read, with the call's arguments if the group's config wants them.
func (p *progress) title(t *agentproto.Tool, redact func(string) string) string {
	title := redact(t.Title)
	if p.inputs && t.Input != "" {
		title = agentproto.Truncate(title+": "+maskSecrets(redact(t.Input)), agentproto.MaxTitle)
	}
	return title
}

// secretShapes are the forms of secrets that gated does not know, with the parts that stay.
var secretShapes = []struct {
	form *regexp.Regexp
	left string
}{
	// https://user:password@
	{regexp.MustCompile(`(\w://)[^/\s@]*@`), "${1}"},
	{regexp.MustCompile(`(\w://[^\s?#"']*)[?#][^\s"']*`), "${1}"},             // …?key=…
	{regexp.MustCompile(`(?i)\b(bearer|basic)\s+[^\s"']+`), "${1} " + hidden}, // of a header
	// mysql -p…, curl -u …
	{regexp.MustCompile(`(^|\s)(-[pu])\s*('[^']*'|"[^"]*"|[^\s"'-][^\s"']*)`), "${1}${2} " + hidden},
	{regexp.MustCompile(`(?i)([\w-]*(?:passw(?:or)?d|passphrase|secret|token|api[-_]?key|access[-_]?key|` +
		`private[-_]?key|` +
		`credentials?)["']?\s*[=:]\s*|` +
		`--?[\w-]*(?:password|passphrase|secret|token|key)\s+)('[^']*'|"[^"]*"|[^\s"',;&}]+)`), "${1}" + hidden},
	{regexp.MustCompile(`\b(?:sk-|gh[opsru]_|github_pat_|glpat-|xox[a-z]-|xapp-|AKIA|AIza|eyJ)[\w.-]{8,}`), hidden},
}

const hidden = "[hidden]"

// maskSecrets hides texts that look like secrets. It cannot know all.
func maskSecrets(text string) string {
	for _, s := range secretShapes {
		text = s.form.ReplaceAllString(text, s.left)
	}
	return text
}
