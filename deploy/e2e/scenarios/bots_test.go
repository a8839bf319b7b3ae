package scenarios

import (
	"fmt"
	"testing"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
)

// TestBots_LoopOfAnswers_IsObservedAfterLimit has another bot answer whatever it is told.
func TestBots_LoopOfAnswers_IsObservedAfterLimit(t *testing.T) {
	f := start(t, harness.Options{})
	var told []string
	for n := range 10 {
		told = append(told, fmt.Sprintf("as I said %d", n))
		f.Answer(f.Put(msg.Message{ChatJID: "telegram:-5", Sender: "telegram:77", IsBot: true, Content: told[n]})[0])
	}
	next := f.Put(msg.Message{ChatJID: "telegram:-5", Sender: "telegram:77", IsBot: true, Content: "and once more"})[0]
	f.WantDecision(next, msg.Observed, msg.ReasonBotLoop)
	f.Answer(f.Say("telegram:-5", "people are still heard"))
	f.Answer(f.Put(msg.Message{ChatJID: "telegram:-5", Sender: "telegram:78", IsBot: true, Content: "so are other bots"})[0])
	f.WantEchoes("telegram:-5", append(told, "people are still heard", "so are other bots")...)
}
