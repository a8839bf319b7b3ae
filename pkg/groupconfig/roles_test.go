package groupconfig

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRole_JSON_ComesBackAsItWas(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Role{
		`"everyone"`: only(Everyone), `"operators"`: {}, `["telegram:42","slack:U0AB"]`: only("telegram:42", "slack:U0AB"),
		`["telegram:7",{"who":"telegram:42","hosts":["api.github.com"],"tools":["Bash"]}]`: {{Who: "telegram:7"}, {"telegram:42", []string{"api.github.com"}, []string{"Bash"}}},
		`[{"who":"telegram:42","hosts":[]}]`:                                               {{Who: "telegram:42", Hosts: []string{}}},
	} {
		var got Role
		err := json.Unmarshal([]byte(text), &got)
		if again, _ := json.Marshal(got); err != nil || !cmp.Equal(want, got) || string(again) != text {
			t.Errorf("%s is read as %#v, %v, and written as %s", text, got, err, again)
		}
	}
	for _, text := range []string{`null`, `"all"`, `7`, `["telegram:42",7]`, `[{"who":"telegram:42","host":["x"]}]`, `["everyone"]`} {
		got := only(Everyone)
		if err := json.Unmarshal([]byte(text), &got); got == nil || len(got) > 0 || (err == nil) != (text == "null") {
			t.Errorf("%s is read as %#v, %v", text, got, err)
		}
	}
}

func TestRole_For_LeavesOutThoseWhoseLimitsDoNotFit(t *testing.T) {
	t.Parallel()
	role := Role{
		{Who: "a:all"}, {Who: "a:host", Hosts: []string{"api.github.com"}}, {Who: "a:below", Hosts: []string{"*.github.com"}},
		{Who: "a:tool", Tools: []string{"Bash"}}, {Who: "a:none", Hosts: []string{}},
	}
	for about, want := range map[Subject][]string{
		{}:                         {"a:all"},
		{Host: "api.github.com"}:   {"a:all", "a:host", "a:below"},
		{Host: "x.api.github.com"}: {"a:all", "a:below"},
		{Host: "github.com"}:       {"a:all"},
		{Host: "evilgithub.com"}:   {"a:all"},
		{Tool: "Bash"}:             {"a:all", "a:tool"},
		{Tool: "bash"}:             {"a:all"},
	} {
		if got := role.For(about).Senders(); !slices.Equal(got, want) {
			t.Errorf("%+v: %v, want %v", about, got, want)
		}
	}
	if got := role[1:2].For(Subject{}); got == nil || len(got) > 0 {
		t.Errorf("without those who fit it is %#v, which is not operators alone", got)
	}
	if Role(nil).For(Subject{}) != nil {
		t.Error("a role that is not set is set")
	}
}

func TestRoles_Lines(t *testing.T) {
	t.Parallel()
	name := func(sender string) string { return map[string]string{"telegram:42": "Ann"}[sender] }
	who := func(r Roles) (all []string) {
		for _, l := range r.Lines(name) {
			all = append(all, l.Name+": "+l.Who)
		}
		return all
	}
	differ(t, who(Roles{}), "ask: everyone", "approve: operators, and in a direct message its user", "operate: operators; until it is set, everyone may stop")
	differ(t, who(Roles{Ask: Role{}, Approve: Role{{Who: "telegram:42", Hosts: []string{"a.example"}, Tools: []string{"Bash"}}, {Who: "slack:U1"}}, Operate: only(Everyone)}),
		"ask: operators", "approve: operators and Ann, telegram:42 (a.example, Bash); slack:U1", "operate: everyone")
	many := make([]string, maxListed+3)
	for i := range many {
		many[i] = "telegram:42"
	}
	if got := only(many...).Words("the approvers of this group", nil); !strings.HasPrefix(got, "operators and the approvers of this group (telegram:42; ") ||
		!strings.HasSuffix(got, "; and 3 more)") {
		t.Errorf("many: %s", got)
	}
}

func differ(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
