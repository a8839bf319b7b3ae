package discord_test

import (
	"strings"
	"testing"
	"time"

	"arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/fakes/internal/fakeservertest"
)

func TestEvents_OfUserMessages(t *testing.T) {
	r := start(t, discord.Options{})
	beeper := r.OtherBot("Beeper", "beeper")
	r.guild.Join(beeper)
	c := r.listen(allIntents)
	next := func(want string) { t.Helper(); fakeservertest.Subset(t, c.event("MESSAGE_CREATE"), want) }
	first := r.general.Say(r.alice, "hello "+r.guild.BotRole().Mention())
	next(`{"type":0,"author":{"username":"alice"},"member":{"nick":null},"mention_roles":["` + r.guild.BotRole().ID + `"],"mentions":[]}`)
	r.general.Reply(r.bob, first.ID, "back")
	next(`{"type":19,"referenced_message":{"id":"` + first.ID + `","author":{"id":"` + r.alice.ID + `"}},"mentions":[{"id":"` + r.alice.ID + `","member":{"nick":null}}]}`)
	r.general.Attach(r.alice, "see", discord.File{Name: "a.png", Data: []byte("x"), Size: 99}, discord.File{Name: "b"})
	next(`{"content":"see","attachments":[{"filename":"a.png","size":99,"width":640,"content_type":"image/png"},{"filename":"b","width":null}]}`)
	r.general.Voice(r.alice, []byte("OggS"))
	next(`{"flags":8192,"attachments":[{"duration_secs":3,"waveform":"AAAA","content_type":"audio/ogg"}]}`)
	r.general.Sticker(r.alice, "wave")
	next(`{"content":"","sticker_items":[{"name":"wave","format_type":1}]}`)
	r.general.Poll(r.alice, "Lunch?", "yes", "no")
	next(`{"poll":{"question":{"text":"Lunch?"},"answers":[{"answer_id":1},{"answer_id":2}]}}`)
	r.general.Say(beeper, "beep")
	next(`{"author":{"bot":true},"webhook_id":null}`)
	r.DM(r.bob).Forward(r.bob, first)
	next(`{"content":"","flags":16384,"message_reference":{"type":1,"message_id":"` + first.ID + `"},"message_snapshots":[{"message":{"content":"` + first.Content + `"}}],"referenced_message":null}`)
	r.general.Edit(r.alice, first.ID, "hello again")
	if e := c.event("MESSAGE_UPDATE"); e["content"] != "hello again" || e["edited_timestamp"] == nil {
		t.Errorf("edited: %v", e)
	}
	second := r.general.Say(r.alice, "https://example.org")
	next(`{"embeds":[]}`)
	r.general.Unfurl(second.ID, discord.Embed{Type: "link", Title: "Example"})
	fakeservertest.Subset(t, c.event("MESSAGE_UPDATE"), `{"id":"`+second.ID+`","content":"https://example.org","edited_timestamp":null,"embeds":[{"title":"Example"}]}`)
	r.general.Delete(second.ID)
	fakeservertest.Subset(t, c.event("MESSAGE_DELETE"), `{"id":"`+second.ID+`"}`)
	third := r.general.Say(r.alice, "x")
	next(`{}`)
	r.general.Delete(first.ID, third.ID)
	fakeservertest.Subset(t, c.event("MESSAGE_DELETE_BULK"), `{"ids":["`+first.ID+`","`+third.ID+`"],"id":null,"guild_id":"`+r.guild.ID+`"}`)
}

func TestThreads_Created_SendEvents(t *testing.T) {
	r := start(t, discord.Options{})
	c := r.listen(allIntents)
	m := r.general.Say(r.alice, "topic")
	c.event("MESSAGE_CREATE")
	branch := r.general.ThreadFrom(r.bob, m.ID, "about it")
	if branch.ChannelID != m.ID {
		t.Errorf("the thread has id %s, want its message's", branch.ChannelID)
	}
	fakeservertest.Subset(t, c.event("THREAD_CREATE"), `{"id":"`+m.ID+`","parent_id":"`+r.general.ChannelID+`","type":11,"name":"about it","newly_created":true,"owner_id":"`+r.bob.ID+`","thread_metadata":{"archived":false}}`)
	fakeservertest.Subset(t, c.event("MESSAGE_UPDATE"), `{"id":"`+m.ID+`","flags":32,"thread":{"id":"`+m.ID+`"},"edited_timestamp":null}`)
	fakeservertest.Subset(t, c.event("MESSAGE_CREATE"), `{"type":21,"channel_id":"`+m.ID+`","message_reference":{"message_id":"`+m.ID+`","channel_id":"`+r.general.ChannelID+`"},"referenced_message":{"content":"topic"}}`)
	plan := r.general.Thread(r.alice, "plan")
	plan.Say(r.alice, "in it")
	for range 3 {
		c.next()
	}
	secret := r.general.PrivateThread(r.alice, "secret")
	secret.Say(r.alice, "unseen")
	secret.AddToThread(r.Me())
	fakeservertest.Subset(t, c.event("THREAD_CREATE"), `{"id":"`+secret.ChannelID+`","type":12,"newly_created":null,"member":{"user_id":"`+r.Me().ID+`"}}`)
	fakeservertest.Subset(t, c.event("THREAD_MEMBERS_UPDATE"), `{"id":"`+secret.ChannelID+`","added_members":[{"user_id":"`+r.Me().ID+`"}]}`)
	r.say(secret, "seen")
	c.event("MESSAGE_CREATE")

	plan.Archive(true, false)
	fakeservertest.Subset(t, c.event("THREAD_UPDATE"), `{"thread_metadata":{"archived":true}}`)
	own := plan.Messages()[0].ID
	r.refuse(400, 50083, "PUT", messages(plan)+"/"+own+"/reactions/%F0%9F%91%8D/@me", "")
	r.refuse(400, 50083, "PUT", "/channels/"+plan.ChannelID+"/thread-members/@me", "")
	r.say(plan, "wake up")
	fakeservertest.Subset(t, c.event("THREAD_UPDATE"), `{"thread_metadata":{"archived":false}}`)
	c.event("MESSAGE_CREATE")
	plan.DeleteChannel()
	fakeservertest.Subset(t, c.event("THREAD_DELETE"), `{"id":"`+plan.ChannelID+`"}`)
	r.general.Deny(discord.ViewChannel)
	r.refuse(403, 50001, "GET", "/channels/"+branch.ChannelID, "")
}

func TestThreads_OfBot(t *testing.T) {
	r := start(t, discord.Options{})
	m := r.general.Say(r.alice, "topic")
	path := messages(r.general) + "/" + m.ID + "/threads"
	fakeservertest.Subset(t, r.must("POST", path, `{"name":"about it","auto_archive_duration":60}`).json(), `{"id":"`+m.ID+`","type":11,"member":{"user_id":"`+r.Me().ID+`"}}`)
	r.refuse(400, 160004, "POST", path, `{"name":"again"}`)
	for _, body := range []string{`{}`, `{"name":" "}`, `{"name":"` + strings.Repeat("x", 101) + `"}`, `{"name":"x","auto_archive_duration":7}`} {
		r.refuse(400, 50035, "POST", path, body)
	}
	r.must("PUT", "/channels/"+m.ID+"/thread-members/@me", "")
	r.refuse(400, 50024, "PUT", "/channels/"+r.general.ChannelID+"/thread-members/@me", "")

	forum := r.guild.Forum("questions")
	c := r.listen(allIntents)
	open := forum.OpenPost(r.alice, "Why?", "because")
	fakeservertest.Subset(t, c.event("THREAD_CREATE"), `{"id":"`+open.ChannelID+`","parent_id":"`+forum.ChannelID+`"}`)
	fakeservertest.Subset(t, c.event("MESSAGE_CREATE"), `{"id":"`+open.ChannelID+`","channel_id":"`+open.ChannelID+`","content":"because"}`)
}

func TestCommands_Registered_CanBeUsedInTime(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := start(t, discord.Options{Now: func() time.Time { return now }})
	path := "/applications/" + r.Me().ID + "/commands"
	if got := r.must("GET", path, ""); got.body != "[]\n" {
		t.Errorf("at first there is %s", got.body)
	}
	for _, body := range []string{
		``, `null`, `[]`, `{"name":"new","description":"x","options":null}`, `{"name":"New","description":"x"}`,
		`{"name":"new","description":""}`, `{"name":"a b","description":"x"}`,
		`{"name":"a","description":"x","options":[{"type":0,"name":"text","description":"x"}]}`,
		`{"name":"a","description":"` + strings.Repeat("x", 101) + `"}`,
	} {
		r.refuse(400, 50035, "POST", path, body)
	}
	r.refuse(403, 20012, "POST", "/applications/7/commands", `{}`)
	one := r.must("POST", path, `{"name":"model","description":"Pick"}`).json()
	fakeservertest.Subset(t, one, `{"name":"model","type":1,"application_id":"`+r.Me().ID+`","guild_id":null}`)
	again := r.must("POST", path, `{"name":"model","description":"Pick","options":[{"type":3,"name":"text","description":"Which"}]}`).json()
	if again["id"] != one["id"] {
		t.Errorf("a command of the same name has the id %v, want %v", again["id"], one["id"])
	}
	r.must("POST", path, `{"name":"new","description":"Begin"}`)
	id := path + "/" + one["id"].(string)
	fakeservertest.Subset(t, r.must("PATCH", id, `{"description":"Pick one"}`).json(), `{"id":"`+one["id"].(string)+`","description":"Pick one"}`)
	r.refuse(400, 50035, "PATCH", id, `{"name":"Ask"}`)
	r.refuse(400, 50035, "PATCH", id, `[]`)
	r.refuse(404, 10063, "PATCH", path+"/7", `{}`)
	if c := r.Commands(); len(c) != 2 || c[0].Options[0].Name != "text" {
		t.Errorf("commands %+v", c)
	}

	c := r.listen(0)
	given := r.general.Command(r.alice, "model", "best")
	fakeservertest.Subset(t, c.event("INTERACTION_CREATE"), `{"id":"`+given.ID+`","type":2,"token":"`+given.Token+`","channel_id":"`+r.general.ChannelID+`","guild_id":"`+r.guild.ID+`",
		"member":{"user":{"id":"`+r.alice.ID+`"}},"user":null,"channel":{"type":0},"data":{"name":"model","options":[{"name":"text","type":3,"value":"best"}]}}`)
	callback := "/interactions/" + given.ID + "/" + given.Token + "/callback"
	r.refuse(404, 10062, "POST", "/interactions/7/"+given.Token+"/callback", `{"type":4,"data":{"content":"x"}}`)
	r.refuse(400, 50035, "POST", callback, `{"type":99}`)
	r.refuse(400, 50006, "POST", callback, `{"type":4,"data":{}}`)
	r.must("POST", callback, `{"type":4,"data":{"content":"noted","flags":64}}`)
	r.refuse(400, 40060, "POST", callback, `{"type":4,"data":{"content":"x"}}`)
	if sent := r.Sent(); !r.Answered(given) || !sent[len(sent)-1].Ephemeral || sent[len(sent)-1].Text != "noted" || len(r.general.Messages()) != 0 {
		t.Errorf("answered %v, sent %+v", r.Answered(given), sent)
	}
	private := r.DM(r.bob).Command(r.bob, "new", "")
	fakeservertest.Subset(t, c.event("INTERACTION_CREATE"), `{"user":{"id":"`+r.bob.ID+`"},"member":null,"guild_id":null,"data":{"options":null}}`)
	r.must("POST", "/interactions/"+private.ID+"/"+private.Token+"/callback", `{"type":4,"data":{"content":"seen"}}`)
	late := r.general.Command(r.alice, "new", "")
	now = now.Add(4 * time.Second)
	r.refuse(404, 10062, "POST", "/interactions/"+late.ID+"/"+late.Token+"/callback", `{"type":4,"data":{"content":"x"}}`)
	if m := r.DM(r.bob).Messages(); len(m) != 1 || m[0].Type != discord.ChatInputCommand {
		t.Errorf("the message is %+v", m)
	}
}
