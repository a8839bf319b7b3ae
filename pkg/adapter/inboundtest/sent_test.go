package inboundtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// failures records what a check reports.
type failures struct {
	testing.TB
	texts []string
}

func (f *failures) Helper() {}

func (f *failures) Errorf(format string, args ...any) { f.texts = append(f.texts, format) }

func TestCheckTable_OneLineForEach(t *testing.T) {
	readme := filepath.Join(t.TempDir(), "README.md")
	want := "# x\n<!-- sent:start -->\n\n" +
		"| a user sends | the agent gets | why |\n|---|---|---|\n" +
		"| a table | `a \\| b`<br>`` `c` ``<br>the file `x.pdf` |  |\n" +
		"| an answer | the answered message: `tea?`<br>quoted: `te`<br>`yes` |  |\n" +
		"| a change \\| an edit | edit `no` |  |\n" +
		"| a vote | nothing | votes are counted |\n" +
		"| the top of a thread | the message: `tea?` | unless it is known |\n" +
		"\n<!-- sent:end -->\n"
	if err := os.WriteFile(readme, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
	of := func(verb, content string) adapter.Inbound {
		return adapter.Inbound{Messages: []*msg.Message{{Verb: verb, Content: content}}}
	}
	table, answer := of(msg.VerbMessage, "a | b\n\n`c`"), of(msg.VerbReply, "yes")
	table.Messages[0].Attachments = []msg.Attachment{{Name: "x.pdf"}}
	answer.Messages[0].Quote, answer.Quoted = "te", []*msg.Message{{Verb: msg.VerbMessage, Content: "tea?"}}
	all := []Sent{{What: "a table", In: table}, {What: "an answer", In: answer}, {What: "a change | an edit", In: of(msg.VerbEdit, "no")}, {What: "a vote", Why: "votes are counted"},
		{What: "the top of a thread", Why: "unless it is known", In: adapter.Inbound{Quoted: answer.Quoted}}}
	f := &failures{TB: t}
	if CheckTable(f, readme, all); len(f.texts) > 0 {
		t.Errorf("the right table: %q", f.texts)
	}
	all[3].Why = ""
	if CheckTable(f, readme, all); len(f.texts) != 2 || !strings.Contains(f.texts[0], "no reason") {
		t.Errorf("a line without a reason, in another table: %q", f.texts)
	}
}
