package layers

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
)

func TestParseCommand(t *testing.T) {
	long := strings.Repeat("line\n", 1<<18)
	bots := []string{"arizuko_bot", "Ari"}
	newTopic := func(args, topic, rest string) Command {
		return Command{Name: msg.CommandNew, Audience: msg.ForRouted, Args: args, Topic: topic, Rest: rest}
	}
	plain := func(name string, audience msg.Audience, args string) Command {
		return Command{Name: name, Audience: audience, Args: args, Rest: args}
	}
	tests := []struct {
		content, platform string
		want              Command // zero for ordinary text
	}{
		{"/stop", "telegram", plain("stop", msg.ForRouted, "")},
		{"/status", "telegram", plain("status", msg.ForRouted, "")},
		{"/ping", "telegram", plain("ping", msg.ForAnyone, "")},
		{"/chatid", "telegram", plain("chatid", msg.ForAnyone, "")},
		{"/help", "telegram", plain("help", msg.ForAnyone, "")},
		{"/approve ABCD-1234 acme/eng", "telegram", plain("approve", msg.ForOperators, "ABCD-1234 acme/eng")},
		{"/reject ABCD-1234 not now,\nlater", "telegram", plain("reject", msg.ForOperators, "ABCD-1234 not now,\nlater")},
		{"/operator ABCD-EFGH-2345", "telegram", plain("operator", msg.ForAnyone, "ABCD-EFGH-2345")},
		{"!why 812", "slack", plain("why", msg.ForOperators, "812")},
		{"/alerts off", "telegram", plain("alerts", msg.ForOperators, "off")},
		{" \n/PiNg \t", "telegram", plain("ping", msg.ForAnyone, "")},
		{"/ping #deploy x", "telegram", plain("ping", msg.ForAnyone, "#deploy x")},
		{"/new", "web", newTopic("", "", "")},
		{"/new what is up?", "web", newTopic("what is up?", "", "what is up?")},
		{"/new\n\none\n two\n", "web", newTopic("one\n two\n", "", "one\n two\n")},
		{"/new #deploy", "web", newTopic("#deploy", "#deploy", "")},
		{"/new #deploy\nship\n it", "web", newTopic("#deploy\nship\n it", "#deploy", "ship\n it")},
		{"/new #deploy, ship", "web", newTopic("#deploy, ship", "", "#deploy, ship")},
		{"/new #d9 hello", "web", Command{Name: msg.CommandNew, Audience: msg.ForRouted, Args: "#d9 hello", Topic: "#d9", Rest: "hello", Reserved: true}},
		{"/new # heading", "web", newTopic("# heading", "", "# heading")},
		{"/new @eng fix", "web", newTopic("@eng fix", "", "@eng fix")},
		{"/new " + long, "web", newTopic(long, "", long)},
		{"/new #" + long, "web", newTopic("#"+long, "#line", strings.TrimPrefix(long, "line\n"))},
		{"/new@arizuko_bot hi", "telegram", newTopic("hi", "", "hi")},
		{"/new@ARIZUKO_Bot #a b", "telegram", newTopic("#a b", "#a", "b")},
		{"/stop@ari", "telegram", plain("stop", msg.ForRouted, "")},
		{"!new #a b", "slack", newTopic("#a b", "#a", "b")},
		{"!stop", "slack", plain("stop", msg.ForRouted, "")},
		{" /stop", "slack", plain("stop", msg.ForRouted, "")},

		{"!stop", "telegram", Command{}},
		{"!stop", "", Command{}},
		{"!important", "slack", Command{}},
		{"", "telegram", Command{}},
		{" ", "slack", Command{}},
		{"/", "telegram", Command{}},
		{"!", "slack", Command{}},
		{"// comment", "telegram", Command{}},
		{"/start", "telegram", Command{}},
		{"/newer", "telegram", Command{}},
		{"/ new", "telegram", Command{}},
		{"/new#x", "telegram", Command{}},
		{"/new: x", "telegram", Command{}},
		{"/new/x", "telegram", Command{}},
		{"/new\x00", "telegram", Command{}},
		{"/ſtop", "telegram", Command{}}, // folds to "stop" in Unicode
		{"please /stop", "telegram", Command{}},
		{"／stop", "telegram", Command{}},
		{"/new@other_bot hi", "telegram", Command{}},
		{"/new@ hi", "telegram", Command{}},
		{"/new@arizuko_bot@x hi", "telegram", Command{}},
		{"/new@arizuko_bot#a", "telegram", Command{}},
		{"/unknown@arizuko_bot", "telegram", Command{}},
		{"/" + strings.Repeat("new", 1<<18), "telegram", Command{}},
		{"/new@" + strings.Repeat("b", 1<<20), "telegram", Command{}},
	}
	for _, tt := range tests {
		got, ok := ParseCommand(tt.content, tt.platform, among(bots))
		if got != tt.want || ok != (tt.want != Command{}) {
			t.Errorf("ParseCommand(%.40q, %q) = %.80v, %v; want %.80v", tt.content, tt.platform, got, ok, tt.want)
		}
	}
}

func TestParseCommandWithoutBotNames(t *testing.T) {
	for content, want := range map[string]bool{"/ping": true, "/ping@bot": false, "/ping@": false} {
		if _, ok := ParseCommand(content, "telegram", among(nil)); ok != want {
			t.Errorf("ParseCommand(%q) without names = %v, want %v", content, ok, want)
		}
	}
}

func TestHelpText(t *testing.T) {
	member := `/new [#topic] [text]: start a new session, then ask text
/stop: stop what the agent is doing
/undo [rest]: take back the last turn: answers, files and reminders
/redo [rest]: do again what /undo took back
/status: show the state of this chat
/spend: show what you have used here; operators see this chat's, too
/who: show who may do what in this chat's group
/permissions [revoke N]: show what this group always allows; approvers revoke a rule
/agent [NAME]: show the agents; operators switch to one
/model [NAME]: show the agent's models; operators choose one
/hooks [KIND NAME]: show the group's webhooks; operators add one that answers here
/ping: check that the gateway answers
/chatid: show the address of this chat, and yours
/help: show this list`
	operator := `
/approve CODE [folder]: connect a chat (operators)
/reject CODE [reason]: reject a chat (operators)
/why [MESSAGE]: as a reply: what happened to that message (operators)
/alerts [on|off]: show open problems; get messages about new ones, or not (operators)`
	for who, want := range map[bool]string{false: member, true: member + operator} {
		direct := want
		if !who {
			direct += "\n/operator CODE: become an operator, with a code from the dashboard"
		}
		for chat, want := range map[string]string{
			"telegram:42": direct, "telegram:-42": want, "web:main": want, "slack+work:C1": strings.ReplaceAll("\n"+want, "\n/", "\n!")[1:],
		} {
			if diff := cmp.Diff(want, HelpText(chat, who)); diff != "" {
				t.Errorf("help in %s, operator %v (-want +got):\n%s", chat, who, diff)
			}
		}
	}
}

// BenchmarkParseCommand reads the worst ordinary text: long, and without a space.
func BenchmarkParseCommand(b *testing.B) {
	content := "/" + strings.Repeat("a", 1<<20)
	b.ReportAllocs()
	for b.Loop() {
		ParseCommand(content, slack, among(nil))
	}
}

func among(names []string) func(string) bool {
	return func(bot string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, bot) })
	}
}
