package slack_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/testkit/fakes/internal/fakeservertest"
	"arizuko/pkg/testkit/fakes/slack"
)

func TestTokens_Wrong_Refused(t *testing.T) {
	r := start(t, slack.Options{Team: "Acme"})
	bot := r.must("auth.test")
	if bot.str("user_id") != r.Me().ID || bot.str("bot_id") != r.Me().BotID || bot.str("team") != "Acme" || bot.str("user") != "arizuko" {
		t.Errorf("auth.test: %s", bot.Body)
	}
	if scopes := strings.Split(bot.Header.Get("X-OAuth-Scopes"), ","); !cmp.Equal(scopes, slack.DefaultScopes()) {
		t.Errorf("scopes %v", scopes)
	}
	if a := r.with(r.AppToken(), "auth.test"); a.str("app_id") == "" || a.str("bot_id") != "" || a.Header.Get("X-OAuth-Scopes") != "connections:write" {
		t.Errorf("the app is %s, with %s", a.Body, a.Header.Get("X-OAuth-Scopes"))
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
		{post, r.BotToken(), "application/json", `[]`, "json_not_object"},
		{post, r.BotToken(), "text/plain", `x`, "invalid_post_type"},
		{post, r.BotToken(), "", `x`, "missing_post_type"},
		{post, r.BotToken(), "application/x-www-form-urlencoded", `%zz`, "invalid_form_data"},
		{post, r.BotToken(), "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"channel\"\r\n\r\n" + team +
			"\r\n--b\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nx\r\n--b--\r\n", ""},
		{post, r.BotToken(), "multipart/form-data; boundary=b", "nonsense", "invalid_form_data"},
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
		{"im:write", "conversations.open", []any{"users", alice.ID}},
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
		{"msg_too_long", []any{"channel", team.ChannelID, "text", strings.Repeat("ř", 40_001)}},
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

func TestUpdateAndDelete_OwnMessages_SendEvents(t *testing.T) {
	r := start(t, slack.Options{})
	alice := r.User("Alice", "alice")
	team := r.Channel("team", alice)
	hers := team.Say(alice, "mine")
	mine := r.must("chat.postMessage", "channel", team.ChannelID, "text", "one").str("ts")
	w := r.dial()
	for range 2 {
		w.events(1)
	}
	r.must("chat.update", "channel", team.ChannelID, "ts", mine, "text", "two")
	w.event(`{"subtype": "message_changed", "hidden": true, "message": {"text": "two"}, "previous_message": {"text": "one"}}`)
	if m := team.Messages()[1]; m.Text != "two" || m.Edited == nil || m.TS != mine {
		t.Errorf("it is %+v", m)
	}
	r.refuse("cant_update_message", "chat.update", "channel", team.ChannelID, "ts", hers.TS, "text", "x")
	r.refuse("message_not_found", "chat.update", "channel", team.ChannelID, "ts", "1.0", "text", "x")
	r.refuse("msg_too_long", "chat.update", "channel", team.ChannelID, "ts", mine, "text", strings.Repeat("x", 4001))
	r.refuse("cant_delete_message", "chat.delete", "channel", team.ChannelID, "ts", hers.TS)
	r.must("chat.delete", "channel", team.ChannelID, "ts", mine)
	w.event(`{"subtype": "message_deleted", "deleted_ts": "` + mine + `", "previous_message": {"text": "two"}}`)
	r.refuse("message_not_found", "chat.delete", "channel", team.ChannelID, "ts", mine)
	r.must("chat.postEphemeral", "channel", team.ChannelID, "user", alice.ID, "text", "psst")
	r.refuse("user_not_in_channel", "chat.postEphemeral", "channel", team.ChannelID, "user", "U404", "text", "psst")
	if shown := team.Ephemeral(); len(shown) != 1 || shown[0].Text != "psst" || len(team.Messages()) != 1 {
		t.Errorf("shown %+v", shown)
	}
}

// texts are the texts of the messages of an answer.
func texts(a answer) []string {
	var all []string
	list, _ := a.Fields["messages"].([]any)
	for _, m := range list {
		all = append(all, m.(map[string]any)["text"].(string))
	}
	return all
}

func TestHistory_Queries_SelectMessages(t *testing.T) {
	r := start(t, slack.Options{})
	alice := r.User("Alice", "alice")
	team := r.Channel("team", alice)
	var ts []string
	for i := range 5 {
		ts = append(ts, team.Say(alice, fmt.Sprint(i)).TS)
	}
	team.Reply(alice, ts[1], "a")
	team.Broadcast(alice, ts[1], "b")
	r.must("chat.postMessage", "channel", team.ChannelID, "thread_ts", ts[1], "text", "c", "metadata", `{"event_type":"t","event_payload":{"k":"v"}}`)

	history := func(fields ...any) answer {
		t.Helper()
		return r.must("conversations.history", append([]any{"channel", team.ChannelID}, fields...)...)
	}
	replies := func(fields ...any) answer {
		t.Helper()
		return r.must("conversations.replies", append([]any{"channel", team.ChannelID, "ts", ts[1]}, fields...)...)
	}
	for _, tt := range []struct {
		got  answer
		want string
	}{
		{history(), "b 4 3 2 1 0"},
		{history("oldest", ts[1], "latest", ts[4]), "3 2"},
		{history("oldest", ts[1], "latest", ts[4], "inclusive", "true"), "4 3 2 1"},
		{history("oldest", "0", "latest", ts[2]), "1 0"},
		{history("oldest", "99999999999"), ""},
		{history("limit", "2"), "b 4"},
		{history("limit", "2", "oldest", ts[0]), "2 1"},
		{history("limit", "2", "oldest", ts[0], "latest", ts[4]), "3 2"},
		{replies(), "1 a b c"},
		{replies("limit", "1"), "1 a"},
		{r.must("conversations.replies", "channel", team.ChannelID, "ts", ts[0]), "0"},
	} {
		if got := strings.Join(texts(tt.got), " "); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	var all []string
	for cursor := ""; ; {
		page := history("limit", "4", "cursor", cursor)
		all = append(all, texts(page)...)
		cursor, _ = page.Fields["response_metadata"].(map[string]any)["next_cursor"].(string)
		if more := page.Fields["has_more"].(bool); more != (cursor != "") {
			t.Errorf("has_more is %v with cursor %q", more, cursor)
		}
		if cursor == "" {
			break
		}
	}
	if got := strings.Join(all, " "); got != "b 4 3 2 1 0" {
		t.Errorf("the pages are %q", got)
	}
	root := replies().Fields["messages"].([]any)[0].(map[string]any)
	fakeservertest.Subset(t, root, fmt.Sprintf(`{"reply_count": 3, "thread_ts": %q, "reply_users": [%q, %q], "metadata": null}`, ts[1], alice.ID, r.Me().ID))
	last := func(fields ...any) map[string]any {
		return replies(fields...).Fields["messages"].([]any)[3].(map[string]any)
	}
	if last()["metadata"] != nil {
		t.Error("metadata without include_all_metadata")
	}
	fakeservertest.Subset(t, last("include_all_metadata", "true"), `{"metadata": {"event_type": "t", "event_payload": {"k": "v"}}}`)

	r.refuse("invalid_cursor", "conversations.history", "channel", team.ChannelID, "cursor", "x")
	r.refuse("invalid_limit", "conversations.history", "channel", team.ChannelID, "limit", "1000")
	r.refuse("thread_not_found", "conversations.replies", "channel", team.ChannelID, "ts", "1.0")
	r.refuse("not_in_channel", "conversations.history", "channel", r.ChannelWithoutBot("far").ChannelID)
	r.refuse("channel_not_found", "conversations.history", "channel", "C404")
}

func TestConversations_EachKind_HasDocumentedShape(t *testing.T) {
	r := start(t, slack.Options{})
	alice, bob, eve := r.User("Alice", "alice"), r.User("Bob", "bob"), r.User("Eve", "eve")
	for _, tt := range []struct {
		place slack.Place
		first string
		want  string
	}{
		{r.Channel("team", alice), "C", `{"name": "team", "is_channel": true, "is_private": false, "is_member": true}`},
		{r.ChannelWithoutBot("far", alice), "C", `{"name": "far", "is_member": false}`},
		{r.PrivateChannel("secret", alice), "C", `{"name": "secret", "is_channel": true, "is_private": true}`},
		{r.LegacyPrivateChannel("older", alice), "G", `{"is_group": true, "is_private": true, "is_mpim": false}`},
		{r.GroupDM(alice, bob), "C", `{"is_mpim": true, "is_private": true, "is_im": false}`},
		{r.LegacyGroupDM(alice, bob, eve), "G", `{"is_mpim": true, "name": "mpdm-alice--bob--eve-1"}`},
		{r.DM(alice), "D", `{"is_im": true, "user": "` + alice.ID + `", "name": null, "topic": null}`},
	} {
		if tt.place.ChannelID[:1] != tt.first {
			t.Errorf("%s is no %s", tt.place.ChannelID, tt.first)
		}
		fakeservertest.Subset(t, r.must("conversations.info", "channel", tt.place.ChannelID).Fields["channel"].(map[string]any), tt.want)
	}
	list := func(fields ...any) int {
		return len(r.must("conversations.list", fields...).Fields["channels"].([]any))
	}
	if public, all := list(), list("types", "public_channel,private_channel,im,mpim"); public != 2 || all != 7 {
		t.Errorf("%d public of %d", public, all)
	}
	if page := list("limit", "1"); page != 1 {
		t.Errorf("a page of %d", page)
	}
	r.refuse("invalid_types", "conversations.list", "types", "secret")
	opened := r.must("conversations.open", "users", alice.ID)
	fakeservertest.Subset(t, opened.Fields, `{"channel": {"id": "`+r.DM(alice).ChannelID+`"}}`)
	both := r.must("conversations.open", "users", alice.ID+","+eve.ID).Fields["channel"].(map[string]any)["id"]
	if again := r.must("conversations.open", "users", eve.ID+","+alice.ID).Fields["channel"].(map[string]any)["id"]; again != both {
		t.Errorf("opened %v, then %v", both, again)
	}
	r.refuse("user_not_found", "conversations.open", "users", "U404")
	far := r.ChannelWithoutBot("farther", alice)
	r.must("conversations.join", "channel", far.ChannelID)
	r.must("chat.postMessage", "channel", far.ChannelID, "text", "here I am")
	members := r.must("conversations.members", "channel", far.ChannelID).Fields["members"].([]any)
	if !slices.Contains(members, any(r.Me().ID)) || len(members) != 2 {
		t.Errorf("members %v", members)
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
	if n := len(r.must("users.list").Fields["members"].([]any)); n != 3 {
		t.Errorf("%d users", n)
	}
}

func TestReactions_Changes_SendEvents(t *testing.T) {
	r := start(t, slack.Options{Emoji: []string{"acme-logo"}})
	alice := r.User("Alice", "alice")
	team := r.Channel("team", alice)
	m := team.Say(alice, "x")
	w := r.dial()
	w.events(1)
	fields := []any{"channel", team.ChannelID, "timestamp", m.TS, "name", "eyes"}
	r.must("reactions.add", fields...)
	w.event(`{"type": "reaction_added", "reaction": "eyes", "user": "` + r.Me().ID + `", "item_user": "` + alice.ID + `", "item": {"ts": "` + m.TS + `"}}`)
	r.refuse("already_reacted", "reactions.add", fields...)
	team.React(alice, m.TS, "eyes")
	w.event(`{"type": "reaction_added", "user": "` + alice.ID + `"}`)
	fakeservertest.Subset(t, r.must("reactions.get", fields...).Fields, fmt.Sprintf(`{"message": {"reactions": [{"name": "eyes", "count": 2, "users": [%q, %q]}]}}`, r.Me().ID, alice.ID))
	r.must("reactions.remove", fields...)
	w.event(`{"type": "reaction_removed", "user": "` + r.Me().ID + `"}`)
	r.refuse("no_reaction", "reactions.remove", fields...)
	if got := team.Reactions(m.TS); !cmp.Equal(got, map[string][]string{"eyes": {alice.ID}}) {
		t.Errorf("under it are %v", got)
	}
	for _, name := range []string{"👀", "eye_s", "eyes::skin-tone-9", "party-parrot"} {
		r.refuse("invalid_name", "reactions.add", "channel", team.ChannelID, "timestamp", m.TS, "name", name)
	}
	r.refuse("message_not_found", "reactions.add", "channel", team.ChannelID, "timestamp", "1700000000.000000", "name", "eyes")
	r.refuse("bad_timestamp", "reactions.add", "channel", team.ChannelID, "timestamp", "1", "name", "eyes")
	r.refuse("no_item_specified", "reactions.add", "channel", team.ChannelID, "name", "eyes")
	if last := r.Sent()[len(r.Sent())-1]; last.Method != "reactions.remove" || last.Reaction != "eyes" || last.TS != m.TS {
		t.Errorf("recorded %+v", last)
	}
	for _, name := range []string{"wave::skin-tone-3", "acme-logo"} {
		r.must("reactions.add", "channel", team.ChannelID, "timestamp", m.TS, "name", name)
	}
}

func TestPanes_OpenedOrSwitched_SendEvents(t *testing.T) {
	r := start(t, slack.Options{})
	alice := r.User("Alice", "alice")
	team := r.Channel("team", alice)
	w := r.dial()
	pane := r.OpenPane(alice, team)
	w.event(fmt.Sprintf(`{"type": "assistant_thread_started", "assistant_thread": {"user_id": %q, "channel_id": %q, "thread_ts": %q, "context": {"channel_id": %q}}}`,
		alice.ID, pane.ChannelID, pane.ThreadTS, team.ChannelID))
	pane.SwitchContext(alice, slack.Place{})
	w.event(`{"type": "assistant_thread_context_changed"}`)
	pane.Say(alice, "hello")
	w.event(`{"type": "message", "channel_type": "im", "thread_ts": "` + pane.ThreadTS + `"}`)
	at := []any{"channel_id", pane.ChannelID, "thread_ts", pane.ThreadTS}
	r.must("assistant.threads.setStatus", append(at, "status", "is thinking…")...)
	if got := pane.Pane().Status; got != "is thinking…" {
		t.Errorf("it %q", got)
	}
	r.must("assistant.threads.setTitle", append(at, "title", "Greetings")...)
	w.event(`{"subtype": "message_changed", "message": {"subtype": "assistant_app_thread", "edited": null, "assistant_app_thread": {"title": "Greetings"}}}`)
	r.must("assistant.threads.setSuggestedPrompts", append(at, "prompts", `[{"title":"Hi","message":"Say hi"}]`)...)
	r.must("chat.postMessage", "channel", pane.ChannelID, "thread_ts", pane.ThreadTS, "text", "hi")
	if got := pane.Pane(); got.Status != "" || got.Title != "Greetings" || got.Prompts[0].Message != "Say hi" {
		t.Errorf("the pane is %+v", got)
	}
	if all := r.Statuses(); len(all) != 2 || all[0].Posted || !all[1].Posted {
		t.Errorf("statuses %+v", all)
	}
	r.refuse("invalid_thread_ts", "assistant.threads.setStatus", "channel_id", pane.ChannelID, "thread_ts", "1.0")
	r.refuse("channel_not_found", "assistant.threads.setStatus", "channel_id", "D404", "thread_ts", "1.0")
	r.refuse("invalid_arguments", "assistant.threads.setSuggestedPrompts", append(at, "prompts", "[{}]")...)
}

func TestMessagesTab_Disabled_RefusesPosts(t *testing.T) {
	r := start(t, slack.Options{NoMessagesTab: true})
	alice := r.User("Alice", "alice")
	r.refuse("messages_tab_disabled", "chat.postMessage", "channel", r.DM(alice).ChannelID, "text", "x")
	if _, err := r.DM(alice).Post(alice, slack.Draft{Text: "x"}); err == nil {
		t.Error("a post in the DM")
	}
}

func TestRateLimits_BurstOfPosts_Refused(t *testing.T) {
	r := start(t, slack.Options{RateLimits: true})
	team, other := r.Channel("team").ChannelID, r.Channel("other").ChannelID
	for range 4 {
		r.must("chat.postMessage", "channel", team, "text", "x")
	}
	a := r.call("chat.postMessage", "channel", team, "text", "x")
	if a.Status != 429 || a.str("error") != "ratelimited" || a.Header.Get("Retry-After") != "1" {
		t.Errorf("got %d %s, Retry-After %s", a.Status, a.Body, a.Header.Get("Retry-After"))
	}
	r.must("chat.postMessage", "channel", other, "text", "x")
	if n := len(r.Sent()); n != 5 {
		t.Errorf("%d accepted", n)
	}
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

func TestRateLimits_OfMethods_ArePerToken(t *testing.T) {
	r := start(t, slack.Options{RateLimits: true, RateScale: 0.1})
	team := r.Channel("team").ChannelID
	for range 10 { // a tenth of tier 3, and a burst
		r.must("conversations.history", "channel", team)
	}
	a := r.call("conversations.history", "channel", team)
	if a.Status != 429 || a.str("error") != "ratelimited" || a.Header.Get("Retry-After") == "" {
		t.Errorf("got %d %s, Retry-After %s", a.Status, a.Body, a.Header.Get("Retry-After"))
	}
	r.must("conversations.info", "channel", team)
}

func TestDistributedApp_ReadsOneShortPageAMinute(t *testing.T) {
	r := start(t, slack.Options{Distributed: true})
	alice := r.User("Alice", "alice")
	team := r.Channel("team", alice)
	for range 20 {
		team.Say(alice, "x")
	}
	a := r.must("conversations.history", "channel", team.ChannelID, "limit", "200")
	if n := len(a.Fields["messages"].([]any)); n != 15 || a.Fields["has_more"] != true {
		t.Errorf("%d messages: %v", n, a.Fields["has_more"])
	}
	if a := r.call("conversations.history", "channel", team.ChannelID); a.Status != 429 {
		t.Errorf("the second page: %d %s", a.Status, a.Body)
	}
	r.must("conversations.info", "channel", team.ChannelID)
}

func TestConversations_OfTheBot(t *testing.T) {
	r := start(t, slack.Options{})
	alice := r.User("Alice", "alice")
	r.Channel("team", alice)
	r.ChannelWithoutBot("foreign", alice)
	if all := r.must("users.conversations", "types", "public_channel").Fields["channels"].([]any); len(all) != 1 {
		t.Errorf("listed %v", all)
	}
	if all := r.must("conversations.list", "types", "public_channel").Fields["channels"].([]any); len(all) != 2 {
		t.Errorf("listed %v", all)
	}
}

func TestPinsAndPermalinks(t *testing.T) {
	scopes := append(slack.DefaultScopes(), "pins:read", "pins:write", "team:read")
	r := start(t, slack.Options{Scopes: scopes})
	alice := r.User("Alice", "alice")
	team := r.Channel("team", alice)
	ts := team.Say(alice, "x").TS
	r.must("pins.add", "channel", team.ChannelID, "timestamp", ts)
	r.refuse("already_pinned", "pins.add", "channel", team.ChannelID, "timestamp", ts)
	if all := r.must("pins.list", "channel", team.ChannelID).Fields["items"].([]any); len(all) != 1 {
		t.Errorf("pinned %v", all)
	}
	r.must("pins.remove", "channel", team.ChannelID, "timestamp", ts)
	r.refuse("no_pin", "pins.remove", "channel", team.ChannelID, "timestamp", ts)
	r.refuse("message_not_found", "pins.add", "channel", team.ChannelID, "timestamp", "1.1")
	r.refuse("no_item_specified", "pins.add", "channel", team.ChannelID)
	if link := r.must("chat.getPermalink", "channel", team.ChannelID, "message_ts", ts).str("permalink"); !strings.HasSuffix(link, "/archives/"+team.ChannelID+"/p"+strings.ReplaceAll(ts, ".", "")) {
		t.Errorf("the link is %s", link)
	}
	r.refuse("message_not_found", "chat.getPermalink", "channel", team.ChannelID, "message_ts", "1.1")
	if info := r.must("team.info").Fields["team"].(map[string]any); info["name"] != slack.DefaultTeam {
		t.Errorf("the team: %v", info)
	}
}

func TestHideScopes_AnswersLackTheHeader(t *testing.T) {
	for _, hidden := range []bool{true, false} {
		r := start(t, slack.Options{HideScopes: hidden})
		if got := r.must("auth.test").Header.Get("X-OAuth-Scopes"); (got == "") != hidden {
			t.Errorf("hidden %v: %q", hidden, got)
		}
	}
}
