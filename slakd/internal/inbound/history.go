package inbound

import (
	"fmt"
	"strconv"
	"strings"

	"arizuko/pkg/msg"
)

// fromHistory ends the ids of reactions that the history shows: when they were added or removed is not known.
const fromHistory = ":h"

// Seen makes a reaction's row one that the history shows.
func Seen(row *msg.Message) *msg.Message {
	row.PlatformID += fromHistory
	return row
}

// Unreacted makes the row of a reaction's removal that the history shows; at is the time of the reading, as an id.
func Unreacted(added *msg.Message, at string) *msg.Message {
	content := "-" + added.Content
	return Seen(&msg.Message{
		ChatJID: added.ChatJID, PlatformID: fmt.Sprintf("%s:r:%s:%s:%s", added.TargetID, reactor(added.PlatformID),
			content, at),
		Sender: added.Sender, SenderName: added.SenderName, IsBot: added.IsBot, Verb: msg.VerbReaction,
		Content:  content,
		TargetID: added.TargetID, ThreadID: added.ThreadID, Topic: added.Topic, Timestamp: millis(at),
	})
}

// Deleted makes the row of a deletion that the history shows; at is the time of the reading, as an id.
func Deleted(row *msg.Message, at string) *msg.Message {
	return &msg.Message{
		ChatJID: row.ChatJID, PlatformID: row.PlatformID + ":d", TargetID: row.PlatformID, Verb: msg.VerbDelete,
		Sender: row.Sender, SenderName: row.SenderName, IsBot: row.IsBot, Topic: row.Topic, ThreadID: row.ThreadID,
		Timestamp: millis(at),
	}
}

// reactor is the user in the id of a reaction.
func reactor(id string) string {
	_, rest, _ := strings.Cut(id, ":r:")
	user, _, _ := strings.Cut(rest, ":")
	return user
}

// ReactionsOf begins the ids of a user's reactions to the message that a reaction is about.
func ReactionsOf(row *msg.Message) string {
	return row.TargetID + ":r:" + reactor(row.PlatformID) + ":"
}

// Reacted reports whether a row is about the same emoji of the same user as another one.
func Reacted(row, other *msg.Message) bool {
	return row.Verb == msg.VerbReaction && row.Sender == other.Sender && row.TargetID == other.TargetID &&
		strings.TrimPrefix(row.Content, "-") == strings.TrimPrefix(other.Content, "-")
}

// ShownAfter reports whether the history shows the state of a reaction by the time of a later reading. Its event
// may still come, since Slack sends events again.
func ShownAfter(row, event *msg.Message) bool {
	id, shown := strings.CutSuffix(row.PlatformID, fromHistory)
	return shown && Reacted(row, event) && eventTime(id) >= eventTime(event.PlatformID)
}

// eventTime is the time at the end of the id of a reaction, in seconds.
func eventTime(id string) float64 {
	seconds, _ := strconv.ParseFloat(id[strings.LastIndex(id, ":")+1:], 64)
	return seconds
}
