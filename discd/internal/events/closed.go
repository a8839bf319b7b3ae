package events

import (
	"cmp"
	"fmt"
)

// ClosedError is returned when Discord has closed the gateway.
type ClosedError struct {
	Code int
	Text string
}

func (c *ClosedError) Error() string {
	return fmt.Sprintf("%s (%d %s)", cmp.Or(c.advice(), "Discord closed the gateway"), c.Code, c.Text)
}

// Close codes that need an operator.
const (
	authenticationFailed = 4004
	shardingRequired     = 4011
	invalidVersion       = 4012
	invalidIntents       = 4013
	disallowedIntents    = 4014
)

// ContentOff is the problem of a bot that does not receive the content of messages.
const ContentOff = "the Message Content Intent is off: the developer portal, Bot, Privileged Gateway Intents " +
	"has its switch"

// advice is the advice for operators, "" if reconnecting is enough.
func (c *ClosedError) advice() string {
	switch c.Code {
	case authenticationFailed:
		return "Discord does not accept DISCORD_BOT_TOKEN: the developer portal, Bot, Reset Token shows another one"
	case disallowedIntents:
		return ContentOff
	case invalidIntents, invalidVersion:
		return "Discord no longer supports this version of discd: upgrade it"
	case shardingRequired:
		return "the bot is in more guilds than one connection serves: remove it from some, or use another bot"
	}
	return ""
}
