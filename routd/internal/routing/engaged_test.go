package routing

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// holds are the folders engaged, by "chat place"; and the claims of Resolve, as "chat place folder".
type holds struct {
	folders map[string]string
	from    int64 // when the holds begin
	claimed []string
}

func (h *holds) Engaged(_ context.Context, chatJID, place string, at int64) string {
	if at < h.from {
		return ""
	}
	return h.folders[chatJID+" "+place]
}

func (h *holds) Claim(_ context.Context, chatJID, place, folder string, at int64) {
	h.claimed = append(h.claimed, chatJID+" "+place+" "+folder)
	h.folders[chatJID+" "+place], h.from = folder, at
}

// TestResolve_Engaged_BeforeRoutes: ops is engaged in every default place, and acme in thread 33.
func TestResolve_Engaged_BeforeRoutes(t *testing.T) {
	type answer = routeapi.Answer
	ops := answer{Action: routeapi.Trigger, Folder: "ops", Home: "ops", Target: "ops", Engaged: true, Reason: msg.ReasonEngaged}
	pinned := answer{Action: routeapi.Trigger, Folder: "acme", Home: "acme", Target: "acme", Reason: msg.ReasonToSticky}
	for name, tc := range map[string]struct {
		item routeapi.Item
		want answer
	}{
		"beats a route to observe":  {routeapi.Item{ChatJID: "telegram:-1"}, ops},
		"beats a route elsewhere":   {routeapi.Item{ChatJID: "telegram:-1", Verb: "mention"}, ops},
		"beats a daemon":            {routeapi.Item{ChatJID: "slack:C1", Verb: "join"}, ops},
		"beats builtin:ping":        {routeapi.Item{ChatJID: "discord:ping"}, ops},
		"needs no route":            {routeapi.Item{ChatJID: "telegram:9"}, ops},
		"takes reactions":           {routeapi.Item{ChatJID: "telegram:-1", Verb: "reaction"}, ops},
		"takes joins":               {routeapi.Item{ChatJID: "telegram:-1", Verb: "join"}, ops},
		"takes unknown verbs":       {routeapi.Item{ChatJID: "telegram:-1", Verb: "wave"}, ops},
		"is that of the thread":     {routeapi.Item{ChatJID: "telegram:-1", ThreadID: "33", Topic: "#x"}, answer{Action: routeapi.Trigger, Folder: "acme", Home: "acme", Target: "acme", Engaged: true, Reason: msg.ReasonEngaged}},
		"is not that of the room":   {routeapi.Item{ChatJID: "telegram:9", ThreadID: "34"}, answer{Action: routeapi.None, Reason: msg.ReasonNoRoute}},
		"is not that of the topic":  {routeapi.Item{ChatJID: "telegram:9", Topic: "#x"}, answer{Action: routeapi.None, Reason: msg.ReasonNoRoute}},
		"is judged by when it came": {routeapi.Item{ChatJID: "telegram:9", ReceivedAt: -1}, answer{Action: routeapi.None, Reason: msg.ReasonNoRoute}},
		"builtin:drop is stronger":  {routeapi.Item{ChatJID: "telegram:-1", Sender: "spam"}, answer{Action: routeapi.Builtin, Home: "ops", Target: "builtin:drop", RouteID: 1, Reason: msg.ReasonBuiltinDrop}},
		"a text that names a group is stronger": {routeapi.Item{ChatJID: "telegram:-1", Folder: "acme/eng"},
			answer{Action: routeapi.Trigger, Folder: "acme/eng", Home: "ops", Target: "acme/eng", Reason: msg.ReasonAddress}},
		"a pin is weaker, but it is home": {routeapi.Item{ChatJID: "telegram:-1", StickyGroup: "acme"},
			answer{Action: routeapi.Trigger, Folder: "ops", Home: "acme", Target: "ops", Engaged: true, Reason: msg.ReasonEngaged}},
		"a web chat's pin is stronger": {routeapi.Item{ChatJID: "web:ops", StickyGroup: "acme"}, pinned},
		"a web chat's group is stronger": {routeapi.Item{ChatJID: "web:acme"},
			answer{Action: routeapi.Trigger, Folder: "acme", Home: "acme", Target: "acme", Reason: msg.ReasonAddress}},
		"an internal chat's group is stronger": {routeapi.Item{ChatJID: "group:acme"},
			answer{Action: routeapi.Trigger, Folder: "acme", Home: "acme", Target: "acme", Reason: msg.ReasonAddress}},
		"a web chat of no group has no home": {routeapi.Item{ChatJID: "web:missing"}, answer{Action: routeapi.None, Reason: msg.ReasonNoGroup}},
		"builtin:drop, asked for home only":  {routeapi.Item{ChatJID: "telegram:-1", Sender: "spam", HomeOnly: true}, answer{Action: routeapi.Builtin, Home: "ops", Target: "builtin:drop", RouteID: 1, Reason: msg.ReasonBuiltinDrop}},
		"is home":                            {routeapi.Item{ChatJID: "telegram:-1", HomeOnly: true}, answer{Action: routeapi.None, Home: "ops"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := &holds{folders: map[string]string{tc.item.ChatJID + " ": "ops", tc.item.ChatJID + " 33": "acme"}}
			got := sample().Resolve(t.Context(), &tc.item, h)
			got.Trace, got.Surface, got.Ceiling, got.Impulse, got.ThreadID = nil, "", 0, msg.Impulse{}, ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestResolve_EngagedGroupRemoved_Ignored(t *testing.T) {
	h := &holds{folders: map[string]string{"telegram:-1 ": "gone", "telegram:9 ": "gone"}}
	got := sample().Resolve(t.Context(), &routeapi.Item{ChatJID: "telegram:-1"}, h)
	if got.Reason != msg.ReasonRouteObserve || got.Engaged || !strings.Contains(strings.Join(got.Trace, ";"), `"gone" is engaged here, but no longer registered`) {
		t.Errorf("%+v", got)
	}
	if got = sample().Resolve(t.Context(), &routeapi.Item{ChatJID: "telegram:9", StickyGroup: "ops"}, h); got.Reason != msg.ReasonToSticky {
		t.Errorf("%+v", got)
	}
}

// The route decides how long rows are held, whichever group answers.
func TestResolve_Engaged_RouteImpulse(t *testing.T) {
	h := &holds{folders: map[string]string{"telegram:-1 ": "ops"}}
	got := sample().Resolve(t.Context(), &routeapi.Item{ChatJID: "telegram:-1", Verb: "mention"}, h)
	if got.Folder != "ops" || got.Impulse.QuietMS != 5 || got.RouteID != 0 {
		t.Errorf("%+v", got)
	}
}

func TestResolve_SlackMention_OpensThread(t *testing.T) {
	table := New([]msg.Route{
		{ID: 1, Match: "room=*drop*", Target: "builtin:drop"},
		{ID: 2, Match: "room=*observed*", Target: "ops#observe"},
		{ID: 3, Target: "ops"},
	}, groups("ops"), defaults())
	opens := routeapi.Item{ChatJID: "slack:C1", Verb: "mention", PlatformID: "1.5"}
	for name, tc := range map[string]struct {
		change func(*routeapi.Item)
		opens  bool
	}{
		"a mention in a channel":         {func(*routeapi.Item) {}, true},
		"a reply in a channel":           {func(i *routeapi.Item) { i.Verb = "reply" }, true},
		"a private group":                {func(i *routeapi.Item) { i.ChatJID, i.Kind = "slack:G1", msg.ChatGroup }, true},
		"a channel by what is known":     {func(i *routeapi.Item) { i.ChatJID, i.Kind = "slack:D1", msg.ChatChannel }, true},
		"a named topic":                  {func(i *routeapi.Item) { i.Topic = "#deploy" }, true},
		"a group named by the text":      {func(i *routeapi.Item) { i.Folder = "ops" }, true},
		"a plain message":                {func(i *routeapi.Item) { i.Verb = "" }, false},
		"a reaction":                     {func(i *routeapi.Item) { i.Verb = "reaction" }, false},
		"inside a thread":                {func(i *routeapi.Item) { i.ThreadID = "1.1" }, false},
		"a DM":                           {func(i *routeapi.Item) { i.ChatJID = "slack:D1" }, false},
		"a DM by what is known":          {func(i *routeapi.Item) { i.Kind = msg.ChatDM }, false},
		"a pane":                         {func(i *routeapi.Item) { i.ChatJID, i.ThreadID = "slack:D1", "1.1" }, false},
		"another platform":               {func(i *routeapi.Item) { i.ChatJID = "discord:1" }, false},
		"nothing to hang a thread on":    {func(i *routeapi.Item) { i.PlatformID = "" }, false},
		"dropped":                        {func(i *routeapi.Item) { i.ChatJID = "slack:Cdrop" }, false},
		"observed":                       {func(i *routeapi.Item) { i.ChatJID = "slack:Cobserved" }, false},
		"no group of the name":           {func(i *routeapi.Item) { i.Folder = "gone" }, false},
		"asked for the chat's home only": {func(i *routeapi.Item) { i.HomeOnly = true }, false},
	} {
		item := opens
		tc.change(&item)
		got := table.Resolve(t.Context(), &item, noEngagement{})
		thread, surface := item.ThreadID, got.Surface
		if tc.opens {
			thread, surface = "1.5", "slack-channel-thread"
		}
		if got.OpensThread != tc.opens || got.ThreadID != thread || got.Surface != surface {
			t.Errorf("%s: opens %t, thread %q, surface %s", name, got.OpensThread, got.ThreadID, got.Surface)
		}
	}
}

// An item after a mention finds its place claimed.
func TestResolve_Mention_ClaimsPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		item routeapi.Item
		want string // "" for no claim
	}{
		"a mention":                    {routeapi.Item{ChatJID: "telegram:-1", Verb: "mention"}, "telegram:-1  acme/eng"},
		"a mention in a thread":        {routeapi.Item{ChatJID: "telegram:-1", Verb: "mention", ThreadID: "33", Topic: "#x"}, "telegram:-1 33 acme/eng"},
		"a mention in a topic":         {routeapi.Item{ChatJID: "telegram:-1", Verb: "mention", Topic: "#x"}, "telegram:-1 #x acme/eng"},
		"a reply that a pin takes":     {routeapi.Item{ChatJID: "telegram:9", Verb: "reply", StickyGroup: "ops"}, "telegram:9  ops"},
		"a mention that names a group": {routeapi.Item{ChatJID: "telegram:-1", Verb: "mention", Folder: "ops"}, "telegram:-1  ops"},
		"in the thread that it opens":  {routeapi.Item{ChatJID: "slack:C1", Verb: "mention", PlatformID: "1.5", StickyGroup: "ops"}, "slack:C1 1.5 ops"},
		"a reply that is observed":     {routeapi.Item{ChatJID: "telegram:-1", Verb: "reply"}, ""},
		"a message that a pin takes":   {routeapi.Item{ChatJID: "telegram:9", StickyGroup: "ops"}, ""},
		"a reaction that a pin takes":  {routeapi.Item{ChatJID: "telegram:9", Verb: "reaction", StickyGroup: "ops"}, ""},
		"a message that names a group": {routeapi.Item{ChatJID: "telegram:-1", Folder: "ops"}, ""},
		"dropped":                      {routeapi.Item{ChatJID: "telegram:-1", Verb: "mention", Sender: "spam"}, ""},
		"too old to be answered":       {routeapi.Item{ChatJID: "telegram:-1", Verb: "mention", Stale: true}, ""},
		"without a route":              {routeapi.Item{ChatJID: "telegram:9", Verb: "mention"}, ""},
		"a web chat":                   {routeapi.Item{ChatJID: "web:acme", Verb: "mention"}, ""},
		"only for the chat's home":     {routeapi.Item{ChatJID: "telegram:-1", Verb: "mention", HomeOnly: true}, ""},
	} {
		h := &holds{folders: map[string]string{}}
		tc.item.ReceivedAt = 100
		first := sample().Resolve(t.Context(), &tc.item, h)
		if got := strings.Join(h.claimed, "; "); got != tc.want {
			t.Errorf("%s: claims %q, want %q", name, got, tc.want)
			continue
		}
		if tc.want == "" {
			continue
		}
		next := routeapi.Item{ChatJID: tc.item.ChatJID, Topic: tc.item.Topic, ThreadID: first.ThreadID, ReceivedAt: 101}
		if got := sample().Resolve(t.Context(), &next, h); got.Folder != first.Folder || !got.Engaged {
			t.Errorf("%s: after it %+v", name, got)
		}
		next.ReceivedAt = 99
		if got := sample().Resolve(t.Context(), &next, h); got.Engaged {
			t.Errorf("%s: what came before it: %+v", name, got)
		}
	}
}

// A conversation continues by each row that fires a turn of it.
func TestResolve_EngagedRow_ClaimsFromItsArrival(t *testing.T) {
	for name, tc := range map[string]struct {
		item routeapi.Item
		want string
	}{
		"a message":                      {routeapi.Item{ChatJID: "telegram:-1"}, "telegram:-1  ops"},
		"in a thread":                    {routeapi.Item{ChatJID: "telegram:-1", ThreadID: "33"}, "telegram:-1 33 acme"},
		"an edit":                        {routeapi.Item{ChatJID: "telegram:-1", Verb: "edit"}, "telegram:-1  ops"},
		"a reaction":                     {routeapi.Item{ChatJID: "telegram:-1", Verb: "reaction"}, ""},
		"a message that names a group":   {routeapi.Item{ChatJID: "telegram:-1", Folder: "acme"}, ""},
		"a message too old":              {routeapi.Item{ChatJID: "telegram:-1", Stale: true}, ""},
		"a question for the chat's home": {routeapi.Item{ChatJID: "telegram:-1", HomeOnly: true}, ""},
		"dropped":                        {routeapi.Item{ChatJID: "telegram:-1", Sender: "spam"}, ""},
	} {
		h := &holds{folders: map[string]string{"telegram:-1 ": "ops", "telegram:-1 33": "acme"}}
		sample().Resolve(t.Context(), &tc.item, h)
		if got := strings.Join(h.claimed, "; "); got != tc.want {
			t.Errorf("%s: claims %q, want %q", name, got, tc.want)
		}
	}
}

func TestRouted_FolderOfAnyRouteOfChat_True(t *testing.T) {
	table := New([]msg.Route{
		{ID: 1, Match: "chat_jid=telegram:-1 verb=mention", Target: "acme/eng"},
		{ID: 2, Match: "platform=slack sender=*Ann", Target: "folder:ops#observe"},
		{ID: 3, Match: "platform=discord", Target: "builtin:drop"},
		{ID: 4, Match: "chat_jid=telegram:-2", Target: "gone"},
		{ID: 5, Match: "chatjid=telegram:-3", Target: "acme"},
		{ID: 6, Match: "chat_jid=telegram:-4", Target: "daemon:ops"},
		{ID: 7, Match: "chat_jid=slack:C2 sender=slack:U1", Target: "ops"},
		{ID: 8, Match: "chat_jid=matrix:1", Target: "acme"},
		{ID: 9, Match: "platform=matrix", Target: "ops"},
	}, groups("acme", "acme/eng", "ops"), defaults())
	all := []string{"acme", "acme/eng", "acme/eng/oncall", "ac", "ops", "gone", "acme/", ""}
	for jid, want := range map[string][]string{
		"telegram:-1":    {"acme", "acme/eng"},
		"slack:C1":       nil, // a route of a sender, wherever he writes
		"slack:C2":       {"ops"},
		"matrix:1":       {"acme"}, // no row gets past it
		"matrix:2":       {"ops"},
		"discord:1":      nil,
		"telegram:-2":    nil,
		"telegram:-3":    nil,
		"telegram:-4":    nil,
		"web:acme/eng":   {"acme", "acme/eng"},
		"group:acme":     {"acme"},
		"telegram:acme":  nil,
		"web:acme/engel": {"acme"},
	} {
		var got []string
		for _, folder := range all {
			if table.Routed(jid, "slack:U2", folder) {
				got = append(got, folder)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is routed to %q, want %q", jid, got, want)
		}
	}
	if !table.Routed("slack:C1", "slack:Ann", "ops") {
		t.Error("a route of a sender does not count for that sender")
	}
	if table.Routed("slack:C1", "", "ops") || table.Routed("discord:1", "slack:Ann", "ops") {
		t.Error("a route of a sender counts for others, or elsewhere")
	}
}
