package groupconfig

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadMembers(t *testing.T) {
	defaults := Members{Rate: DefaultRate}
	tests := []struct {
		config string
		want   Members
		valid  bool
	}{
		{`{}`, defaults, true},
		{`{"access":"everyone","reach":"world","pin":"everyone"}`, defaults, true},
		{`{"rate":0}`, Members{}, true},
		{`{"access":["telegram:42"],"rate":3,"reach":"none","pin":"operators"}`,
			Members{Access: Access{"telegram:42"}, Rate: 3, OwnGroup: true, NoPins: true}, true},
		{`{"access":[]}`, Members{Access: Access{}, Rate: DefaultRate}, true},
		{`{"access":["telegram:42"],"modle":"m"}`, Members{Access: Access{"telegram:42"}, Rate: DefaultRate}, false},
		{`{"observe":7}`, defaults, false},
		{`{"access":["telegram:42",7]}`, Members{Access: Access{}, Rate: DefaultRate}, false},
		{`{"access":["telegram:42","dan"]}`, Members{Access: Access{}, Rate: DefaultRate}, false},
		{`{"access":{}}`, Members{Access: Access{}, Rate: DefaultRate}, false},
		{`{"access":["telegram:42"],"rate":-1}`, Members{Access: Access{"telegram:42"}, Rate: DefaultRate}, false},
		{`{"reach":"no","pin":7}`, Members{Rate: DefaultRate, OwnGroup: true, NoPins: true}, false},
		{`{"reach":null,"pin":null}`, Members{Rate: DefaultRate, OwnGroup: true, NoPins: true}, false},
		{`[]`, Members{Access: Access{}, Rate: DefaultRate}, false},
		{`{`, Members{Access: Access{}, Rate: DefaultRate}, false},
		{``, Members{Access: Access{}, Rate: DefaultRate}, false},
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
	listed := Members{Access: Access{"telegram:42"}}
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
		{"empty list", Members{Access: Access{}}, "telegram:42", false, false},
		{"operator of a closed group", Members{Access: Access{}}, "telegram:42", true, true},
	}
	for _, tt := range tests {
		if got := tt.members.Admits(tt.sender, tt.operator); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestAccess_JSON_ComesBackAsItWas(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Access{`"everyone"`: nil, `[]`: {}, `["telegram:42","slack:U0AB"]`: {"telegram:42", "slack:U0AB"}} {
		var got Access
		if err := json.Unmarshal([]byte(text), &got); err != nil || !cmp.Equal(want, got) || got.String() != text {
			t.Errorf("%s is read as %#v, %v, and written as %s", text, got, err, got)
		}
	}
	var got Access
	if err := json.Unmarshal([]byte(`null`), &got); err != nil || got == nil || (Members{Access: got}).Admits("telegram:42", false) {
		t.Errorf("null admits a sender: %#v, %v", got, err)
	}
	if err := json.Unmarshal([]byte(`"all"`), &got); err == nil || (Members{Access: got}).Admits("telegram:42", false) {
		t.Errorf("a word is read as %#v, %v", got, err)
	}
}
