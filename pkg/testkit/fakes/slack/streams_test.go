package slack_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"arizuko/pkg/testkit/fakes/slack"
)

const team = "T0FAKE00000"

func TestStream_StartAppendStop_UpdateOnlyAfterwards(t *testing.T) {
	r := start(t, slack.Options{})
	alice := r.User("Alice", "alice")
	room := r.Channel("team", alice)
	root := room.Say(alice, "go").TS
	started := r.must("chat.startStream", "channel", room.ChannelID, "thread_ts", root, "recipient_user_id", alice.ID, "recipient_team_id", team,
		"task_display_mode", "plan", "chunks", `[{"type":"plan_update","title":"Working"}]`)
	ts := started.str("ts")
	at := func(more ...any) []any { return append([]any{"channel", room.ChannelID, "ts", ts}, more...) }
	r.must("chat.appendStream", at("chunks", `[{"type":"markdown_text","text":"on"},{"type":"task_update","id":"1","title":"Read","status":"in_progress"}]`)...)
	r.must("chat.appendStream", at("chunks", `[{"type":"markdown_text","text":"e"},{"type":"task_update","id":"1","title":"Read it","status":"complete"}]`)...)
	shown, ok := room.Stream(ts)
	want := slack.Stream{Plan: "Working", Text: "one", Tasks: []slack.StreamTask{{ID: "1", Title: "Read it", Status: "complete"}}}
	if diff := cmp.Diff(want, shown, cmpopts.IgnoreUnexported(slack.Stream{})); diff != "" || !ok || !shown.IsOpen() {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	r.refuse("streaming_mode_mismatch", "chat.appendStream", at("markdown_text", "x")...)
	r.refuse("no_text", "chat.appendStream", at()...)
	r.refuse("msg_too_long", "chat.appendStream", at("chunks", `[{"type":"markdown_text","text":"`+strings.Repeat("x", 12_001)+`"}]`)...)
	for _, bad := range []string{`{}`, `[{"type":"odd"}]`, `[{"type":"markdown_text"}]`, `[{"type":"plan_update"}]`, `[{"type":"task_update","id":"1"}]`, `[{"type":"task_update","id":"1","title":"x","status":"done"}]`} {
		r.refuse("invalid_chunks", "chat.appendStream", at("chunks", bad)...)
	}
	r.refuse("streaming_message_not_updatable", "chat.update", at("text", "x")...)
	r.refuse("cant_delete_message", "chat.delete", at()...)
	r.must("chat.stopStream", at()...)
	r.refuse("message_not_in_streaming_state", "chat.stopStream", at()...)
	r.refuse("message_not_in_streaming_state", "chat.appendStream", at("chunks", `[{"type":"markdown_text","text":"e"}]`)...)
	if a := r.must("chat.update", at("text", "final")...); !strings.Contains(a.Body, `"type":"plan"`) {
		t.Errorf("the blocks are gone though the call has none: %s", a.Body)
	}
	if a := r.must("chat.update", at("text", "final", "blocks", "[]")...); strings.Contains(a.Body, `"type":"plan"`) {
		t.Errorf("the blocks are still there: %s", a.Body)
	}
	if _, ok := room.Stream(ts); ok {
		t.Error("an updated message counts as a stream")
	}
}

func TestStream_Start_Refused(t *testing.T) {
	r := start(t, slack.Options{})
	alice := r.User("Alice", "alice")
	room, dm := r.Channel("team", alice), r.DM(alice)
	root, private := room.Say(alice, "go").TS, dm.Say(alice, "go").TS
	r.refuse("invalid_thread_ts", "chat.startStream", "channel", dm.ChannelID)
	r.refuse("missing_recipient_user_id", "chat.startStream", "channel", room.ChannelID, "thread_ts", root)
	r.refuse("missing_recipient_team_id", "chat.startStream", "channel", room.ChannelID, "thread_ts", root, "recipient_user_id", alice.ID)
	r.refuse("user_not_found", "chat.startStream", "channel", room.ChannelID, "thread_ts", root, "recipient_user_id", "U1", "recipient_team_id", team)
	r.must("chat.startStream", "channel", dm.ChannelID, "thread_ts", private)
	r.refuse("message_not_in_streaming_state", "chat.appendStream", "channel", dm.ChannelID, "ts", r.must("chat.postMessage", "channel", dm.ChannelID, "text", "x").str("ts"), "markdown_text", "x")
	r.refuse("message_not_found", "chat.stopStream", "channel", dm.ChannelID, "ts", "1.0")
	room.Thread(root).LockThread()
	r.refuse("restricted_action_thread_locked", "chat.startStream", "channel", room.ChannelID, "thread_ts", root, "recipient_user_id", alice.ID, "recipient_team_id", team)
	if narrow := start(t, slack.Options{Scopes: []string{"im:history"}}); narrow.call("chat.startStream", "channel", "x").str("needed") != "chat:write" {
		t.Error("it streams without chat:write")
	}
}

// A stream ends after five minutes, however often it is appended to.
func TestStream_FiveMinutes_Ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slack.New(slack.Options{})
		alice := s.User("Alice", "alice")
		dm := s.DM(alice)
		call := func(method string, fields ...string) string {
			form := url.Values{"channel": {dm.ChannelID}}
			for i := 0; i < len(fields); i += 2 {
				form.Set(fields[i], fields[i+1])
			}
			req := httptest.NewRequest(http.MethodPost, "/api/"+method, strings.NewReader(form.Encode()))
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Authorization", "Bearer "+s.BotToken())
			w := httptest.NewRecorder()
			s.ServeHTTP(w, req)
			return w.Body.String()
		}
		_, rest, _ := strings.Cut(call("chat.startStream", "thread_ts", dm.Say(alice, "go").TS), `"ts":"`)
		ts, _, _ := strings.Cut(rest, `"`)
		for range 4 {
			time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
			if got := call("chat.appendStream", "ts", ts, "markdown_text", "x"); !strings.Contains(got, `"ok":true`) {
				t.Error(got)
			}
		}
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		for _, method := range []string{"chat.appendStream", "chat.stopStream"} {
			if got := call(method, "ts", ts, "markdown_text", "x"); !strings.Contains(got, "message_not_in_streaming_state") {
				t.Errorf("%s: %s", method, got)
			}
		}
		if got := call("chat.update", "ts", ts, "text", "final", "blocks", "[]"); !strings.Contains(got, `"ok":true`) {
			t.Error(got)
		}
	})
}

func TestSession_InvalidCalls_Refused(t *testing.T) {
	r := start(t, slack.Options{})
	alice := r.User("Alice", "alice")
	dm := r.DM(alice)
	root := dm.Say(alice, "go").TS
	r.must("agents.sessions.setStatus", "channel_id", dm.ChannelID, "thread_ts", root, "status", "processing")
	ts := r.must("chat.startStream", "channel", dm.ChannelID, "thread_ts", root).str("ts")
	dm.Thread(root).StopAgent(alice)
	r.refuse("stopped_by_user", "chat.appendStream", "channel", dm.ChannelID, "ts", ts, "markdown_text", "x")
	r.refuse("invalid_thread_ts", "agents.sessions.setStatus", "channel_id", dm.ChannelID, "status", "active")
	r.refuse("invalid_arguments", "agents.sessions.setStatus", "channel_id", dm.ChannelID, "thread_ts", root, "status", "idle")
	plain := start(t, slack.Options{Scopes: []string{"chat:write"}})
	chat := plain.DM(plain.User("Bob", "bob"))
	plain.refuse("not_an_agent", "agents.sessions.setStatus", "channel_id", chat.ChannelID, "thread_ts", root, "status", "active")
}
