package slack_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"arizuko/pkg/testkit/fakes/internal/fakeservertest"
	"arizuko/pkg/testkit/fakes/slack"
)

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
	for _, valid := range []string{"0", "1764000000", "1764000000.000100"} {
		history("oldest", valid)
	}
	for _, invalid := range []string{"yesterday", "-1", "1764000000.000100x", "1.7e9"} {
		r.refuse("invalid_ts_oldest", "conversations.history", "channel", team.ChannelID, "oldest", invalid)
		r.refuse("invalid_ts_latest", "conversations.replies", "channel", team.ChannelID, "ts", ts[1], "latest", invalid)
	}
}

func TestConversationsList_Types(t *testing.T) {
	r := start(t, slack.Options{})
	alice := r.User("Alice", "alice")
	r.Channel("team", alice)
	r.ChannelWithoutBot("far", alice)
	r.PrivateChannel("secret", alice)
	r.DM(alice)
	list := func(method string, fields ...any) int {
		return len(r.must(method, fields...).Fields["channels"].([]any))
	}
	const all = "public_channel,private_channel,im,mpim"
	got := []int{list("conversations.list"), list("conversations.list", "types", all), list("users.conversations", "types", all), list("conversations.list", "limit", "1")}
	if want := []int{2, 4, 3, 1}; !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	r.refuse("invalid_types", "conversations.list", "types", "secret")
}
