package msg

import (
	"strings"
	"testing"
)

func TestJID_OfFurtherAccount(t *testing.T) {
	for _, tt := range []struct{ jid, family, account, daemon string }{
		{"telegram:-5", "telegram", "", "teled"},
		{"telegram+work:-5", "telegram", "work", "teled+work"},
		{"discord+a-1_b:dm-5", "discord", "a-1_b", "discd+a-1_b"},
		{"slack+2:C5", "slack", "2", "slakd+2"},
		{"web:acme", "web", "", "dashd"},
		{"group:acme", "group", "", ""},
		{"matrix+work:!a:b", "matrix", "work", ""},
		// Addresses may come from foreign adapters: a daemon's name is part of a path.
		{"telegram+:5", "telegram", "", ""},
		{"telegram+../x:5", "telegram", "../x", ""},
		{"telegram+a+b:5", "telegram", "a+b", ""},
		{"telegram+Work:5", "telegram", "Work", ""},
		{"web+work:acme", "web", "work", ""},
	} {
		if family, account, daemon := FamilyOf(tt.jid), AccountOf(tt.jid), DaemonOf(tt.jid); family != tt.family || account != tt.account || daemon != tt.daemon {
			t.Errorf("%s: family %q, account %q, daemon %q", tt.jid, family, account, daemon)
		}
	}
}

func TestWithAccount_IsCutAgain(t *testing.T) {
	for _, account := range []string{"", "work"} {
		if base, got := SplitAccount(WithAccount("teled", account)); base != "teled" || got != account {
			t.Errorf("%q becomes %q and %q", account, base, got)
		}
	}
}

func TestIsAccount_AllowsWhatAddressesAndFileNamesCanContain(t *testing.T) {
	for _, name := range []string{"work", "2", "a-b_c", strings.Repeat("a", 32)} {
		if !IsAccount(name) {
			t.Errorf("%q is refused", name)
		}
	}
	for _, name := range []string{"", "Work", "-work", "_", "a.b", "a/b", "a+b", "a:b", "a b", "ä", strings.Repeat("a", 33)} {
		if IsAccount(name) {
			t.Errorf("%q is accepted", name)
		}
	}
}

// The form of answers depends on the platform, whatever the account.
func TestFamily_FurtherAccount_IsTreatedLikeTheFirst(t *testing.T) {
	for _, room := range []string{"telegram:-5", "telegram:5", "telegram:-5.7", "discord:7", "discord:dm-7", "slack:C5", "slack:D5", "matrix:!a"} {
		platform, id := SplitJID(room)
		other := JID(WithAccount(platform, "work"), id)
		kind := KindOfJID(room)
		type traits struct {
			kind               ChatKind
			surface, threaded  Surface
			fork               string
			links, opensThread bool
			polls              PollLimits
			upload             int64
			place              string
		}
		of := func(jid string) (is traits) {
			is.kind, is.surface, is.threaded = KindOfJID(jid), SurfaceOf(jid, kind, ""), SurfaceOf(jid, kind, "1.2")
			is.fork, is.links = ForkThread(jid, kind, "1.2"), LinksReplies(jid, "1.2")
			is.opensThread = OpensThread(jid, kind, VerbMention, "")
			is.polls, _ = PollLimitsOf(jid)
			is.upload, is.place = MaxUpload(jid, true), BroadcastPlace(jid, "1.2")
			return is
		}
		if a, b := of(room), of(other); a != b {
			t.Errorf("%s: %+v\n%s: %+v", room, a, other, b)
		}
	}
}

func TestIsOperator_IdOfAnotherAccount_IsNone(t *testing.T) {
	operators := map[string]bool{"slack:U1": true, "telegram+work:42": true}
	for sender, want := range map[string]bool{"slack:U1": true, "slack+work:U1": false, "telegram+work:42": true, "telegram:42": false} {
		if got := IsOperator(operators, "slack:C1", sender); got != want {
			t.Errorf("%s is an operator: %t", sender, got)
		}
	}
}
