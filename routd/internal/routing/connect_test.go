package routing

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"arizuko/pkg/match"
	"arizuko/pkg/msg"
	"arizuko/pkg/routecheck"
)

func TestConnect_Place_BeforeWhatTakesAllAfterWhatIsSpecial(t *testing.T) {
	drop, onbod := "builtin:drop", "daemon:onbod"
	for name, tt := range map[string]struct {
		routes []msg.Route
		kind   msg.ChatKind
		before int64
		routed string // the group that the chat is connected to already, "" for none
	}{
		"empty table":     {nil, msg.ChatDM, 0, ""},
		"others' chats":   {[]msg.Route{{ID: 1, Match: "room=-2", Target: "main"}, {ID: 2, Match: "platform=slack", Target: "main"}}, msg.ChatDM, 0, ""},
		"catch-all":       {[]msg.Route{{ID: 1, Target: onbod}}, msg.ChatGroup, 1, ""},
		"drop of a user":  {[]msg.Route{{ID: 1, Match: "sender=telegram:6", Target: drop}, {ID: 2, Target: onbod}}, msg.ChatDM, 2, ""},
		"drop at the end": {[]msg.Route{{ID: 1, Target: onbod}, {ID: 2, Match: "sender=telegram:6", Target: drop}}, msg.ChatDM, 1, ""},
		"operator's":      {[]msg.Route{{ID: 1, Match: "sender=telegram:42", Target: "main"}}, msg.ChatDM, 0, ""},
		"by platform":     {[]msg.Route{{ID: 1, Match: "platform=telegram", Target: "main"}}, msg.ChatDM, 0, "main"},
		"any sender":      {[]msg.Route{{ID: 1, Match: "sender=*", Target: "main"}}, msg.ChatGroup, 0, "main"},
		"observed":        {[]msg.Route{{ID: 1, Match: "room=-1", Target: "main#observe"}}, msg.ChatGroup, 1, ""},
		"mentions":        {[]msg.Route{{ID: 1, Match: "room=-1 verb=mention", Target: "main"}}, msg.ChatGroup, 0, "main"},
		"mentions of dm":  {[]msg.Route{{ID: 1, Match: "room=-1 verb=mention", Target: "main"}}, msg.ChatDM, 1, ""},
		"all but called":  {[]msg.Route{{ID: 1, Match: "room=-1 verb=message", Target: "main"}}, msg.ChatGroup, 1, ""},
		"invalid":         {[]msg.Route{{ID: 1, Match: "rooom=-1", Target: "main"}, {ID: 2, Target: "gone"}}, msg.ChatDM, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			table := New(tt.routes, []msg.Group{{Folder: "main"}, {Folder: "fam"}}, msg.Impulse{})
			c, err := table.Connect("telegram:-1", tt.kind, "fam")
			var connected *ConnectedError
			switch {
			case errors.As(err, &connected) && connected.Folder == tt.routed:
			case err != nil || tt.routed != "":
				t.Errorf("%v, want connected to %q", err, tt.routed)
			case c.Before != tt.before:
				t.Errorf("before %d, want %d", c.Before, tt.before)
			}
		})
	}
}

func TestConnect_Repeated_AddsNothing(t *testing.T) {
	for kind, want := range map[msg.ChatKind]int{msg.ChatDM: 1, msg.ChatGroup: 3, msg.ChatChannel: 3} {
		groups := []msg.Group{{Folder: "fam"}}
		c, err := New(nil, groups, msg.Impulse{}).Connect("telegram:-1", kind, "fam")
		if err != nil || len(c.Routes) != want {
			t.Fatalf("%s: %+v, %v", kind, c, err)
		}
		for i := range c.Routes {
			c.Routes[i].ID = int64(i + 1)
			if _, err := routecheck.Route(c.Routes[i]); err != nil {
				t.Error(err)
			}
		}
		again, err := New(c.Routes, groups, msg.Impulse{}).Connect("telegram:-1", kind, "fam")
		if err != nil || len(again.Routes) > 0 || len(again.Shared) > 0 {
			t.Errorf("%s again: %+v, %v", kind, again, err)
		}
	}
}

func TestConnect_Shared_AreOtherRoutesToTheGroup(t *testing.T) {
	table := New([]msg.Route{
		{ID: 1, Match: "chat_jid=telegram:42", Target: "fam"}, {ID: 2, Match: "room=-2 verb=mention", Target: "fam#trigger"},
		{ID: 3, Match: "room=-2", Target: "folder:fam#observe"}, {ID: 4, Match: "room=-2", Target: "fam#observe"},
		{ID: 5, Match: "room=-3", Target: "main"}, {ID: 6, Match: "bad", Target: "fam"},
	}, []msg.Group{{Folder: "main"}, {Folder: "fam"}}, msg.Impulse{})
	c, err := table.Connect("telegram:-1", msg.ChatDM, "fam")
	if want := []string{"chat_jid=telegram:42", "room=-2 verb=mention", "room=-2"}; err != nil || !slices.Equal(c.Shared, want) {
		t.Errorf("%q, %v", c.Shared, err)
	}
}

// Whatever the address, its routes take its messages and those of no other chat.
func TestConnect_AnyAddress_TakesThatChatAlone(t *testing.T) {
	address := rapid.StringMatching(`[a-z]{1,3}:[!-~]{1,6}`)
	rapid.Check(t, func(t *rapid.T) {
		jid, other := address.Draw(t, "jid"), address.Draw(t, "other")
		c, err := New(nil, []msg.Group{{Folder: "fam"}}, msg.Impulse{}).Connect(jid, msg.ChatGroup, "fam")
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.Routes {
			c.Routes[i].ID = int64(i + 1)
		}
		table := New(c.Routes, []msg.Group{{Folder: "fam"}}, msg.Impulse{})
		for verb, want := range map[string]string{"message": "fam#observe", "mention": "fam", "reply": "fam", "reaction": "fam#observe"} {
			ev := match.EventOf(jid, "x:1", "X", verb)
			if r := table.index.First(&ev); r == nil || r.Target.String() != want {
				t.Fatalf("%s in %q: %+v", verb, jid, r)
			}
		}
		if ev := match.EventOf(other, "x:1", "X", "mention"); other != jid && table.index.First(&ev) != nil {
			t.Fatalf("the routes of %q take %q", jid, other)
		}
	})
}
