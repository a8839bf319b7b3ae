package agents

import (
	"regexp"
	"testing"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/running/groupfiles"
	"arizuko/gated/internal/shown/turncontext"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// again is what `gated context show` prints of a turn.
func (r *harness) again(t *msg.Turn) string {
	r.t.Helper()
	reader := turncontext.Reader{Store: r.st.Reader, Operators: r.cfg.Operators, Location: r.cfg.Location, Names: r.cfg.Names, Files: groupfiles.InboxPaths}
	return must[string](r)(reader.Again(r.t.Context(), t.ID, r.cfg.Defaults))
}

var systemLine = regexp.MustCompile(`^<system[^>]*>[^<]*</system>\n`)

// sent is the first prompt of the last run of main, without its system messages, which are
// deleted with the answer.
func (r *harness) sent() string {
	r.t.Helper()
	in := r.last()
	start, isStart := in.input.(agentproto.Start)
	if !isStart {
		r.t.Fatalf("the last prompt is no first one: %+v", in.input)
	}
	text := start.Prompt
	for range in.prompt.System {
		text = text[len(systemLine.FindString(text)):]
	}
	return text
}

// TestAgain_FirstPrompts_AreAsTheAgentGotThem makes prompts again after more has happened in
// the chats.
func TestAgain_FirstPrompts_AreAsTheAgentGotThem(t *testing.T) {
	t.Parallel()
	r := newHarness(t, func(cfg *Config) { cfg.Operators = map[string]bool{"telegram:77": true} })
	r.write(func(tx *store.Tx) error { return tx.PutChat("telegram:1", msg.ChatGroup, "Builds", 1) })
	wants := map[*msg.Turn]string{}
	var order []*msg.Turn
	fresh := func(what string, has func(promptXML) bool, rows []*msg.Message, opts ...func(*msg.Turn)) {
		t.Helper()
		turn := r.askRows(rows, opts...)
		r.answered(turn)
		if !has(r.last().prompt) {
			t.Errorf("%s: the prompt is\n%s", what, r.sent())
		}
		order, wants[turn] = append(order, turn), r.sent()
		diff(t, what, r.again(turn), r.sent())
		r.stop()
		r.start()
	}

	fresh("an ordinary turn", func(p promptXML) bool { return p.Window == "" }, []*msg.Message{{PlatformID: "a", Content: "when <b>?"}})
	r.observe("telegram:-2", "the build is red")
	r.say("alice", "w", "a", "I would say")
	r.say("bobby", "v", "w", "on Monday")
	fresh("observed rows and a window", func(p promptXML) bool { return p.Window != "" && len(p.Observed.Rows) == 1 },
		[]*msg.Message{{PlatformID: "b", Content: "on Monday"}, {Content: "is it?"}})
	r.observe("telegram:-2", "the build is green")
	fresh("a reply chain and the skip sign", func(p promptXML) bool { return p.Window == "" && len(p.Observed.Rows) == 0 && len(p.ReplyChain) == 2 },
		[]*msg.Message{{PlatformID: "c", Content: "🚫 which?", ReplyToID: "w"}})
	fresh("observed rows that a prompt left out", func(p promptXML) bool { return len(p.Observed.Rows) == 1 && len(p.ReplyChain) == 3 },
		[]*msg.Message{{Content: "this", ReplyToID: "v"}})
	corrected := must[*msg.Message](r)(r.st.MessageByPlatformID(t.Context(), "telegram:1", "b"))
	r.write(func(tx *store.Tx) error {
		return rows.PutFork(tx, &msg.Fork{ChatJID: "telegram:1", Topic: "#fix", Folder: "main", MessageID: corrected.ID, CreatedAt: r.cfg.Now().UnixMilli()})
	})
	fresh("the first turn of a fork", func(p promptXML) bool { return len(p.ReplyChain) == 1 }, []*msg.Message{{Content: "!session f1; say it was Tuesday"}}, topic("#fix"))
	fresh("its second turn", func(p promptXML) bool { return len(p.ReplyChain) == 0 }, []*msg.Message{{Content: "thanks"}}, topic("#fix"))
	fresh("another chat", func(p promptXML) bool { return len(p.Observed.Rows) > 0 }, []*msg.Message{{Content: "elsewhere"}}, chat("telegram:-9"))

	r.observe("telegram:-2", "much later")
	r.say("alice", "z", "a", "much later")
	for _, turn := range order {
		diff(t, "later", r.again(turn), wants[turn])
	}
}

// TestAgain_PipedPrompt_IsShownAsAFirstOne: it has what its run had been shown before.
func TestAgain_PipedPrompt_IsShownAsAFirstOne(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.say("alice", "a", "", "lunch?")
	r.answered(r.ask("first"))
	piped := r.ask("second")
	r.answered(piped)
	diff(t, "piped", r.last().prompt.Window, "")
	diff(t, "again", parsePrompt(r.again(piped)).Window, windowHeader+`thread (alice, you, ari):
  alice: lunch?
  you: first
  ari: re: first
`)
}
