package scenarios

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/need"
)

// readers are the kinds of places where an answer is read, each with its own group.
var readers = []struct {
	folder  string
	asks    location // where the first message is written
	follows location // where the next one is written
	verb    string   // of the first message
	kind    string   // of the chat, if its adapter reports one
	surface string
	ceiling int
}{
	{"slack-channel", inChat("slack:C1"), inChat("slack:C1"), "message", "channel", "slack-channel", 200},
	{"slack-thread", inThread("slack:C2", "1.1"), inThread("slack:C2", "1.1"), "message", "", "slack-channel-thread", 4000},
	{"slack-opened", inChat("slack:C3"), inThread("slack:C3", "1.1"), "mention", "", "slack-channel-thread", 4000},
	{"slack-dm", inChat("slack:D1"), inChat("slack:D1"), "message", "", "slack-dm", 4000},
	{"slack-pane", inThread("slack:D2", "1.1"), inThread("slack:D2", "1.1"), "mention", "", "slack-pane", 4000},
	{"slack-by-kind", inChat("slack:G1"), inChat("slack:G1"), "mention", "dm", "slack-dm", 4000},
	{"telegram-dm", inChat("telegram:5"), inChat("telegram:5"), "message", "", "telegram-dm", 4000},
	{"telegram-group", inChat("telegram:-5"), inChat("telegram:-5"), "mention", "", "telegram-group", 1500},
	{"telegram-topic", inThread("telegram:-6", "7"), inThread("telegram:-6", "7"), "message", "", "telegram-topic", 4000},
	{"discord-channel", inChat("discord:5"), inChat("discord:5"), "mention", "channel", "discord-channel", 1500},
	{"discord-thread", inThread("discord:6", "9"), inThread("discord:6", "9"), "message", "", "discord-thread", 4000},
	{"discord-dm", inChat("discord:dm-5"), inChat("discord:dm-5"), "message", "", "discord-dm", 4000},
	{"web", inChat("web:web"), inChat("web:web"), "message", "", "web", 4000},
	{"web-tab", inTab("web:web-tab", "#a"), inTab("web:web-tab", "#a"), "message", "", "web", 4000},
	{"group", inChat("group:group"), inChat("group:group"), "message", "", "group", 4000},
}

// failingOnce is an agent that records its input. The first run of each group fails.
const failingOnce = `if mkdir died; then head -n 1 >>input.jsonl; exit 3; fi; ` + harness.RecordingAgent

func TestPrompt_EverySurface_IsNamed(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	f := harness.Start(t, programs, harness.Options{Agent: failingOnce, Env: []string{"MAX_AGENTS=50"}})
	f.AddGroups("top")
	first, next := map[string]int64{}, map[string]int64{}
	for _, r := range readers {
		f.AddGroups(r.folder, r.folder+"/child")
		f.AddRoute("chat_jid="+r.asks.chat, r.folder)
		if r.kind != "" {
			platform, _ := msg.SplitJID(r.asks.chat)
			f.Exec(`INSERT INTO chats (jid, platform, kind, last_seen_at) VALUES (?, ?, ?, 0)`, r.asks.chat, platform, r.kind)
		}
		m := at(r.asks, "slow 1 first")
		m.Verb, m.PlatformID = r.verb, "1.1"
		first[r.folder] = f.Put(m)[0]
	}
	for _, r := range readers {
		f.Until("the first turn to be retried", func() bool {
			turn := f.Turn(first[r.folder])
			return turn.Attempts == 1 && turn.State != msg.TurnQueued
		})
		next[r.folder] = f.Put(at(r.follows, "a batch"), at(r.follows, "of two"))[0]
	}
	for _, r := range readers {
		origin := f.WaitEnded(next[r.folder])
		escalation := returnAddress(msg.Escalation, origin)
		f.Put(handedTo(r.folder+"/child", "look into it", returnAddress(msg.Delegation, origin)), handedTo("top", "may I?", escalation))
	}
	f.WaitIdle()
	for _, r := range readers {
		t.Run(r.folder, func(t *testing.T) {
			want := surfaceTag(r.surface, r.ceiling)
			turns := promptTurns(t, f.AgentInput(r.folder), want)
			began, piped := f.Turn(first[r.folder]).ID, f.Turn(next[r.folder]).ID
			expected := []string{fmt.Sprint("start ", began), fmt.Sprint("start ", began), fmt.Sprint("message ", piped)}
			if len(turns) != 4 { // the last one has the answer of the parent
				t.Fatalf("turns of its agents: %q", turns)
			}
			if diff := cmp.Diff(expected, turns[:3]); diff != "" {
				t.Errorf("turns of its agents (-want +got):\n%s", diff)
			}
			if turns := promptTurns(t, f.AgentInput(r.folder+"/child"), want); len(turns) != 2 || turns[0] != turns[1] {
				t.Errorf("turns of the child's agents: %q", turns)
			}
		})
	}
	// A parent answers the child, wherever the child's users are.
	if turns := promptTurns(t, f.AgentInput("top"), surfaceTag("group", 4000)); len(turns) != len(readers)+1 {
		t.Errorf("turns of the parent's agents: %q", turns)
	}
}

// at is a message at a location.
func at(where location, text string) msg.Message {
	return msg.Message{ChatJID: where.chat, ThreadID: where.thread, Topic: where.topic, Content: text}
}

func surfaceTag(surface string, ceiling int) string {
	return fmt.Sprintf(`<surface ceiling="%d">%s</surface>`, ceiling, surface)
}

var anySurface = regexp.MustCompile(`<surface[^>]*>[^<]*</surface>`)

// promptTurns returns the kind and turn of each line of input. Each must name that surface and no
// other.
func promptTurns(t *testing.T, input, surface string) (turns []string) {
	t.Helper()
	for line := range strings.Lines(input) {
		in, err := agentproto.ReadInput([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		var prompt string
		switch in := in.(type) {
		case agentproto.Start:
			turns, prompt = append(turns, "start "+in.TurnID), in.Prompt
			if tag := surfaceTag(in.Surface, in.Ceiling); tag != surface {
				t.Errorf("turn %s starts with %s, want %s", in.TurnID, tag, surface)
			}
		case agentproto.Message:
			turns, prompt = append(turns, "message "+in.TurnID), in.Prompt
		}
		if tags := anySurface.FindAllString(prompt, -1); !slices.Equal(tags, []string{surface}) {
			t.Errorf("%q is prompted with %q, want %s", turns[len(turns)-1], tags, strconv.Quote(surface))
		}
	}
	return turns
}
