package inbound

import (
	"cmp"

	"arizuko/pkg/adapter/plaintext"
)

// party is the actor of an event.
type party struct {
	jid, name string
	bot       bool
}

// slackbot is the user that Slack itself writes as.
const slackbot = "USLACKBOT"

func userParty(id string, names Names) party {
	return party{jid: jid(id), name: nameOf(id, names), bot: id == slackbot}
}

func nameOf(id string, names Names) string { return cmp.Or(plaintext.Line(names.User(id)), id) }
