package main

import (
	"strings"
	"testing"

	fake "arizuko/pkg/testkit/fakes/discord"
)

// queuePoll writes an outbound poll, or with a target the end of one, as gated does.
func (r *harness) queuePoll(chatJID, target, content string) (id int64) {
	r.Helper()
	id = r.queue(chatJID, "", content)
	r.exec(`UPDATE messages SET kind = 'poll', target_id = nullif(?, '') WHERE id = ?`, target, id)
	return id
}

func TestPoll_VotesAndEnd_AreStored(t *testing.T) {
	r := newHarness(t, fake.Options{})
	stop := r.connect()
	stop() // so that the row is read as a poll
	chat := "discord:" + r.general.ChannelID
	const content = `{"question":"Lunch?","options":["yes","no"],"multiple":false,"closes_at":0}`
	row := r.queuePoll(chat, "", content)
	stop = r.connect()
	var id string
	r.until("the poll", func() bool {
		id = r.text(`SELECT ifnull(platform_id, '') FROM messages WHERE id = ?`, row)
		return id != ""
	})

	theirs := r.general.Poll(r.alice, "Dinner?", "yes")
	r.general.Vote(r.alice, theirs.ID, 1, true) // not in a poll of the bot
	r.general.Vote(r.alice, id, 2, true)
	r.general.Vote(r.alice, id, 2, false)
	r.general.Vote(r.alice, id, 1, true)
	votes := func() string {
		return r.text(`SELECT ifnull(group_concat(verb || content || target_id, char(10)), '') FROM (SELECT * FROM messages WHERE verb IN ('vote', 'poll_end') ORDER BY id)`)
	}
	want := strings.Join([]string{
		`vote{"options":[2],"change":"add"}` + id, `vote{"options":[2],"change":"remove"}` + id, `vote{"options":[1],"change":"add"}` + id,
	}, "\n")
	r.until("the votes", func() bool { return votes() == want })
	stop()

	end := r.queuePoll(chat, id, content)
	again := r.queuePoll(chat, id, content)
	r.connect()
	for _, row := range []int64{end, again} { // closing twice does no harm
		r.until("the end", func() bool { return r.text(`SELECT out_state FROM messages WHERE id = ?`, row) == "sent" })
	}
	r.until("the result", func() bool {
		return strings.Contains(votes(), `poll_end{"result":{"counts":[1,0],"voters":1}}`+id) && strings.Contains(votes(), "poll_end{}"+id)
	})
}
