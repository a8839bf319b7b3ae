package agents

import (
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// say stores a row of the chat that fires no turn.
func (r *harness) say(name, platformID, replyTo, text string) {
	r.t.Helper()
	now := r.cfg.Now().UnixMilli()
	m := &msg.Message{Content: text, PlatformID: platformID, ReplyToID: replyTo}
	r.fill(m, newTurn(), now)
	m.Sender, m.SenderName = "telegram:"+name, name
	r.write(func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(m); err != nil {
			return err
		}
		return tx.Decide(m.ID, store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRouteObserve, RoutedTo: "main"}, now)
	})
}

const windowHeader = "[recent channel context]\n\n"

func TestWindow_CrossingThreads(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.answered(r.ask("alone"))
	diff(t, "a chat with nothing else", r.last().prompt.Window, "")
	r.stop()
	r.start()

	r.say("alice", "a", "", "I've been thinking about X...")
	r.say("charlie", "c", "", "Anyone seen the new thing?")
	r.say("bobby", "b", "a", "What about Y though?")
	r.say("dan", "d", "b", "Y is fine")
	r.answered(r.askRows([]*msg.Message{{PlatformID: "q", Content: "and Z?", ReplyToID: "b"}}))
	diff(t, "first prompt, beside a reply chain", r.last().prompt.Window, windowHeader+`standalone (dan):
  Y is fine

thread (you, ari, charlie):
  you: alone
  ari: re: alone
  charlie: Anyone seen the new thing?
`)
	diff(t, "reply chain", texts(r.last().prompt.ReplyChain), []string{"I've been thinking about X...", "What about Y though?"})

	r.answered(r.ask("piped"))
	diff(t, "piped prompt with nothing new", r.last().prompt.Window, "")
	r.say("dan", "e", "q", "Z too")
	r.say("alice", "f", "", "lunch?")
	r.answered(r.ask("🚫 piped in isolation"))
	diff(t, "piped prompt in isolation", r.last().prompt.Window, "")
	r.answered(r.ask("piped again"))
	diff(t, "piped prompt with news", r.last().prompt.Window, windowHeader+`standalone (alice):
  lunch?

standalone (dan):
  Z too
`)
}

func TestWindow_EditsAndDeletions(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.say("alice", "a", "", "teh plan")
	r.say("bobby", "b", "", "regretted")
	r.say("carol", "c", "a", "which")
	change := func(verb, target, text string) {
		m := &msg.Message{Verb: verb, TargetID: target, Content: text}
		r.fill(m, newTurn(), r.cfg.Now().UnixMilli())
		r.write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(m); return err })
	}
	change(msg.VerbEdit, "a", "the plan")
	change(msg.VerbDelete, "b", "")
	change(msg.VerbEdit, "c", "which one?")
	r.answered(r.askRows([]*msg.Message{{Content: "this", ReplyToID: "c"}, {Content: "that", ReplyToID: "b"}}))
	diff(t, "reply chain", texts(r.last().prompt.ReplyChain), []string{"the plan", "which one?"})
	r.answered(r.ask("piped"))
	r.stop()
	r.start()
	r.answered(r.ask("what?"))
	diff(t, "window", r.last().prompt.Window, windowHeader+`thread (you, ari):
  you: that
  ari: re: this | that
  you: piped
  ari: re: piped

thread (alice, carol, you):
  alice: the plan
  carol: which one?
  you: this
`)
}

func TestPrompt_NamesChatAndOperators(t *testing.T) {
	t.Parallel()
	r := newHarness(t, func(cfg *Config) { cfg.Operators = map[string]bool{"telegram:77": true} })
	r.write(func(tx *store.Tx) error { return tx.PutChat("telegram:1", msg.ChatGroup, "Builds <&> co", 1) })
	r.answered(r.ask("hi"))
	p := r.last().prompt
	diff(t, "chat", []string{p.Turn.Kind, p.Turn.Title, p.Messages[0].Operator}, []string{"group", "Builds <&> co", "true"})
}
