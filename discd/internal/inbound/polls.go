package inbound

import (
	"fmt"
	"maps"
	"slices"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// vote converts a vote for one answer of a poll. The caller drops those in polls of others.
func vote(u *discordapi.Update, v *discordapi.PollVote, change msg.VoteChange, me Self, known *Guilds) (adapter.Inbound,
	error) {
	p, err := placeOf(v.GuildID, v.ChannelID, me, known)
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
		Sender:     me.jid(v.UserID), SenderName: known.nameOf(v.GuildID, v.UserID),
		Verb: msg.VerbVote, Content: content.JSON(), TargetID: v.MessageID,
	}), nil
}

// MissedVotes makes the rows of votes in the poll of an outbound row that were cast, or taken back, while
// no session was there to send them: the differences between the voters of each answer and the votes that are
// stored, by sender. The session, in which they are read once, makes the ids of the rows unique. skip
// excludes votes that a session has sent since.
func MissedVotes(
	poll *msg.Message, voters map[int][]discordapi.User, stored map[string]msg.PollVote, session string, me Self,
	skip func(user string, answer int) bool,
) (rows []*msg.Message) {
	add := func(who adapter.Actor, answer int, change msg.VoteChange, sign string) {
		_, user := msg.SplitJID(who.JID)
		if user == me.ID || skip(user, answer) {
			return
		}
		content := msg.Vote{Options: []int{answer}, Change: change}
		rows = append(rows, &msg.Message{
			PlatformID: fmt.Sprintf("%s:v:%s:%s%d:%s.missed", poll.PlatformID, user, sign, answer, session),
			ChatJID:    poll.ChatJID,
			ThreadID:   poll.ThreadID, Topic: poll.ThreadID, Sender: who.JID, SenderName: who.Name, IsBot: who.Bot,
			Verb: msg.VerbVote, Content: content.JSON(), TargetID: poll.PlatformID,
		})
	}
	chosen := map[string][]int{} // by sender
	for answer, users := range voters {
		for i := range users {
			chosen[me.jid(users[i].ID)] = append(chosen[me.jid(users[i].ID)], answer)
		}
	}
	for _, sender := range slices.Sorted(maps.Keys(stored)) {
		v := stored[sender]
		for _, answer := range v.Options {
			if !slices.Contains(chosen[sender], answer) {
				add(adapter.Actor{JID: sender, Name: v.Name}, answer, msg.VoteRemoves, "-")
			}
		}
	}
	for _, answer := range slices.Sorted(maps.Keys(voters)) {
		for i := range voters[answer] {
			who := me.actor(&voters[answer][i], nil)
			if !slices.Contains(stored[who.JID].Options, answer) {
				add(who, answer, msg.VoteAdds, "")
			}
		}
	}
	return rows
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
	p, err := placeOf(m.GuildID, m.ChannelID, me, known)
	switch {
	case err != nil:
		return adapter.Inbound{}, err
	case !discordapi.IsID(poll):
		return adapter.Inbound{}, fmt.Errorf("the end of a poll in %s without a message", p.chat.JID)
	case m.Author != nil && m.Author.ID != me.ID:
		return p.of(), nil
	}
	return p.of(&msg.Message{
		PlatformID: poll + ":" + kind, Sender: me.jid(me.ID), Verb: msg.VerbPollEnd, Content: end.JSON(),
		TargetID: poll,
	}), nil
}
