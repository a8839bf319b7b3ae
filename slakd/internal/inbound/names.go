package inbound

import (
	"cmp"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/plaintext"
)

// slackbot is the user that Slack itself writes as.
const slackbot = "USLACKBOT"

func (me Self) userActor(id string, names Names) adapter.Actor {
	return adapter.Actor{JID: me.jid(id), Name: nameOf(id, names), Bot: id == slackbot}
}

func nameOf(id string, names Names) string { return cmp.Or(plaintext.Line(names.User(id)), id) }
