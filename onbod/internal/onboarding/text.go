package onboarding

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"arizuko/pkg/adapter/plaintext"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

// Limits of texts of users, in characters.
const (
	maxName   = 100
	maxSample = 300
	maxReason = 500
)

// clean makes one line of at most limit characters of a text of a user.
func clean(text string, limit int) string {
	text = plaintext.Line(strings.ToValidUTF8(text, "\uFFFD"))
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return strings.TrimSpace(string([]rune(text)[:limit-1])) + "…"
}

// quoted shows a text of a stranger as code, in which no platform finds markup, mentions or links.
func quoted(text string) string {
	if text = clean(text, maxSample); text == "" {
		return "(nothing)"
	}
	return "`" + strings.ReplaceAll(text, "`", "'") + "`"
}

// chatName names a request's chat.
func chatName(r *factrows.Request) string {
	if r.Title == "" {
		return quoted(r.ChatJID)
	}
	return fmt.Sprintf("%s (%s)", quoted(r.Title), quoted(r.ChatJID))
}

// chatNotice does not claim that operators were notified where none could be.
func chatNotice(r *factrows.Request, notified bool) string {
	if !notified {
		return fmt.Sprintf("This chat is not connected yet. Request %s waits for an operator.", r.Code)
	}
	return fmt.Sprintf("This chat is not connected yet. Request %s was sent to the operators.", r.Code)
}

// operatorNotice is written for the chat of an operator.
func operatorNotice(r *factrows.Request, operatorChat string) string {
	chat := "the group chat " + chatName(r)
	switch {
	case r.Kind == msg.ChatDM && r.ChatJID == r.Sender: // the sender says it all
		chat = "a direct chat"
	case r.Kind == msg.ChatDM:
		chat = "a direct chat, " + chatName(r)
	}
	sender := quoted(r.Sender)
	if r.SenderName != "" {
		sender = fmt.Sprintf("%s (%s)", quoted(r.SenderName), sender)
	}
	return fmt.Sprintf("Request %s: %s wrote in %s, which is not connected to a group:\n\n%s\n\n"+
		"`%[5]s` connects it to a new group, `%[5]s FOLDER` to a group of your choice, `%[6]s REASON` rejects it.",
		r.Code, sender, chat, quoted(r.Sample),
		msg.CommandIn(operatorChat, msg.CommandApprove+" "+r.Code),
		msg.CommandIn(operatorChat, msg.CommandReject+" "+r.Code))
}

// floodNotice replaces the notices to operators beyond maxNotices.
func floodNotice() string {
	return fmt.Sprintf("There were more than %d requests within an hour. Further ones are not announced here: "+
		"the dashboard and `onbod requests` have all of them.", maxNotices)
}

func greeting(r *factrows.Request) string {
	if r.Kind == msg.ChatDM {
		return "This chat is connected now."
	}
	return "This chat is connected now: mention me, or reply to a message of mine, and I answer."
}

func rejectedNotice(r *factrows.Request, reason string) string {
	text := fmt.Sprintf("Request %s was rejected.", r.Code)
	if reason != "" {
		text += " " + reason
	}
	return text
}

func reopenedNotice(r *factrows.Request) string {
	return fmt.Sprintf("Request %s waits for an operator again.", r.Code)
}

// undoText says how an operator can still decide on a request that was rejected, "" for others.
func undoText(r *factrows.Request) string {
	if r.State != factrows.RequestRejected {
		return ""
	}
	return fmt.Sprintf("; to undo that, run `onbod reopen %s` on the server, then approve it", r.Code)
}

func expiredNotice(r *factrows.Request) string {
	return fmt.Sprintf("Request %s expired before an operator decided. Send another message to make a new request.",
		r.Code)
}

// decidedText says how a request has ended.
func decidedText(r *factrows.Request) string {
	at := time.UnixMilli(r.DecidedAt).Format(time.DateTime + " MST")
	switch {
	case r.DecidedBy == factrows.DecidedByTime:
		return fmt.Sprintf("request %s expired at %s", r.Code, at)
	case r.DecidedBy == factrows.DecidedByMove:
		return fmt.Sprintf("request %s ended at %s: its chat moved, and has another one", r.Code, at)
	case r.DecidedBy == factrows.DecidedByRoutes && r.State == factrows.RequestApproved:
		return fmt.Sprintf("request %s ended at %s: routes connect its chat to the group %s", r.Code, at, r.Folder)
	case r.DecidedBy == factrows.DecidedByRoutes:
		return fmt.Sprintf("request %s ended at %s: routes take its chat's messages elsewhere", r.Code, at)
	case r.State == factrows.RequestApproved:
		return fmt.Sprintf("request %s was approved by %s at %s, into the group %s", r.Code, r.DecidedBy, at, r.Folder)
	}
	return fmt.Sprintf("request %s was %s by %s at %s", r.Code, r.State, r.DecidedBy, at)
}

// Line is a name of a user on one line, cut to its limit.
func Line(name string) string { return clean(name, maxName) }
