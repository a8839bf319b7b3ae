package routing

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

func TestResolve_Hook_AnswersWhereItsConfigSays(t *testing.T) {
	config := func(hook string) json.RawMessage {
		return json.RawMessage(`{"roles":{"ask":["telegram:1"]},"hooks":{"ci":{"id":"abcdefghijklmnop","kind":"github"` + hook + `}}}`)
	}
	route := msg.Route{ID: 1, Match: "chat_jid=slack:C1", Target: "acme/eng"}
	for name, tc := range map[string]struct {
		hook, chat string
		want       routeapi.Answer
		trace      string
	}{
		"nowhere else": {"", "hook:acme/eng.abcdefghijklmnop",
			routeapi.Answer{Action: "trigger", Folder: "acme/eng", Home: "acme/eng", Target: "acme/eng", Reason: "address", Surface: "hook", Ceiling: 4000}, "names the group"},
		"to a channel": {`,"to":"slack:C1","quiet_ms":5000`, "hook:acme/eng.abcdefghijklmnop",
			routeapi.Answer{Action: "trigger", Folder: "acme/eng", Home: "acme/eng", Target: "acme/eng", Reason: "address", To: "slack:C1", Surface: "slack-channel", Ceiling: 200}, "the hook ci sends answers to slack:C1"},
		"to a thread": {`,"to":"slack:C1","thread":"17.2"`, "hook:acme/eng.abcdefghijklmnop",
			routeapi.Answer{Action: "trigger", Folder: "acme/eng", Home: "acme/eng", Target: "acme/eng", Reason: "address", To: "slack:C1", ThreadID: "17.2", Surface: "slack-channel-thread", Ceiling: 4000}, ""},
		"to its web chat": {`,"to":"web:acme/eng"`, "hook:acme/eng.abcdefghijklmnop",
			routeapi.Answer{Action: "trigger", Folder: "acme/eng", Home: "acme/eng", Target: "acme/eng", Reason: "address", To: "web:acme/eng", Surface: "web", Ceiling: 4000}, ""},
		"to a chat of another group": {`,"to":"slack:C2"`, "hook:acme/eng.abcdefghijklmnop",
			routeapi.Answer{Action: "trigger", Folder: "acme/eng", Home: "acme/eng", Target: "acme/eng", Reason: "address", Surface: "hook", Ceiling: 4000}, "no route leads from there to acme/eng"},
		"of a hook that is gone": {`,"to":"slack:C1"`, "hook:acme/eng.ponmlkjihgfedcba",
			routeapi.Answer{Action: "trigger", Folder: "acme/eng", Home: "acme/eng", Target: "acme/eng", Reason: "address", Surface: "hook", Ceiling: 4000}, "the hook was removed"},
		"of a group that is gone": {"", "hook:acme/ops.abcdefghijklmnop",
			routeapi.Answer{Action: "none", Reason: "no_group", Surface: "hook", Ceiling: 4000}, "not registered"},
		"of no group": {"", "hook:abcdefghijklmnop", routeapi.Answer{Action: "none", Reason: "no_route", Surface: "hook", Ceiling: 4000}, ""},
	} {
		table := New([]msg.Route{route}, []msg.Group{{Folder: "acme/eng", Config: config(tc.hook)}}, defaults())
		item := routeapi.Item{ChatJID: tc.chat, Sender: tc.chat, Verb: "message"}
		got := table.Resolve(context.Background(), &item, Unengaged{})
		if trace := strings.Join(got.Trace, "; "); !strings.Contains(trace, tc.trace) {
			t.Errorf("%s: trace %q", name, trace)
		}
		if quiet := got.Impulse.QuietMS; (quiet == 5000) != strings.Contains(tc.hook, "quiet_ms") {
			t.Errorf("%s: quiet for %d ms", name, quiet)
		}
		tc.want.Trace, tc.want.Impulse = got.Trace, got.Impulse
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(tc.want)
		if string(a) != string(b) {
			t.Errorf("%s:\n got %s\nwant %s", name, a, b)
		}
	}
}
