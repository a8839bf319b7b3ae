package services

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// maxListedRules is how many rules /permissions lists, maxRuleText how much of a text, in bytes.
	maxListedRules = 20
	maxRuleText    = 300
)

// permissions answers /permissions: it lists the rules of the group about which the sender decides, or revokes one.
func (s *Services) permissions(ctx context.Context, p decide.AskService, m *msg.Message, args string) (reply string,
	revokes int64) {
	rules, err := s.rulesOf(ctx, p, m)
	if err != nil {
		s.Log.Error("reading permission rules failed", "row", m.ID, "folder", p.Folder, "err", err)
		return choiceFailed, 0
	}
	command := msg.CommandIn(m.ChatJID, msg.CommandRules+" revoke")
	verb, number, _ := strings.Cut(args, " ")
	if args == "" {
		return s.listRules(ctx, rules, command), 0
	}
	id, err := strconv.ParseInt(strings.TrimPrefix(strings.TrimSpace(number), "#"), 10, 64)
	if err != nil || !strings.EqualFold(verb, "revoke") {
		return "Write " + command + " with the number of a rule.", 0
	}
	if !slices.ContainsFunc(rules, func(r *msg.PermissionRule) bool { return r.ID == id }) {
		return fmt.Sprintf("There is no rule %d that you can revoke here.", id), 0
	}
	return fmt.Sprintf("Rule %d is revoked: users are asked again.", id), id
}

// rulesOf returns those rules of a group whose requests the sender may answer in the chat, the newest first.
func (s *Services) rulesOf(ctx context.Context, p decide.AskService, m *msg.Message) ([]*msg.PermissionRule, error) {
	rules, err := factrows.PermissionRules(ctx, s.Store, p.Folder)
	if err != nil || p.Operator || len(rules) == 0 {
		return rules, err
	}
	group, err := s.Store.Group(ctx, p.Folder)
	if err != nil || group == nil {
		return nil, err
	}
	members, problems := groupconfig.ReadMembers(group.Config)
	kind, err := rows.ChatKind(ctx, s.Store, m.ChatJID)
	if err != nil || problems != nil { // then operators alone
		return nil, err
	}
	admin, err := s.Store.IsAdmin(ctx, m.ChatJID, m.Sender)
	return slices.DeleteFunc(rules, func(r *msg.PermissionRule) bool {
		role := members.Roles.Approve.For(groupconfig.Subject{Tool: r.Tool})
		switch {
		case role.Everyone(), role == nil && kind == msg.ChatDM:
			return r.ChatJID != m.ChatJID
		}
		return !slices.Contains(role.Senders(), m.Sender) && (!admin || !role.Admins() || r.ChatJID != m.ChatJID)
	}), err
}

// listRules lists rules. What an agent has written stands last on its line, where it can't pass for anything else.
func (s *Services) listRules(ctx context.Context, rules []*msg.PermissionRule, command string) string {
	if len(rules) == 0 {
		return "This group has no rules of permissions that you can revoke. The answer " + msg.AlwaysAllow +
			" makes one."
	}
	var b strings.Builder
	b.WriteString("These requests of the group are always allowed:")
	for i, r := range rules {
		if i == maxListedRules {
			fmt.Fprintf(&b, "\n- and %d older ones, on the group's page of the dashboard", len(rules)-i)
			break
		}
		author := r.Author
		if name := s.nameOf(ctx)(r.Author); name != "" {
			author = fmt.Sprintf("%s (%s)", name, author)
		}
		text := store.Truncate(r.Text, maxRuleText)
		if text != r.Text {
			text += "…"
		}
		fmt.Fprintf(&b, "\n- **rule %d**, made by %s on %s, used %d times%s: %s", r.ID,
			msg.EscapeLine(author), day(r.CreatedAt), r.Used, lastUse(r), msg.EscapeLine(text))
	}
	return b.String() + "\nTo revoke one, write " + command + " with its number."
}

func day(at int64) string { return time.UnixMilli(at).Format(time.DateOnly) }

func lastUse(r *msg.PermissionRule) string {
	if r.UsedAt == 0 {
		return ""
	}
	return ", last on " + day(r.UsedAt)
}
