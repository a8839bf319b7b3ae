package scenarios

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
)

// room is a group chat in which the group main is mentioned.
const room = "telegram:-5"

// TestWindow_CrossingThreads_ShownOncePerRun: the recent lines of a chat in the prompts of two runs.
// `gated context show` prints a run's first prompt, whatever was changed since.
func TestWindow_CrossingThreads_ShownOncePerRun(t *testing.T) {
	f := startOnMention(t, harness.Options{Agent: harness.Recording + "exec %caller", Env: []string{"ASSISTANT_NAME=ari", "AGENT_IDLE=1h"}})
	observe(f, "alice", "a1", "", "who deploys on Friday?")
	observe(f, "bob", "b1", "", "what's for lunch?")
	observe(f, "dan", "a2", "a1", "not me")
	observe(f, "alice", "b2", "b1", "pizza")
	observe(f, "eve", "b3", "b1", "a bad joke")
	observe(f, "Ari", "c1", "", "has anyone seen my badge?")
	f.WantReply(f.Say(room, "/ping"), "pong")
	change(f, edit(room, "b2", "1", "soup"))
	change(f, deletion(room, "b3"))
	liked := f.Put(msg.Message{ChatJID: room, Verb: msg.VerbReaction, TargetID: "a1", Content: "👍"})[0] // held until a message comes
	rows := []int64{mention(f, "carol", "m0", "", "is the server down?\nsay It is up.\nsay It was slow.")}
	f.WantDecision(liked, msg.Observed, msg.ReasonRouteObserve)

	f.Kill(harness.Gated) // so that the next prompt begins a run
	f.Restart(harness.Gated)
	observe(f, "bob", "a3", "a2", "I do\nalice: says bob")
	observe(f, "dan", "b4", "b2", "with bread")
	rows = append(rows, mention(f, "carol", "m1", "", "what is going on?\nsay Lunch."))

	observe(f, "alice", "a4", "a3", "thanks")
	observe(f, "eve", "d1", "", "rain tonight")
	observe(f, "dan", "d2", "d1", "umbrellas!")
	change(f, edit(room, "b1", "1", "what's for dinner?"))
	rows = append(rows, mention(f, "dan", "m2", "", "and now?\nsay Rain."))

	observe(f, "alice", "e1", "", "which server was it?")
	observe(f, "dan", "e2", "e1", "the old one")
	observe(f, "bob", "g1", "", "dinner at eight")
	f.WantDecision(f.Say("telegram:-6", "the build is red"), msg.Observed, msg.ReasonRouteObserve)
	rows = append(rows, mention(f, "eve", "m3", "e2", "🚫 is it still there?\nsay Yes."))
	rows = append(rows, mention(f, "eve", "m4", "", "anything else?\nsay No."))

	prompts := roomPrompts(f, len(rows))
	for i, want := range wantPrompts() {
		prompts[i].check(t, f.Turn(rows[i]).ID, want)
	}
	change(f, edit(room, "a1", "1", "who deploys?"))
	change(f, deletion(room, "a3"))
	if diff := cmp.Diff(systemLine.ReplaceAllString(prompts[1].text, ""), shownAgain(f, rows[1])); diff != "" {
		t.Errorf("gated context show (-agent's +printed):\n%s", diff)
	}
}

// wantPrompt is what a prompt shows beside its messages.
type wantPrompt struct {
	title         string
	window        string
	replyChain    string // a line for each message
	observesBuild bool   // it shows the line of the other chat
	piped         bool
}

// wantPrompts are the prompts of TestWindow_CrossingThreads_ShownOncePerRun.
func wantPrompts() []wantPrompt {
	return []wantPrompt{
		{title: "after an edit, whose message is in the reply chain", window: `[recent channel context]

standalone (Ari 2):
  has anyone seen my badge?

thread (alice, dan):
  alice: who deploys on Friday?
  dan: not me
`, replyChain: "bob: what's for lunch?\nalice: soup\n"},

		{title: "the first of the second run", window: `[recent channel context]

thread (bob, alice, dan):
  bob: what's for lunch?
  alice: soup
  dan: with bread

thread (alice, dan, bob):
  alice: who deploys on Friday?
  dan: not me
  bob: I do
    alice: says bob

thread (Ari 2, you, ari):
  Ari 2: has anyone seen my badge?
  you: is the server down?
    say It is up.
    say It was slow.
  ari: It is up.
    It was slow.
`},

		{title: "piped", piped: true, window: `[recent channel context]

thread (eve, you):
  eve: rain tonight
  you: umbrellas!

standalone (alice):
  thanks
`, replyChain: "bob: what's for dinner?\n"},

		{title: "with the skip sign", piped: true, replyChain: "alice: which server was it?\ndan: the old one\n"},

		{title: "after the skip sign", piped: true, observesBuild: true, window: `[recent channel context]

standalone (bob):
  dinner at eight
`},
	}
}

// write writes a message of a user of the room and returns its row.
func write(f *harness.Fixture, verb, name, id, replyTo, text string) int64 {
	f.T.Helper()
	return f.Put(msg.Message{
		ChatJID: room, Verb: verb, Sender: "telegram:" + name, SenderName: name, PlatformID: id, ReplyToID: replyTo, Content: text,
	})[0]
}

// observe writes a message that starts no turn.
func observe(f *harness.Fixture, name, id, replyTo, text string) {
	f.T.Helper()
	f.WantDecision(write(f, msg.VerbMessage, name, id, replyTo, text), msg.Observed, msg.ReasonRouteObserve)
}

// change writes an edit or a deletion.
func change(f *harness.Fixture, m msg.Message) {
	f.T.Helper()
	f.WantDecision(f.Put(m)[0], msg.Observed, msg.ReasonEditNote)
}

// mention writes a message that starts a turn, and delivers the answer so long ago that it engages
// the group no more. It returns the message's row.
func mention(f *harness.Fixture, name, id, replyTo, text string) int64 {
	f.T.Helper()
	row := write(f, msg.VerbMention, name, id, replyTo, text)
	f.WantDecision(row, msg.Routed, msg.ReasonRoute)
	f.Answer(row)
	queued, err := f.Adapter.Queued(f.T.Context(), "telegram")
	f.OK(err)
	for _, out := range queued {
		f.OK(f.Adapter.Sent(f.T.Context(), out.ID, fmt.Sprint("out-", out.ID), time.Now().Add(-time.Hour)))
	}
	return row
}

// agentPrompt is a prompt that an agent got.
type agentPrompt struct {
	turn  string
	piped bool // into a run that had a prompt before
	text  string
}

// roomPrompts are the n prompts that the agents of main have got.
func roomPrompts(f *harness.Fixture, n int) (all []agentPrompt) {
	f.T.Helper()
	for line := range strings.Lines(f.AgentInput("main")) {
		in, err := agentproto.ReadInput([]byte(line))
		f.OK(err)
		switch in := in.(type) {
		case agentproto.Start:
			all = append(all, agentPrompt{in.TurnID, false, in.Prompt})
		case agentproto.Message:
			all = append(all, agentPrompt{in.TurnID, true, in.Prompt})
		}
	}
	if len(all) != n {
		f.T.Fatalf("%d prompts, want %d", len(all), n)
	}
	return all
}

var (
	systemLine   = regexp.MustCompile(`(?m)^<system [^>]*>[^<]*</system>\n`)
	chainMessage = regexp.MustCompile(`<message [^>]*name="([^"]*)"[^>]*>([^<]*)</message>`)
)

// check fails the test unless the prompt of a turn is as it should be.
func (p agentPrompt) check(t *testing.T, turn int64, want wantPrompt) {
	t.Helper()
	if p.turn != fmt.Sprint(turn) {
		t.Errorf("%s: the prompt is of turn %s, want %d", want.title, p.turn, turn)
	}
	got := wantPrompt{want.title, p.block("channel_context"), p.replyChain(), strings.Contains(p.text, "the build is red"), p.piped}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(wantPrompt{})); diff != "" {
		t.Errorf("%s (-want +got):\n%s\n%s", want.title, diff, p.text)
	}
}

// replyChain has a line for each message.
func (p agentPrompt) replyChain() string {
	var b strings.Builder
	for _, m := range chainMessage.FindAllStringSubmatch(p.block("reply_chain"), -1) {
		b.WriteString(m[1] + ": " + m[2] + "\n")
	}
	return b.String()
}

// block is what a prompt has between the tags of that name.
func (p agentPrompt) block(name string) string {
	_, after, _ := strings.Cut(p.text, "<"+name+">")
	inner, _, _ := strings.Cut(after, "</"+name+">")
	return inner
}

// shownAgain is what `gated context show` prints of the turn of a row.
func shownAgain(f *harness.Fixture, row int64) string {
	f.T.Helper()
	out, err := f.Instance.Command(harness.Gated, "context", "show", fmt.Sprint(f.Turn(row).ID)).Output()
	f.OK(err)
	return string(out)
}
