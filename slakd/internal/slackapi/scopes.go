package slackapi

import (
	"slices"
	"strings"
)

// Scopes are the scopes that the bot's token needs, each with its purpose. The manifest of the app requests
// them.
func Scopes() map[string]string {
	return map[string]string{
		"app_mentions:read":     "receiving mentions",
		"assistant:write":       "the status in the assistant's pane, and the button that stops the agent",
		"channels:history":      "receiving messages of channels",
		"channels:read":         "the names of channels",
		"chat:write":            "answering, also as it grows",
		"commands":              "slash commands",
		"files:read":            "reading files",
		"files:write":           "sending files",
		"groups:history":        "receiving messages of private channels",
		"groups:read":           "the names of private channels",
		"im:history":            "receiving direct messages",
		"im:read":               "recognizing direct messages",
		"metadata.message:read": "finding after a crash what was sent",
		"mpim:history":          "receiving group messages",
		"mpim:read":             "recognizing group messages",
		"reactions:read":        "receiving reactions",
		"reactions:write":       "reacting, and showing that an agent works",
		"users:read":            "the names of users",
	}
}

// Missing returns the scopes missing in a list, which has the form of the header X-OAuth-Scopes.
func Missing(granted string) (lacking []string) {
	have := strings.FieldsFunc(granted, func(r rune) bool { return r == ',' || r == ' ' })
	for scope := range Scopes() {
		if !slices.Contains(have, scope) {
			lacking = append(lacking, scope)
		}
	}
	slices.Sort(lacking)
	return lacking
}
