package msg_test

import (
	"fmt"
	"strings"
	"testing"

	"arizuko/pkg/emoji"
	"arizuko/pkg/golden"
	"arizuko/pkg/msg"
)

// Each reason and each wait tells how a sender who has addressed the bot learns about it.
func TestShown_Page_SaysWhatSendersSee(t *testing.T) {
	t.Parallel()
	var reasons, waits strings.Builder
	for _, r := range msg.Reasons {
		switch r.Code {
		case msg.Reasons[0].Code:
			reasons.WriteString("| message | meaning | the sender sees |\n|---|---|---|\n")
		case msg.ReasonAnswered:
			reasons.WriteString("\n| turn | meaning | the sender sees |\n|---|---|---|\n")
		}
		check(t, string(r.Code), r.Shown)
		fmt.Fprintf(&reasons, "| `%s` | %s | %s |\n", r.Code, r.Meaning, r.Shown)
	}
	waits.WriteString("| an answer waits | the sender sees | within |\n|---|---|---|\n")
	for _, w := range msg.Waits {
		check(t, w.Meaning, w.Shown)
		name := w.Meaning
		if w.For != "" {
			name += fmt.Sprintf(" (`%s`)", w.For)
		}
		fmt.Fprintf(&waits, "| %s | %s | %d s |\n", name, w.Shown, w.Within)
	}
	const page = "../../docs/reference/reasons.md"
	golden.CompareSection(t, page, "reasons", reasons.String())
	golden.CompareSection(t, page, "waits", waits.String())
}

func check(t *testing.T, name string, s msg.Shown) {
	t.Helper()
	if (s.Mark == "" && s.Words == "") != s.None {
		t.Errorf("%s: a sender who addresses the bot sees %+v", name, s)
	}
	if s.Mark == "" {
		return
	}
	if _, same := emoji.Telegram(string(s.Mark)); !same || emoji.Name(string(s.Mark)) == "" {
		t.Errorf("%s: %s is not a reaction on every platform", name, s.Mark)
	}
}
