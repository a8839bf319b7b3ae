package tools

import (
	"context"
	"time"

	"arizuko/gated/internal/authority"
	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// membersOf returns the rules for the members of a group, nil for no group. Rules that cannot be read admit operators
// alone.
func membersOf(ctx context.Context, r store.Reader, folder string) (*groupconfig.Members, error) {
	group, err := r.Group(ctx, folder)
	if err != nil || group == nil {
		return nil, err
	}
	m, _ := groupconfig.ReadMembers(group.Config) // gated's log has the error once such a group gets a message
	return &m, nil
}

// members are the rules for the members of a group as they are for the caller's origin, in the chat where that asked.
func (c *Caller) members(ctx context.Context, r store.Reader, folder string) (*groupconfig.Members, error) {
	all, err := membersOf(ctx, r, folder)
	if err != nil || all == nil || !all.NameAdmins() {
		return all, err
	}
	root, err := r.Turn(ctx, c.Turn.RootOfWork())
	if err != nil || root == nil {
		return all, err
	}
	return factrows.MembersFor(ctx, r, all, root.ChatJID, c.origin.Sender)
}

// barred is a sender of the messages that the turn answers who may not use a group, "" for none. The turn's own group
// was checked before the turn began. Any of the senders may have caused what the agent does in a turn.
func (c *Caller) barred(ctx context.Context, r store.Reader, folder string) (sender string, err error) {
	if folder == c.Turn.Folder {
		return "", nil
	}
	members, err := c.members(ctx, r, folder)
	if err != nil || members == nil || members.Open() {
		return "", err
	}
	if c.origin.May(authority.Use, members) != "" {
		return c.origin.Sender, nil
	}
	operators, err := r.Operators(ctx, c.Services.Operators)
	if err != nil {
		return "", err
	}
	all, err := membersOf(ctx, r, folder)
	if err != nil {
		return "", err
	}
	rows, err := factrows.TurnMessages(ctx, r, c.Turn.ID)
	for _, m := range rows {
		o := authority.OriginOf(m, operators)
		if members, err = factrows.MembersForRow(ctx, r, all, m); err != nil {
			return "", err
		}
		if o.May(authority.Use, members) != "" {
			return o.Sender, nil
		}
	}
	return "", err
}

// reachesFor reports whether a folder is the caller's own, or below it and open to those for whom the turn works.
func (c *Caller) reachesFor(ctx context.Context, r store.Reader, folder string) (bool, error) {
	if !c.Reaches(folder) {
		return false, nil
	}
	sender, err := c.barred(ctx, r, folder)
	return sender == "", err
}

// checkAccess returns a refusal unless a group is open to those for whom the turn works.
func (c *Caller) checkAccess(ctx context.Context, r store.Reader, folder string) error {
	sender, err := c.barred(ctx, r, folder)
	if err == nil && sender != "" {
		err = refuse("group %s is only for certain users, and %.100s, for whom you work, is none of them: "+
			"do without it, and tell the user that an operator can give them its role ask", folder, sender)
	}
	return err
}

// checkWork returns a refusal unless a group may be made to work for the turn's sender: by its access, and by its rate.
func (c *Caller) checkWork(ctx context.Context, tx *store.Tx, folder string) error {
	if err := c.checkAccess(ctx, tx.Reader, folder); err != nil {
		return err
	}
	members, err := c.members(ctx, tx.Reader, folder)
	if err != nil || !c.origin.Pays(members) {
		return err
	}
	now := c.Services.now()
	n, first, err := rows.PaidTurns(ctx, tx.Reader, folder, c.origin.Sender, now-authority.RateTime, members.Rate)
	if err == nil && n >= members.Rate {
		err = refuse("%.100s, for whom you work, has had the %d turns an hour that group %s gives each user: "+
			"do it yourself, or say in your answer what is left undone; there is one more in %s",
			c.origin.Sender, members.Rate, folder, max(time.Duration(first+authority.RateTime-now)*time.Millisecond,
				time.Minute).Round(time.Minute))
	}
	return err
}

// checkPin returns a refusal if a text would pin a chat, and the turn's sender may not do that there.
func (c *Caller) checkPin(ctx context.Context, r store.Reader, jid, text string) error {
	home, err := c.Services.Chats.Home(ctx, r, jid)
	if err != nil {
		return err
	}
	members, err := c.members(ctx, r, home)
	if err != nil {
		return err
	}
	root, err := r.Turn(ctx, c.Turn.RootOfWork())
	if err != nil {
		return err
	}
	if pins, may := c.origin.PinsAs(text, members, root == nil || root.ChatJID != jid); pins && !may {
		return refuse("%.40q alone pins the chat for all its users, which %.100s, for whom you work, "+
			"may not do there: write #name and the text behind it, which runs that text alone in the topic", text,
			c.origin.Sender)
	}
	return nil
}

// originOf is for whom a turn works: the sender of the message that it answers.
func (s *Services) originOf(ctx context.Context, t *msg.Turn) (authority.Origin, error) {
	trigger, err := s.Store.Message(ctx, t.TriggerMessageID)
	if err != nil || trigger == nil {
		return authority.Origin{Sender: msg.AgentSender(t.Folder)}, err
	}
	operators, err := s.Store.Operators(ctx, s.Operators)
	return authority.OriginOf(trigger, operators), err
}
