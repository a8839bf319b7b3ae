package routecheck

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"arizuko/pkg/match"
	"arizuko/pkg/msg"
)

func groups(configs map[string]string) []msg.Group {
	var all []msg.Group
	for folder, config := range configs {
		all = append(all, msg.Group{Folder: folder, Config: json.RawMessage(config)})
	}
	slices.SortFunc(all, func(a, b msg.Group) int { return strings.Compare(a.Folder, b.Folder) })
	return all
}

func TestOpenings_Tables(t *testing.T) {
	registered := groups(map[string]string{
		"acme": `{}`, "acme/eng": `{}`, "listed": `{"access":["telegram:42"]}`, "operators": `{"access":[]}`,
		"open": `{"access":"everyone"}`, "odd": `{"observe":7}`, "broken": `{"access":7}`,
	})
	for name, tc := range map[string]struct {
		routes []string // "match → target"
		want   []string // "id folder", with "dm" and "observe" appended
	}{
		"the recipe":                    {[]string{"sender=telegram:42 → acme"}, nil},
		"a group chat":                  {[]string{"room=-100 verb=mention → acme", "room=-100 → acme#observe"}, nil},
		"a catch-all":                   {[]string{" → acme"}, []string{"1 acme dm"}},
		"a platform":                    {[]string{"platform=telegram → folder:acme#trigger"}, []string{"1 acme dm"}},
		"only mentions":                 {[]string{"verb=mention → acme"}, []string{"1 acme dm"}},
		"groups of telegram":            {[]string{"chat_jid=telegram:-* → acme"}, []string{"1 acme"}},
		"observing":                     {[]string{"platform=slack → acme#observe"}, []string{"1 acme dm observe"}},
		"no group":                      {[]string{" → builtin:drop", " → daemon:x", " → builtin:ping"}, nil},
		"access of a list":              {[]string{"platform=telegram → listed", "platform=slack → operators"}, nil},
		"access for everyone":           {[]string{"platform=telegram → open"}, []string{"1 open dm"}},
		"a mistake elsewhere in config": {[]string{"platform=telegram → odd"}, []string{"1 odd dm"}},
		"a mistake in access":           {[]string{"platform=telegram → broken"}, nil},
		"invalid routes":                {[]string{"sender=Ann → acme", " → gone", " → acme#later", "platfrom=x → acme"}, nil},
		"after a catch-all":             {[]string{"sender=telegram:42 → acme", " → builtin:drop", "platform=slack → acme"}, nil},
		"after a route for less":        {[]string{"verb=reply → builtin:drop", "platform=slack → acme"}, []string{"2 acme dm"}},
		"after the same":                {[]string{"verb=reply platform=slack → builtin:drop", "platform=slack verb=reply → acme"}, nil},
		"after an invalid catch-all":    {[]string{" → gone", "platform=slack → acme"}, []string{"2 acme dm"}},
		"after its platform":            {[]string{"platform=slack → builtin:drop", "chat_jid=slack:C* verb=mention → acme"}, nil},
		"after its account":             {[]string{"platform=slack account=work → builtin:drop", "chat_jid=slack+work:C* → acme"}, nil},
		"after another account":         {[]string{"platform=slack account= → builtin:drop", "chat_jid=slack+work:C* → acme"}, []string{"2 acme"}},
		"after all accounts":            {[]string{"platform=slack → builtin:drop", "chat_jid=slack+work:C* → acme"}, nil},
		"after another platform":        {[]string{"platform=slack → builtin:drop", "chat_jid=discord:* → acme"}, []string{"2 acme dm"}},
		"two routes":                    {[]string{"platform=slack → acme", "platform=telegram → acme/eng"}, []string{"1 acme dm", "2 acme/eng dm"}},
	} {
		var got []string
		for _, o := range Openings(routes(tc.routes), registered) {
			line := fmt.Sprint(o.Route, " ", o.Folder)
			if o.DMs {
				line += " dm"
			}
			if o.Observes {
				line += " observe"
			}
			got = append(got, line)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// routes numbers lines "match → target" from 1.
func routes(lines []string) []msg.Route {
	var all []msg.Route
	for i, line := range lines {
		expr, target, _ := strings.Cut(line, " → ")
		all = append(all, msg.Route{ID: int64(i + 1), Match: expr, Target: target})
	}
	return all
}

func TestOpenings_Order_IsThatOfTheTable(t *testing.T) {
	table := []msg.Route{{ID: 1, Seq: 5, Target: "acme"}, {ID: 2, Seq: 1, Target: "builtin:drop"}}
	if got := Openings(table, groups(map[string]string{"acme": `{}`})); got != nil {
		t.Errorf("%v, but route 2 comes first", got)
	}
	if table[0].ID != 1 {
		t.Error("the caller's routes were reordered")
	}
}

func TestReached_OtherGroupsByName(t *testing.T) {
	for name, tc := range map[string]struct {
		configs map[string]string
		want    []string
	}{
		"of the world":       {map[string]string{"acme": `{}`, "acme/eng": `{}`, "lone": `{}`}, []string{"acme", "acme/eng"}},
		"reach of its own":   {map[string]string{"acme": `{"reach":"none"}`, "acme/eng": `{}`}, []string{"acme"}},
		"a sibling's access": {map[string]string{"acme": `{}`, "acme/eng": `{"access":["slack:U1"]}`}, []string{"acme"}},
		"a sibling's reach":  {map[string]string{"acme": `{}`, "acme/eng": `{"reach":"none"}`}, []string{"acme", "acme/eng"}},
		"closed":             {map[string]string{"acme": `{"access":[]}`, "acme/eng": `{}`}, nil},
	} {
		registered := groups(tc.configs)
		var got []string
		for folder := range Reached(Openings(routes([]string{"platform=telegram → acme"}), registered), registered) {
			got = append(got, folder)
		}
		slices.Sort(got)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWarnings_Worded(t *testing.T) {
	registered := groups(map[string]string{"acme": `{}`, "acme/eng": `{}`})
	warnings := Warnings(routes([]string{"sender=*Lee → builtin:drop", "platform=slack room=C* → acme#observe", " → acme"}), registered)
	if warnings[0].Route != 2 || warnings[3].Route != 1 {
		t.Errorf("%+v", warnings)
	}
	got := Lines(warnings, 4)
	want := []string{
		"route 2 (platform=slack room=C*) only observes, but lets any user reach group acme by a text that begins with #name or @name: " +
			"match a sender or a room, or set roles.ask in the group's config",
		"route 3 (everything) lets any user reach group acme; direct messages of all of them share its sessions: " +
			"match a sender or a room, or set roles.ask in the group's config",
		`route 2 lets any user reach group acme/eng, too, by @name from the chats of acme: set "reach":"none" in the config of acme`,
		"route 1: sender=*Lee is compared with ids alone, such as telegram:42: use sender_name for a display name",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Warnings(nil, registered); got != nil {
		t.Errorf("without routes: %v", got)
	}
	var many []string
	for i := range 50 {
		many = append(many, fmt.Sprintf("room=%d* → acme", i))
	}
	warnings = Warnings(routes(many), registered)
	if got = Lines(warnings, 20); len(warnings) != 51 || len(got) != 21 || got[20] != "31 more warnings: see `routd check`" {
		t.Errorf("%d warnings, worded as %q", len(warnings), got)
	}
}

// A route that is not called open never gets a row of a stranger: of a user, in a chat, that no route
// names. Everything a stranger may choose is drawn: the platform, the kind of chat, the name, the verb.
func TestOpenings_AnyStranger_OnlyThroughThem(t *testing.T) {
	registered := groups(map[string]string{"acme": `{}`, "listed": `{"access":["telegram:42"]}`})
	pattern := func(exact ...string) *rapid.Generator[string] {
		return rapid.SampledFrom(append(exact, "*", "telegram*", "telegram:*", "*:*", "-*", "-100*", "dm-*", "C*", "D*", "?*", "[t-]*", "*9*", "*9"))
	}
	keys := map[string]*rapid.Generator[string]{
		"platform":    rapid.SampledFrom([]string{"telegram", "slack", "discord", "matrix", "web", "*", "tele*", "[ts]*"}),
		"room":        pattern("-1001", "42", "C1", "D1", "dm-1"),
		"chat_jid":    pattern("telegram:42", "slack:C1", "web:acme", "slack:D*", "web:*", "discord:dm-*"),
		"sender":      pattern("telegram:42", "slack:U1", "web:*", "slack:*"),
		"sender_name": rapid.SampledFrom([]string{"Ann", "*", "A*", ""}),
		"verb":        rapid.SampledFrom([]string{"message", "mention", "reply", "m*", "[^m]*", "reaction"}),
	}
	names := []string{"platform", "room", "chat_jid", "sender", "sender_name", "verb"}
	route := rapid.Custom(func(t *rapid.T) msg.Route {
		var tokens []string
		for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 3, rapid.ID).Draw(t, "keys") {
			tokens = append(tokens, key+"="+keys[key].Draw(t, key))
		}
		return msg.Route{
			Seq: rapid.Int64Range(0, 3).Draw(t, "seq"), Match: strings.Join(tokens, " "),
			Target: rapid.SampledFrom([]string{"acme", "acme", "acme#observe", "listed", "gone", "builtin:drop"}).Draw(t, "target"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		table := rapid.SliceOfN(route, 1, 8).Draw(t, "table")
		var rows []match.Row
		for i := range table {
			table[i].ID = int64(i + 1)
			if r := table[i]; r.Target != "gone" {
				rows = append(rows, match.Row{ID: r.ID, Seq: r.Seq, Match: r.Match, Target: r.Target})
			}
		}
		index, _ := match.Compile(rows)
		openings := Openings(table, registered)
		for range 20 {
			platform := rapid.SampledFrom([]string{"telegram", "discord", "slack", "matrix"}).Draw(t, "platform")
			id := fmt.Sprint(rapid.IntRange(900_000, 999_999).Draw(t, "id"))
			room := rapid.SampledFrom([]string{"", "-100", "dm-", "C", "D", "-"}).Draw(t, "kind") + id
			ev := match.EventOf(platform+":"+room, platform+":"+id,
				rapid.SampledFrom([]string{"", "Ann", "telegram:42", "slack:U1"}).Draw(t, "name"),
				rapid.SampledFrom([]string{"", "message", "mention", "reply", "reaction"}).Draw(t, "verb"))
			got := index.First(&ev)
			if got == nil || got.Target.Folder != "acme" {
				continue
			}
			at := slices.IndexFunc(openings, func(o Opening) bool { return o.Route == got.ID })
			if at < 0 {
				t.Fatalf("%+v gets route %d (%s), openings are %v", ev, got.ID, got.Match, openings)
			}
			if msg.KindOfJID(ev.ChatJID) == msg.ChatDM && !openings[at].DMs {
				t.Fatalf("the direct message %+v gets route %d (%s)", ev, got.ID, got.Match)
			}
		}
	})
}

func TestShadowed_EarlierRouteMatchesAll_Named(t *testing.T) {
	groups := []msg.Group{{Folder: "acme"}}
	routes := []msg.Route{
		{ID: 1, Seq: 1, Match: "platform=slack", Target: "acme"},
		{ID: 2, Seq: 2, Match: "chat_jid=slack:C1 verb=mention", Target: "acme"},
		{ID: 3, Seq: 2, Match: "chat_jid=telegram:-1 verb=mention", Target: "acme"},
		{ID: 4, Seq: 3, Match: "", Target: "gone"}, // matches nothing: not registered
		{ID: 5, Seq: 4, Match: "verb=mention chat_jid=telegram:-1", Target: "acme"},
		{ID: 6, Seq: 5, Match: "", Target: "daemon:onbod"},
		{ID: 7, Seq: 6, Match: "room=5", Target: "acme"},
		{ID: 8, Seq: 0, Match: "bad", Target: "acme"},
	}
	want := map[int64]int64{2: 1, 5: 3, 7: 6}
	if diff := cmp.Diff(want, Shadowed(routes, groups)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWarnings_Beside_DoesNotNameTheRoute(t *testing.T) {
	groups := groups(map[string]string{"acme": "{}", "acme/eng": "{}"})
	warnings := Warnings([]msg.Route{{ID: 77, Match: "platform=slack", Target: "acme"}, {ID: 78, Match: "sender=*Lee", Target: "acme"}}, groups)
	if len(warnings) != 4 {
		t.Errorf("%d warnings: %v", len(warnings), warnings)
	}
	for _, w := range warnings {
		if !strings.HasPrefix(w.Text, "route 7") || !strings.HasSuffix(w.Text, w.Beside) || strings.Contains(w.Beside, "route 7") {
			t.Errorf("%q beside its route is %q", w.Text, w.Beside)
		}
	}
}
