package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	fake "arizuko/pkg/testkit/fakes/discord"
)

// queuePoll writes an outbound poll, or with a target the end of one, as gated does.
func (r *harness) queuePoll(chatJID, target, content string) int64 {
	r.Helper()
	now := time.Now().UnixMilli()
	r.Exec(`INSERT INTO messages (chat_jid, direction, kind, sender, target_id, content, timestamp, received_at, source, out_state)
		VALUES (?, 'out', 'poll', 'agent:main', nullif(?, ''), ?, ?, ?, 'agent', 'queued')`, chatJID, target, content, now, now)
	return r.lastOut()
}

func TestPoll_VotesAndEnd_AreStored(t *testing.T) {
	r := newHarness(t, fake.Options{})
	r.connect()
	chat := "discord:" + r.general.ChannelID
	const content = `{"question":"Lunch?","options":["yes","no"],"multiple":false,"closes_at":0}`
	row := r.queuePoll(chat, "", content)
	var id string
	r.Until("the poll", func() bool {
		id = r.Text(`SELECT ifnull(platform_id, '') FROM messages WHERE id = ?`, row)
		return id != ""
	})

	theirs := r.general.Poll(r.alice, "Dinner?", "yes")
	r.general.Vote(r.alice, theirs.ID, 1, true) // not in a poll of the bot
	r.general.Vote(r.alice, id, 2, true)
	r.general.Vote(r.alice, id, 2, false)
	r.general.Vote(r.alice, id, 1, true)
	votes := func() string {
		return r.Text(`SELECT ifnull(group_concat(verb || content || target_id, char(10)), '') FROM (SELECT * FROM messages WHERE verb IN ('vote', 'poll_end') ORDER BY id)`)
	}
	want := strings.Join([]string{
		`vote{"options":[2],"change":"add"}` + id, `vote{"options":[2],"change":"remove"}` + id, `vote{"options":[1],"change":"add"}` + id,
	}, "\n")
	r.Until("the votes", func() bool { return votes() == want })

	end := r.queuePoll(chat, id, content)
	again := r.queuePoll(chat, id, content)
	for _, row := range []int64{end, again} { // closing twice does no harm
		r.Until("the end", func() bool { return r.Text(`SELECT out_state FROM messages WHERE id = ?`, row) == "sent" })
	}
	r.Until("the result", func() bool {
		return strings.Contains(votes(), `poll_end{"result":{"counts":[1,0],"voters":1}}`+id) && strings.Contains(votes(), "poll_end{}"+id)
	})
}

// openPoll has discd deliver a poll that takes several answers, and returns its row and its message.
func (r *harness) openPoll(chatJID string) (row int64, id string) {
	r.Helper()
	const content = `{"question":"Lunch?","options":["yes","no"],"multiple":true,"closes_at":0}`
	row = r.queuePoll(chatJID, "", content)
	r.Exec(`INSERT INTO polls (message_id, folder, chat_jid, topic, question, options, multiple, state, created_at)
		VALUES (?, 'main', ?, '', 'Lunch?', '["yes","no"]', 1, 'open', 1)`, row, chatJID)
	stop := r.connect()
	defer stop()
	r.Until("the poll", func() bool {
		id = r.Text(`SELECT ifnull(platform_id, '') FROM messages WHERE id = ? AND out_state = 'sent'`, row)
		return id != ""
	})
	return row, id
}

// votes are the stored votes: voter, change and option, in order. Users other than Alice are their ids.
func (r *harness) votes() string {
	r.Helper()
	return strings.ReplaceAll(r.Text(`SELECT ifnull(group_concat(substr(sender, 9) || ' ' || (content ->> 'change') || ' ' || (content ->> '$.options[0]'), char(10)), '')
		FROM (SELECT * FROM messages WHERE verb = 'vote' ORDER BY id)`), r.alice.ID, "Alice")
}

// votersRead is how often discd has asked for the voters of an answer.
func (r *harness) votersRead() int {
	return len(slices.DeleteFunc(r.discord.Calls(), func(c fake.Call) bool { return c.Route != fake.GetVoters }))
}

func TestPoll_VotesWhileDown_AreReadAgain(t *testing.T) {
	r := newHarness(t, fake.Options{})
	r.connect()()
	chat := "discord:" + r.general.ChannelID
	row, id := r.openPoll(chat)
	bob := r.discord.User("Bob", "bob")

	stop := r.connect()
	r.general.Vote(r.alice, id, 1, true)
	r.Until("a vote", func() bool { return r.votes() == "Alice add 1" })
	stop()
	// gated has counted that vote, and retention has removed its row; a vote of an earlier time is gone from Discord.
	r.Exec(`DELETE FROM messages WHERE verb = 'vote'`)
	r.Exec(`INSERT INTO poll_votes SELECT id, ?, 'Alice', '[1]', 1 FROM polls`, "discord:"+r.alice.ID)
	r.Exec(`INSERT INTO poll_votes SELECT id, 'discord:99', 'Carol', '[2]', 1 FROM polls`)

	r.general.Vote(r.alice, id, 1, false)
	r.general.Vote(r.alice, id, 2, true)
	want := []string{"99 remove 2", "Alice add 2", "Alice remove 1", bob.ID + " add 2"}
	for i := range 101 { // two pages
		voter := r.discord.User(fmt.Sprint("Voter ", i), fmt.Sprint("voter", i))
		r.general.Vote(voter, id, 1, true)
		want = append(want, voter.ID+" add 1")
	}
	// The vote before may have been read again as well, and logged: its connection was new.
	stored := strings.Count(r.Log.String(), "missed votes stored")
	stop = r.connect()
	r.Until("the votes", func() bool { return strings.Count(r.Log.String(), "missed votes stored") > stored })
	r.general.Vote(bob, id, 2, true)
	r.Until("a live vote", func() bool { return strings.HasSuffix(r.votes(), bob.ID+" add 2") })
	votes := strings.Split(r.votes(), "\n")
	slices.Sort(votes)
	slices.Sort(want)
	if diff := cmp.Diff(want, votes); diff != "" {
		t.Errorf("votes (-want +got):\n%s", diff)
	}
	stop()

	before := r.votersRead()
	r.connect()
	r.Until("another reading", func() bool { return r.votersRead() >= before+3 })
	r.general.Vote(bob, id, 1, true)
	r.Until("a live vote", func() bool { return strings.HasSuffix(r.votes(), bob.ID+" add 1") })
	if got := strings.Count(r.votes(), "\n"); got != len(votes) {
		t.Errorf("read again: %d new votes, want 1", got+1-len(votes))
	}
	if got := r.Text(`SELECT count(*) FROM messages WHERE verb = 'vote' AND target_id = ? AND chat_jid = ?`, id, chat); got != fmt.Sprint(len(votes)+1) {
		t.Errorf("%s votes have the poll %d as their target", got, row)
	}
}

// A vote made while the voters are read is among them, and its event may come after.
func TestPoll_VoteReadBeforeItsEvent_IsStoredOnce(t *testing.T) {
	r := newHarness(t, fake.Options{})
	r.connect()()
	_, id := r.openPoll("discord:" + r.general.ChannelID)
	r.general.Vote(r.alice, id, 1, true)
	stored := strings.Count(r.Log.String(), "missed votes stored")
	r.connect()
	r.Until("the vote", func() bool { return strings.Count(r.Log.String(), "missed votes stored") > stored })
	r.discord.Inject("MESSAGE_POLL_VOTE_ADD", fmt.Sprintf(`{"user_id":%q,"channel_id":%q,"message_id":%q,"answer_id":1}`,
		r.alice.ID, r.general.ChannelID, id))
	r.general.Vote(r.alice, id, 1, false)
	r.general.Vote(r.alice, id, 1, true)
	const want = "Alice add 1\nAlice remove 1\nAlice add 1"
	r.Until("the votes after it", func() bool { return len(r.votes()) >= len(want) })
	if got := r.votes(); got != want {
		t.Errorf("votes:\n%s\nwant:\n%s", got, want)
	}
}

func TestPoll_VotersNotVisible_AreNotAskedForAgain(t *testing.T) {
	r := newHarness(t, fake.Options{})
	r.connect()()
	chat := "discord:" + r.general.ChannelID
	_, gone := r.openPoll(chat)
	_, id := r.openPoll(chat)
	r.general.Delete(gone)
	r.general.Vote(r.alice, id, 1, true)
	r.connect()
	r.Until("the vote", func() bool { return r.votes() == "Alice add 1" })
	r.Until("the refusal", func() bool { return strings.Contains(r.Log.String(), "votes that were missed cannot be read") })
	calls := r.votersRead()
	r.discord.InvalidateSessions(false)
	r.general.Vote(r.alice, id, 2, true)
	r.Until("the next session", func() bool { return r.votes() == "Alice add 1\nAlice add 2" })
	r.Until("the calls", func() bool { return r.votersRead() >= calls+2 })
	if n := strings.Count(r.Log.String(), "votes that were missed cannot be read"); n != 1 {
		t.Errorf("logged %d times", n)
	}
}
