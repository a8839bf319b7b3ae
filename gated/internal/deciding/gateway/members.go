package gateway

import (
	"context"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// membersOf returns what the members of a group may do, nil for no group. It is read
// again when routd answers by another version of routes and groups.
func (g *Gateway) membersOf(ctx context.Context, folder string) (*groupconfig.Members, error) {
	if m := g.members[folder]; m != nil {
		return m, nil
	}
	if valid := msg.ValidFolder(folder) == nil; !valid {
		return nil, nil
	}
	group, err := g.st.Group(ctx, folder)
	if err != nil {
		return nil, err
	}
	m := groupconfig.Config{}.Members()
	if group != nil {
		m, err = groupconfig.ReadMembers(group.Config)
		g.reportInvalid(group, err)
	}
	g.members[folder] = &m
	return &m, nil
}

// reportInvalid logs that a group's configuration is invalid, once until the text changes:
// any sender can make gated read it again.
func (g *Gateway) reportInvalid(group *msg.Group, err error) {
	if err == nil {
		delete(g.invalid, group.Folder)
		return
	}
	if text, logged := g.invalid[group.Folder]; logged && text == string(group.Config) {
		return
	}
	g.invalid[group.Folder] = string(group.Config)
	g.log.Error("group has an invalid configuration; of access, reach and pin what cannot be read is for operators alone",
		"folder", group.Folder, "err", err)
}

// readMembers reads what the sender of a row may do in the groups that it concerns.
func (g *Gateway) readMembers(ctx context.Context, b *batch, r *decide.Row) (err error) {
	if r.Home, err = g.membersOf(ctx, r.Answer.Home); err != nil {
		return err
	}
	folder := groupOf(r)
	if r.Change != nil && !r.Change.Fires || r.BetweenGroups() {
		delete(g.members, folder) // routd is not asked about it
	}
	if r.Group, err = g.membersOf(ctx, folder); err != nil {
		return err
	}
	if r.Command != nil && !r.Operator && (!r.Known || r.Answer.Home == "") {
		r.Foreign, err = g.foreign(ctx, r)
		return err
	}
	if r.Answer.Action == routeapi.Observe || !r.Counted() {
		return nil
	}
	if r.Quota, err = g.rates.quota(ctx, folder, r.Payer(), r.Group.Rate, b.Now); err != nil || r.Quota.Left >= len(b.Rows) {
		return err
	}
	r.Quota.Notified, err = g.rates.notifiedWithin(ctx, r.ChatJID, r.Payer(), b.Now)
	return err
}

// commandsOf reads when a sender's commands arrived in the chat, once a batch.
func (g *Gateway) commandsOf(ctx context.Context, b *batch, sender string) (c *decide.Commands, err error) {
	if c = b.commands[sender]; c != nil {
		return c, nil
	}
	c = &decide.Commands{}
	if c.Answered, c.DroppedAt, err = g.st.CommandsOf(ctx, b.Chat.JID, sender); err != nil {
		return nil, err
	}
	if b.commands == nil {
		b.commands = map[string]*decide.Commands{}
	}
	b.commands[sender] = c
	return c, nil
}

// groupOf is the folder of the group that a row is for or, of an edit, that has got the
// row it changes, "" for none.
func groupOf(r *decide.Row) string {
	switch {
	case r.Change != nil && !r.Change.Fires:
		if r.Change.Subject == nil {
			return ""
		}
		return r.Change.Subject.RoutedTo
	case r.Prefix != nil:
		return r.Prefix.Folder
	case r.Command != nil:
		return r.Answer.Home
	}
	return r.Answer.Folder
}

// foreign reports whether the chat has been used lately, but by no group that admits the
// sender of a command: then it must not act on what others have there before routd names
// the group.
func (g *Gateway) foreign(ctx context.Context, r *decide.Row) (bool, error) {
	if name := r.Command.Name; name != msg.CommandStop && name != msg.CommandStatus {
		return false, nil
	}
	own, used, err := g.st.FoldersOfSender(ctx, r.ChatJID, r.Sender)
	if err != nil || !used {
		return false, err
	}
	for _, folder := range own {
		delete(g.members, folder)
		m, err := g.membersOf(ctx, folder)
		if err != nil || m == nil || m.Admits(r.Sender, false) {
			return false, err
		}
	}
	return true, nil
}

// charge is one turn for which a sender pays in a group.
type charge struct {
	turn           int // index among the plan's stored turns
	folder, sender string
}

// reserve counts the turns that a plan will store, so that the sender's rows in other
// chats of the pass find them counted.
func (g *Gateway) reserve(p *plan) {
	turn := 0
	for _, e := range p.effects {
		s, ok := e.(decide.StoreTurn)
		if !ok {
			continue
		}
		counted := map[string]bool{}
		for _, entry := range s.Entries {
			r := p.facts(entry.Row)
			if payer := r.Payer(); r.Counted() && !counted[payer] {
				counted[payer] = true
				g.rates.reserve(s.Turn.Folder, payer, p.batch.Now)
				p.charges = append(p.charges, charge{turn, s.Turn.Folder, payer})
			}
		}
		turn++
	}
}

// settleCharges names the turns that were counted, or drops the counts if they were not
// stored. A notice about a limit counts once it is stored.
func (g *Gateway) settleCharges(p *plan) {
	for _, c := range p.charges {
		if p.err == nil {
			g.rates.confirm(c.folder, c.sender, p.turns[c.turn].turn.ID)
		} else {
			g.rates.forget(c.folder)
		}
	}
	if p.err != nil {
		return
	}
	for _, e := range p.effects {
		if d, ok := e.(decide.Decide); ok && d.Reason == msg.ReasonRateLimit {
			if r := p.facts(d.Row); r.NotifiesLimit() {
				g.rates.noteNotice(r.ChatJID, r.Payer(), p.batch.Now)
			}
		}
	}
}
