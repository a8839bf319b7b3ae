package discord_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/fakes/internal/fakeservertest"
)

// anonymous is a call without the bot's token.
func (r *fixture) anonymous(method, path, body string) answer {
	r.t.Helper()
	return r.request(method, "/api/v10"+path, strings.NewReader(body), "Content-Type", "application/json", "Authorization", "")
}

func TestWebhooks_ManagedByPermission(t *testing.T) {
	r := start(t, discord.Options{})
	path := "/channels/" + r.general.ChannelID + "/webhooks"
	r.refuse(403, 50013, "POST", path, `{"name":"build"}`)
	r.refuse(403, 50013, "GET", path, "")
	r.refuse(403, 50013, "GET", "/guilds/"+r.guild.ID+"/webhooks", "")
	r.guild.Grant(discord.ManageWebhooks)
	c := r.listen(allIntents | 1<<5)
	for _, name := range []string{"", " ", strings.Repeat("x", 81), "My Discord", "clyde"} {
		r.refuse(400, 50035, "POST", path, `{"name":"`+name+`"}`)
	}
	made := r.must("POST", path, `{"name":" build "}`).json()
	fakeservertest.Subset(t, made, `{"type":1,"name":"build","channel_id":"`+r.general.ChannelID+`","guild_id":"`+r.guild.ID+`","user":{"id":"`+r.Me().ID+`"},"application_id":"`+r.Me().ID+`"}`)
	fakeservertest.Subset(t, c.event("WEBHOOKS_UPDATE"), `{"guild_id":"`+r.guild.ID+`","channel_id":"`+r.general.ChannelID+`"}`)
	id := "/webhooks/" + made["id"].(string)
	byToken := id + "/" + made["token"].(string)
	fakeservertest.Subset(t, r.anonymous("GET", byToken, "").json(), `{"name":"build","user":null}`)
	fakeservertest.Subset(t, r.anonymous("PATCH", byToken, `{"name":"ci","channel_id":"7"}`).json(), `{"name":"ci","channel_id":"`+r.general.ChannelID+`"}`)
	other := r.guild.Channel("other")
	fakeservertest.Subset(t, r.must("PATCH", id, `{"channel_id":"`+other.ChannelID+`"}`).json(), `{"name":"ci","channel_id":"`+other.ChannelID+`"}`)
	r.refuse(404, 10003, "PATCH", id, `{"channel_id":"7"}`)
	if all := r.must("GET", "/guilds/"+r.guild.ID+"/webhooks", "").list(); ids(all) != made["id"] {
		t.Errorf("webhooks of the guild: %v", all)
	}
	if all := r.must("GET", path, "").list(); len(all) != 0 {
		t.Errorf("webhooks of the channel that it left: %v", all)
	}
	if got := r.anonymous("GET", id, ""); got.Status != 401 {
		t.Errorf("without a token: %d", got.Status)
	}
	r.refuse(401, 50027, "GET", id+"/nonsense", "")
	r.must("DELETE", id, "")
	r.refuse(404, 10015, "GET", byToken, "")
	r.refuse(403, 50003, "POST", "/channels/"+r.DM(r.bob).ChannelID+"/webhooks", `{"name":"x"}`)
	r.refuse(400, 50024, "POST", "/channels/"+r.general.Thread(r.alice, "t").ChannelID+"/webhooks", `{"name":"x"}`)
	for i := range 16 {
		if i < 15 {
			r.must("POST", path, `{"name":"x"}`)
		} else {
			r.refuse(400, 30007, "POST", path, `{"name":"x"}`)
		}
	}
}

func TestWebhooks_Execute_PostsUnderAName(t *testing.T) {
	r := start(t, discord.Options{})
	r.guild.Grant(discord.ManageWebhooks)
	forum := r.guild.Forum("questions")
	hook := func(p discord.Place) (id, path string) {
		made := r.must("POST", "/channels/"+p.ChannelID+"/webhooks", `{"name":"build"}`).json()
		return made["id"].(string), "/webhooks/" + made["id"].(string) + "/" + made["token"].(string)
	}
	id, path := hook(r.general)
	_, inForum := hook(forum)
	r.general.Deny(discord.SendMessages | discord.AttachFiles) // of the bot, not of the webhook
	c := r.listen(allIntents)
	if got := r.anonymous("POST", path, content("failed")); got.Status != 204 {
		t.Errorf("without wait: %d %s", got.Status, got.body)
	}
	fakeservertest.Subset(t, c.event("MESSAGE_CREATE"), `{"content":"failed","webhook_id":"`+id+`","application_id":"`+r.Me().ID+`","member":null,
		"author":{"id":"`+id+`","username":"build","bot":true,"discriminator":"0000"}}`)
	thread := r.general.Thread(r.alice, "log")
	thread.Archive(true, true)
	sent := r.anonymous("POST", path+"?wait=true&thread_id="+thread.ChannelID, `{"content":"in it","username":"ci"}`).json()
	fakeservertest.Subset(t, sent, `{"channel_id":"`+thread.ChannelID+`","content":"in it","author":{"username":"ci"}}`)
	message := path + "/messages/" + sent["id"].(string)
	fakeservertest.Subset(t, r.anonymous("PATCH", message+"?thread_id="+thread.ChannelID, content("changed")).json(), `{"content":"changed"}`)
	fakeservertest.Subset(t, r.anonymous("GET", message+"?thread_id="+thread.ChannelID, "").json(), `{"content":"changed"}`)
	post := r.anonymous("POST", inForum+"?wait=true", `{"content":"how?","thread_name":"question"}`).json()
	fakeservertest.Subset(t, post, `{"id":"`+fmt.Sprint(post["channel_id"])+`","content":"how?"}`)

	r.refuse(404, 10008, "GET", message, "") // it is not in the channel
	r.refuse(400, 220001, "POST", inForum, content("x"))
	r.refuse(400, 220003, "POST", path, `{"content":"x","thread_name":"x"}`)
	r.refuse(400, 50006, "POST", path, `{"content":" "}`)
	r.refuse(400, 50035, "POST", path, content(strings.Repeat("x", 2001)))
	r.refuse(400, 50035, "POST", path, `{"content":"x","username":"discord"}`)
	r.refuse(404, 10003, "POST", path+"?thread_id=7", content("x"))
	r.refuse(401, 50027, "POST", path+"x", content("x"))
	own := r.general.Messages()[0].ID
	if got := r.anonymous("DELETE", path+"/messages/"+own, ""); got.Status != 204 {
		t.Errorf("deleted: %d", got.Status)
	}
	theirs := r.general.Say(r.alice, "x").ID
	r.refuse(404, 10008, "DELETE", path+"/messages/"+theirs, "")
	r.Flood(time.Minute) // of the bot
	if got := r.anonymous("POST", path, content("x")); got.Status != 204 {
		t.Errorf("in a flood of the bot: %d", got.Status)
	}
}

func TestInteractions_FollowUps(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := start(t, discord.Options{Now: func() time.Time { return now }})
	r.AddCommand("ask", "Ask")
	c := r.listen(allIntents)
	asked := func() (callback, path string) {
		given := r.general.Command(r.alice, "ask", "")
		c.event("INTERACTION_CREATE")
		return "/interactions/" + given.ID + "/" + given.Token + "/callback", "/webhooks/" + r.Me().ID + "/" + given.Token
	}
	callback, path := asked()
	r.refuse(404, 10015, "POST", path, content("too soon"))
	r.must("POST", callback, `{"type":5}`)
	waiting := c.event("MESSAGE_CREATE")
	fakeservertest.Subset(t, waiting, `{"type":20,"flags":128,"content":"","webhook_id":"`+r.Me().ID+`","interaction_metadata":{"user":{"id":"`+r.alice.ID+`"}}}`)
	got := r.anonymous("PATCH", path+"/messages/@original", content("answer"))
	fakeservertest.Subset(t, got.json(), `{"id":"`+waiting["id"].(string)+`","content":"answer","flags":0}`)
	fakeservertest.Subset(t, c.event("MESSAGE_UPDATE"), `{"id":"`+waiting["id"].(string)+`","content":"answer","edited_timestamp":null}`)
	more := r.anonymous("POST", path, content("more")).json()
	fakeservertest.Subset(t, c.event("MESSAGE_CREATE"), `{"content":"more","type":19,"message_reference":{"message_id":"`+waiting["id"].(string)+`"},"interaction_metadata":{"original_response_message_id":"`+waiting["id"].(string)+`"}}`)
	secret := r.anonymous("POST", path, `{"content":"for you","flags":64}`).json()
	fakeservertest.Subset(t, r.anonymous("GET", path+"/messages/"+secret["id"].(string), "").json(), `{"content":"for you","flags":64}`)
	fakeservertest.Subset(t, r.anonymous("PATCH", path+"/messages/"+secret["id"].(string), content("only you")).json(), `{"content":"only you"}`)
	if sent := r.Sent(); !sent[len(sent)-1].Ephemeral || len(r.general.Messages()) != 2 {
		t.Errorf("an ephemeral message: %+v", sent[len(sent)-1])
	}
	for _, id := range []string{more["id"].(string), secret["id"].(string)} {
		if got := r.anonymous("DELETE", path+"/messages/"+id, ""); got.Status != 204 {
			t.Errorf("deleted: %d %s", got.Status, got.body)
		}
		r.refuse(404, 10008, "GET", path+"/messages/"+id, "")
	}
	fakeservertest.Subset(t, c.event("MESSAGE_DELETE"), `{"id":"`+more["id"].(string)+`"}`)
	now = now.Add(15*time.Minute + time.Second)
	r.refuse(401, 50027, "POST", path, content("too late"))

	callback, path = asked()
	r.must("POST", callback, `{"type":5,"data":{"flags":64}}`)
	fakeservertest.Subset(t, r.anonymous("POST", path, content("in its place")).json(), `{"content":"in its place","flags":64}`)
	if n := len(r.general.Messages()); n != 1 {
		t.Errorf("%d messages, want only the answer to the first command", n)
	}
	callback, path = asked()
	response := r.must("POST", callback+"?with_response=true", `{"type":4,"data":{"content":"said"}}`).json()
	fakeservertest.Subset(t, response, `{"interaction":{"type":2},"resource":{"type":4,"message":{"content":"said"}}}`)
	if got := r.anonymous("DELETE", path+"/messages/@original", ""); got.Status != 204 {
		t.Errorf("deleted: %d %s", got.Status, got.body)
	}
	r.refuse(404, 10015, "POST", "/webhooks/"+r.Me().ID+"/nonsense", content("x"))
}

func TestCommands_OneByOne(t *testing.T) {
	r := start(t, discord.Options{})
	app := "/applications/" + r.Me().ID
	for _, path := range []string{app + "/commands", app + "/guilds/" + r.guild.ID + "/commands"} {
		one := r.must("POST", path, `{"name":"ask","description":"Ask"}`).json()
		id := "/" + one["id"].(string)
		fakeservertest.Subset(t, one, `{"name":"ask","type":1,"application_id":"`+r.Me().ID+`"}`)
		if _, inGuild := one["guild_id"]; inGuild != strings.Contains(path, "guilds") {
			t.Errorf("%s: %v", path, one)
		}
		again := r.must("POST", path, `{"name":"ask","description":"Ask more"}`).json()
		if again["id"] != one["id"] {
			t.Errorf("a command of the same name has the id %v, want %v", again["id"], one["id"])
		}
		r.must("POST", path, `{"name":"other","description":"Other"}`)
		fakeservertest.Subset(t, r.must("PATCH", path+id, `{"description":"Ask me"}`).json(), `{"id":"`+one["id"].(string)+`","name":"ask","description":"Ask me"}`)
		fakeservertest.Subset(t, r.must("GET", path+id, "").json(), `{"description":"Ask me"}`)
		r.refuse(400, 50035, "PATCH", path+id, `{"name":"Ask"}`)
		r.refuse(400, 50035, "PATCH", path+id, `[]`)
		r.refuse(400, 50035, "POST", path, `{"name":"x","description":"x","options":null}`)
		r.refuse(404, 10063, "PATCH", path+"/7", `{}`)
		r.refuse(404, 10063, "DELETE", path+"/7", "")
		r.must("DELETE", path+id, "")
		if left := r.must("GET", path, "").list(); len(left) != 1 || left[0]["name"] != "other" {
			t.Errorf("left: %v", left)
		}
	}
	r.EntryPoint("launch")
	r.refuse(400, 50240, "PUT", app+"/commands", `[]`)
	r.must("PUT", app+"/guilds/"+r.guild.ID+"/commands", `[{"name":"here","description":"Here"}]`)
	r.refuse(404, 10004, "GET", app+"/guilds/7/commands", "")
	r.refuse(403, 20012, "GET", "/applications/7/guilds/"+r.guild.ID+"/commands", "")
	c := r.listen(0)
	r.general.Command(r.alice, "here", "")
	fakeservertest.Subset(t, c.event("INTERACTION_CREATE"), `{"data":{"name":"here","guild_id":"`+r.guild.ID+`"}}`)
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprintf(`{"name":"c%d","description":"x"}`, i)
	}
	r.refuse(400, 30032, "PUT", app+"/guilds/"+r.guild.ID+"/commands", "["+strings.Join(many, ",")+"]")
}
