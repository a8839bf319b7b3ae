package discord_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/fakes/internal/fakeservertest"
)

// ids are the ids of the objects in a list.
func ids(list []map[string]any) string {
	var all []string
	for _, o := range list {
		all = append(all, fmt.Sprint(o["id"]))
	}
	return strings.Join(all, " ")
}

// in is the list in a field of an answer.
func (a answer) in(field string) (list []map[string]any) {
	all, _ := a.json()[field].([]any) // none in another answer
	for _, o := range all {
		object, _ := o.(map[string]any)
		list = append(list, object)
	}
	return list
}

func TestPins_ListedByPage_LatestFirst(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := start(t, discord.Options{Now: func() time.Time { return now }})
	path := "/channels/" + r.general.ChannelID
	one, two := r.general.Say(r.alice, "one"), r.general.Say(r.alice, "two")
	r.refuse(403, 50013, "PUT", path+"/messages/pins/"+one.ID, "")
	r.guild.Grant(discord.PinMessages)
	c := r.listen(allIntents)
	r.must("PUT", path+"/messages/pins/"+one.ID, "")
	fakeservertest.Subset(t, c.event("MESSAGE_UPDATE"), `{"id":"`+one.ID+`","pinned":true}`)
	fakeservertest.Subset(t, c.event("CHANNEL_PINS_UPDATE"), `{"channel_id":"`+r.general.ChannelID+`","guild_id":"`+r.guild.ID+`","last_pin_timestamp":"2027-01-15T08:00:00Z"}`)
	note := c.event("MESSAGE_CREATE")
	fakeservertest.Subset(t, note, `{"type":6,"author":{"id":"`+r.Me().ID+`"},"message_reference":{"message_id":"`+one.ID+`"}}`)
	r.refuse(403, 50021, "PUT", path+"/pins/"+note["id"].(string), "")
	r.must("PUT", path+"/messages/pins/"+one.ID, "") // again: nothing happens
	now = now.Add(time.Second)
	r.must("PUT", path+"/pins/"+two.ID, "")
	fakeservertest.Subset(t, r.must("GET", path, "").json(), `{"last_pin_timestamp":"2027-01-15T08:00:01Z"}`)
	if got := r.must("GET", path+"/pins", "").list(); ids(got) != two.ID+" "+one.ID {
		t.Errorf("pins %s", ids(got))
	}
	page := r.must("GET", path+"/messages/pins?limit=1", "")
	fakeservertest.Subset(t, page.json(), `{"has_more":true,"items":[{"pinned_at":"2027-01-15T08:00:01Z","message":{"id":"`+two.ID+`"}}]}`)
	page = r.must("GET", path+"/messages/pins?limit=1&before=2027-01-15T08:00:01Z", "")
	fakeservertest.Subset(t, page.json(), `{"has_more":false,"items":[{"message":{"id":"`+one.ID+`"}}]}`)
	r.refuse(400, 50035, "GET", path+"/messages/pins?before=yesterday", "")
	r.must("DELETE", path+"/messages/pins/"+two.ID, "")
	r.general.Delete(one.ID)
	if got := r.must("GET", path+"/messages/pins", "").in("items"); len(got) != 0 {
		t.Errorf("pins %v", got)
	}
	for range 250 {
		r.general.Pin(r.alice, r.general.Say(r.alice, "x").ID)
	}
	r.refuse(400, 30003, "PUT", path+"/messages/pins/"+two.ID, "")
	r.general.Deny(discord.ReadMessageHistory)
	if got := r.must("GET", path+"/messages/pins", "").in("items"); len(got) != 0 {
		t.Errorf("%d pins without Read Message History", len(got))
	}
}

func TestReactions_OfAll_AreListedAndRemoved(t *testing.T) {
	r := start(t, discord.Options{})
	m := r.general.Say(r.alice, "x")
	path := messages(r.general) + "/" + m.ID + "/reactions"
	for _, by := range []discord.User{r.bob, r.alice, r.Me()} {
		r.general.React(by, m.ID, "👍")
	}
	r.general.React(r.bob, m.ID, "🎉")
	thumb := path + "/%F0%9F%91%8D"
	if got := r.must("GET", thumb, "").list(); ids(got) != r.Me().ID+" "+r.alice.ID+" "+r.bob.ID {
		t.Errorf("users %v", got)
	}
	if got := r.must("GET", thumb+"?limit=1&after="+r.Me().ID, "").list(); ids(got) != r.alice.ID {
		t.Errorf("the second page %v", got)
	}
	if got := r.must("GET", thumb+"?type=1", "").list(); len(got) != 0 {
		t.Errorf("super reactions %v", got)
	}
	r.refuse(400, 10014, "GET", path+"/x", "")
	r.refuse(400, 50035, "GET", thumb+"?limit=101", "")
	for _, route := range []string{path, thumb, thumb + "/" + r.bob.ID} {
		r.refuse(403, 50013, "DELETE", route, "")
	}
	r.guild.Grant(discord.ManageMessages)
	c := r.listen(allIntents)
	r.must("DELETE", thumb+"/"+r.bob.ID, "")
	fakeservertest.Subset(t, c.event("MESSAGE_REACTION_REMOVE"), `{"user_id":"`+r.bob.ID+`","emoji":{"name":"👍"}}`)
	r.must("DELETE", thumb, "")
	fakeservertest.Subset(t, c.event("MESSAGE_REACTION_REMOVE_EMOJI"), `{"channel_id":"`+r.general.ChannelID+`","guild_id":"`+r.guild.ID+`","message_id":"`+m.ID+`","emoji":{"name":"👍","id":null}}`)
	r.must("DELETE", path, "")
	fakeservertest.Subset(t, c.event("MESSAGE_REACTION_REMOVE_ALL"), `{"channel_id":"`+r.general.ChannelID+`","guild_id":"`+r.guild.ID+`","message_id":"`+m.ID+`","emoji":null}`)
	if left := r.general.Reactions(m.ID); len(left) != 0 {
		t.Errorf("reactions %v", left)
	}
	r.general.ClearReactions(m.ID)
	c.event("MESSAGE_REACTION_REMOVE_ALL")
	for i := range 21 {
		emoji := fmt.Sprintf("%%F0%%9F%%98%%%X", 0x80+i)
		if i < 20 {
			r.must("PUT", path+"/"+emoji+"/@me", "")
		} else {
			r.refuse(400, 30010, "PUT", path+"/"+emoji+"/@me", "")
		}
	}
	private := r.DM(r.bob)
	own := private.Say(r.bob, "x")
	r.refuse(403, 50003, "DELETE", messages(private)+"/"+own.ID+"/reactions", "")
}

func TestBulkDelete_OldOrRepeated_Refused(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := start(t, discord.Options{Now: func() time.Time { return now }})
	old := r.general.Say(r.alice, "old").ID
	now = now.Add(14*24*time.Hour + time.Second)
	one, two := r.general.Say(r.alice, "one").ID, r.general.Say(r.bob, "two").ID
	path := messages(r.general) + "/bulk-delete"
	list := func(ids ...string) string { return `{"messages":["` + strings.Join(ids, `","`) + `"]}` }
	r.refuse(403, 50013, "POST", path, list(one, two))
	r.refuse(403, 50013, "DELETE", messages(r.general)+"/"+one, "")
	r.guild.Grant(discord.ManageMessages)
	r.refuse(400, 50016, "POST", path, list(one))
	r.refuse(400, 50035, "POST", path, list(one, one))
	r.refuse(400, 50035, "POST", path, list(one, "x"))
	r.refuse(400, 50034, "POST", path, list(one, old))
	r.refuse(403, 50003, "POST", messages(r.DM(r.bob))+"/bulk-delete", list(one, two))
	c := r.listen(allIntents)
	r.must("POST", path, list(one, two))
	fakeservertest.Subset(t, c.event("MESSAGE_DELETE_BULK"), `{"ids":["`+one+`","`+two+`"],"channel_id":"`+r.general.ChannelID+`"}`)
	r.must("POST", path, list(one, two)) // they are gone: nothing happens
	r.must("DELETE", messages(r.general)+"/"+old, "")
	fakeservertest.Subset(t, c.event("MESSAGE_DELETE"), `{"id":"`+old+`"}`)
	if left := r.general.Messages(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestRoles_Changes_SendEvents(t *testing.T) {
	r := start(t, discord.Options{})
	path := "/guilds/" + r.guild.ID + "/roles"
	above := r.guild.Role("team")
	if got := r.must("GET", path, "").list(); len(got) != 3 || got[0]["name"] != "@everyone" || got[2]["id"] != above.ID {
		t.Errorf("roles %v", got)
	}
	r.refuse(403, 50013, "POST", path, `{"name":"x"}`)
	c := r.listen(allIntents)
	r.guild.RenameRole(above.ID, "crew")
	fakeservertest.Subset(t, c.event("GUILD_ROLE_UPDATE"), `{"guild_id":"`+r.guild.ID+`","role":{"id":"`+above.ID+`","name":"crew"}}`)
	r.guild.SetRole(r.alice, above, true)
	fakeservertest.Subset(t, c.event("GUILD_MEMBER_UPDATE"), `{"guild_id":"`+r.guild.ID+`","user":{"id":"`+r.alice.ID+`"},"roles":["`+above.ID+`"]}`)
	r.guild.Grant(discord.ManageRoles)
	fakeservertest.Subset(t, c.event("GUILD_ROLE_UPDATE"), `{"role":{"id":"`+r.guild.BotRole().ID+`","position":3}}`)
	made := r.must("POST", path, `{"name":"new","permissions":"0","mentionable":true,"color":255}`).json()
	fakeservertest.Subset(t, made, `{"name":"new","permissions":"0","mentionable":true,"color":255,"managed":false,"position":1,
		"colors":{"primary_color":255,"secondary_color":null,"tertiary_color":null}}`)
	role := path + "/" + made["id"].(string)
	fakeservertest.Subset(t, c.event("GUILD_ROLE_UPDATE"), `{"role":{"id":"`+r.guild.BotRole().ID+`","position":4}}`)
	fakeservertest.Subset(t, c.event("GUILD_ROLE_UPDATE"), `{"role":{"id":"`+above.ID+`","position":3}}`)
	fakeservertest.Subset(t, c.event("GUILD_ROLE_CREATE"), `{"role":{"id":"`+made["id"].(string)+`"}}`)
	fakeservertest.Subset(t, r.must("PATCH", role, `{"name":"newer"}`).json(), `{"name":"newer","permissions":"0"}`)
	c.event("GUILD_ROLE_UPDATE")
	fakeservertest.Subset(t, r.must("GET", role, "").json(), `{"name":"newer"}`)
	member := "/guilds/" + r.guild.ID + "/members/" + r.bob.ID + "/roles/" + made["id"].(string)
	r.must("PUT", member, "")
	fakeservertest.Subset(t, c.event("GUILD_MEMBER_UPDATE"), `{"user":{"id":"`+r.bob.ID+`"},"roles":["`+made["id"].(string)+`"]}`)
	r.must("DELETE", member, "")
	c.event("GUILD_MEMBER_UPDATE")

	for _, tt := range []struct {
		status, code       int
		method, path, body string
	}{
		{403, 50013, "PATCH", role, `{"permissions":"8"}`}, // which it lacks itself
		{400, 50035, "PATCH", role, `{"permissions":"all"}`},
		{400, 50035, "POST", path, `{"name":"` + strings.Repeat("x", 101) + `"}`},
		{404, 10011, "PATCH", path + "/7", `{}`},
		{403, 50013, "DELETE", path + "/" + r.guild.BotRole().ID, ""},
		{400, 50028, "DELETE", path + "/" + r.guild.ID, ""},
		{404, 10007, "PUT", "/guilds/" + r.guild.ID + "/members/7/roles/" + above.ID, ""},
	} {
		r.refuse(tt.status, tt.code, tt.method, tt.path, tt.body)
	}
	r.must("DELETE", role, "")
	fakeservertest.Subset(t, c.event("GUILD_ROLE_DELETE"), `{"guild_id":"`+r.guild.ID+`","role_id":"`+made["id"].(string)+`"}`)
	r.guild.DeleteRole(above.ID)
	c.event("GUILD_ROLE_DELETE")
	if got := r.must("GET", "/guilds/"+r.guild.ID+"/members/"+r.alice.ID, "").json()["roles"].([]any); len(got) != 0 {
		t.Errorf("roles of a deleted role's member: %v", got)
	}
	higher := r.guild.Role("higher")
	c.event("GUILD_ROLE_CREATE")
	r.guild.Grant(discord.Administrator)
	c.event("GUILD_ROLE_UPDATE")
	r.general.Deny(discord.SendMessages)
	r.say(r.general, "an administrator may")
	r.must("DELETE", path+"/"+higher.ID, "")
}

func TestMembers_ListedAndSearched(t *testing.T) {
	r := start(t, discord.Options{})
	path := "/guilds/" + r.guild.ID + "/members"
	if got := r.must("GET", path, "").list(); len(got) != 1 {
		t.Errorf("%d members, want one by default", len(got))
	}
	after := r.must("GET", path+"?limit=1000&after="+r.alice.ID, "").list()
	if len(after) != 1 || after[0]["user"].(map[string]any)["id"] != r.bob.ID {
		t.Errorf("after alice: %v", after)
	}
	r.guild.Nick(r.bob, "Robert")
	for query, want := range map[string]int{"al": 1, "ROB": 1, "b": 1, "z": 0} {
		if got := r.must("GET", path+"/search?limit=10&query="+query, "").list(); len(got) != want {
			t.Errorf("%q: %d members, want %d", query, len(got), want)
		}
	}
	r.refuse(400, 50035, "GET", path+"/search", "")
	r.refuse(400, 50035, "GET", path+"?limit=1001", "")
	fakeservertest.Subset(t, r.must("PATCH", path+"/@me", `{"nick":"Ari"}`).json(), `{"nick":"Ari","user":{"id":"`+r.Me().ID+`"}}`)
	r.refuse(400, 50035, "PATCH", path+"/@me", `{"nick":"`+strings.Repeat("x", 33)+`"}`)
	denied := start(t, discord.Options{Denied: discord.GuildMembers})
	denied.refuse(403, 50001, "GET", "/guilds/"+denied.guild.ID+"/members", "")
}

func TestGateway_RequestMembers_AnsweredInChunks(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := start(t, discord.Options{RateLimits: true, Now: func() time.Time { return now }})
	for i := range 998 {
		r.guild.Join(r.User(fmt.Sprint("User ", i), fmt.Sprintf("user%03d", i)))
	}
	c := r.listen(allIntents)
	chunk := func(request, want string) map[string]any {
		t.Helper()
		c.send(8, `{"guild_id":"`+r.guild.ID+`",`+request+`}`)
		e := c.event("GUILD_MEMBERS_CHUNK")
		fakeservertest.Subset(t, e, want)
		return e
	}
	first := chunk(`"query":"","limit":0,"nonce":"n1"`, `{"guild_id":"`+r.guild.ID+`","chunk_index":0,"chunk_count":2,"nonce":"n1","presences":null,"not_found":null}`)
	second := c.event("GUILD_MEMBERS_CHUNK")
	fakeservertest.Subset(t, second, `{"chunk_index":1,"chunk_count":2,"nonce":"n1"}`)
	if n, rest := len(first["members"].([]any)), len(second["members"].([]any)); n != 1000 || rest != 1 {
		t.Errorf("%d and %d members", n, rest)
	}
	c.send(8, `{"guild_id":"`+r.guild.ID+`","query":"","limit":0,"nonce":"n2"}`)
	fakeservertest.Subset(t, c.event("RATE_LIMITED"), `{"opcode":8,"retry_after":30,"meta":{"guild_id":"`+r.guild.ID+`","nonce":"n2"}}`)
	found := chunk(`"query":"USER","limit":1000,"presences":true,"nonce":"`+strings.Repeat("n", 33)+`"`, `{"chunk_count":1,"presences":[],"nonce":null}`)
	if n := len(found["members"].([]any)); n != 100 {
		t.Errorf("%d members by their name, want 100 at most", n)
	}
	chunk(`"user_ids":"`+r.bob.ID+`"`, `{"members":[{"user":{"id":"`+r.bob.ID+`"}}],"not_found":[]}`)
	chunk(`"user_ids":["`+r.bob.ID+`","7"]`, `{"chunk_index":0,"chunk_count":1,"not_found":["7"]}`)
	now = now.Add(30 * time.Second)
	chunk(`"query":"","limit":0`, `{"chunk_count":2}`)
	c.event("GUILD_MEMBERS_CHUNK")
	c.send(8, `{"guild_id":"7","query":"","limit":0}`) // no guild of the bot's: no answer
	chunk(`"query":"zoe","limit":1`, `{"members":[]}`)
	c.send(8, `{"guild_id":"`+r.guild.ID+`","limit":1}`)
	c.closes(discord.CloseDecodeError)

	now = now.Add(time.Minute)
	c = r.listen(1)
	c.send(8, `{"guild_id":"`+r.guild.ID+`","query":"","limit":0}`) // needs the intent: no answer
	chunk(`"query":"alice","limit":1`, `{"members":[{"user":{"id":"`+r.alice.ID+`"}}]}`)
}

func TestGateway_TooManyPayloads_Closed(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := start(t, discord.Options{RateLimits: true, Now: func() time.Time { return now }})
	c := r.listen(1)
	for range 119 { // IDENTIFY was the first
		c.send(1, "null")
		c.op(11)
	}
	c.send(1, "null")
	c.closes(discord.CloseRateLimited)
}

func TestChannels_OfBot_ManagedByPermission(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := start(t, discord.Options{RateLimits: true, Now: func() time.Time { return now }})
	path := "/channels/" + r.general.ChannelID
	r.refuse(403, 50013, "PATCH", path, `{"name":"x"}`)
	r.refuse(403, 50013, "DELETE", path, "")
	r.refuse(403, 50013, "POST", "/guilds/"+r.guild.ID+"/channels", `{"name":"x"}`)
	r.refuse(403, 50003, "PATCH", "/channels/"+r.DM(r.bob).ChannelID, `{"name":"x"}`)
	r.guild.Grant(discord.ManageChannels)
	c := r.listen(allIntents)
	got := r.must("PATCH", path, `{"name":"lobby","topic":"all","rate_limit_per_user":5,"nsfw":true,"position":3}`).json()
	fakeservertest.Subset(t, got, `{"id":"`+r.general.ChannelID+`","name":"lobby","topic":"all","rate_limit_per_user":5,"nsfw":true,"position":3}`)
	fakeservertest.Subset(t, c.event("CHANNEL_UPDATE"), `{"name":"lobby"}`)
	for _, body := range []string{
		`{"name":""}`, `{"name":"` + strings.Repeat("x", 101) + `"}`, `{"topic":"` + strings.Repeat("x", 1025) + `"}`, `{"rate_limit_per_user":21601}`,
		`{"parent_id":"` + r.general.ChannelID + `"}`,
	} {
		now = now.Add(10 * time.Minute)
		r.refuse(400, 50035, "PATCH", path, body)
	}
	now = now.Add(10 * time.Minute)
	r.must("PATCH", path, `{"name":"one"}`)
	r.must("PATCH", path, `{"name":"two"}`)
	if got := r.call("PATCH", path, `{"name":"three"}`); got.Status != 429 || got.json()["retry_after"] != 600.0 {
		t.Errorf("the third name in ten minutes: %d %s", got.Status, got.body)
	}
	r.must("PATCH", path, `{"nsfw":false}`)
	for range 3 {
		c.event("CHANNEL_UPDATE")
	}
	category := r.must("POST", "/guilds/"+r.guild.ID+"/channels", `{"name":"area","type":4}`).json()["id"].(string)
	made := r.must("POST", "/guilds/"+r.guild.ID+"/channels", `{"name":"made","parent_id":"`+category+`"}`).json()
	fakeservertest.Subset(t, made, `{"name":"made","type":0,"parent_id":"`+category+`","guild_id":"`+r.guild.ID+`"}`)
	c.event("CHANNEL_CREATE")
	c.event("CHANNEL_CREATE")
	r.refuse(400, 50035, "POST", "/guilds/"+r.guild.ID+"/channels", `{}`)
	r.refuse(400, 50035, "POST", "/guilds/"+r.guild.ID+"/channels", `{"name":"x","type":2}`)
	r.must("DELETE", "/channels/"+made["id"].(string), "")
	fakeservertest.Subset(t, c.event("CHANNEL_DELETE"), `{"id":"`+made["id"].(string)+`"}`)
	r.refuse(404, 10003, "GET", "/channels/"+made["id"].(string), "")
}

func TestEditMessage_ListedAttachments_AreKept(t *testing.T) {
	r := start(t, discord.Options{})
	sent := r.upload(r.general, `{"content":"two"}`, []byte("one"), []byte("two"))
	files := sent.in("attachments")
	path := messages(r.general) + "/" + sent.json()["id"].(string)
	if left := r.must("PATCH", path, `{"content":"still two"}`).in("attachments"); len(left) != 2 {
		t.Errorf("an edit of the text leaves %v", left)
	}
	left := r.must("PATCH", path, `{"attachments":[{"id":"`+files[1]["id"].(string)+`"}],"flags":4}`)
	if ids(left.in("attachments")) != files[1]["id"] || left.json()["flags"] != 4.0 {
		t.Errorf("left: %s", left.body)
	}
	r.refuse(400, 50006, "PATCH", path, `{"content":"","attachments":[]}`)
	if left := r.must("PATCH", path, `{"attachments":[]}`).in("attachments"); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
