package routing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/match"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// rule answers a question, or returns false to leave it to the next one.
type rule func(*Table, *question) bool

// rules in the order in which they are tried. The last one always answers.
var rules = [...]rule{
	namedGroup, // the row's text names its group
	dropped,    // a route ignores the row
	pinnedWeb,  // a web chat follows its pin
	addressed,  // a web or internal chat is a group's own
	engaged,    // a group answers there without being called
	pinned,     // every other chat follows its pin
	routed,     // the table
	noRoute,
}

// Engagement knows which groups answer in the places of chats without being called.
type Engagement interface {
	// Engaged returns the folder that answers a row received at a time in a place, "" for none.
	Engaged(ctx context.Context, chatJID, place string, at int64) string
	// Claim adds a claim of a folder on a place, from a time on, for the items that follow.
	Claim(ctx context.Context, chatJID, place, folder string, at int64)
}

// Unengaged is the Engagement of an instance in which no group answers without being called.
type Unengaged struct{}

// Engaged returns "".
func (Unengaged) Engaged(context.Context, string, string, int64) string { return "" }

// Claim does nothing.
func (Unengaged) Claim(context.Context, string, string, string, int64) {}

// question is one item with the facts that the rules need.
type question struct {
	item      *routeapi.Item
	platform  string
	route     *match.Route // the table's first match, nil if there is none
	sticky    string       // the group the chat is pinned to, "" if none or no longer registered
	addressed string       // the folder that a web: or group: address names, registered or not; else ""
	engaged   string       // the group engaged in the item's place, "" for none
	kind      msg.ChatKind
	answer    routeapi.Answer
}

// Resolve answers one item. A mention or reply that triggers claims its place for the items after it, and so does a row
// that triggers because its place is engaged. The weights in the answer are shared: they must not be changed.
func (t *Table) Resolve(ctx context.Context, item *routeapi.Item, e Engagement) routeapi.Answer {
	platform, room := msg.SplitJID(item.ChatJID)
	if platform == "" || room == "" {
		return routeapi.Answer{ID: item.ID, Error: fmt.Sprintf("chat_jid %.80q is not platform:room", item.ChatJID)}
	}
	q := t.question(ctx, item, platform, e)
	q.answer.Home = t.home(q)
	if item.HomeOnly {
		dropped(t, q)
	} else {
		for _, rule := range rules {
			if rule(t, q) {
				break
			}
		}
		q.listen()
		q.openThread()
		q.claim(ctx, e)
	}
	chat, kind := item.ChatJID, q.kind
	if platform == msg.PlatformHook {
		if t.deliver(q); q.answer.To != "" {
			chat, kind = q.answer.To, msg.KindOfJID(q.answer.To)
		}
	}
	surface := msg.SurfaceOf(chat, kind, q.answer.ThreadID)
	q.answer.Surface, q.answer.Ceiling = surface.Name, surface.Ceiling
	return q.answer
}

func (t *Table) question(ctx context.Context, item *routeapi.Item, platform string, e Engagement) *question {
	ev := event(item)
	q := &question{
		item: item, platform: platform, route: t.index.First(&ev), addressed: msg.AddressedFolder(item.ChatJID),
		answer: routeapi.Answer{
			ID: item.ID, Action: routeapi.None, ThreadID: item.ThreadID, Impulse: t.defaults, Trace: []string{},
		},
	}
	switch {
	case t.Has(item.StickyGroup):
		q.sticky = item.StickyGroup
	case item.StickyGroup != "":
		q.trace("the chat is pinned to %.80q, which is no longer registered: the pin is ignored", item.StickyGroup)
	}
	if q.route != nil {
		if impulse, ok := t.impulses[q.route.ID]; ok {
			q.answer.Impulse = impulse
		}
	}
	q.kind = cmp.Or(item.Kind, msg.KindOfJID(item.ChatJID))
	if q.addressed == "" {
		q.engaged = e.Engaged(ctx, item.ChatJID, msg.Place(item.ThreadID, item.Topic), item.ReceivedAt)
	}
	if q.engaged != "" && !t.Has(q.engaged) {
		q.trace("%.80q is engaged here, but no longer registered", q.engaged)
		q.engaged = ""
	}
	return q
}

// listen keeps a row without words from starting a turn: a user has left, or has blocked or unblocked the bot. A
// route that asks for the verb does start one.
func (q *question) listen() {
	asked := q.answer.Reason == msg.ReasonRoute && q.route.Expr().OfVerbs()
	if q.answer.Action != routeapi.Trigger || asked || !msg.Wordless(q.item.Verb, q.kind) {
		return
	}
	q.answer.Action, q.answer.Reason = routeapi.Observe, msg.ReasonRouteObserve
	q.trace("a %s is only observed: no route asks for that verb", q.item.Verb)
}

// claims reports whether the item claims its place if it triggers: it mentions the bot or replies to
// it, or continues a conversation. A verb without weight, as a reaction, continues none.
func (q *question) claims() bool {
	called := q.item.Verb == msg.VerbMention || q.item.Verb == msg.VerbReply
	return called || q.answer.Engaged && q.answer.Impulse.Weight(q.item.Verb) > 0
}

// openThread makes the answer to a mention in a Slack channel begin a thread, so that it does not
// fill the channel.
func (q *question) openThread() {
	if q.answer.Action != routeapi.Trigger || q.item.PlatformID == "" ||
		!msg.OpensThread(q.item.ChatJID, q.kind, q.item.Verb, q.item.ThreadID) {
		return
	}
	q.answer.ThreadID, q.answer.OpensThread = q.item.PlatformID, true
	q.trace("the answer opens a thread off the message")
}

// claim holds the place of the answer for its group while the turn is in progress.
func (q *question) claim(ctx context.Context, e Engagement) {
	if q.answer.Action == routeapi.Trigger && q.claims() && q.addressed == "" && !q.item.Stale {
		e.Claim(ctx, q.item.ChatJID, msg.Place(q.answer.ThreadID, q.item.Topic), q.answer.Folder, q.item.ReceivedAt)
	}
}

func event(item *routeapi.Item) match.Event {
	return match.EventOf(item.ChatJID, item.Sender, item.SenderName, item.Verb)
}

// home returns the chat's group, whichever group gets this row. Where no route matches it, as a plain message in a chat
// that only has a route for mentions, that is the first group which anything reaches that its sender writes there. In a
// direct chat, which needs no mentions, only the group that answers a plain message counts.
func (t *Table) home(q *question) string {
	switch {
	case q.sticky != "":
		return q.sticky
	case t.Has(q.addressed):
		return q.addressed
	case q.engaged != "":
		return q.engaged
	case q.addressed != "":
		return ""
	case q.route != nil:
		return q.route.Target.Folder
	}
	ev := event(q.item)
	first := t.index.FirstWritten
	if q.kind == msg.ChatDM {
		ev.Verb, first = msg.VerbMessage, t.index.First
	}
	if r := first(&ev); r != nil {
		return r.Target.Folder
	}
	return ""
}

// Explain lists why the rows before the matching one do not match: at most limit lines, then the
// number of further rows.
func (t *Table) Explain(item *routeapi.Item, limit int) []string {
	ev := event(item)
	return t.index.Explain(&ev, limit)
}

func namedGroup(t *Table, q *question) bool {
	switch folder := q.item.Folder; {
	case folder == "":
		return false
	case t.Has(folder):
		q.trace("the row names the group %s", folder)
		return q.trigger(folder, msg.ReasonAddress)
	default:
		q.trace("the row names the group %.80q, which is not registered", folder)
		return q.none(msg.ReasonNoGroup)
	}
}

func dropped(t *Table, q *question) bool {
	return q.route != nil && q.route.Target == match.Target{Kind: match.Builtin, Name: "drop"} && routed(t, q)
}

func pinnedWeb(t *Table, q *question) bool { return q.platform == msg.PlatformWeb && pinned(t, q) }

func addressed(t *Table, q *question) bool {
	switch {
	case q.addressed == "":
		return false
	case t.Has(q.addressed):
		q.trace("the address names the group %s", q.addressed)
		return q.trigger(q.addressed, msg.ReasonAddress)
	default:
		q.trace("the address names the group %.80q, which is not registered", q.addressed)
		return q.none(msg.ReasonNoGroup)
	}
}

func engaged(_ *Table, q *question) bool {
	if q.engaged == "" {
		return false
	}
	q.trace("%s is engaged here", q.engaged)
	q.answer.Engaged = true
	return q.trigger(q.engaged, msg.ReasonEngaged)
}

func pinned(_ *Table, q *question) bool {
	if q.sticky == "" {
		return false
	}
	q.trace("the chat is pinned to %s", q.sticky)
	return q.trigger(q.sticky, msg.ReasonToSticky)
}

func routed(t *Table, q *question) bool {
	if q.route == nil {
		return false
	}
	target := q.route.Target
	a := &q.answer
	a.RouteID, a.Folder, a.Target = q.route.ID, target.Folder, target.String()
	a.Action, a.Reason = outcome(target)
	q.trace("route %d (%.200s) leads to %s", q.route.ID, cmp.Or(q.route.Match, "everything"), a.Target)
	return true
}

func outcome(target match.Target) (routeapi.Action, msg.Reason) {
	switch target.Kind {
	case match.Trigger:
		return routeapi.Trigger, msg.ReasonRoute
	case match.Observe:
		return routeapi.Observe, msg.ReasonRouteObserve
	case match.Daemon:
		return routeapi.Daemon, msg.ReasonDaemon
	}
	if target.Name == "ping" {
		return routeapi.Builtin, msg.ReasonBuiltinPing
	}
	return routeapi.Builtin, msg.ReasonBuiltinDrop
}

// deliver makes the answer to a delivery of a hook go where its group's config says, if that leads to the group.
func (t *Table) deliver(q *question) {
	folder := q.addressed
	at := slices.IndexFunc(t.groups, func(g msg.Group) bool { return g.Folder == folder })
	if at < 0 || q.answer.Folder != folder {
		return
	}
	id := strings.TrimPrefix(q.item.ChatJID, msg.HookJID(folder, ""))
	name, hook, ok := groupconfig.ReadHook(t.groups[at].Config, id)
	switch {
	case !ok:
		q.trace("the hook was removed")
		return
	case hook.To == "":
	case t.Routed(hook.To, "", folder):
		q.trace("the hook %s sends answers to %.200s", name, hook.To)
		q.answer.To, q.answer.ThreadID = hook.To, hook.Thread
	default:
		q.trace("the hook %s sends answers to %.200s, but no route leads from there to %s", name, hook.To, folder)
	}
	q.answer.Impulse.QuietMS = hook.QuietMS
}

func noRoute(_ *Table, q *question) bool {
	q.trace("no route matches")
	return q.none(msg.ReasonNoRoute)
}

func (q *question) trigger(folder string, why msg.Reason) bool {
	q.answer.Action, q.answer.Folder, q.answer.Target, q.answer.Reason = routeapi.Trigger, folder, folder, why
	return true
}

func (q *question) none(why msg.Reason) bool {
	q.answer.Action, q.answer.Reason = routeapi.None, why
	return true
}

func (q *question) trace(format string, args ...any) {
	q.answer.Trace = append(q.answer.Trace, fmt.Sprintf(format, args...))
}
