package platforms

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
)

// recipe is a chapter of docs/routing.md with its commands and its table of examples.
type recipe struct {
	title    string
	routes   [][]string // --seq, --match, --target, --impulse
	examples [][]string // chat, verb, sender, outcome
}

func recipes(t *testing.T) (all []recipe) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/routing.md")
	if err != nil {
		t.Fatal(err)
	}
	route := regexp.MustCompile(`(?m)^routd routes add (?:--seq (\S+) )?--match '([^']*)' --target (\S+)(?: --impulse '([^']*)')?$`)
	catchAll := regexp.MustCompile(`(?m)^routd routes add --seq (\S+)() --target (\S+)()$`)
	example := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (\\w+) \\| `([^`]+)` \\| (.+) \\|$")
	for _, chapter := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(chapter, "\n")
		if title[0] < '0' || title[0] > '9' {
			continue
		}
		routes := append(route.FindAllStringSubmatch(body, -1), catchAll.FindAllStringSubmatch(body, -1)...)
		r := recipe{title: title, routes: routes, examples: example.FindAllStringSubmatch(body, -1)}
		if len(r.routes) != strings.Count(body, "routd routes add") || len(r.examples) == 0 {
			t.Fatalf("%s: %d routes and %d examples can be read", title, len(r.routes), len(r.examples))
		}
		all = append(all, r)
	}
	return all
}

// Each example of the cookbook happens on each platform, to chats of that platform.
func TestCookbook_EachExample_OnEachPlatform(t *testing.T) {
	t.Parallel()
	all := recipes(t)
	for name, newPlatform := range map[string]func() chatsim.Platform{"telegram": newTelegram, "discord": newDiscord, "slack": newSlack} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInstance(t)
			i.Instance.Env = append(i.Instance.Env, "AGENT_COMMAND=exec "+i.Instance.Program("demo"))
			first, second := i.serve(newPlatform()), i.serve(workAccount{newPlatform()})
			i.start(harness.Routd, harness.Gated, harness.Onbod, first.info.Daemon, second.info.Daemon)
			i.AddGroups("main", "acme", "acme/oncall")
			first.waitConnection("connected")
			second.waitConnection("connected")
			for _, r := range all {
				for n, e := range r.examples {
					f := first
					if strings.Contains(e[1], "+"+work+":") {
						f = second
					}
					f.cook(r, e, fmt.Sprintf("recipe %s, example %d", strings.Fields(r.title)[0], n+1))
				}
			}
		})
	}
}

// cook makes an example happen in a new chat.
func (f *fixture) cook(r recipe, example []string, text string) {
	f.T.Helper()
	chat, verb, sender, outcome := example[1], example[2], example[3], example[4]
	in := f.NewGroup(strings.ReplaceAll(text, ",", ""))
	if msg.KindOfJID(chat) == msg.ChatDM {
		in = f.NewDM(text)
	}
	f.Exec(`DELETE FROM routes`)
	var target, writer string
	if in.NeedsMention { // what is there before the routes
		target = f.do(chatsim.Action{Conversation: in, Verb: msg.VerbMessage, Text: "before " + text})
		f.waitStored("before " + text)
		writer = f.Value(`SELECT sender FROM messages WHERE content = ?`, "before "+text)
		f.WaitIdle()
	}
	f.addRecipe(r, strings.NewReplacer("chat_jid="+chat, "chat_jid="+in.Chat, "sender="+sender, "sender="+cmp.Or(writer, in.Chat)))
	a := chatsim.Action{Conversation: in, Verb: verb, Text: text}
	switch verb {
	case msg.VerbReply:
		f.putOutbound(msg.Message{ChatJID: in.Chat, Content: "news of " + text})
		a.Target = f.waitArrival("news of " + text).ID
	case msg.VerbReaction:
		a.Target, a.Text = target, reactionOf(f.info.Platform)
	}
	f.do(a)
	f.wantOutcome(in, verb, text, outcome)
}

// reactionOf is a reaction as a platform names it.
func reactionOf(platform string) string {
	if platform == "slack" {
		return "thumbsup"
	}
	return "👍"
}

// addRecipe adds the routes of a recipe for the chats and senders of this platform.
func (f *fixture) addRecipe(r recipe, here *strings.Replacer) {
	f.T.Helper()
	platform := regexp.MustCompile(`platform=\w+`)
	for _, route := range r.routes {
		match := platform.ReplaceAllString(here.Replace(route[2]), "platform="+msg.FamilyOf(f.dm.Chat))
		in := map[string]any{"seq": json.Number(cmp.Or(route[1], "0")), "match": match, "target": route[3]}
		if route[4] != "" {
			in["impulse_config"] = json.RawMessage(route[4])
		}
		f.OK(f.Routd.Do(f.T.Context(), "POST", "/v1/routes", in, nil))
	}
}

// wantOutcome waits until a message has become what the cookbook says.
func (f *fixture) wantOutcome(in chatsim.Conversation, verb, text, outcome string) {
	f.T.Helper()
	kind, folder, _ := strings.Cut(outcome, " by `")
	folder, _, _ = strings.Cut(folder, "`")
	want := map[string]string{
		"answered": "routed ", "read along": "observed route_observe", "ignored": "dropped builtin_drop",
		"asks you to connect the chat": "onboarding awaiting_approval", "goes nowhere": "dropped no_route",
	}[kind]
	var got string
	f.Until(fmt.Sprintf("%q (%s) to become %q", text, verb, outcome), func() bool {
		got = f.Value(`SELECT disposition || ' ' || reason || ' ' || coalesce(routed_to, '') FROM messages
			WHERE chat_jid = ? AND direction = 'in' AND verb = ? ORDER BY id DESC LIMIT 1`, in.Chat, verb)
		return want != "" && strings.HasPrefix(got, want) && strings.HasSuffix(got, folder)
	})
	switch {
	case kind == "asks you to connect the chat":
		f.waitArrivalIn(in, f.Value(`SELECT code FROM onboarding_requests WHERE chat_jid = ?`, in.Chat))
	case kind == "answered" && verb != msg.VerbReaction:
		f.waitAnswer(text)
	case kind == "answered":
		f.Until("the reaction's turn to end", func() bool {
			return f.Value(`SELECT count(*) FROM turns WHERE chat_jid = ? AND state = 'done'`, in.Chat) == "1"
		})
	}
}
