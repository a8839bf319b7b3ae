package scenarios

import (
	"fmt"
	"testing"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
)

// Another bot answers every answer.
func TestBots_LoopOfAnswers_IsObservedAfterLimit(t *testing.T) {
	f := start(t, harness.Options{})
	var texts []string
	for n := range 10 {
		texts = append(texts, fmt.Sprintf("as I said %d", n))
		f.Answer(f.Put(msg.Message{ChatJID: "telegram:-5", Sender: "telegram:77", IsBot: true, Content: texts[n]})[0])
	}
	next := f.Put(msg.Message{ChatJID: "telegram:-5", Sender: "telegram:77", IsBot: true, Content: "and once more"})[0]
	f.WantDecision(next, msg.Observed, msg.ReasonBotLoop)
	f.Answer(f.Say("telegram:-5", "users are still answered"))
	f.Answer(f.Put(msg.Message{ChatJID: "telegram:-5", Sender: "telegram:78", IsBot: true, Content: "so are other bots"})[0])
	f.WantEchoes("telegram:-5", append(texts, "users are still answered", "so are other bots")...)
}
