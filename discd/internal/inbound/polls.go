package inbound

import (
	"fmt"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// vote converts a vote for one answer of a poll. The caller drops those in polls of others.
func vote(u *discordapi.Update, v *discordapi.PollVote, change msg.VoteChange, me Self, known *Guilds) (adapter.Inbound, error) {
	p, err := placeOf(v.GuildID, v.ChannelID, known)
	switch {
	case err != nil:
		return adapter.Inbound{}, err
	case !discordapi.IsID(v.MessageID):
		return adapter.Inbound{}, fmt.Errorf("a vote in %s without a message", p.chat.JID)
	case !discordapi.IsID(v.UserID):
		return adapter.Inbound{}, fmt.Errorf("a vote in poll %s in %s without a user", v.MessageID, p.chat.JID)
	case v.AnswerID < 1:
		return adapter.Inbound{}, fmt.Errorf("a vote in poll %s in %s without an answer", v.MessageID, p.chat.JID)
	case v.UserID == me.ID:
		return p.of(), nil
	}
	sign := ""
	if change == msg.VoteRemoves {
		sign = "-"
	}
	content := msg.Vote{Options: []int{v.AnswerID}, Change: change}
	return p.of(&msg.Message{
		PlatformID: fmt.Sprintf("%s:v:%s:%s%d:%s", v.MessageID, v.UserID, sign, v.AnswerID, stamp(u)),
		Sender:     jid(v.UserID), SenderName: known.nameOf(v.GuildID, v.UserID),
		Verb: msg.VerbVote, Content: content.JSON(), TargetID: v.MessageID,
	}), nil
}

// finalized reports whether a changed message is a poll that is closed and counted.
func finalized(m *discordapi.Message) bool {
	return m.Poll != nil && m.Poll.Results != nil && m.Poll.Results.IsFinalized
}

// pollEnd converts the end of a poll of the bot, with its counts.
func pollEnd(m *discordapi.Message, me Self, known *Guilds) (adapter.Inbound, error) {
	result := &msg.PollResult{Counts: make([]int, len(m.Poll.Answers))}
	for _, c := range m.Poll.Results.Counts {
		if c.ID >= 1 && c.ID <= len(result.Counts) {
			result.Counts[c.ID-1] = c.Count
			result.Voters += c.Count
		}
	}
	if m.Poll.Multiple { // Discord does not say how many users voted
		result.Voters = 0
	}
	return ended(m, m.ID, "end", msg.PollEnd{Result: result}, me, known)
}

// pollResult converts Discord's message about the end of a poll of the bot. It comes also when discd was
// not connected at the end.
func pollResult(m *discordapi.Message, me Self, known *Guilds) (adapter.Inbound, error) {
	if m.Reference == nil {
		return adapter.Inbound{}, fmt.Errorf("the result %s of a poll without the poll", m.ID)
	}
	return ended(m, m.Reference.MessageID, "result", msg.PollEnd{}, me, known)
}

func ended(m *discordapi.Message, poll, kind string, end msg.PollEnd, me Self, known *Guilds) (adapter.Inbound, error) {
	p, err := placeOf(m.GuildID, m.ChannelID, known)
	switch {
	case err != nil:
		return adapter.Inbound{}, err
	case !discordapi.IsID(poll):
		return adapter.Inbound{}, fmt.Errorf("the end of a poll in %s without a message", p.chat.JID)
	case m.Author != nil && m.Author.ID != me.ID:
		return p.of(), nil
	}
	return p.of(&msg.Message{
		PlatformID: poll + ":" + kind, Sender: jid(me.ID), Verb: msg.VerbPollEnd, Content: end.JSON(), TargetID: poll,
	}), nil
}
