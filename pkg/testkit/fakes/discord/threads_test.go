package discord_test

import (
	"testing"
	"time"

	"arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/fakes/internal/fakeservertest"
)

func TestModifyThread_ByItsRights(t *testing.T) {
	r := start(t, discord.Options{})
	theirs := r.general.Thread(r.alice, "theirs")
	path := "/channels/" + theirs.ChannelID
	c := r.listen(allIntents)
	r.refuse(403, 50013, "PATCH", path, `{"archived":true}`)
	r.refuse(403, 50013, "PATCH", "/channels/"+r.general.ChannelID, `{"archived":true}`)
	theirs.Archive(true, false)
	c.event("THREAD_UPDATE")
	fakeservertest.Subset(t, r.must("PATCH", path, `{"archived":false}`).json(), `{"thread_metadata":{"archived":false,"locked":false}}`)
	fakeservertest.Subset(t, c.event("THREAD_UPDATE"), `{"id":"`+theirs.ChannelID+`","thread_metadata":{"archived":false}}`)
	theirs.Archive(true, true)
	c.event("THREAD_UPDATE")
	r.refuse(403, 50013, "PATCH", path, `{"archived":false}`)
	r.refuse(400, 50083, "POST", messages(theirs), content("x"))
	theirs.Archive(false, true)
	c.event("THREAD_UPDATE")
	r.refuse(403, 160005, "POST", messages(theirs), content("x"))

	own := r.general.Say(r.alice, "own").ID
	r.must("POST", messages(r.general)+"/"+own+"/threads", `{"name":"own"}`)
	r.must("PATCH", "/channels/"+own, `{"archived":true}`)
}

func TestArchivedThreads_ListedByKind(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := start(t, discord.Options{Now: func() time.Time { return now }})
	public, joined := "/channels/"+r.general.ChannelID+"/threads/archived/public", "/channels/"+r.general.ChannelID+"/users/@me/threads/archived/private"
	first, second, third := r.general.Thread(r.alice, "1"), r.general.Thread(r.alice, "2"), r.general.Thread(r.alice, "3")
	r.general.Thread(r.alice, "open")
	var secrets []discord.Place
	for range 3 {
		secrets = append(secrets, r.general.PrivateThread(r.alice, "secret"))
	}
	hidden := r.general.PrivateThread(r.alice, "hidden")
	for _, s := range secrets {
		s.AddToThread(r.Me())
	}
	for _, t := range []discord.Place{third, first, second, secrets[2], secrets[0], secrets[1], hidden} {
		now = now.Add(time.Second)
		t.Archive(true, false)
	}
	want := func(path, ids_ string, more bool) answer {
		t.Helper()
		got := r.must("GET", path, "")
		if ids(got.in("threads")) != ids_ || got.json()["has_more"] != more {
			t.Errorf("%s: %s, want %s", path, got.body, ids_)
		}
		return got
	}
	page := want(public+"?limit=2", second.ChannelID+" "+first.ChannelID, true)
	last := page.in("threads")[1]["thread_metadata"].(map[string]any)["archive_timestamp"].(string)
	want(public+"?before="+last, third.ChannelID, false)
	want(joined+"?limit=2", secrets[2].ChannelID+" "+secrets[1].ChannelID, true)
	page = want(joined+"?before="+secrets[1].ChannelID, secrets[0].ChannelID, false)
	if members := page.in("members"); len(members) != 1 || members[0]["user_id"] != r.Me().ID {
		t.Errorf("members %v", members)
	}
	r.refuse(400, 50035, "GET", public+"?limit=1", "")
	r.refuse(400, 50035, "GET", public+"?before=yesterday", "")
	r.refuse(400, 50035, "GET", joined+"?before=2027-01-15T08:00:01Z", "")
	r.refuse(400, 50024, "GET", "/channels/"+first.ChannelID+"/threads/archived/public", "")
	r.general.Deny(discord.ReadMessageHistory)
	r.refuse(403, 50001, "GET", public, "")
	r.refuse(403, 50001, "GET", joined, "")
}

// Of a thread that the bot has not joined it hears nothing, until it is mentioned there or connects again.
func TestJoinToHear_UnjoinedThread_IsSilent(t *testing.T) {
	r := start(t, discord.Options{JoinToHear: true})
	c := r.listen(allIntents)
	thread := r.general.Thread(r.alice, "plan")
	c.event("THREAD_CREATE")
	c.event("MESSAGE_CREATE") // its announcement
	unheard := thread.Say(r.alice, "unheard")
	thread.React(r.bob, unheard.ID, "👍")
	thread.Delete(unheard.ID)
	called := thread.Say(r.bob, "hello "+r.Me().Mention())
	c.event("THREAD_CREATE")
	c.event("THREAD_MEMBERS_UPDATE")
	fakeservertest.Subset(t, c.event("MESSAGE_CREATE"), `{"id":"`+called.ID+`"}`)
	thread.Say(r.bob, "heard")
	fakeservertest.Subset(t, c.event("MESSAGE_CREATE"), `{"content":"heard"}`)

	other := r.general.Thread(r.alice, "other")
	c.event("THREAD_CREATE")
	c.event("MESSAGE_CREATE")
	other.Say(r.alice, "unheard")
	r.must("PUT", "/channels/"+other.ChannelID+"/thread-members/@me", "")
	c.event("THREAD_CREATE")
	c.event("THREAD_MEMBERS_UPDATE")
	other.Say(r.alice, "joined")
	fakeservertest.Subset(t, c.event("MESSAGE_CREATE"), `{"content":"joined"}`)

	third := r.general.Thread(r.alice, "third")
	c.event("THREAD_CREATE")
	c.event("MESSAGE_CREATE")
	third.Say(r.alice, "unheard")
	fresh := r.listen(allIntents)
	third.Say(r.alice, "heard since the new session")
	fakeservertest.Subset(t, fresh.event("MESSAGE_CREATE"), `{"content":"heard since the new session"}`)
}
