package slackapi

import (
	"slices"
	"strings"
)

// Scopes are what the bot's token has to allow, and what each is for; the manifest of the app asks
// for them.
func Scopes() map[string]string {
	return map[string]string{
		"app_mentions:read":     "hearing mentions",
		"assistant:write":       "the status in the assistant's pane",
		"channels:history":      "hearing channels",
		"channels:read":         "the names of channels",
		"chat:write":            "answering",
		"commands":              "slash commands",
		"files:read":            "reading files",
		"files:write":           "sending files",
		"groups:history":        "hearing private channels",
		"groups:read":           "the names of private channels",
		"im:history":            "hearing direct messages",
		"im:read":               "knowing direct messages",
		"metadata.message:read": "finding out after a crash what was sent",
		"mpim:history":          "hearing group messages",
		"mpim:read":             "knowing group messages",
		"reactions:read":        "hearing reactions",
		"reactions:write":       "reacting, and showing that an agent works",
		"users:read":            "the names of people",
	}
}

// Missing are the scopes that a list of those there, as the header X-OAuth-Scopes has it, lacks.
func Missing(there string) (lacking []string) {
	have := strings.FieldsFunc(there, func(r rune) bool { return r == ',' || r == ' ' })
	for scope := range Scopes() {
		if !slices.Contains(have, scope) {
			lacking = append(lacking, scope)
		}
	}
	slices.Sort(lacking)
	return lacking
}
