package match

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"arizuko/pkg/msg"
)

// Expr is a parsed match expression. The zero Expr matches everything.
type Expr struct {
	pairs []pair // in the order of the expression, no key twice
}

type pair struct {
	key  key
	glob glob
}

// ParseMatch parses key=glob pairs separated by white space. It refuses an unknown
// key, a key given twice, a token without "=", a malformed glob, a platform with an account, a sender
// that cannot be an id and a sender_name that looks like one. A key with nothing after "=" matches the
// empty value: account= is the first account of a platform, which has no name.
func ParseMatch(expr string) (Expr, error) {
	var e Expr
	var seen [numKeys]bool
	for token := range strings.FieldsSeq(expr) {
		p, err := parsePair(token)
		if err != nil {
			return Expr{}, err
		}
		if seen[p.key] {
			return Expr{}, fmt.Errorf("%s is given twice", p.key)
		}
		seen[p.key] = true
		e.pairs = append(e.pairs, p)
	}
	return e, nil
}

// ChatOf returns the address of the one chat that an expression is about, "" if there may be several or the
// expression is invalid. all: it matches everything.
func ChatOf(expr string) (jid string, all bool) {
	e, err := ParseMatch(expr)
	if err != nil {
		return "", false
	}
	values := map[key]string{}
	for i := range e.pairs {
		if p := &e.pairs[i]; p.glob.kind == exact {
			values[p.key] = p.glob.head
		}
	}
	of, named := values[account]
	switch {
	case values[chatJID] != "":
		return values[chatJID], false
	case values[platform] != "" && values[room] != "" && named:
		return msg.JID(msg.WithAccount(values[platform], of), values[room]), false
	}
	return "", len(e.pairs) == 0
}

func parsePair(token string) (pair, error) {
	name, pattern, ok := strings.Cut(token, "=")
	if !ok {
		return pair{}, fmt.Errorf("%.80q is not key=glob", token)
	}
	k := key(slices.Index(keyNames(), name))
	if k < 0 {
		return pair{}, fmt.Errorf("unknown key %.80q: use platform, account, room, chat_jid, sender, "+
			"sender_name or verb",
			name)
	}
	g, err := parseGlob(pattern)
	if err != nil {
		return pair{}, fmt.Errorf("%s: bad glob %.80q: %w", k, pattern, err)
	}
	p := pair{key: k, glob: g}
	return p, cmp.Or(p.checkSender(), p.checkPlatform())
}

// checkPlatform refuses the name of an account in a platform, which is matched without it.
func (p *pair) checkPlatform() error {
	if name, of := msg.SplitAccount(p.glob.pattern); p.key == platform && name != p.glob.pattern {
		return fmt.Errorf("platform: %.80q has an account: write platform=%.40s account=%.40s", p.glob.pattern, name,
			of)
	}
	return nil
}

// checkSender refuses a display name where an id is matched, and an id where display names
// are. An id is "telegram:42"; users choose their display name, so it may be anyone's id.
func (p *pair) checkSender() error {
	switch {
	case p.key == sender && p.glob.kind == exact && p.glob.head != "" && !strings.Contains(p.glob.head, ":"):
		return fmt.Errorf("sender: %.80q is not an id, which has a platform as in telegram:42: "+
			"use sender_name for a display name", p.glob.pattern)
	case p.key == senderName && strings.Contains(p.glob.pattern, ":"):
		return fmt.Errorf("sender_name: %.80q looks like an id, and users choose their display name: "+
			"use sender for an id, or write ? for the colon of a name", p.glob.pattern)
	}
	return nil
}

// Matches reports whether every pair of e matches.
func (e Expr) Matches(ev *Event) bool {
	for i := range e.pairs {
		if !e.pairs[i].matches(ev) {
			return false
		}
	}
	return true
}

// OfSenders reports whether e asks who wrote an event.
func (e Expr) OfSenders() bool {
	return slices.ContainsFunc(e.pairs, func(p pair) bool { return p.key == sender || p.key == senderName })
}

// FromSender reports whether e's conditions on the sender hold for an event.
func (e Expr) FromSender(ev *Event) bool {
	return !slices.ContainsFunc(e.pairs, func(p pair) bool {
		return (p.key == sender || p.key == senderName) &&
			!p.matches(ev)
	})
}

// NamesChat reports whether e asks for a room.
func (e Expr) NamesChat() bool {
	return slices.ContainsFunc(e.pairs, func(p pair) bool { return p.key == chatJID || p.key == room })
}

// OfVerbs reports whether e has a condition on the verb.
func (e Expr) OfVerbs() bool {
	return slices.ContainsFunc(e.pairs, func(p pair) bool { return p.key == verb })
}

// Reaches reports whether e can match any event of a chat: its pairs about the chat match,
// those about senders and verbs are ignored.
func (e Expr) Reaches(chat *Event) bool {
	for i := range e.pairs {
		p := &e.pairs[i]
		if p.key != sender && p.key != senderName && p.key != verb && !p.matches(chat) {
			return false
		}
	}
	return true
}

func (p *pair) matches(ev *Event) bool { return p.glob.match(ev.value(p.key)) }
