package decide

import (
	"slices"
	"strings"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/layers"
	"arizuko/pkg/msg"
)

// Pin is the request of a bare token. An empty name clears the pin.
type Pin struct {
	layers.Sticky
	Folder   string               // of a group's name
	Members  *groupconfig.Members // of that group
	Reserved bool                 // users cannot name the topic
}

// Prefix is the group or topic that a row names before its text.
type Prefix struct {
	Folder string
	Topic  string // "#name", "" for the row's own
	Rest   string
	Reason msg.Reason
}

// FindPin parses a row that is one bare token, once routd's answer is known. Other tokens are plain text: an unknown
// name, one that an agent writes elsewhere than its origin, a name that the chat's group lets no member reach, and any
// token of a bot, of a row that came too late and of a sender whom builtin:drop ignores. With a file, or about another
// post, it is a prefix. A pin can be cleared even if its group is not registered any more.
func FindPin(r *Row, chat *msg.Chat, registered func(folder string) bool) *Pin {
	if r.Kind != KindText || r.IsBot || r.Old || !r.Known || r.ignored() || r.hasMore() {
		return nil
	}
	sticky, ok := layers.ParseSticky(r.Content)
	reserved := layers.ReservedTopic(r.Content)
	if reserved {
		sticky, ok = layers.Sticky{Sigil: layers.TopicSigil, Name: strings.TrimSpace(r.Content)[1:]}, true
	}
	if !ok || sticky.Name != "" && refers(r.Message) || r.elsewhere() && !r.origin().Operator {
		return nil
	}
	p := &Pin{Sticky: sticky, Reserved: reserved}
	pinned := chat.StickyGroup
	if p.Sigil == layers.TopicSigil {
		pinned = chat.StickyTopic
	}
	switch {
	case p.Name == "":
		ok = r.Answer.Home != "" || pinned != ""
	case p.Sigil == layers.TopicSigil:
		ok = r.Answer.Home != ""
	default:
		p.Folder, ok = r.reaches(p.Name, registered)
		ok = ok && r.Answer.Home != ""
	}
	if !ok {
		return nil
	}
	return p
}

// hasMore reports whether more than its text comes with the row.
func (r *Row) hasMore() bool { return hasFiles(r.Message) || r.Summary != nil }

// FindPrefix parses the token a row begins with, once routd's answer is known; of a row in a
// group, that of its head. A name of no group, or of one out of reach, is plain text, as is
// every token in a chat without a group. Row.Home must be set.
func FindPrefix(r *Row, registered func(folder string) bool) *Prefix {
	if r.Kind != KindText && r.Kind != KindMention || !r.Known || r.Answer.Error != "" || r.ignored() ||
		r.Answer.Home == "" {
		return nil
	}
	if r.followsCommandRow() && r.Summary.Command != nil { // it came after a /new of its group had been decided
		return &Prefix{Folder: r.Answer.Home, Topic: r.Summary.Command.Topic, Rest: r.Content,
			Reason: msg.ReasonGrouped}
	}
	found, ok := r.parsePrefix()
	if !ok {
		return nil
	}
	p := &Prefix{Folder: r.Answer.Home, Topic: "#" + found.Name, Rest: found.Rest, Reason: msg.ReasonPrefixTopic}
	if found.Sigil == layers.GroupSigil {
		p.Topic, p.Reason = "", msg.ReasonPrefixGroup
		if p.Folder, ok = r.reaches(found.Name, registered); !ok {
			return nil
		}
	}
	if r.followsCommandRow() {
		p.Rest, p.Reason = r.Content, msg.ReasonGrouped
	}
	return p
}

// parsePrefix parses the text of the row or of its head. A token alone is a prefix if a file
// or another row is with it, or if it is about a post.
func (r *Row) parsePrefix() (p layers.Prefix, ok bool) {
	text := r.Content
	if r.followsCommandRow() {
		text = r.Summary.CommandRow.Content
	}
	if p, ok = layers.ParsePrefix(text); ok || !r.hasMore() && !refers(r.Message) {
		return p, ok
	}
	token, ok := layers.ParseSticky(text)
	return layers.Prefix{Sigil: token.Sigil, Name: token.Name}, ok && token.Name != ""
}

// reaches finds the group that the row's sender means by a name. Where the chat's group
// has no reach, that is the group itself or none.
func (r *Row) reaches(name string, registered func(folder string) bool) (folder string, ok bool) {
	folder, ok = layers.ResolveName(name, r.Answer.Home, r.Operator, registered)
	if ok && !r.Operator && r.Home != nil && r.Home.OwnGroup && folder != r.Answer.Home {
		return "", false
	}
	return folder, ok
}

// releases reports whether a row makes the gate release the rows before it.
func (w *step) releases(r Row) bool {
	if _, waits := r.awaitsGroup(w.f.Now); waits {
		return false
	}
	return r.Kind == KindCommand && r.Command.Name == msg.CommandNew && !r.ignored() && r.admitted(r.Home) &&
		!r.Command.Reserved || r.pins() && !r.Pin.Reserved
}

// tokens acts on a row that is one bare token. Rows before it are released first.
func (w *step) tokens(r *Row) bool {
	if r.Pin == nil || w.blocked != "" {
		return false
	}
	if r.admitted(r.Home, r.Pin.Members) && w.overCommands(r) {
		return true
	}
	switch {
	case !r.pins():
		w.refusePin(r)
		return true
	case r.Pin.Reserved:
		w.answer(r, textReserved)
		return true
	}
	if !w.releaseBefore(r) {
		return true
	}
	if p := r.Pin; p.Sigil == layers.TopicSigil {
		w.pinTopic(r, p.Name)
	} else {
		w.pinGroup(r, p.Name, p.Folder)
	}
	w.ended = true
	return true
}

// releaseBefore routes the held rows before the chat's pins or session change, but for those of
// its own group. It reports false if the step ends before that.
func (w *step) releaseBefore(r *Row) bool {
	w.held = slices.DeleteFunc(w.held, func(held *Row) bool { return held.follows(r) })
	w.gate = w.release(ReleaseAll)
	w.storeTurns()
	w.current = r
	return !w.ended
}

func (w *step) pinTopic(r *Row, name string) {
	topic, reason, ack := "", msg.ReasonStickyReset, "topic reset to default"
	if name != "" {
		topic, reason, ack = "#"+name, msg.ReasonStickyTopic, "topic → "+name
	}
	w.decide(r, msg.Sticky, reason, "")
	w.add(PinTopic{Row: r.ID, Topic: topic})
	w.reply(r, msg.SourceCommand, ack)
}

func (w *step) pinGroup(r *Row, name, folder string) {
	reason, ack := msg.ReasonStickyReset, "routing reset to default"
	if folder != "" {
		reason, ack = msg.ReasonStickyGroup, "routing → "+name
	}
	w.decide(r, msg.Sticky, reason, "")
	w.add(PinGroup{Row: r.ID, Folder: folder, At: r.ReceivedAt})
	w.reply(r, msg.SourceCommand, ack)
}
