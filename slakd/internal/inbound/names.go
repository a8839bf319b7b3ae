package inbound

import (
	"cmp"

	"arizuko/pkg/adapter/plaintext"
)

// party is who does something in a chat.
type party struct {
	jid, name string
	bot       bool
}

// slackbot is the user in whose name Slack itself speaks.
const slackbot = "USLACKBOT"

func userParty(id string, names Names) party {
	return party{jid: jid(id), name: nameOf(id, names), bot: id == slackbot}
}

func nameOf(id string, names Names) string { return cmp.Or(plaintext.Line(names.User(id)), id) }
