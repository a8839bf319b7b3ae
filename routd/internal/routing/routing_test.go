package routing

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func defaults() msg.Impulse { return msg.DefaultImpulse(100, 5*time.Minute) }

func groups(folders ...string) []msg.Group {
	var all []msg.Group
	for _, f := range folders {
		all = append(all, msg.Group{Folder: f, Config: json.RawMessage(`{}`)})
	}
	return all
}

func sample() *Table {
	return New([]msg.Route{
		{ID: 1, Seq: 1, Match: "sender=*spam*", Target: "builtin:drop"},
		{ID: 2, Seq: 2, Match: "chat_jid=telegram:-1 verb=mention", Target: "acme/eng", Impulse: json.RawMessage(`{"quiet_ms":5,"weights":{"join":0}}`)},
		{ID: 3, Seq: 3, Match: "chat_jid=telegram:-1", Target: "acme/eng#observe"},
		{ID: 4, Seq: 4, Match: "platform=slack verb=join", Target: "daemon:greeter"},
		{ID: 5, Seq: 5, Match: "room=ping", Target: "builtin:ping"},
	}, groups("acme", "acme/eng", "ops"), defaults())
}

func TestResolve_EachRule_GivesAnswerAndTrace(t *testing.T) {
	type answer = routeapi.Answer
	for name, tc := range map[string]struct {
		item  routeapi.Item
		want  answer
		trace string
	}{
		"route": {
			routeapi.Item{ChatJID: "telegram:-1", Verb: "mention"},
			answer{Action: "trigger", Folder: "acme/eng", Home: "acme/eng", Target: "acme/eng", RouteID: 2, Reason: "route"},
			"route 2 (chat_jid=telegram:-1 verb=mention) leads to acme/eng",
		},
		"observe": {
			routeapi.Item{ChatJID: "telegram:-1"},
			answer{Action: "observe", Folder: "acme/eng", Home: "acme/eng", Target: "acme/eng#observe", RouteID: 3, Reason: "route_observe"},
			"route 3",
		},
		"daemon, no home": {
			routeapi.Item{ChatJID: "slack:C1", Verb: "join"},
			answer{Action: "daemon", Target: "daemon:greeter", RouteID: 4, Reason: "daemon"},
			"route 4",
		},
		"ping": {
			routeapi.Item{ChatJID: "discord:ping"},
			answer{Action: "builtin", Target: "builtin:ping", RouteID: 5, Reason: "builtin_ping"},
			"route 5",
		},
		"no route": {
			routeapi.Item{ChatJID: "telegram:9"},
			answer{Action: "none", Reason: "no_route"},
			"no route matches",
		},
		"web address": {
			routeapi.Item{ChatJID: "web:acme"},
			answer{Action: "trigger", Folder: "acme", Home: "acme", Target: "acme", Reason: "address"},
			"the address names the group acme",
		},
		"internal address": {
			routeapi.Item{ChatJID: "group:acme/eng"},
			answer{Action: "trigger", Folder: "acme/eng", Home: "acme/eng", Target: "acme/eng", Reason: "address"},
			"the address names",
		},
		"web address without a group": {
			routeapi.Item{ChatJID: "web:missing"},
			answer{Action: "none", Reason: "no_group"},
			`names the group "missing", which is not registered`,
		},
		"a pin moves a web chat": {
			routeapi.Item{ChatJID: "web:acme", StickyGroup: "ops"},
			answer{Action: "trigger", Folder: "ops", Home: "ops", Target: "ops", Reason: "sticky_target"},
			"pinned to ops",
		},
		"a pin does not move an internal chat": {
			routeapi.Item{ChatJID: "group:acme", StickyGroup: "ops"},
			answer{Action: "trigger", Folder: "acme", Home: "ops", Target: "acme", Reason: "address"},
			"the address names the group acme",
		},
		"a pin always triggers": {
			routeapi.Item{ChatJID: "telegram:-1", StickyGroup: "ops"},
			answer{Action: "trigger", Folder: "ops", Home: "ops", Target: "ops", Reason: "sticky_target"},
			"pinned to ops",
		},
		"a pin to a group that is gone": {
			routeapi.Item{ChatJID: "telegram:-1", StickyGroup: "gone"},
			answer{Action: "observe", Folder: "acme/eng", Home: "acme/eng", Target: "acme/eng#observe", RouteID: 3, Reason: "route_observe"},
			`the chat is pinned to "gone", which is no longer registered: the pin is ignored; route 3`,
		},
		"drop beats a pin": {
			routeapi.Item{ChatJID: "telegram:-1", Sender: "telegram:spam", StickyGroup: "ops"},
			answer{Action: "builtin", Home: "ops", Target: "builtin:drop", RouteID: 1, Reason: "builtin_drop"},
			"route 1",
		},
		"drop beats an address": {
			routeapi.Item{ChatJID: "web:acme", Sender: "web:spammer"},
			answer{Action: "builtin", Home: "acme", Target: "builtin:drop", RouteID: 1, Reason: "builtin_drop"},
			"route 1",
		},
		"a fixed group beats everything": {
			routeapi.Item{ChatJID: "telegram:-1", Sender: "telegram:spam", Folder: "acme"},
			answer{Action: "trigger", Folder: "acme", Target: "acme", Reason: "address"},
			"the row names the group acme",
		},
		"a fixed group that is gone": {
			routeapi.Item{ChatJID: "telegram:-1", Folder: "gone"},
			answer{Action: "none", Home: "acme/eng", Reason: "no_group"},
			"not registered",
		},
		"home only": {
			routeapi.Item{ChatJID: "telegram:-1", HomeOnly: true},
			answer{Action: "none", Home: "acme/eng"},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.item.ID, tc.item.ThreadID = 7, "33"
			got := sample().Resolve(t.Context(), &tc.item, noEngagement{})
			if trace := strings.Join(got.Trace, "; "); !strings.Contains(trace, tc.trace) || got.Trace == nil {
				t.Errorf("trace %q, want %q in it", trace, tc.trace)
			}
			tc.want.ID, tc.want.ThreadID = 7, "33"
			tc.want.Impulse = defaults()
			if tc.want.RouteID == 2 {
				tc.want.Impulse.QuietMS, tc.want.Impulse.Weights["join"] = 5, 0
			}
			got.Trace, got.Surface, got.Ceiling = nil, "", 0
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestResolve_Membership_StartsNoTurn: a user who leaves, or blocks or unblocks the bot, has written nothing.
func TestResolve_Membership_StartsNoTurn(t *testing.T) {
	table := New([]msg.Route{
		{ID: 1, Match: "room=-2 verb=leave", Target: "ops"},
		{ID: 2, Match: "platform=telegram", Target: "acme"},
	}, groups("acme", "ops"), defaults())
	for _, tc := range []struct {
		jid, sticky, verb, action string
	}{
		{"telegram:5", "", msg.VerbLeave, "observe"},
		{"telegram:5", "", msg.VerbJoin, "observe"},
		{"telegram:5", "ops", msg.VerbLeave, "observe"},
		{"telegram:-1", "", msg.VerbLeave, "observe"},
		{"telegram:-1", "", msg.VerbJoin, "trigger"},
		{"telegram:-2", "", msg.VerbLeave, "trigger"},
		{"telegram:5", "", msg.VerbMessage, "trigger"},
	} {
		got := table.Resolve(t.Context(), &routeapi.Item{ChatJID: tc.jid, StickyGroup: tc.sticky, Verb: tc.verb}, noEngagement{})
		if string(got.Action) != tc.action || got.Folder == "" {
			t.Errorf("%+v: %+v", tc, got)
		}
	}
}

// TestResolve_Home_NeedsNoRouteForTheVerb: commands, tokens and prefixes work in a chat with a group however they are written.
func TestResolve_Home_NeedsNoRouteForTheVerb(t *testing.T) {
	table := New([]msg.Route{
		{ID: 1, Match: "room=-1400 verb=mention", Target: "acme"},
		{ID: 2, Match: "sender=telegram:42", Target: "ops"},
		{ID: 3, Match: "room=-2 verb=reaction", Target: "ops"},
		{ID: 4, Match: "room=-2 verb=reply", Target: "acme"},
		{ID: 5, Match: "room=-2 verb=mention", Target: "acme/eng"},
		{ID: 6, Match: "room=-3 verb=message", Target: "builtin:drop"},
		{ID: 7, Match: "room=-3 verb=reply", Target: "acme"},
		{ID: 8, Match: "room=-4", Target: "builtin:drop"},
		{ID: 9, Match: "verb=reply", Target: "acme/eng"},
	}, groups("acme", "acme/eng", "ops"), defaults())
	for _, tc := range []struct{ jid, sender, verb, home string }{
		{"telegram:-1400", "telegram:7", msg.VerbMessage, "acme"},
		{"telegram:-1400", "telegram:7", msg.VerbReaction, "acme"},
		{"telegram:-1400", "telegram:7", msg.VerbMention, "acme"},
		{"telegram:42", "telegram:42", msg.VerbMessage, "ops"},
		{"telegram:-2", "telegram:7", msg.VerbMessage, "acme"},
		{"telegram:-2", "telegram:7", msg.VerbMention, "acme/eng"},
		{"telegram:-3", "telegram:7", msg.VerbMention, "acme"},
		{"telegram:-3", "telegram:7", msg.VerbMessage, ""},
		{"telegram:-4", "telegram:7", msg.VerbMention, ""},
		{"telegram:-5", "telegram:7", msg.VerbMessage, "acme/eng"},
		{"telegram:5", "telegram:5", msg.VerbMessage, ""}, // a direct chat, in which nothing has to be a reply
		{"telegram:5", "telegram:5", msg.VerbMention, ""},
		{"telegram:5", "telegram:5", msg.VerbReply, "acme/eng"},
		{"telegram:42", "telegram:42", msg.VerbReaction, "ops"},
		{"discord:dm-5", "discord:7", msg.VerbMessage, ""},
		{"slack:D5", "slack:U7", msg.VerbMessage, ""},
		{"web:gone", "web:a", msg.VerbMessage, ""},
	} {
		got := table.Resolve(t.Context(), &routeapi.Item{ChatJID: tc.jid, Sender: tc.sender, Verb: tc.verb}, noEngagement{})
		if got.Home != tc.home {
			t.Errorf("home of %s by a %s of %s is %q, want %q", tc.jid, tc.verb, tc.sender, got.Home, tc.home)
		}
	}
}

func TestResolve_Surface_SetsCeiling(t *testing.T) {
	for _, tc := range []struct {
		item    routeapi.Item
		surface string
		ceiling int
	}{
		{routeapi.Item{ChatJID: "telegram:5"}, "telegram-dm", 4000},
		{routeapi.Item{ChatJID: "telegram:5", Kind: msg.ChatGroup}, "telegram-group", 1500},
		{routeapi.Item{ChatJID: "telegram:-5", ThreadID: "2"}, "telegram-topic", 4000},
		{routeapi.Item{ChatJID: "slack:C5", HomeOnly: true}, "slack-channel", 200},
	} {
		got := sample().Resolve(t.Context(), &tc.item, noEngagement{})
		if got.Surface != tc.surface || got.Ceiling != tc.ceiling {
			t.Errorf("%+v: %s %d, want %s %d", tc.item, got.Surface, got.Ceiling, tc.surface, tc.ceiling)
		}
	}
}

func TestResolve_InvalidAddress_Error(t *testing.T) {
	for _, jid := range []string{"", "telegram", "telegram:", ":5", strings.Repeat("x", 1<<20)} {
		got := sample().Resolve(t.Context(), &routeapi.Item{ID: 3, ChatJID: jid}, noEngagement{})
		if got.ID != 3 || !strings.Contains(got.Error, "platform:room") || got.Action != "" || len(got.Error) > 200 {
			t.Errorf("%.20q: %+v", jid, got)
		}
	}
}

// For any item, only registered groups are named as folder or home.
func TestResolve_AnyItem_NamesOnlyGroups(t *testing.T) {
	table := sample()
	jids := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"telegram:-1", "web:acme", "web:x", "group:ops", "slack:C1", "discord:ping"}))
	folders := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "", "ops", "acme/eng", "gone"}))
	words := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "mention", "join", "spam"}))
	rapid.Check(t, func(t *rapid.T) {
		item := routeapi.Item{
			ChatJID: jids.Draw(t, "jid"), StickyGroup: folders.Draw(t, "sticky"), Folder: folders.Draw(t, "folder"),
			Verb: words.Draw(t, "verb"), Sender: words.Draw(t, "sender"), SenderName: words.Draw(t, "name"),
			HomeOnly: rapid.Bool().Draw(t, "home only"),
		}
		a := table.Resolve(t.Context(), &item, noEngagement{})
		if a.Error != "" {
			return
		}
		fires := a.Action == routeapi.Trigger || a.Action == routeapi.Observe
		if fires != (a.Folder != "") || a.Folder != "" && !table.Has(a.Folder) || a.Home != "" && !table.Has(a.Home) {
			t.Fatalf("%+v: %+v", item, a)
		}
		if known := a.Reason != ""; known == item.HomeOnly && a.Reason != msg.ReasonBuiltinDrop || a.Surface == "" {
			t.Fatalf("%+v: %+v", item, a)
		}
	})
}

func TestNew_InvalidRows_MatchNothing(t *testing.T) {
	bad := []msg.Route{
		{ID: 1, Match: "platfrom=telegram", Target: "acme"},
		{ID: 2, Match: "", Target: "gone"},
		{ID: 3, Match: "", Target: "gone#observe"},
		{ID: 4, Match: "", Target: "Bad Name"},
		{ID: 5, Match: "", Target: "acme#later"},
		{ID: 6, Match: "", Target: "acme", Impulse: json.RawMessage(`"{\"quiet"`)},
		{ID: 7, Match: "", Target: "acme/eng"},
	}
	registered := append(groups("acme", "acme/eng", "Bad Name"),
		msg.Group{Folder: "odd", Config: json.RawMessage(`{"observe":"nome"}`)})
	table := New(bad, registered, defaults())
	if got := table.Resolve(t.Context(), &routeapi.Item{ChatJID: "telegram:1"}, noEngagement{}); got.RouteID != 7 {
		t.Errorf("%+v, want route 7", got)
	}
	if table.Has("Bad Name") || !table.Has("odd") {
		t.Error("a bad folder is registered, or a group with a mistake in its config is not")
	}
	notes := strings.Join(table.Notes(), "\n")
	for _, want := range []string{
		`group "Bad Name": folder`, `group "odd": config: observe`,
		"route 1 matches nothing: match: unknown key", "route 2 matches nothing: folder gone is not registered",
		"route 3 matches nothing: folder gone", "route 4 matches nothing: target: ", "route 5 matches nothing: target: unknown fragment",
		"route 6 matches nothing: impulse_config",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in\n%s", want, notes)
		}
	}
	if table.InvalidRows() != 8 {
		t.Errorf("%d bad rows", table.InvalidRows())
	}
}

func TestNotes_Many_Bounded(t *testing.T) {
	var routes []msg.Route
	for i := range 1000 {
		routes = append(routes, msg.Route{ID: int64(i + 1), Target: "gone"})
	}
	notes := New(routes, nil, defaults()).Notes()
	if len(notes) != maxNotes+1 || notes[maxNotes] != "980 more rows are bad" {
		t.Errorf("%d notes, last %q", len(notes), notes[len(notes)-1])
	}
}

func TestWithRoutes_NewRows_ComeAfterOldOfSameSeq(t *testing.T) {
	edited, err := sample().WithRoutes([]msg.Route{
		{Seq: 1, Target: "ops"},
		{ID: 5, Seq: 1, Target: "acme"},
		{Seq: 0, Match: "verb=join", Target: "acme/eng"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := edited.Resolve(t.Context(), &routeapi.Item{ChatJID: "telegram:1"}, noEngagement{}); got.Folder != "acme" || edited.Route(got.RouteID).ID != 5 {
		t.Errorf("%+v: a new row must come after an old one of the same seq", got)
	}
	if got := edited.Resolve(t.Context(), &routeapi.Item{ChatJID: "telegram:1", Verb: "join"}, noEngagement{}); got.RouteID != 7 || got.Folder != "acme/eng" {
		t.Errorf("%+v", got)
	}
	for _, tc := range []struct {
		routes []msg.Route
		want   string
	}{
		{[]msg.Route{{Target: "ops"}, {Target: "gone"}}, "routes[1]: folder gone is not registered"},
		{[]msg.Route{{Match: "x", Target: "ops"}}, "routes[0]: match"},
		{[]msg.Route{{ID: 3, Target: "ops"}, {ID: 3, Target: "ops"}}, "routes[1]: id 3 is there twice"},
	} {
		if _, err := sample().WithRoutes(tc.routes); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v, want %s", tc.routes, err, tc.want)
		}
	}
}

func TestCheckGroup_InvalidConfig_Explained(t *testing.T) {
	for config, want := range map[string]string{
		`{}`: "",
		`{"observe":"shared","assistant_name":"Eng","agent":{"model":"m"}}`: "",
		`{"model":"m"}`:           "did you mean agent.model?",
		``:                        "JSON object",
		`null`:                    "JSON object",
		`[]`:                      "JSON object",
		`{"observe":"al"}`:        "observe",
		`{"observe":7}`:           "observe",
		`{"observe":null}`:        "observe",
		`{"assistant_name":7}`:    "assistant_name",
		`{"assistant_name":null}`: "assistant_name",
	} {
		err := CheckGroup(msg.Group{Folder: "acme", Config: json.RawMessage(config)})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", config, err, want)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	table := New(manyRoutes(10_000), groups("acme"), defaults())
	item := routeapi.Item{ChatJID: "telegram:-9999", Sender: "telegram:7", SenderName: "Ann", Verb: "mention"}
	if got := table.Resolve(b.Context(), &item, noEngagement{}); got.RouteID == 0 {
		b.Fatal(got)
	}
	b.ReportAllocs()
	for b.Loop() {
		table.Resolve(b.Context(), &item, noEngagement{})
	}
}

// A sender chooses its name: a long one must not cost each route a slow search.
func BenchmarkResolve_LongName(b *testing.B) {
	routes := manyRoutes(10_000)
	for i := range routes {
		routes[i].Match = fmt.Sprintf("sender_name=*a%d*x*", i)
	}
	table := New(routes, groups("acme"), defaults())
	item := routeapi.Item{ChatJID: "telegram:1", SenderName: strings.Repeat("a", routeapi.MaxField)}
	for b.Loop() {
		table.Resolve(b.Context(), &item, noEngagement{})
	}
}

func manyRoutes(n int) []msg.Route {
	routes := make([]msg.Route, n)
	for i := range routes {
		routes[i] = msg.Route{ID: int64(i + 1), Seq: int64(i), Match: fmt.Sprintf("chat_jid=telegram:-%d verb=mention", i), Target: "acme"}
	}
	return routes
}

// noEngagement is without any engagement.
type noEngagement struct{}

func (noEngagement) Engaged(context.Context, string, string, int64) string { return "" }
func (noEngagement) Claim(context.Context, string, string, string, int64)  {}
