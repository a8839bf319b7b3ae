package groupconfig

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// only is a role of senders.
func only(senders ...string) (r Role) {
	for _, s := range senders {
		r = append(r, Grant{Who: s})
	}
	return r
}

func TestReadMembers(t *testing.T) {
	defaults, none := Members{Rate: DefaultRate}, Roles{Ask: Role{}, Approve: Role{}, Operate: Role{}}
	tests := []struct {
		config string
		want   Members
		valid  bool
	}{
		{`{}`, defaults, true},
		{`{"access":"everyone","reach":"world","pin":"everyone"}`, Members{Roles: Roles{Ask: only(Everyone)}, Rate: DefaultRate}, true},
		{`{"roles":{"ask":["telegram:42"],"approve":["dan"],"operate":["telegram:7"]}}`,
			Members{Roles: Roles{Ask: only("telegram:42"), Approve: Role{}, Operate: only("telegram:7")}, Rate: DefaultRate}, false},
		{`{"roles":7,"access":"everyone"}`, Members{Roles: none, Rate: DefaultRate}, false},
		{`{"roles":{"ask":["telegram:42"],"operate":{}},"access":["telegram:42"]}`, Members{Roles: Roles{Ask: Role{}, Operate: Role{}}, Rate: DefaultRate}, false},
		{`{"rate":0}`, Members{}, true},
		{`{"access":["telegram:42"],"rate":3,"reach":"none","pin":"operators"}`,
			Members{Roles: Roles{Ask: only("telegram:42")}, Rate: 3, OwnGroup: true, NoPins: true}, true},
		{`{"access":[]}`, Members{Roles: Roles{Ask: Role{}}, Rate: DefaultRate}, true},
		{`{"access":["telegram:42"],"modle":"m"}`, Members{Roles: Roles{Ask: only("telegram:42")}, Rate: DefaultRate}, false},
		{`{"observe":7}`, defaults, false},
		{`{"access":["telegram:42",7]}`, Members{Roles: Roles{Ask: Role{}}, Rate: DefaultRate}, false},
		{`{"access":["telegram:42","dan"]}`, Members{Roles: Roles{Ask: Role{}}, Rate: DefaultRate}, false},
		{`{"access":{}}`, Members{Roles: Roles{Ask: Role{}}, Rate: DefaultRate}, false},
		{`{"access":["telegram:42"],"rate":-1}`, Members{Roles: Roles{Ask: only("telegram:42")}, Rate: DefaultRate}, false},
		{`{"reach":"no","pin":7}`, Members{Rate: DefaultRate, OwnGroup: true, NoPins: true}, false},
		{`{"reach":null,"pin":null}`, Members{Rate: DefaultRate, OwnGroup: true, NoPins: true}, false},
		{`[]`, Members{Roles: none, Rate: DefaultRate}, false},
		{`{`, Members{Roles: none, Rate: DefaultRate}, false},
		{``, Members{Roles: none, Rate: DefaultRate}, false},
	}
	for _, tt := range tests {
		got, err := ReadMembers(json.RawMessage(tt.config))
		if diff := cmp.Diff(tt.want, got); diff != "" || (err == nil) != tt.valid {
			t.Errorf("%s: error %v (-want +got):\n%s", tt.config, err, diff)
		}
	}
}

func TestReadMembers_TooManySenders_AdmitsOperatorsAlone(t *testing.T) {
	many := make([]string, maxSenders+1)
	for i := range many {
		many[i] = fmt.Sprintf(`"telegram:%d"`, i)
	}
	m, err := ReadMembers(json.RawMessage(`{"access":[` + strings.Join(many, ",") + `]}`))
	if err == nil || m.Admits("telegram:1", false) || !m.Admits("telegram:1", true) {
		t.Errorf("%v, %v", m.Admits("telegram:1", false), err)
	}
}

func TestMembers_Admits(t *testing.T) {
	listed := Members{Roles: Roles{Ask: only("telegram:42")}}
	tests := []struct {
		name     string
		members  Members
		sender   string
		operator bool
		want     bool
	}{
		{"everyone", Members{}, "telegram:7", false, true},
		{"listed", listed, "telegram:42", false, true},
		{"not listed", listed, "telegram:7", false, false},
		{"longer id", listed, "telegram:420", false, false},
		{"other platform", listed, "discord:42", false, false},
		{"other account", listed, "telegram+work:42", false, false},
		{"no sender", listed, "", false, false},
		{"operator", listed, "telegram:7", true, true},
		{"everyone by name", Members{Roles: Roles{Ask: only(Everyone)}}, "telegram:7", false, true},
		{"empty list", Members{Roles: Roles{Ask: Role{}}}, "telegram:42", false, false},
		{"operator of a closed group", Members{Roles: Roles{Ask: Role{}}}, "telegram:42", true, true},
	}
	for _, tt := range tests {
		if got := tt.members.Admits(tt.sender, tt.operator); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestMembers_Admin(t *testing.T) {
	c, err := Parse(json.RawMessage(`{"roles":{"ask":"platform admins","approve":["telegram:1",{"who":"platform admins","hosts":["a.test"]}],"operate":["telegram:1","platform admins"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	m := c.Members()
	own := m
	own.Admin = "telegram:7"
	for sender, admin := range map[string]bool{"telegram:7": true, "telegram:8": false, "": false, PlatformAdmins + "s": false} {
		if m.Admits(sender, false) || m.Operates(sender) || own.Admits(sender, false) != admin || own.Operates(sender) != admin {
			t.Errorf("%s: admits %t, then %t; operates %t, then %t", sender, m.Admits(sender, false), own.Admits(sender, false), m.Operates(sender), own.Operates(sender))
		}
	}
	if own.Roles.Operate = nil; own.Operates("telegram:7") || !m.NameAdmins() || (Members{Roles: Roles{Ask: only("telegram:7")}}).NameAdmins() {
		t.Errorf("without the role: %+v", own)
	}
	if got := m.Roles.Approve.Words("the approvers", func(string) string { return "Ann" }); got !=
		"operators and the approvers (Ann, telegram:1; platform admins (a.test))" {
		t.Error(got)
	}
}
