package discord_test

import (
	"bytes"
	"compress/zlib"
	"io"
	"testing"
	"time"

	"github.com/coder/websocket"

	"arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/fakes/internal/fakeservertest"
)

func inflated(t *testing.T, body []byte) []byte {
	t.Helper()
	z, err := zlib.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

func TestGateway_IdentifyAndEvents(t *testing.T) {
	r := start(t, discord.Options{})
	asked := r.general.Say(r.alice, "before")
	thread := r.general.Thread(r.alice, "plan")
	secret := r.general.PrivateThread(r.alice, "secret")
	c := r.dial()
	c.send(2, `{"token":"Bot `+r.Token()+`","intents":33281,"properties":{"os":"linux"},"compress":true,"shard":[0,1]}`)
	ready := c.event("READY")
	if !c.zlib {
		t.Error("the payload is not compressed")
	}
	fakeservertest.Subset(t, ready, `{"v":9,"user":{"id":"`+r.Me().ID+`"},"guilds":[{"id":"`+r.guild.ID+`","unavailable":true}],"resume_gateway_url":"ws`+r.base[4:]+`/gateway/resume"}`)
	guild := c.event("GUILD_CREATE")
	fakeservertest.Subset(t, guild, `{"id":"`+r.guild.ID+`","name":"Team","unavailable":false,"member_count":3,"system_channel_id":"`+r.general.ChannelID+`",
		"members":[{"user":{"id":"`+r.Me().ID+`"},"roles":["`+r.guild.BotRole().ID+`"]}],
		"roles":[{"id":"`+r.guild.ID+`","name":"@everyone"},{"managed":true,"tags":{"bot_id":"`+r.Me().ID+`"}}],
		"threads":[{"id":"`+thread.ChannelID+`","parent_id":"`+r.general.ChannelID+`","type":11,"message_count":0}]}`)
	if id := guild["channels"].([]any)[0].(map[string]any)["last_message_id"].(string); id <= asked.ID {
		t.Errorf("the last message is %s, want the one about the thread", id)
	}
	secret.Say(r.alice, "unseen")
	id := r.say(r.general, "own")
	fakeservertest.Subset(t, c.event("MESSAGE_CREATE"), `{"id":"`+id+`","author":{"id":"`+r.Me().ID+`"},"guild_id":"`+r.guild.ID+`","member":{"nick":null,"user":null}}`)
	if c.last != 3 {
		t.Errorf("the sequence is at %d, want 3", c.last)
	}
	if !r.Listening() || r.Gateway().Identified != 1 {
		t.Errorf("counted %+v", r.Gateway())
	}
}

func TestGateway_Intents(t *testing.T) {
	const guildMessages, content, direct = 1 << 9, 1 << 15, 1 << 12
	r := start(t, discord.Options{})
	c := r.listen(guildMessages)
	r.general.Say(r.alice, "not for it")
	fakeservertest.Subset(t, c.event("MESSAGE_CREATE"), `{"content":"","attachments":[]}`)
	r.general.Attach(r.alice, "", discord.File{Name: "x.txt"})
	fakeservertest.Subset(t, c.event("MESSAGE_CREATE"), `{"content":"","attachments":[]}`)
	m := r.general.Say(r.alice, r.Me().Mention()+" for it")
	fakeservertest.Subset(t, c.event("MESSAGE_CREATE"), `{"content":"`+m.Content+`"}`)
	r.general.React(r.alice, m.ID, "👍")
	r.DM(r.alice).Say(r.alice, "in private")
	r.say(r.general, "own")
	fakeservertest.Subset(t, c.event("MESSAGE_CREATE"), `{"content":"own"}`) // not the other two

	d := r.listen(direct)
	r.general.Say(r.alice, "elsewhere")
	r.DM(r.alice).Say(r.alice, "in private")
	fakeservertest.Subset(t, d.event("MESSAGE_CREATE"), `{"content":"in private"}`)
	e := r.listen(guildMessages | content)
	r.general.Say(r.alice, "readable")
	fakeservertest.Subset(t, e.event("MESSAGE_CREATE"), `{"content":"readable"}`)
}

func TestRevoke_ClosesGatewayAndRefusesCalls(t *testing.T) {
	r := start(t, discord.Options{})
	c := r.listen(allIntents)
	r.Revoke(true)
	c.closes(4004)
	if got := r.request("GET", "/api/v10/users/@me", nil, "Authorization", "Bot "+r.Token()); got.Status != 401 {
		t.Errorf("the API answers %d", got.Status)
	}
	r.Revoke(false)
	r.must("GET", "/users/@me", "")
	r.listen(allIntents)
}

func TestGatewayBot_SessionsLeft_FallWithEachThatBegins(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := start(t, discord.Options{Now: func() time.Time { return now }})
	left := func(want string) {
		t.Helper()
		fakeservertest.Subset(t, r.must("GET", "/gateway/bot", "").json(), `{"session_start_limit":{"total":1000,"max_concurrency":1,`+want+`}}`)
	}
	left(`"remaining":1000,"reset_after":0`)
	r.listen(allIntents)
	now = now.Add(time.Hour)
	r.listen(allIntents).again() // a session that is resumed does not count
	left(`"remaining":998,"reset_after":82800000`)
	now = now.Add(23 * time.Hour)
	left(`"remaining":1000,"reset_after":0`)
}

func TestGateway_RefusedClients(t *testing.T) {
	identify := func(token, intents string) string {
		return `{"op":2,"d":{"token":"` + token + `","intents":` + intents + `,"properties":{}}}`
	}
	good := discord.DefaultToken
	for _, tt := range []struct {
		say  string
		code int
	}{
		{identify("nonsense", "1"), 4004}, {identify(good, "32768"), 4014}, {identify(good, "131072"), 4013}, {`{"op":2,"d":"x"}`, 4002},
		{`{"op":2,"d":{"token":"` + good + `"}}`, 4002}, {`nonsense`, 4002}, {`{}`, 4002}, {`{"op":99}`, 4001}, {`{"op":3,"d":{}}`, 4003},
		{`{"op":6,"d":{"token":"nonsense","session_id":"1","seq":1}}`, 4004}, {`{"op":6,"d":"x"}`, 4002},
		{identify(good, "1"), 4005}, {`{"op":1,"d":"` + string(bytes.Repeat([]byte("x"), 5000)) + `"}`, 4002},
	} {
		r := start(t, discord.Options{Denied: discord.MessageContent})
		c := r.dial()
		if tt.code == 4005 {
			c.send(2, `{"token":"`+good+`","intents":0,"properties":{}}`)
		}
		if err := c.ws.Write(r.ctx, websocket.MessageText, []byte(tt.say)); err != nil {
			t.Fatal(err)
		}
		c.closes(tt.code)
		_ = c.ws.CloseNow()
	}
	r := start(t, discord.Options{})
	for _, query := range []string{"", "?v=6", "?v=9&compress=zlib-stream", "?v=10&encoding=etf"} {
		ws, _, err := websocket.Dial(r.ctx, "ws"+r.base[4:]+"/gateway/"+query, &websocket.DialOptions{HTTPClient: r.client})
		if err != nil {
			t.Fatal(err)
		}
		(&client{r: r, ws: ws}).closes(4012)
		_ = ws.CloseNow()
	}
}

func TestGateway_NoHeartbeats_Closes(t *testing.T) {
	r := start(t, discord.Options{Heartbeat: 100 * time.Millisecond})
	begin := time.Now()
	r.dial().closes(4009)
	if waited := time.Since(begin); waited < 100*time.Millisecond {
		t.Errorf("closed after %v, before a heartbeat was due", waited)
	}
}

func TestGateway_Resume(t *testing.T) {
	r := start(t, discord.Options{})
	c := r.listen(allIntents)
	r.general.Say(r.alice, "one")
	c.event("MESSAGE_CREATE")
	r.Disconnect()
	c.closes(-1)
	r.general.Say(r.alice, "two")
	r.general.Say(r.alice, "three")
	c = c.again()
	fakeservertest.Subset(t, c.event("MESSAGE_CREATE"), `{"content":"two"}`)
	fakeservertest.Subset(t, c.event("MESSAGE_CREATE"), `{"content":"three"}`)
	c.event("RESUMED")
	r.general.Say(r.alice, "four")
	fakeservertest.Subset(t, c.event("MESSAGE_CREATE"), `{"content":"four"}`)

	again := c.again() // the old connection is still open
	again.event("RESUMED")
	c.closes(-1)
	again.last = 99
	again.again().closes(4007)
	unknown := &client{r: r, id: "unknown"}
	fresh := unknown.again()
	if string(fresh.op(9).D) != "false" {
		t.Error("a forgotten session can be resumed")
	}
	fresh.send(2, `{"token":"`+r.Token()+`","intents":0,"properties":{}}`) // on the same connection
	fresh.event("READY")
}

func TestGateway_EndOfSessions(t *testing.T) {
	r := start(t, discord.Options{})
	c := r.listen(allIntents)
	_ = c.ws.Close(websocket.StatusNormalClosure, "") // ends the session
	if err := r.Until(r.ctx, func() bool { return !r.Listening() }); err != nil {
		t.Fatal(err)
	}
	if string(c.again().op(9).D) != "false" {
		t.Error("a session that the client closed can be resumed")
	}
	c = r.listen(allIntents)
	r.RequestReconnect()
	c.op(7)
	_ = c.ws.Close(4900, "") // the session stays
	_ = r.Until(r.ctx, func() bool { return !r.Listening() })
	c = c.again()
	c.event("RESUMED")
	r.InvalidateSessions(true)
	if string(c.op(9).D) != "true" {
		t.Error("the session cannot be resumed")
	}
	c = c.again()
	c.event("RESUMED")
	r.InvalidateSessions(false)
	if string(c.op(9).D) != "false" {
		t.Error("the session can be resumed")
	}
	c.again().op(9)

	c = r.listen(allIntents)
	r.CloseGateway(discord.CloseUnknownError, "Unknown error.")
	c.closes(4000)
	_ = r.Until(r.ctx, func() bool { return !r.Listening() })
	r.ForgetSessions()
	c.again().op(9)
}

func TestGateway_Faults(t *testing.T) {
	r := start(t, discord.Options{})
	c := r.listen(allIntents)
	r.DuplicateNext(1)
	r.general.Say(r.alice, "one")
	c.event("MESSAGE_CREATE")
	at := c.last
	c.event("MESSAGE_CREATE")
	if c.last != at {
		t.Errorf("the second copy has sequence %d, want %d", c.last, at)
	}
	r.ReverseNext(2)
	r.general.Say(r.alice, "two")
	r.general.Say(r.alice, "three")
	fakeservertest.Subset(t, c.event("MESSAGE_CREATE"), `{"content":"three"}`)
	fakeservertest.Subset(t, c.event("MESSAGE_CREATE"), `{"content":"two"}`)
	if c.last != at+2 {
		t.Errorf("swapped events end with sequence %d, want %d", c.last, at+2)
	}
	r.Redeliver(2)
	fakeservertest.Subset(t, c.event("MESSAGE_CREATE"), `{"content":"three"}`)
	fakeservertest.Subset(t, c.event("MESSAGE_CREATE"), `{"content":"two"}`)
	r.Inject("MESSAGE_CREATE", `{"author":null}`)
	if c.event("MESSAGE_CREATE")["author"] != nil {
		t.Error("the injected event differs")
	}
	r.InjectFrame("nonsense")
	if _, body, err := c.ws.Read(r.ctx); err != nil || string(body) != "nonsense" {
		t.Errorf("got %s, %v", body, err)
	}
	r.FreezeConnections()
	r.general.Say(r.alice, "unheard")
	c.send(1, "1")
	if r.Listening() {
		t.Error("a frozen connection counts as listening")
	}
	c = c.again()
	fakeservertest.Subset(t, c.event("MESSAGE_CREATE"), `{"content":"unheard"}`)
	c.event("RESUMED")
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
