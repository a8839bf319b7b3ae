package inbound

import (
	"cmp"
	"fmt"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/teled/internal/telegramapi"
)

// PollRef returns Telegram's id of the poll that an update is a vote in, or the end of; "" for other
// updates. New counts of an open poll are none: each vote is an update of its own.
func PollRef(u *telegramapi.Update) string {
	switch {
	case u.PollAnswer != nil:
		return u.PollAnswer.PollID
	case u.Poll != nil && u.Poll.IsClosed:
		return u.Poll.ID
	}
	return ""
}

// Ballot converts a vote, or the end of a poll, given the poll's outbound row. A vote without a voter
// makes no row, nor does one of the bot.
func Ballot(u *telegramapi.Update, poll *msg.Message, me Self) (in adapter.Inbound) {
	row := &msg.Message{
		ChatJID: poll.ChatJID, TargetID: poll.PlatformID, ThreadID: poll.ThreadID,
		Topic: cmp.Or(poll.ThreadID, poll.Topic), Verb: msg.VerbPollEnd,
	}
	if a := u.PollAnswer; a != nil {
		var who adapter.Actor
		switch {
		case a.VoterChat != nil && a.VoterChat.ID != 0:
			who = me.chatActor(a.VoterChat)
		case a.User != nil && a.User.ID != 0 && a.User.ID != me.ID:
			who = me.userActor(a.User)
		default:
			return in
		}
		vote := msg.Vote{Row: poll.ID}
		for _, index := range a.OptionIDs {
			vote.Options = append(vote.Options, index+1)
		}
		_, user := msg.SplitJID(who.JID)
		row.Verb, row.Content = msg.VerbVote, vote.JSON()
		row.Sender, row.SenderName, row.IsBot = who.JID, who.Name, who.Bot
		row.PlatformID = fmt.Sprintf("p:%s:v:%s:%d", a.PollID, user, u.ID)
	} else {
		end := msg.PollEnd{Row: poll.ID, Result: &msg.PollResult{Counts: []int{}, Voters: u.Poll.Total}}
		for _, o := range u.Poll.Options {
			end.Result.Counts = append(end.Result.Counts, o.VoterCount)
		}
		row.Content, row.Sender, row.PlatformID = end.JSON(), me.jid(me.ID), fmt.Sprintf("p:%s:end", u.Poll.ID)
	}
	in.Messages = []*msg.Message{row}
	return in
}
