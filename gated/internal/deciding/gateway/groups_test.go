package gateway

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store/storetest"
)

// album makes a row one of a group, with a picture.
func album(m *msg.Message) {
	m.GroupKey = "album:1"
	m.Attachments = []msg.Attachment{{Name: m.PlatformID + ".jpg", MIME: "image/jpeg", Path: "media/x"}}
}

// paste makes a row a piece of a text.
func paste(m *msg.Message) { m.GroupKey = "paste:1" }

// forMentions lets routd route mentions alone, and rows that name their group.
func (h *harness) forMentions() {
	h.routd.route(func(it routeapi.Item, a *routeapi.Answer) {
		if it.Verb != msg.VerbMention && it.Folder == "" {
			a.Action, a.Reason = routeapi.Observe, msg.ReasonRouteObserve
		}
	})
}

func TestGroup_Prefix_HoldsForAllRows(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		texts []string
		topic string
		to    string
		want  []string
	}{
		"a topic before the caption": {[]string{"#fix these", "", ""}, "#fix", "main", []string{"these", "", ""}},
		"a topic as the caption":     {[]string{"", "#fix", ""}, "#fix", "main", []string{"", "", ""}},
		"a group":                    {[]string{"@eng look", "", ""}, "", "main/eng", []string{"look", "", ""}},
		"pieces of a text":           {[]string{"#fix one", "/stop", "#other two"}, "#fix", "main", []string{"one", "/stop", "#other two"}},
		"a caption without one":      {[]string{"look", "#fix", "@eng x"}, "", "main", []string{"look", "#fix", "@eng x"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := parallel(t)
			var rows []*msg.Message
			for _, text := range tt.texts {
				rows = append(rows, h.put(text, album))
				h.step()
			}
			h.wait(time.Second)
			if turns := h.agents.turns; len(turns) != 1 || turns[0].Topic != tt.topic || turns[0].Folder != tt.to {
				t.Fatalf("turns %+v, want one in %q of %s\n%s", turns, tt.topic, tt.to, h.log.String())
			}
			taken := storetest.Must(factrows.TurnMessages(t.Context(), h.st.Reader, h.agents.turns[0].ID))(t)
			for i, m := range taken {
				if len(m.Attachments) != 1 || m.Attachments[0].Name != rows[i].Attachments[0].Name {
					t.Errorf("row %d of the turn has the files %+v", i, m.Attachments)
				}
			}
			diff(t, "turns", h.dispatched(), [][]string{tt.want})
			if chat, err := h.st.Chat(t.Context(), dm); err != nil || chat != nil && chat.StickyTopic != "" {
				t.Errorf("chat %+v, %v", chat, err)
			}
		})
	}
}

func TestGroup_NewWithText_AsksAboutAllRows(t *testing.T) {
	h := parallel(t)
	before := h.put("before", func(m *msg.Message) { m.GroupKey = "other" }) // held, too
	first := h.take("", album)
	head := h.put("/new describe", album)
	h.step()
	third := h.take("", album)
	h.is(head, "")
	after := h.put("after")
	h.wait(time.Second)
	for _, m := range []*msg.Message{first, third} {
		h.is(m, "command/grouped main")
	}
	h.is(head, "command/command main")
	h.are("routed/route main", before, after)
	diff(t, "turns", h.dispatched(), [][]string{{"before"}, {"", "describe", ""}, {"after"}})
	late := h.put("", album)
	h.wait(time.Second)
	h.is(late, "prefix/grouped main")
}

// TestGroup_Command: mere text ends with its command, and pictures are looked at.
func TestGroup_Command(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text       string
		of         func(*msg.Message)
		head, rest string
		turns      [][]string
	}{
		{"/ping", paste, "command/command ", "command/grouped ", nil},
		{"/help", paste, "command/command ", "command/grouped ", nil},
		{"/new", paste, "command/command main", "command/grouped ", nil},
		{"/new", album, "command/command main", "command/grouped main", [][]string{{"", "", ""}}},
		{"/ping", album, "routed/route main", "routed/route main", [][]string{{"", "/ping", ""}}},
		{"/chatid", album, "routed/route main", "routed/route main", [][]string{{"", "/chatid", ""}}},
	} {
		h := newHarness(t)
		first := h.take("", tt.of)
		head := h.put(tt.text, tt.of)
		h.step()
		third := h.put("", tt.of)
		h.wait(time.Second)
		h.is(head, tt.head)
		h.is(first, tt.rest)
		h.is(third, tt.rest)
		diff(t, "turns after "+tt.text, h.dispatched(), tt.turns)
	}
}

func TestGroup_CommandOfIgnoredSender_IsDropped(t *testing.T) {
	h := parallel(t)
	h.routd.route(func(_ routeapi.Item, a *routeapi.Answer) {
		a.Action, a.Target, a.Reason, a.Folder = routeapi.Builtin, "builtin:drop", msg.ReasonBuiltinDrop, ""
	})
	h.put("/ping", album)
	follower := h.put("text", album)
	h.wait(time.Second)
	h.is(follower, "dropped/builtin_drop ")
}

func TestGroup_EditOfHeldCaption_MentionsTheBot(t *testing.T) {
	h := parallel(t)
	h.forMentions()
	caption := h.put("look", album)
	h.take("", album)
	h.put("look now", verb(msg.VerbEdit), on(caption), func(m *msg.Message) { m.Addressed = true })
	h.step()
	h.wait(time.Second)
	diff(t, "turns", h.dispatched(), [][]string{{"look now", ""}})
}

func TestGroup_LateRow_FollowsItsHead(t *testing.T) {
	h := parallel(t)
	h.forMentions()
	head := h.put("#fix these", album, verb(msg.VerbMention))
	h.wait(time.Second)
	diff(t, "turns", h.dispatched(), [][]string{{"these"}})
	h.restart()
	h.clock = h.clock.Add(time.Hour)
	late := h.put("", album)
	h.wait(time.Second)
	h.is(late, "prefix/grouped main")
	derived, err := h.st.DerivedFrom(t.Context(), late.ID)
	if err != nil || len(derived) != 1 {
		t.Fatalf("derived %+v, %v", derived, err)
	}
	turn, err := h.st.Turn(t.Context(), derived[0].TurnID)
	if err != nil || turn.Topic != "#fix" || turn.ReplyTo != head.PlatformID {
		t.Errorf("turn %+v, %v", turn, err)
	}
}

func TestGroup_OtherSender_DoesNotFollow(t *testing.T) {
	h := parallel(t)
	h.forMentions()
	h.put("look", album, verb(msg.VerbMention))
	other := h.put("", album, from("telegram:8"))
	h.wait(time.Second)
	h.is(other, "observed/route_observe main")
}

// TestGroup_AnyArrival_IsOneTurn: whichever row mentions the bot, however the rows are spread over
// passes and starts of gated, a group whose rows come within a second of each other is one turn, which answers the one
// that mentions the bot.
func TestGroup_AnyArrival_IsOneTurn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		h := newHarness(t)
		h.forMentions()
		count := rapid.IntRange(1, 6).Draw(r, "rows")
		mention := rapid.IntRange(0, count-1).Draw(r, "mention")
		var want []string
		var called *msg.Message
		for i := range count {
			text := fmt.Sprint("row ", i)
			m := h.put(text, paste, func(m *msg.Message) {
				if i == mention {
					m.Verb = msg.VerbMention
				}
			})
			if i == mention {
				called = m
			}
			want = append(want, text)
			if rapid.Bool().Draw(r, "another") {
				h.put("of another", from("telegram:8"))
			}
			switch rapid.IntRange(0, 2).Draw(r, "then") {
			case 0:
				h.step()
			case 1:
				h.restart()
			}
			h.wait(time.Duration(rapid.IntRange(0, 800).Draw(r, "pause")) * time.Millisecond)
		}
		h.wait(time.Second)
		if turns := h.agents.turns; len(turns) != 1 || turns[0].ReplyTo != called.PlatformID ||
			turns[0].TriggerMessageID != called.ID || !turns[0].ClaimsEngagement {
			r.Fatalf("turns %+v, want one that answers row %d", turns, called.ID)
		}
		if got := h.dispatched(); len(got) != 1 || !slices.Equal(got[0], want) {
			r.Fatalf("turns %q, want one of %q", got, want)
		}
	})
}
