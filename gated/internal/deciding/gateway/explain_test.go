package gateway

import (
	"fmt"
	"strings"
	"testing"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// asks writes a command of an operator, as a reply to a message, and returns the only answer.
func (h *harness) asks(text, replyTo string, change ...func(*msg.Message)) string {
	h.t.Helper()
	m := h.take(text, append([]func(*msg.Message){from("telegram:9"), func(m *msg.Message) { m.ReplyToID = replyTo }}, change...)...)
	h.finishCalls()
	h.is(m, "command/command ")
	all := h.replies(m)
	if len(all) != 1 {
		h.t.Fatalf("%s: %d answers: %q", text, len(all), all)
	}
	return all[0]
}

func TestWhy_AsAReply_TellsWhatBecameOfTheMessage(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	asked := h.take("the secret text")
	answer := &msg.Message{ChatJID: dm, Direction: msg.Out, Source: msg.SourceAgent, Content: "an answer", TurnID: h.row(asked.ID).TurnID,
		Timestamp: 1, ReceivedAt: h.clock.UnixMilli(), OutState: msg.OutQueued}
	h.write(func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(answer); err != nil {
			return err
		}
		if err := tx.ClaimOutbound(answer.ID, 1, h.clock.UnixMilli()); err != nil {
			return err
		}
		return tx.PutDelivery(store.Delivery{MessageID: answer.ID, State: msg.OutSent, PlatformID: "sent1"}, h.clock.UnixMilli())
	})
	for text, replyTo := range map[string]string{"/why": asked.PlatformID, fmt.Sprintf("/why %d", asked.ID): "", fmt.Sprintf("/why #%d", asked.ID): "sent1"} {
		got := h.asks(text, replyTo)
		for _, want := range []string{fmt.Sprintf("Message %d, ", asked.ID), fmt.Sprintf("row %d decided: routed, ", asked.ID), fmt.Sprintf("row %d part 0: sent, platform id sent1", answer.ID)} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in:\n%s", text, want, got)
			}
		}
		if strings.Contains(got, "secret text") || strings.Contains(got, "an answer") {
			t.Errorf("it repeats messages:\n%s", got)
		}
	}
	if got := h.asks("/why", "sent1"); !strings.HasPrefix(got, fmt.Sprintf("Message %d, ", answer.ID)) || !strings.Contains(got, "sent by agent") {
		t.Errorf("about an answer:\n%s", got)
	}
}
