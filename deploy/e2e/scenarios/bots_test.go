package scenarios

import (
	"fmt"
	"testing"

	"arizuko/pkg/msg"
)

// TestTwoBotsDoNotGoOnForEver has another bot answer whatever it is told.
func TestTwoBotsDoNotGoOnForEver(t *testing.T) {
	s := start(t, Options{})
	var told []string
	for n := range 10 {
		told = append(told, fmt.Sprintf("as I said %d", n))
		s.Answer(s.Put(msg.Message{ChatJID: "telegram:-5", Sender: "telegram:77", IsBot: true, Content: told[n]})[0])
	}
	next := s.Put(msg.Message{ChatJID: "telegram:-5", Sender: "telegram:77", IsBot: true, Content: "and once more"})[0]
	s.Becomes(next, msg.Observed, msg.ReasonBotLoop)
	s.Answer(s.Say("telegram:-5", "people are still heard"))
	s.Answer(s.Put(msg.Message{ChatJID: "telegram:-5", Sender: "telegram:78", IsBot: true, Content: "so are other bots"})[0])
	s.HasHeard("telegram:-5", append(told, "people are still heard", "so are other bots")...)
}
