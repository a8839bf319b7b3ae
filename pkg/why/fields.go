package why

import (
	"fmt"
	"slices"
)

// Field is a fact about the message asked about.
type Field struct {
	Name, Text string
	Turn       int64   // the turn that it is about, 0 for none
	From       *Origin // of the field about the origin
}

// Fields are the facts about the message besides its chat, its sender and its text. Those that it does not have are
// left out.
func (p *Path) Fields() []Field {
	m, origin := p.Asked, p.Origins[p.Asked.ID]
	all := []Field{
		{Name: "source", Text: m.Source},
		{Name: "comes from", Text: origin.String(), From: origin},
		{Name: "topic", Text: m.Topic},
		{Name: "thread", Text: m.ThreadID},
		{Name: "platform id", Text: m.PlatformID},
		{Name: "reply to", Text: m.ReplyToID},
		{Name: "target", Text: m.TargetID},
		{Name: "quotes", Text: excerpt(m.Quote)},
		{Name: "row group", Text: m.GroupKey},
	}
	if c := p.Choice; c != nil && c.Row == m.ID {
		f := Field{Name: "answers", Text: c.String()}
		if c.Ask != nil {
			f.Turn = c.Ask.TurnID
		}
		all = append(all, f)
	}
	if a := p.Question(); a != nil {
		all = append(all, Field{Name: "question", Text: fmt.Sprintf("%d, %s", a.ID, AskState(a)), Turn: a.TurnID})
	}
	if n := len(m.Attachments); n > 0 {
		all = append(all, Field{Name: "attachments", Text: fmt.Sprint(n)})
	}
	return slices.DeleteFunc(all, func(f Field) bool { return f.Text == "" })
}
