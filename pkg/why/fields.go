package why

import (
	"fmt"
	"strconv"
)

// Field is a fact about the message asked about.
type Field struct {
	Name, Text string
	Turn       int64   // the turn that it is about, 0 for none
	From       *Origin // of the field about the origin
}

// Fields are the facts about the message besides its chat, its sender and its text. Those that it does not have are
// left out.
func (p *Path) Fields() (all []Field) {
	m := p.Asked
	add := func(f Field) {
		if f.Text != "" {
			all = append(all, f)
		}
	}
	add(Field{Name: "source", Text: m.Source})
	add(Field{Name: "comes from", Text: p.Origins[m.ID].String(), From: p.Origins[m.ID]})
	add(Field{Name: "topic", Text: m.Topic})
	add(Field{Name: "thread", Text: m.ThreadID})
	add(Field{Name: "platform id", Text: m.PlatformID})
	add(Field{Name: "reply to", Text: m.ReplyToID})
	add(Field{Name: "target", Text: m.TargetID})
	if c := p.Choice; c != nil && c.Row == m.ID {
		f := Field{Name: "answers", Text: c.String()}
		if c.Ask != nil {
			f.Turn = c.Ask.TurnID
		}
		add(f)
	}
	if a := p.Question(); a != nil {
		add(Field{Name: "question", Text: fmt.Sprintf("%d, %s", a.ID, AskState(a)), Turn: a.TurnID})
	}
	add(Field{Name: "quotes", Text: excerpt(m.Quote)})
	add(Field{Name: "row group", Text: m.GroupKey})
	if n := len(m.Attachments); n > 0 {
		add(Field{Name: "attachments", Text: strconv.Itoa(n)})
	}
	return all
}
