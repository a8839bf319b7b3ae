package match

import (
	"cmp"
	"slices"
	"strings"

	"arizuko/pkg/msg"
)

// agents is the platform of the senders that are agents.
const agents = "agent"

// adapterPlatforms are those that have an adapter here; foreign adapters may add others.
func adapterPlatforms() []string { return []string{"telegram", "discord", "slack"} }

// AdmitsStrangers reports whether a user of a platform whom e does not name can write something that e matches.
// An exact room, chat or sender keeps strangers out. A glob there does not, since users choose their
// chats; nor does a display name or a verb: a direct message, too, may mention the bot. The platforms
// of the web chat and of agents have no strangers.
func (e Expr) AdmitsStrangers() bool {
	for i := range e.pairs {
		p := &e.pairs[i]
		switch p.key {
		case chatJID, room, sender:
			platform, _, ok := strings.Cut(p.glob.head, ":")
			if p.glob.kind == exact || p.key != room && ok && internal(platform) {
				return false
			}
		case platform:
			if p.glob.kind == exact && internal(p.glob.head) {
				return false
			}
		}
	}
	return true
}

// internal reports whether the users of a platform have logged in or are agents.
func internal(platform string) bool {
	return slices.Contains([]string{msg.PlatformWeb, msg.PlatformGroup, msg.PlatformHook, agents}, platform)
}

// AdmitsStrangersDMs reports whether a stranger's direct message can be matched.
func (e Expr) AdmitsStrangersDMs() bool {
	if !e.AdmitsStrangers() {
		return false
	}
	var known, head string // of the platform and of the room; "" is any
	for i := range e.pairs {
		p := &e.pairs[i]
		switch p.key {
		case platform:
			if p.glob.kind == exact {
				known = p.glob.head
			}
		case chatJID:
			if name, room, ok := strings.Cut(p.glob.head, ":"); ok {
				known, _ = msg.SplitAccount(name)
				head = cmp.Or(head, room)
			}
		case room:
			head = cmp.Or(p.glob.head, head)
		}
	}
	if known != "" {
		return roomMayBeDM(known, head)
	}
	return slices.ContainsFunc(adapterPlatforms(), func(platform string) bool { return roomMayBeDM(platform, head) })
}

// roomMayBeDM reports whether a room that begins with head may be a direct message, by the forms of
// msg.KindOfJID; those of other platforms are not known.
func roomMayBeDM(platform, head string) bool {
	prefix := ""
	switch platform {
	case "telegram":
		return !strings.HasPrefix(head, "-") || strings.Contains(head, ".")
	case "discord":
		prefix = "dm-"
	case "slack":
		prefix = "D"
	}
	return strings.HasPrefix(head, prefix) || strings.HasPrefix(prefix, head)
}

// Conditions returns the pairs of e as written, sorted: one that has all pairs of another expression is
// matched by that one, too.
func (e Expr) Conditions() []string {
	all := make([]string, len(e.pairs))
	for i, p := range e.pairs {
		all[i] = p.key.String() + "=" + p.glob.pattern
	}
	slices.Sort(all)
	return all
}

// NameLike returns the value of a sender that was probably meant for display names and not for ids,
// as "*Lee": it has text, but neither a colon nor the name of a platform. "" is none.
func (e Expr) NameLike() string {
	for i := range e.pairs {
		p := &e.pairs[i]
		platform, _ := msg.SplitAccount(p.glob.head)
		if p.key == sender && p.glob.kind != exact && !strings.Contains(p.glob.pattern, ":") &&
			strings.Trim(p.glob.pattern, "*?") != "" && !slices.Contains(adapterPlatforms(), platform) {
			return p.glob.pattern
		}
	}
	return ""
}
