package main

import (
	"slices"
	"strings"
	"testing"

	"arizuko/gated/gatedtest"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	fake "arizuko/pkg/testkit/fakes/slack"
)

// What became of messages while slakd was down makes the rows that its events would have made.
func TestMissed_Changes_AreReadFromHistory(t *testing.T) {
	t.Parallel()
	r, stop := newReadUp(t, fake.Options{})
	one, two := r.team.Say(r.alice, "one"), r.team.Say(r.bob, "see https://acme.slack.com/archives/x")
	three, root := r.team.Say(r.alice, "three"), r.team.Say(r.bob, "root")
	reply := r.team.Reply(r.alice, root.TS, "reply")
	seen := r.team.Say(r.alice, "seen")
	r.team.React(r.bob, one.TS, "tada")
	r.team.React(r.alice, one.TS, "eyes")
	r.team.Edit(r.alice, seen.TS, "seen, edited")
	r.confirmed()
	before := len(r.rows(r.team))
	stop()

	r.team.Edit(r.alice, one.TS, r.Me().Mention()+" one, edited")
	r.team.UnfurlMessage(two.TS, r.alice, "what she wrote")
	r.team.Unfurl(three.TS)
	r.team.Delete(r.bob, root.TS)
	r.team.Edit(r.alice, reply.TS, "reply, edited")
	r.team.React(r.bob, three.TS, "+1")
	r.team.React(r.alice, reply.TS, "party-parrot")
	r.team.Unreact(r.bob, one.TS, "tada")
	fresh := r.team.Say(r.bob, "fresh")
	r.team.Edit(r.bob, fresh.TS, "fresh, edited")
	r.team.React(r.alice, fresh.TS, "wave")
	r.missedMeanwhile()

	stop = r.readUp(2)
	want := []string{
		"edit Alice: one, edited", "edit Bob: see https://acme.slack.com/archives/x\nquoted from Alice:\nwhat she wrote",
		"delete Bob:", "edit Alice: reply, edited", "message Bob: fresh, edited",
		"reaction Bob: -🎉", "reaction Bob: 👍", "reaction Alice: :party-parrot:", "reaction Alice: 👋",
	}
	if diff := cmp.Diff(want, r.rows(r.team)[before:]); diff != "" {
		t.Errorf("rows (-want +got):\n%s\nthe log:\n%s", diff, r.Log)
	}
	rows := r.messages(r.team)[before:]
	for i, target := range []string{one.TS, two.TS, root.TS, reply.TS} {
		if rows[i].TargetID != target {
			t.Errorf("%s %q is of %s, want %s", rows[i].Verb, rows[i].Content, rows[i].TargetID, target)
		}
	}
	if !rows[0].Addressed || rows[3].ThreadID != root.TS || rows[7].ThreadID != root.TS {
		t.Errorf("an edit that mentions the bot, and changes in a thread: %+v, %+v, %+v", rows[0], rows[3], rows[7])
	}
	stop()
	r.readUp(3)
	if again := len(r.rows(r.team)); again != before+len(want) {
		t.Errorf("read once more they are %d rows, want %d: %q", again, before+len(want), r.rows(r.team))
	}
}

// An event that Slack sends again after the history has shown its change makes no second row, though the history does
// not show its time; a later one does.
func TestMissed_ReactionEventsAfterHistory_MakeNoSecondRow(t *testing.T) {
	t.Parallel()
	r, stop := newReadUp(t, fake.Options{})
	one := r.team.Say(r.alice, "one")
	r.confirmed()
	stop()
	r.team.React(r.bob, one.TS, "+1")
	r.missedMeanwhile()
	r.readUp(2)
	added := r.messages(r.team)[1]
	r.Inject(`{"type":"reaction_added","user":"` + r.bob.ID + `","reaction":"+1","item":{"type":"message","channel":"` + r.team.ChannelID +
		`","ts":"` + one.TS + `"},"event_ts":"` + one.TS + `"}`)
	r.confirmed()
	r.stored(r.team, "message Alice: one", "reaction Bob: 👍")
	if added.TargetID != one.TS || !strings.HasPrefix(added.PlatformID, one.TS+":r:"+r.bob.ID+":👍:") {
		t.Errorf("the reaction: %+v", added)
	}
	r.team.Unreact(r.bob, one.TS, "+1")
	r.team.React(r.bob, one.TS, "+1")
	r.confirmed()
	r.stored(r.team, "message Alice: one", "reaction Bob: 👍", "reaction Bob: -👍", "reaction Bob: 👍")
}

// A message that Slack quotes some time after it was sent is an edit, live as well.
func TestInbound_LatePreview_IsAnEdit(t *testing.T) {
	t.Parallel()
	r := newConnected(t, fake.Options{})
	one := r.team.Say(r.alice, "see this")
	r.team.Unfurl(one.TS)
	r.team.UnfurlMessage(one.TS, r.bob, "hello")
	r.confirmed()
	r.stored(r.team, "message Alice: see this", "edit Alice: see this\nquoted from Bob:\nhello")
	if m := r.messages(r.team)[1]; m.TargetID != one.TS || m.Addressed || m.Timestamp == 0 {
		t.Errorf("the edit: %+v", m)
	}
}

// The votes in open polls are asked for wherever the polls are, with all voters, and nothing is lost if a poll is gone.
func TestMissed_VotesInPolls_AreRead(t *testing.T) {
	t.Parallel()
	r := newHarness(t, fake.Options{})
	var voters []fake.User
	for range 30 { // more than the history lists
		u := r.User("Voter", "voter")
		r.team.Join(u)
		voters = append(voters, u)
	}
	thread := r.team.Thread(r.team.Say(r.alice, "question").TS)
	stop := r.readUp(1)
	var polls []*msg.Message
	for _, in := range []fake.Place{thread, thread} {
		row := r.ends(r.out(in, func(m *msg.Message) {
			m.Kind, m.Content = msg.KindPoll, `{"question":"Lunch?","options":["yes","no"]}`
		}), msg.OutSent)
		r.write(func(tx *store.Tx) error {
			return gatedtest.PutPoll(tx, &msg.StoredPoll{
				MessageID: row.ID, Folder: "main", ChatJID: row.ChatJID, State: msg.PollOpen, CreatedAt: 1,
				Poll: msg.Poll{Question: "Lunch?", Options: []string{"yes", "no"}},
			})
		})
		polls = append(polls, row)
	}
	r.confirmed()
	before := len(r.rows(r.team))
	stop()
	for _, u := range voters {
		r.team.React(u, polls[0].PlatformID, "one")
	}
	r.missedMeanwhile()
	r.InjectFault(fake.Fault{Method: "conversations.replies", Error: "thread_not_found", Times: -1}) // as of a thread without rows of the day
	r.readUp(2)
	var senders []string
	for _, m := range r.messages(r.team)[before:] {
		if m.Verb != msg.VerbReaction || m.Content != msg.OptionEmoji(1) || m.TargetID != polls[0].PlatformID || m.ThreadID != thread.ThreadTS {
			t.Errorf("row %+v", m)
		}
		senders = append(senders, m.Sender)
	}
	if slices.Sort(senders); len(slices.Compact(senders)) != len(voters) {
		t.Errorf("%d voters, want %d", len(senders), len(voters))
	}
	if asked := r.asked("reactions.get"); asked != len(polls) {
		t.Errorf("asked %d times for reactions, want %d", asked, len(polls))
	}
}
