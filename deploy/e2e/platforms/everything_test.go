package platforms

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
)

// Each command of the gateway is written on each platform, by a user who becomes an operator by a code, and answered there.
func TestCommands_EachOne_IsAnsweredOnEachPlatform(t *testing.T) {
	answers := map[string][2]string{ // command → what is written behind it, and what the answer contains
		msg.CommandNew: {"", "new session"}, msg.CommandStop: {"", "stopped"}, msg.CommandStatus: {"", "main"}, msg.CommandWho: {"", "everyone"},
		msg.CommandAgent: {"", "agent"}, msg.CommandModel: {"", "model"}, msg.CommandHooks: {"", "no webhooks"}, msg.CommandPing: {"", "pong"},
		msg.CommandChatID: {"", ":"}, msg.CommandHelp: {"", "start a new session"}, msg.CommandOperator: {" ", "you are an operator"},
		msg.CommandApprove: {" ABCD-1234", "ABCD-1234"}, msg.CommandReject: {" ABCD-1234 no", "ABCD-1234"}, msg.CommandWhy: {"", "routed"},
		msg.CommandUndo: {"", "taken back: turn"}, msg.CommandRedo: {"", "done again: turn"}, msg.CommandSpend: {"", "30 days: "}, msg.CommandRules: {"", "has no rules of permissions"},
		msg.CommandAlerts: {" off", "No operator gets messages about new problems"},
	}
	onEachPlatform(t, func(f *fixture) {
		f.Restart(harness.Onbod)
		f.Restart("dashd")
		var made struct{ Code string }
		f.OK(f.Client(harness.Gated).Do(f.T.Context(), "POST", "/v1/operators/code", nil, &made))
		before := f.say(f.dm, "anyone here?")
		f.waitAnswer("anyone here?")
		for _, c := range msg.GatewayCommands() {
			want, known := answers[c.Name]
			if !known {
				f.T.Errorf("/%s is not tried here", c.Name)
				continue
			}
			a := chatsim.Action{Conversation: f.dm, Verb: msg.VerbMessage, Text: msg.CommandIn(f.dm.Chat, c.Name) + want[0]}
			switch c.Name {
			case msg.CommandOperator:
				a.Text += made.Code
			case msg.CommandWhy:
				a.Verb, a.Target = msg.VerbReply, before
			}
			id := f.do(a)
			var answer string
			f.Until("an answer to /"+c.Name, func() bool {
				answer = f.Value(`SELECT coalesce(content, '') FROM messages WHERE direction = 'out' AND out_state = 'sent' AND reply_to_id = ?`, f.platformID(id))
				return answer != ""
			})
			if !strings.Contains(strings.ToLower(answer), strings.ToLower(want[1])) {
				f.T.Errorf("/%s is answered with %q, want %q", c.Name, answer, want[1])
			}
		}
	})
}

// platformID is the id under which a message of the private chat is stored.
func (f *fixture) platformID(id string) (stored string) {
	f.T.Helper()
	f.Until("message "+id, func() bool {
		stored = f.Value(`SELECT platform_id FROM messages WHERE chat_jid = ? AND direction = 'in' ORDER BY id DESC LIMIT 1`, f.dm.Chat)
		return strings.HasSuffix(stored, id)
	})
	return stored
}

// Each tool of docs/reference/tools.md is called by an agent in a chat of each platform, and does not fail there.
func TestTools_EachOne_WorksOnEachPlatform(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	tools := regexp.MustCompile("(?m)^## `([a-z_]+)`$").FindAllStringSubmatch(string(page), -1)
	onEachPlatformWithTools(t, func(f *fixture) {
		f.AddGroups("main/eng")
		f.AddRoute("chat_jid=group:main/eng", "main/eng")
		file := f.do(chatsim.Action{Conversation: f.dm, Verb: msg.VerbMessage, Text: "say got it", File: &chatsim.File{Name: "a.txt", Data: []byte("a")}})
		f.waitArrival("got it")
		row := f.Value(`SELECT id FROM messages WHERE platform_id = ?`, f.platformID(file))
		calls := []string{
			`send_message {"text":"at work"}`, `edit_message {"message_id":$message_id,"text":"nearly done"}`, `send_file {"path":"plan.txt"}`,
			`react {"message_id":$this,"emoji":"👍"}`, fmt.Sprintf(`get_attachment {"message_id":%s}`, row),
			`poll_create {"question":"lunch?","options":["pizza","sushi"]}`, `poll_list {}`, `poll_close {"poll_id":$poll_id}`,
			`inspect_session {}`, `search_messages {"text":"got it"}`, `get_thread {"message_id":$this}`, `broadcast {"text":"to all"}`,
			`reminder_create {"kind":"text","body":"tea","due_at":"2099-01-01T00:00:00Z"}`, `reminder_list {}`,
			`reminder_update {"id":$id,"body":"coffee"}`, `reminder_cancel {"id":$id}`,
			`activate_context_object {"event":"url_discussed","kind":"link","url":"https://a.example"}`,
			`list_active_context_objects {}`, `resolve_reference_target {"kind":"link"}`,
			fmt.Sprintf(`engage {"jid":%q,"topic":""}`, f.dm.Chat), fmt.Sprintf(`disengage {"jid":%q,"topic":""}`, f.dm.Chat),
			`delegate {"folder":"main/eng","prompt":"call escalate {\"prompt\":\"say asked\"}"}`, `fork_topic {}`,
			fmt.Sprintf(`inject_message {"chat_jid":%q,"content":"say injected"}`, f.dm.Chat), `reset_session {"groupFolder":"main"}`,
		}
		f.ask(f.dm, "call "+strings.Join(calls, "\ncall "))
		answer := f.waitArrivalOfAll("reset_session {")
		for _, name := range tools {
			switch name[1] {
			case "ask_user": // TestQuestion_Press_AnswersItOnce
			case "escalate":
				f.Until("the escalation's answer", func() bool {
					return f.Value(`SELECT count(*) FROM messages WHERE content LIKE '%asked%' AND direction = 'out'`) != "0"
				})
			default:
				if !strings.Contains(answer, name[1]+" {") {
					f.T.Errorf("%s: no result in %q", name[1], answer)
				}
			}
		}
		for _, text := range []string{"at work", "to all", "injected", "lunch?"} {
			f.waitArrival(text)
		}
	})
}

// waitArrivalOfAll waits until a text has arrived, and returns all texts that have.
func (f *fixture) waitArrivalOfAll(text string) (all string) {
	f.T.Helper()
	f.waitArrival(text)
	for _, a := range f.Arrivals() {
		all += a.Text + "\n"
	}
	return all
}
