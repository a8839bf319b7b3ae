package gateway

import (
	"context"
	"log/slog"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

// members have the rights of groups' members, by folder, as of a version of routes and groups.
type members struct {
	st      *store.Store
	log     *slog.Logger
	known   map[string]*groupconfig.Members
	invalid map[string]string // the configuration that was last logged as invalid
}

func newMembers(st *store.Store, log *slog.Logger) *members {
	return &members{st: st, log: log, known: map[string]*groupconfig.Members{}, invalid: map[string]string{}}
}

// forget makes a group be read again.
func (m *members) forget(folder string) { delete(m.known, folder) }

// of returns the rights of a group's members, nil for no group.
func (m *members) of(ctx context.Context, folder string) (*groupconfig.Members, error) {
	if known := m.known[folder]; known != nil {
		return known, nil
	}
	if valid := msg.ValidFolder(folder) == nil; !valid {
		return nil, nil
	}
	group, err := m.st.Group(ctx, folder)
	if err != nil {
		return nil, err
	}
	read := groupconfig.Config{}.Members()
	if group != nil {
		read, err = groupconfig.ReadMembers(group.Config)
		m.reportInvalid(group, err)
	}
	m.known[folder] = &read
	return &read, nil
}

// forRow returns the rights of a group's members as they are for a row's origin, nil for no group.
func (m *members) forRow(ctx context.Context, folder string, r *decide.Row) (*groupconfig.Members, error) {
	all, err := m.of(ctx, folder)
	if err != nil {
		return nil, err
	}
	return factrows.MembersForRow(ctx, m.st.Reader, all, r.Message)
}

// reportInvalid logs that a group's configuration is invalid, once until the text changes:
// any sender can make gated read it again.
func (m *members) reportInvalid(group *msg.Group, err error) {
	if err == nil {
		delete(m.invalid, group.Folder)
		return
	}
	if text, logged := m.invalid[group.Folder]; logged && text == string(group.Config) {
		return
	}
	m.invalid[group.Folder] = string(group.Config)
	m.log.Error("group has an invalid configuration: only operators may do what its unreadable roles, "+
		"reach and pin would say",
		"folder", group.Folder, "err", err)
}

// readMembers reads the rights and the quota of a row's sender in the groups that it concerns.
func (f *reader) readMembers(ctx context.Context, b *batch, r *decide.Row) (err error) {
	if r.Home, err = f.members.forRow(ctx, r.Answer.Home, r); err != nil {
		return err
	}
	folder := groupOf(r)
	if r.Kind == decide.KindChange || r.Kind == decide.KindForwarded {
		f.members.forget(folder) // routd is not asked about it
	}
	if r.Group, err = f.members.forRow(ctx, folder, r); err != nil {
		return err
	}
	if r.Kind == decide.KindCommand && !r.Operator && (!r.Known || r.Answer.Home == "") {
		r.Foreign, err = f.foreign(ctx, r)
		return err
	}
	if r.Kind == decide.KindChange || r.Answer.Action == routeapi.Observe || !r.Counted() {
		return nil
	}
	if r.Quota, err = f.rates.quota(ctx, folder, r.Payer(), r.Group.Rate, b.Now); err != nil ||
		r.Quota.Left >= len(b.Rows) {
		return err
	}
	r.Quota.Notified, err = f.rates.notifiedWithin(ctx, r.ChatJID, r.Payer(), b.Now)
	return err
}

// commandsOf reads when a sender's commands arrived in the chat, once a batch.
func (f *reader) commandsOf(ctx context.Context, b *batch, sender string) (c *decide.Commands, err error) {
	if c = b.commands[sender]; c != nil {
		return c, nil
	}
	c = &decide.Commands{}
	if c.Answered, c.DroppedAt, err = rows.CommandsOf(ctx, f.st.Reader, b.Chat.JID, sender); err != nil {
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
	case r.Kind == decide.KindChange:
		if r.Change.Subject == nil {
			return ""
		}
		return r.Change.Subject.RoutedTo
	case r.Prefix != nil:
		return r.Prefix.Folder
	case r.Kind == decide.KindCommand:
		return r.Answer.Home
	}
	return r.Answer.Folder
}

// foreign reports whether the chat has been used lately, but by no group that admits the
// sender of a command: then it must not act on the turns of others before routd names
// the group.
func (f *reader) foreign(ctx context.Context, r *decide.Row) (bool, error) {
	if name := r.Command.Name; name != msg.CommandStop && name != msg.CommandStatus {
		return false, nil
	}
	own, used, err := rows.FoldersOfSender(ctx, f.st.Reader, r.ChatJID, r.Sender)
	if err != nil || !used {
		return false, err
	}
	for _, folder := range own {
		f.members.forget(folder)
		m, err := f.members.forRow(ctx, folder, r)
		if err != nil || m == nil || m.Admits(r.Sender, false) {
			return false, err
		}
	}
	return true, nil
}
