package why

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"arizuko/pkg/cli"
	"arizuko/pkg/msg"
)

// maxText is how many characters of a message are shown.
const maxText = 100

// timeLayout shows milliseconds, the precision of stored times.
const timeLayout = "2006-01-02 15:04:05.000"

// Text is a path in words: the row asked about, all that happened in the order of its times with the time between one
// step and the next, and everything that is still open. Text of users and agents cannot steer a terminal.
func Text(p *Path, now time.Time, loc *time.Location) string {
	var b strings.Builder
	writeHead(&b, p, loc)
	all := Steps(p)
	writeSteps(&b, all, loc)
	if took := Took(p, all); took != 0 {
		fmt.Fprintf(&b, "\nfrom the message's first step to the last part delivered: %s\n", took)
	}
	writeOpen(&b, StillOpen(p, now))
	return b.String()
}

func writeHead(b *strings.Builder, p *Path, loc *time.Location) {
	m := p.Asked
	direction := "inbound"
	if m.Direction == msg.Out {
		direction = "outbound"
	}
	fmt.Fprintf(b, "message %d, %s\n", m.ID, direction)
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(b, "  %-12s %s\n", name, line(value))
		}
	}
	from := m.Sender
	if m.SenderName != "" {
		from = fmt.Sprintf("%s (%s)", m.SenderName, m.Sender)
	}
	if m.IsBot && m.Direction == msg.In {
		from += ", a bot"
	}
	field("chat", m.ChatJID)
	if len(p.Rows) > 0 && p.Rows[0].Timestamp != 0 { // the platform's clock is not ours: no step
		field("sent", time.UnixMilli(p.Rows[0].Timestamp).In(loc).Format(timeLayout)+" by the platform's clock")
	}
	if m.Direction == msg.In {
		field("verb", cmp.Or(m.Verb, msg.VerbMessage))
	} else {
		field("kind", string(cmp.Or(m.Kind, msg.KindMessage)))
	}
	field("from", from)
	field("text", excerpt(m.Content))
	for _, f := range p.Fields() {
		field(f.Name, f.Text)
	}
}

func excerpt(text string) string {
	runes := []rune(text)
	if len(runes) <= maxText {
		return text
	}
	return fmt.Sprintf("%s… (%d more characters)", string(runes[:maxText]), len(runes)-maxText)
}

// line keeps a value on its line and from steering the terminal.
func line(text string) string { return cli.PrintableLine(lineEnds.Replace(text)) }

// lineEnds shows the lines of a text as one.
var lineEnds = strings.NewReplacer("\r\n", " ", "\n", " ")

func writeSteps(b *strings.Builder, all []Step, loc *time.Location) {
	b.WriteString("\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME\tAFTER\tSTEP")
	for i, s := range all {
		after := ""
		if i > 0 {
			after = s.After.String()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", time.UnixMilli(s.At).In(loc).Format(timeLayout), after, line(s.Text))
	}
	_ = w.Flush() // into memory
}

func writeOpen(b *strings.Builder, all []Open) {
	if len(all) == 0 {
		return
	}
	b.WriteString("\nnow:\n")
	for _, o := range all {
		b.WriteString("  " + line(o.Text) + "\n")
	}
}
