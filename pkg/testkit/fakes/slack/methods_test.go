package slack_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/testkit/fakes/internal/fakeservertest"
	"arizuko/pkg/testkit/fakes/slack"
)

func TestTokens_Wrong_Refused(t *testing.T) {
	r := start(t, slack.Options{})
	bot := r.must("auth.test")
	if bot.str("user_id") != r.Me().ID || bot.str("bot_id") != r.Me().BotID || bot.str("team") != "Acme" || bot.str("user") != "arizuko" {
		t.Errorf("auth.test: %s", bot.Body)
	}
	if scopes := strings.Split(bot.Header.Get("X-OAuth-Scopes"), ","); !cmp.Equal(scopes, slack.DefaultScopes()) {
		t.Errorf("scopes %v", scopes)
	}
	for _, tt := range []struct{ token, method, want string }{
		{"", "auth.test", "not_authed"},
		{"xoxb-wrong", "auth.test", "invalid_auth"},
		{r.AppToken(), "chat.postMessage", "not_allowed_token_type"},
		{r.BotToken(), "chat.nonsense", "unknown_method"},
	} {
		if a := r.with(tt.token, tt.method); a.Status != 200 || a.str("error") != tt.want {
			t.Errorf("%+v: %d %s", tt, a.Status, a.Body)
		}
	}
	w := r.dial()
	for _, reason := range []string{"token_revoked", "account_inactive"} {
		r.Revoke(r.BotToken(), reason)
		r.refuse(reason, "auth.test")
	}
	if frame := w.read(); frame != nil {
		t.Errorf("the socket is open: %v", frame)
	}
	r.Revoke(r.BotToken(), "")
	r.must("auth.test")
}

// Fields come in the query, in a form and as JSON; the token also as a field of the first two.
func TestParams_Forms(t *testing.T) {
	r := start(t, slack.Options{})
	team := r.Channel("team").ChannelID
	post := r.base + "/api/chat.postMessage"
	form := "token=" + r.BotToken() + "&channel=" + team + "&text=x"
	blocks := `"blocks":[{"type":"section","text":{"type":"mrkdwn","text":"x"}}]`
	for _, tt := range []struct{ address, token, kind, body, want string }{
		{post, "", "application/x-www-form-urlencoded", form, ""},
		{post + "?" + form, "", "", "", ""},
		{post, r.BotToken(), "application/json; charset=utf-8", `{"channel":"` + team + `",` + blocks + `}`, ""},
		{post, "", "application/json", `{"token":"` + r.BotToken() + `","channel":"` + team + `","text":"x"}`, "not_authed"},
		{post, r.BotToken(), "application/json", `{`, "invalid_json"},
		{post, r.BotToken(), "application/json", `[]`, "invalid_json"},
		{post, r.BotToken(), "text/plain", `x`, "invalid_post_type"},
		{post, r.BotToken(), "application/x-www-form-urlencoded", `%zz`, "invalid_form_data"},
		{post, r.BotToken(), "application/json", `{"text":"` + strings.Repeat("x", 5<<20) + `"}`, "request_too_large"},
	} {
		if a := r.request(http.MethodPost, tt.address, tt.token, tt.kind, strings.NewReader(tt.body)); a.str("error") != tt.want || a.ok() != (tt.want == "") {
			t.Errorf("%s %.80s: %s, want %s", tt.kind, tt.body, a.Body, tt.want)
		}
	}
	for _, c := range r.Calls() {
		if _, recorded := c.Params["token"]; recorded {
			t.Errorf("the record of %v has the token", c.Params)
		}
	}
}

func TestScopes_Missing_Refused(t *testing.T) {
	r := start(t, slack.Options{Scopes: []string{"chat:write", "channels:read"}})
	alice := r.User("Alice", "alice")
	team, secret := r.Channel("team", alice), r.PrivateChannel("secret", alice)
	m := team.Say(alice, "x")
	r.must("chat.postMessage", "channel", team.ChannelID, "text", "x")
	r.must("conversations.info", "channel", team.ChannelID)
	for _, tt := range []struct {
		needed, method string
		fields         []any
	}{
		{"groups:read", "conversations.info", []any{"channel", secret.ChannelID}},
		{"channels:history", "conversations.history", []any{"channel", team.ChannelID}},
		{"channels:history", "conversations.replies", []any{"channel", team.ChannelID, "ts", m.TS}},
		{"reactions:write", "reactions.add", []any{"channel", team.ChannelID, "timestamp", m.TS, "name", "eyes"}},
		{"users:read", "users.info", []any{"user", alice.ID}},
		{"files:write", "files.getUploadURLExternal", nil},
		{"assistant:write", "assistant.threads.setStatus", nil},
		{"im:read", "conversations.list", []any{"types", "public_channel,im"}},
	} {
		a := r.call(tt.method, tt.fields...)
		if a.str("error") != "missing_scope" || a.str("needed") != tt.needed || a.str("provided") != "chat:write,channels:read" {
			t.Errorf("%s: %s, want %s", tt.method, a.Body, tt.needed)
		}
	}
	w := r.dial()
	team.Say(alice, r.Me().Mention())
	r.RenameUser(alice, "Alicia")
	team.Rename(alice, "the-team") // an event of channels:read
	w.event(`{"type": "channel_rename", "channel": {"name": "the-team"}}`)
}

// actions is a list of blocks with elements.
func actions(elements string) string { return `[{"type":"actions","elements":[` + elements + `]}]` }

func button(id, label string) string {
	return `{"type":"button","action_id":"` + id + `","value":"1","text":{"type":"plain_text","text":"` + label + `"}}`
}

func TestPostMessage_InvalidCalls_Refused(t *testing.T) {
	r := start(t, slack.Options{})
	alice, bob := r.User("Alice", "alice"), r.User("Bob", "bob")
	team, other := r.Channel("team", alice), r.Channel("other", alice)
	root := team.Say(alice, "root")
	reply := team.Reply(alice, root.TS, "reply")
	locked := team.Say(alice, "locked")
	team.Thread(locked.TS).LockThread()
	old := r.Channel("old", alice)
	old.Archive(alice)
	for _, tt := range []struct {
		want   string
		fields []any
	}{
		{"channel_not_found", []any{"channel", "C404", "text", "x"}},
		{"channel_not_found", []any{"text", "x"}},
		{"is_archived", []any{"channel", old.ChannelID, "text", "x"}},
		{"not_in_channel", []any{"channel", r.ChannelWithoutBot("far", alice).ChannelID, "text", "x"}},
		{"no_text", []any{"channel", team.ChannelID}},
		{"no_text", []any{"channel", team.ChannelID, "blocks", "[]"}},
		{"invalid_blocks_format", []any{"channel", team.ChannelID, "blocks", "{}"}},
		{"invalid_blocks", []any{"channel", team.ChannelID, "text", "x", "blocks", `[{"text":"x"}]`}},
		{"invalid_blocks", []any{"channel", team.ChannelID, "text", "x", "blocks", `[{"type":"sektion","text":"x"}]`}},
		{"invalid_blocks", []any{"channel", team.ChannelID, "text", "x", "blocks", `[{"type":"section"}]`}},
		{"invalid_blocks", []any{"channel", team.ChannelID, "text", "x", "blocks", `[{"type":"section","text":{"type":"mrkdwn","text":"` + strings.Repeat("ř", 3001) + `"}}]`}},
		{"invalid_blocks", []any{"channel", team.ChannelID, "text", "x", "blocks", `[{"type":"actions","elements":[]}]`}},
		{"invalid_blocks", []any{"channel", team.ChannelID, "text", "x", "blocks", actions(strings.Repeat(","+button("", "x"), 26)[1:])}},
		{"invalid_blocks", []any{"channel", team.ChannelID, "text", "x", "blocks", actions(button("a", strings.Repeat("x", 76)))}},
		{"invalid_blocks", []any{"channel", team.ChannelID, "text", "x", "blocks", actions(button("a", ""))}},
		{"invalid_blocks", []any{"channel", team.ChannelID, "text", "x", "blocks", actions(button(strings.Repeat("x", 256), "x"))}},
		{"invalid_blocks", []any{"channel", team.ChannelID, "text", "x", "blocks", actions(button("a", "x") + "," + button("a", "y"))}},
		{"invalid_attachments", []any{"channel", team.ChannelID, "text", "x", "attachments", `{}`}},
		{"invalid_attachments", []any{"channel", team.ChannelID, "text", "x", "attachments", `[{"blocks":` + actions(button("a", "")) + `}]`}},
		{"msg_too_long", []any{"channel", team.ChannelID, "text", strings.Repeat("ř", 40_001)}},
		{"restricted_action_thread_locked", []any{"channel", team.ChannelID, "text", "x", "thread_ts", locked.TS}},
		{"thread_not_found", []any{"channel", other.ChannelID, "text", "x", "thread_ts", root.TS}},
		{"invalid_metadata_format", []any{"channel", team.ChannelID, "text", "x", "metadata", `{"event_type":"a"}`}},
		{"metadata_too_large", []any{"channel", team.ChannelID, "text", "x", "metadata", `{"event_type":"a","event_payload":{"b":"` + strings.Repeat("c", 3000) + `"}}`}},
	} {
		r.refuse(tt.want, "chat.postMessage", tt.fields...)
	}
	if n := len(r.Sent()); n != 0 {
		t.Fatalf("%d accepted", n)
	}
	long := r.must("chat.postMessage", "channel", team.ChannelID, "text", strings.Repeat("ř", 40_000))
	fakeservertest.Subset(t, long.Fields, `{"warning": "message_truncated", "response_metadata": {"warnings": ["message_truncated"]}}`)
	// The thread of a reply is the thread that contains it.
	deep := r.must("chat.postMessage", "channel", team.ChannelID, "text", "deep", "thread_ts", reply.TS, "reply_broadcast", "true")
	fakeservertest.Subset(t, deep.Fields, fmt.Sprintf(`{"warning": null, "message": {"thread_ts": %q, "subtype": "thread_broadcast", "client_msg_id": null}}`, root.TS))
	// A user's id is accepted for the DM, a name for the channel.
	if a := r.must("chat.postMessage", "channel", bob.ID, "text", "psst"); a.str("channel") != r.DM(bob).ChannelID {
		t.Errorf("went to %s", a.Body)
	}
	r.must("chat.postMessage", "channel", "#team", "text", "x")
	sent := r.Sent()
	if c := sent[1]; !c.Broadcast || c.ThreadTS != root.TS || c.TS != deep.str("ts") {
		t.Errorf("recorded %+v", c)
	}
}

func TestPostMessage_Mentions_AreRecorded(t *testing.T) {
	r := start(t, slack.Options{})
	team := r.Channel("team").ChannelID
	for _, tt := range []struct {
		want   []string
		fields []any
	}{
		{nil, []any{"text", "&lt;!channel&gt; @channel <#C1|team> <https://x.y|z> <!date^1^{date}|x>"}},
		{[]string{"<!channel>", "<!here|here>"}, []any{"text", "<!channel> and <!here|here> and <!channel>"}},
		{[]string{"<!everyone>", "<!subteam^S1|@ops>", "<@U1>"}, []any{"text", "<!everyone><@U1><!subteam^S1|@ops>"}},
		{[]string{"<@W1|x>"}, []any{"text", "x", "blocks", "[{\"type\":\"section\",\"text\":{\"type\":\"mrkdwn\",\"text\":\"\\u003c@W1|x\\u003e\"}}]"}},
		{[]string{"@here"}, []any{"text", "@here", "link_names", "true"}},
	} {
		r.must("chat.postMessage", append([]any{"channel", team}, tt.fields...)...)
		sent := r.Sent()
		if got := sent[len(sent)-1].Pings; !cmp.Equal(got, tt.want) {
			t.Errorf("%v calls %q, want %q", tt.fields, got, tt.want)
		}
	}
}

func TestUpdateAndDelete_InvalidCalls_Refused(t *testing.T) {
	r := start(t, slack.Options{})
	alice := r.User("Alice", "alice")
	team := r.Channel("team", alice)
	hers := team.Say(alice, "mine").TS
	mine := r.must("chat.postMessage", "channel", team.ChannelID, "text", "one").str("ts")
	for _, tt := range []struct{ want, method, ts, text string }{
		{"cant_update_message", "chat.update", hers, "x"},
		{"message_not_found", "chat.update", "1.0", "x"},
		{"msg_too_long", "chat.update", mine, strings.Repeat("x", 4001)},
		{"cant_delete_message", "chat.delete", hers, ""},
		{"message_not_found", "chat.delete", "1.0", ""},
	} {
		r.refuse(tt.want, tt.method, "channel", team.ChannelID, "ts", tt.ts, "text", tt.text)
	}
}

func TestUsers_UnknownIDs_Refused(t *testing.T) {
	r := start(t, slack.Options{})
	alice := r.RenameUser(r.User("Alice", "alice"), "Alicia")
	bot := r.OtherBot("Deploys", "deploys")
	fakeservertest.Subset(t, r.must("users.info", "user", alice.ID).Fields, `{"user": {"name": "alice", "is_bot": false, "profile": {"display_name": "Alicia"}}}`)
	fakeservertest.Subset(t, r.must("users.info", "user", bot.ID).Fields, `{"user": {"is_bot": true, "profile": {"bot_id": "`+bot.BotID+`"}}}`)
	fakeservertest.Subset(t, r.must("bots.info", "bot", bot.BotID).Fields, `{"bot": {"name": "Deploys", "user_id": "`+bot.ID+`"}}`)
	r.refuse("user_not_found", "users.info", "user", "U404")
	r.refuse("bot_not_found", "bots.info", "bot", "B404")
}

func TestReactions_InvalidCalls_Refused(t *testing.T) {
	r := start(t, slack.Options{})
	alice := r.User("Alice", "alice")
	team := r.Channel("team", alice)
	ts := team.Say(alice, "x").TS
	at := func(ts, name string) []any { return []any{"channel", team.ChannelID, "timestamp", ts, "name", name} }
	r.must("reactions.add", at(ts, "wave::skin-tone-3")...)
	r.must("reactions.add", at(ts, "eyes")...)
	r.refuse("already_reacted", "reactions.add", at(ts, "eyes")...)
	r.must("reactions.remove", at(ts, "eyes")...)
	r.refuse("no_reaction", "reactions.remove", at(ts, "eyes")...)
	for _, name := range []string{"👀", "eye_s", "eyes::skin-tone-9", "party-parrot"} {
		r.refuse("invalid_name", "reactions.add", at(ts, name)...)
	}
	r.refuse("message_not_found", "reactions.add", at("1700000000.000000", "eyes")...)
	r.refuse("bad_timestamp", "reactions.add", at("1", "eyes")...)
	r.refuse("no_item_specified", "reactions.add", at("", "eyes")...)
}

func TestStatus_Expires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slack.New(slack.Options{})
		pane := s.OpenPane(s.User("Alice", "alice"), slack.Place{})
		form := url.Values{"token": {s.BotToken()}, "channel_id": {pane.ChannelID}, "thread_ts": {pane.ThreadTS}, "status": {"thinks"}}
		req := httptest.NewRequest("POST", "/api/assistant.threads.setStatus?"+form.Encode(), nil)
		s.ServeHTTP(httptest.NewRecorder(), req)
		for _, want := range []string{"thinks", ""} {
			if got := pane.Pane().Status; got != want {
				t.Errorf("status %q, want %q", got, want)
			}
			<-time.After(121 * time.Second)
		}
	})
}
