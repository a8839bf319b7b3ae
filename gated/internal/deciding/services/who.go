package services

import (
	"context"
	"fmt"
	"strings"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
)

// who answers /who: it lists who has which role in a group.
func (s *Services) who(ctx context.Context, folder string) string {
	group, err := s.Store.Group(ctx, folder)
	if err != nil {
		s.Log.Error("reading a group failed", "folder", folder, "err", err)
		return choiceFailed
	}
	var members groupconfig.Members
	if group != nil {
		members, _ = groupconfig.ReadMembers(group.Config) // of an invalid configuration the least
	}
	var b strings.Builder
	fmt.Fprintf(&b, "In the group %s, where operators may do everything:", folder)
	for _, role := range members.Roles.Lines(s.nameOf(ctx)) {
		fmt.Fprintf(&b, "\n- %s (%s): %s", role.Name, role.Meaning, msg.EscapeLine(role.Who))
	}
	return b.String()
}

// nameOf returns a function that returns the name of a sender, "" if it cannot be read: the id stands beside it.
func (s *Services) nameOf(ctx context.Context) func(sender string) string {
	return func(sender string) string {
		name, _ := s.Store.SenderName(ctx, sender)
		return name
	}
}
