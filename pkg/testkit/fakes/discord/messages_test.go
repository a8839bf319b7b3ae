package discord_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/fakes/internal/fakeservertest"
)

func TestIdentity_WrongToken_Refused(t *testing.T) {
	r := start(t, discord.Options{Denied: discord.MessageContent})
	me := r.Me().ID
	fakeservertest.Subset(t, r.must("GET", "/users/@me", "").json(), `{"id":"`+me+`","username":"arizuko","global_name":"Arizuko","bot":true,"avatar":null}`)
	flags := int(r.must("GET", "/applications/@me", "").json()["flags"].(float64))
	if flags&(1<<19) != 0 || flags&(1<<15) == 0 {
		t.Errorf("flags %b: want the intent for members, and none for content", flags)
	}
	if got := r.request("GET", "/api/v10/users/@me", nil, "Authorization", "Bot nonsense"); got.Status != 401 || got.json()["message"] != "401: Unauthorized" {
		t.Errorf("a wrong token: %d %s", got.Status, got.body)
	}
	if got := r.request("GET", "/api/v10/users/@me", nil, "Authorization", r.Token()); got.Status != 401 {
		t.Errorf("a token without Bot: %d", got.Status)
	}
	for _, path := range []string{"/api/v9/nonsense", "/api/v3/users/@me", "/nonsense"} {
		if got := r.request("GET", path, nil); got.Status != 404 || got.json()["message"] != "404: Not Found" {
			t.Errorf("%s: %d %s", path, got.Status, got.body)
		}
	}
	if guilds := r.must("GET", "/users/@me/guilds", "").list(); len(guilds) != 1 || guilds[0]["name"] != "Team" {
		t.Errorf("guilds %v", guilds)
	}
}

func TestCreateMessage_Accepted_IsRecorded(t *testing.T) {
	r := start(t, discord.Options{})
	asked := r.general.Say(r.alice, "hello "+r.Me().Mention())
	got := r.must("POST", messages(r.general), `{"content":" hi \n","nonce":"n1","allowed_mentions":{"parse":[]},
		"message_reference":{"message_id":"`+asked.ID+`","fail_if_not_exists":false}}`).json()
	fakeservertest.Subset(t, got, `{"content":"hi","type":19,"channel_id":"`+r.general.ChannelID+`","nonce":"n1","edited_timestamp":null,"mentions":[],
		"author":{"id":"`+r.Me().ID+`","bot":true},"message_reference":{"message_id":"`+asked.ID+`"},"referenced_message":{"id":"`+asked.ID+`"},
		"guild_id":null,"member":null,"embeds":[],"attachments":[],"mention_roles":[],"components":[]}`)
	call := r.Calls()[len(r.Calls())-1]
	if call.Text != "hi" || call.ReplyTo != asked.ID || call.Nonce != "n1" || len(call.Pings) != 0 || !call.Accepted || call.MessageID != got["id"] {
		t.Errorf("recorded %+v", call)
	}
	if call, err := r.Wait(r.ctx, discord.Answers(r.general)); err != nil || call.Text != "hi" {
		t.Errorf("waited for %+v, %v", call, err)
	}
	r.general.Delete(asked.ID)
	fakeservertest.Subset(t, r.must("GET", messages(r.general)+"/"+got["id"].(string), "").json(), `{"type":19,"referenced_message":null,"nonce":null}`)
}

func TestCreateMessage_Limits(t *testing.T) {
	r := start(t, discord.Options{})
	long := strings.Repeat("ä", 2000)
	r.must("POST", messages(r.general), content(long))
	got := r.refuse(400, 50035, "POST", messages(r.general), content(long+"x"))
	fakeservertest.Subset(t, got.json(), `{"errors":{"content":{"_errors":[{"code":"BASE_TYPE_MAX_LENGTH"}]}}}`)
	path := messages(r.general)
	for _, tt := range []struct {
		code int
		body string
	}{
		{50006, `{"content":" \n "}`}, {50006, `{}`}, {50006, ``}, {50109, `{"content":`}, {50035, `{"content":7}`}, {50035, `[]`},
		{50035, `{"content":"x","nonce":"` + strings.Repeat("n", 26) + `"}`},
		{50035, `{"content":"x","message_reference":{"message_id":"1"}}`},
		{50035, `{"content":"x","message_reference":{"message_id":"interaction"}}`},
		{50035, `{"content":"x","allowed_mentions":{"parse":["nonsense"]}}`},
		{50035, `{"poll":{"question":{"text":""},"answers":[{"poll_media":{"text":"a"}}]}}`},
		{50035, `{"poll":{"question":{"text":"q"},"answers":[]}}`},
		{50035, `{"poll":{"question":{"text":"q"},"answers":[{"poll_media":{"text":"` + strings.Repeat("a", 56) + `"}}]}}`},
		{50035, `{"poll":{"question":{"text":"q"},"answers":[{"poll_media":{"text":"a"}}],"duration":769}}`},
	} {
		r.refuse(400, tt.code, "POST", path, tt.body)
	}
	if got := r.request("POST", "/api/v9"+path, strings.NewReader(content("x")), "Content-Type", "text/plain"); got.Status != 400 || !strings.Contains(got.body, "CONTENT_TYPE_INVALID") {
		t.Errorf("JSON that is not called so: %d %s", got.Status, got.body)
	}
	if n := len(r.general.Messages()); n != 1 {
		t.Errorf("%d messages, want the accepted one", n)
	}
	r.must("POST", path, `{"content":"x","message_reference":{"message_id":"1","fail_if_not_exists":false}}`)
}

func TestCreateMessage_RefusedPlaces(t *testing.T) {
	r := start(t, discord.Options{})
	forum, gone, dm := r.guild.Forum("questions"), r.guild.Channel("gone"), r.DM(r.alice)
	muted, hidden := r.guild.Channel("muted"), r.guild.Channel("hidden")
	gone.DeleteChannel()
	muted.Deny(discord.SendMessages)
	hidden.Deny(discord.ViewChannel)
	r.Block(r.alice, true)
	thread := r.general.Thread(r.alice, "old")
	thread.Archive(true, true)
	secret := r.general.PrivateThread(r.alice, "secret")
	other := r.Guild("Elsewhere", r.bob)
	elsewhere := other.Channel("general")
	other.RemoveBot()
	for _, tt := range []struct {
		place        discord.Place
		status, code int
	}{
		{gone, 404, 10003}, {r.Place("7"), 404, 10003}, {r.Place("general"), 400, 50035}, {muted, 403, 50013}, {hidden, 403, 50001},
		{dm, 403, 50007}, {forum, 400, 50008}, {thread, 400, 50083}, {secret, 403, 50001}, {elsewhere, 403, 50001},
	} {
		r.refuse(tt.status, tt.code, "POST", messages(tt.place), content("x"))
	}
	muted.Deny(discord.AttachFiles)
	if got := r.upload(muted, `{}`, []byte("x")); got.Status != 403 {
		t.Errorf("a file without the permission: %d %s", got.Status, got.body)
	}
	if len(r.Sent()) != 0 {
		t.Errorf("sent %+v", r.Sent())
	}
}

func TestCreateMessage_Nonce(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := start(t, discord.Options{Now: func() time.Time { return now }})
	send := func(text string, enforce bool) string {
		return r.must("POST", messages(r.general), fmt.Sprintf(`{"content":%q,"nonce":"7f","enforce_nonce":%v}`, text, enforce)).json()["id"].(string)
	}
	first := send("one", true)
	now = now.Add(2 * time.Minute)
	if again := send("one", true); again != first {
		t.Errorf("the same nonce made %s, want %s again", again, first)
	}
	if len(r.Sent()) != 1 || !r.Calls()[1].Repeated {
		t.Errorf("sent %d, want one, and the other as repeated", len(r.Sent()))
	}
	if again := send("one", false); again == first {
		t.Error("the nonce was enforced without enforce_nonce")
	}
	now = now.Add(10 * time.Minute)
	if later := send("one", true); later == first {
		t.Error("the nonce was remembered for more than a few minutes")
	}
}

func TestCreateMessage_Pings(t *testing.T) {
	r := start(t, discord.Options{})
	role := r.guild.Role("ops")
	text := "@everyone @here " + r.alice.Mention() + " <@!" + r.bob.ID + "> " + role.Mention() + " <@99>"
	asked := r.general.Say(r.bob, "?")
	for _, tt := range []struct {
		allowed string
		want    []string
		mention int
	}{
		{``, []string{"@everyone", "@here", r.alice.Mention(), "<@!" + r.bob.ID + ">", role.Mention(), r.bob.Mention()}, 2},
		{`,"allowed_mentions":{"parse":[]}`, nil, 0},
		{`,"allowed_mentions":{"parse":[],"replied_user":true}`, []string{r.bob.Mention()}, 1},
		{`,"allowed_mentions":{"parse":["roles"]}`, []string{role.Mention()}, 0},
	} {
		got := r.must("POST", messages(r.general), `{"content":"`+text+`","message_reference":{"message_id":"`+asked.ID+`"}`+tt.allowed+`}`).json()
		if call := r.Calls()[len(r.Calls())-1]; !slices.Equal(call.Pings, tt.want) || len(got["mentions"].([]any)) != tt.mention {
			t.Errorf("%s: pings %q, mentions %v; want %q", tt.allowed, call.Pings, got["mentions"], tt.want)
		}
	}
}

func TestEditAndDelete_OwnMessagesOnly(t *testing.T) {
	r := start(t, discord.Options{})
	c := r.listen(allIntents)
	id := r.say(r.general, "one")
	theirs := r.general.Say(r.alice, "theirs")
	path := messages(r.general) + "/"
	c.event("MESSAGE_CREATE")
	c.event("MESSAGE_CREATE")
	if got := r.must("PATCH", path+id, content("two")).json(); got["content"] != "two" || got["edited_timestamp"] == nil {
		t.Errorf("edited to %v", got)
	}
	fakeservertest.Subset(t, c.event("MESSAGE_UPDATE"), `{"id":"`+id+`","content":"two","guild_id":"`+r.guild.ID+`","author":{"id":"`+r.Me().ID+`"}}`)
	r.refuse(400, 50006, "PATCH", path+id, content(" "))
	r.refuse(400, 50035, "PATCH", path+id, content(strings.Repeat("x", 2001)))
	r.refuse(403, 50005, "PATCH", path+theirs.ID, content("x"))
	r.refuse(404, 10008, "PATCH", path+"7", content("x"))
	r.refuse(403, 50013, "DELETE", path+theirs.ID, "")
	if got := r.must("DELETE", path+id, ""); got.Status != http.StatusNoContent {
		t.Errorf("deleted with %d", got.Status)
	}
	fakeservertest.Subset(t, c.event("MESSAGE_DELETE"), `{"id":"`+id+`","channel_id":"`+r.general.ChannelID+`","guild_id":"`+r.guild.ID+`"}`)
	r.refuse(404, 10008, "DELETE", path+id, "")
}

func TestHistory_Queries_SelectMessages(t *testing.T) {
	r := start(t, discord.Options{})
	var ids []string
	for i := range 7 {
		ids = append(ids, r.general.Say(r.alice, fmt.Sprint(i)).ID)
	}
	fakeservertest.Subset(t, r.must("GET", "/channels/"+r.general.ChannelID, "").json(), `{"last_message_id":"`+ids[6]+`"}`)
	for _, tt := range []struct {
		query string
		want  string
	}{
		{"", "6543210"}, {"?limit=2", "65"}, {"?after=" + ids[2] + "&limit=2", "43"}, {"?after=" + ids[6], ""}, {"?after=1&limit=1", "0"},
	} {
		got := ""
		for _, m := range r.must("GET", messages(r.general)+tt.query, "").list() {
			got += m["content"].(string)
		}
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.query, got, tt.want)
		}
	}
	for _, query := range []string{"?limit=101", "?limit=0", "?limit=x", "?after=x", "?before=1"} {
		r.refuse(400, 50035, "GET", messages(r.general)+query, "")
	}
	r.must("POST", messages(r.general), `{"content":"x","nonce":"n"}`)
	if got := r.must("GET", messages(r.general)+"?limit=1", "").list(); got[0]["nonce"] != nil {
		t.Errorf("the nonce was kept: %v", got[0])
	}
	r.general.Deny(discord.ReadMessageHistory)
	if got := r.must("GET", messages(r.general), "").list(); len(got) != 0 {
		t.Errorf("%d messages without the permission", len(got))
	}
	fakeservertest.Subset(t, r.must("GET", "/channels/"+r.general.ChannelID, "").json(), `{"name":"general","type":0,"guild_id":"`+r.guild.ID+`"}`)
}

func TestReactions_Changes_SendEvents(t *testing.T) {
	r := start(t, discord.Options{})
	c := r.listen(allIntents)
	m := r.general.Say(r.alice, "?")
	c.event("MESSAGE_CREATE")
	path := messages(r.general) + "/" + m.ID + "/reactions/"
	r.must("PUT", path+"%F0%9F%91%8D/@me", "")
	fakeservertest.Subset(t, c.event("MESSAGE_REACTION_ADD"), `{"user_id":"`+r.Me().ID+`","message_id":"`+m.ID+`","emoji":{"id":null,"name":"👍"},"guild_id":"`+r.guild.ID+`"}`)
	r.must("PUT", path+"%F0%9F%91%8D/@me", "") // no change
	r.general.React(r.bob, m.ID, "👍")
	fakeservertest.Subset(t, c.event("MESSAGE_REACTION_ADD"), `{"user_id":"`+r.bob.ID+`","member":{"user":{"id":"`+r.bob.ID+`"}},"message_author_id":"`+r.alice.ID+`"}`)
	fakeservertest.Subset(t, r.must("GET", messages(r.general)+"/"+m.ID, "").json(), `{"reactions":[{"count":2,"me":true,"emoji":{"name":"👍"}}]}`)
	r.must("DELETE", path+"%F0%9F%91%8D/@me", "")
	fakeservertest.Subset(t, c.event("MESSAGE_REACTION_REMOVE"), `{"user_id":"`+r.Me().ID+`","member":null}`)
	r.general.Unreact(r.bob, m.ID, "👍")
	c.event("MESSAGE_REACTION_REMOVE")
	if got := r.general.Reactions(m.ID); len(got) != 0 {
		t.Errorf("reactions %v", got)
	}
	r.refuse(400, 10014, "PUT", path+"nonsense/@me", "")
	r.refuse(400, 10014, "PUT", path+"party%3A7/@me", "")
	r.refuse(404, 10008, "PUT", messages(r.general)+"/7/reactions/%F0%9F%91%8D/@me", "")
	r.general.Deny(discord.AddReactions)
	r.refuse(403, 50013, "PUT", path+"%F0%9F%91%8D/@me", "")
}

func TestFiles_Uploaded_CanBeFetched(t *testing.T) {
	var later atomic.Int64
	r := start(t, discord.Options{Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }})
	got := r.upload(r.general, `{"content":"see"}`, []byte("read me"), []byte("and me"))
	if got.Status != 200 {
		t.Fatalf("%d %s", got.Status, got.body)
	}
	fakeservertest.Subset(t, got.json(), `{"content":"see","attachments":[{"filename":"file 0.txt","size":7,"content_type":"text/plain; charset=utf-8"},{"size":6}]}`)
	if files := r.Sent()[0].Files; len(files) != 2 || string(files[0].Data) != "read me" {
		t.Errorf("recorded %+v", files)
	}
	url := r.general.Messages()[0].Attachments[0].URL
	get := func(url string) (int, string) {
		resp, err := r.client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	}
	if status, body := get(url); status != 200 || body != "read me" {
		t.Errorf("the file: %d %s", status, body)
	}
	if status, _ := get(strings.Split(url, "?")[0]); status != 404 {
		t.Errorf("the file without its signature: %d", status)
	}
	later.Store(int64(25 * time.Hour))
	if status, _ := get(url); status != 404 {
		t.Errorf("the file after a day: %d", status)
	}
	now := r.must("GET", "/channels/"+r.general.ChannelID+"/messages/"+r.general.Messages()[0].ID, "").json()
	url = now["attachments"].([]any)[0].(map[string]any)["url"].(string)
	if status, body := get(url); status != 200 || body != "read me" {
		t.Errorf("the file at the URL that its message has now: %d %s", status, body)
	}
	r.InjectFault(discord.Fault{Route: discord.Download, Status: 503})
	if status, _ := get(url); status != 503 {
		t.Errorf("the file with a fault: %d", status)
	}
	if got := r.upload(r.general, `{}`, make([]byte, 10<<20+1)); got.Status != 413 || got.json()["code"] != 40005.0 {
		t.Errorf("a large file: %d %s", got.Status, got.body)
	}
	if got := r.upload(r.general, `{}`, make([]byte, 26<<20)); got.Status != 413 {
		t.Errorf("a large request: %d %s", got.Status, got.body)
	}
	if got := r.upload(r.general, `{}`, make([]byte, 10<<20)); got.Status != 200 {
		t.Errorf("a file of the largest size: %d", got.Status)
	}
	if got := r.upload(r.general, `nonsense`); got.Status != 400 {
		t.Errorf("a malformed payload: %d", got.Status)
	}
}

func TestTyping_Recorded_WithTime(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := start(t, discord.Options{Now: func() time.Time { return now }})
	r.must("POST", "/channels/"+r.general.ChannelID+"/typing", "")
	if got := r.general.Typing(); len(got) != 1 || !got[0].Equal(now) {
		t.Errorf("typed at %v", got)
	}
	r.refuse(404, 10003, "POST", "/channels/7/typing", "")
}

func TestPolls_Votes_SendEvents(t *testing.T) {
	r := start(t, discord.Options{})
	c := r.listen(allIntents)
	sent := r.must("POST", messages(r.general), `{"poll":{"question":{"text":"Lunch?"},"answers":[{"poll_media":{"text":"yes"}},{"poll_media":{"text":"no"}}],"duration":2,"allow_multiselect":true}}`).json()
	fakeservertest.Subset(t, sent, `{"content":"","poll":{"question":{"text":"Lunch?"},"allow_multiselect":true,"answers":[{"answer_id":1,"poll_media":{"text":"yes"}},{"answer_id":2}],"results":{"is_finalized":false,"answer_counts":[]}}}`)
	id := sent["id"].(string)
	c.event("MESSAGE_CREATE")
	r.general.Vote(r.alice, id, 2, true)
	fakeservertest.Subset(t, c.event("MESSAGE_POLL_VOTE_ADD"), `{"user_id":"`+r.alice.ID+`","message_id":"`+id+`","answer_id":2}`)
	r.general.Vote(r.alice, id, 2, true) // no change
	r.general.Vote(r.bob, id, 1, true)
	c.event("MESSAGE_POLL_VOTE_ADD")
	r.general.Vote(r.bob, id, 1, false)
	fakeservertest.Subset(t, c.event("MESSAGE_POLL_VOTE_REMOVE"), `{"user_id":"`+r.bob.ID+`","answer_id":1}`)
	r.refuse(400, 520003, "PATCH", messages(r.general)+"/"+id, content("x"))
	expire := "/channels/" + r.general.ChannelID + "/polls/"
	fakeservertest.Subset(t, r.must("POST", expire+id+"/expire", "").json(), `{"poll":{"results":{"is_finalized":true,"answer_counts":[{"id":2,"count":1}]}}}`)
	fakeservertest.Subset(t, c.event("MESSAGE_UPDATE"), `{"id":"`+id+`","edited_timestamp":null}`)
	fakeservertest.Subset(t, c.event("MESSAGE_CREATE"), `{"type":46,"embeds":[{"type":"poll_result","fields":[{"name":"poll_question_text","value":"Lunch?"},
		{"name":"victor_answer_votes","value":"1"},{"name":"total_votes","value":"1"},{"name":"victor_answer_id","value":"2"},{"name":"victor_answer_text","value":"no"}]}]}`)
	r.refuse(400, 520001, "POST", expire+id+"/expire", "")
	r.refuse(400, 520006, "POST", expire+r.say(r.general, "x")+"/expire", "")
	theirs := r.general.Poll(r.bob, "Dinner?", "yes")
	r.refuse(403, 50001, "POST", expire+theirs.ID+"/expire", "")
}

// Votes are there for who asks, also if no connection was there to send them.
func TestPolls_Voters_AreListedByPage(t *testing.T) {
	r := start(t, discord.Options{})
	sent := r.must("POST", messages(r.general), `{"poll":{"question":{"text":"Lunch?"},"answers":[{"poll_media":{"text":"yes"}},{"poll_media":{"text":"no"}}],"allow_multiselect":true}}`).json()
	id := sent["id"].(string)
	var voters []string
	for i := range 130 {
		u := r.User(fmt.Sprint("User ", i), fmt.Sprint("user", i))
		r.general.Vote(u, id, 2, true)
		voters = append(voters, u.ID)
	}
	r.general.Vote(r.alice, id, 1, true)
	r.general.Vote(r.alice, id, 1, false)
	answers := "/channels/" + r.general.ChannelID + "/polls/" + id + "/answers/"
	for query, want := range map[string][]string{
		"1": {}, "2": voters[:25], "2?limit=100": voters[:100], "2?limit=100&after=" + voters[99]: voters[100:], "2?after=" + voters[129]: {},
	} {
		got := []string{}
		for _, u := range r.must("GET", answers+query, "").json()["users"].([]any) {
			got = append(got, u.(map[string]any)["id"].(string))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d users %v, want %v", query, len(got), got, want)
		}
	}
	for _, query := range []string{"2?limit=101", "2?limit=0", "2?after=x", "x"} {
		r.refuse(400, 50035, "GET", answers+query, "")
	}
	r.refuse(404, 0, "GET", answers+"3", "")
	r.refuse(404, 10008, "GET", "/channels/"+r.general.ChannelID+"/polls/7/answers/1", "")
	r.refuse(404, 0, "GET", "/channels/"+r.general.ChannelID+"/polls/"+r.say(r.general, "x")+"/answers/1", "")
}

func TestPrivateChannels_OpenedOnce_BelongToNoGuild(t *testing.T) {
	r := start(t, discord.Options{})
	c := r.listen(allIntents)
	dm := r.DM(r.alice)
	got := r.must("GET", "/channels/"+dm.ChannelID, "").json()
	fakeservertest.Subset(t, got, `{"id":"`+dm.ChannelID+`","type":1,"recipients":[{"id":"`+r.alice.ID+`"}]}`)
	dm.Say(r.alice, "psst")
	e := c.event("MESSAGE_CREATE")
	fakeservertest.Subset(t, e, `{"content":"psst","channel_id":"`+dm.ChannelID+`","guild_id":null,"member":null}`)
	r.refuse(403, 50003, "DELETE", messages(dm)+"/"+e["id"].(string), "")
}
