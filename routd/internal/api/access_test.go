package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"arizuko/gated/gatedtest"

	"arizuko/pkg/apierr"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

type access struct {
	ChatJID  string `json:"chat_jid"`
	Kind     msg.ChatKind
	Operator bool
	Pinned   string
	Home     *struct {
		Folder         string
		Roles          groupconfig.Roles
		Admitted, Pins bool
		Reaches        []string
	}
	Rows []struct {
		Verb     string
		Answer   routeapi.Answer
		Admitted bool
		Rate     int
	}
}

func (f *fixture) access(t *testing.T, chat, sender string) (a access) {
	t.Helper()
	query := url.Values{"jid": {chat}, "sender": {sender}}
	if err := json.Unmarshal([]byte(f.must(t, 200, "GET", "/v1/access?"+query.Encode(), "")), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAccess_Senders_ByRouteAndConfig(t *testing.T) {
	f := newFixture(t)
	f.must(t, 201, "POST", "/v1/groups", `{"folder":"acme","config":{"rate":5}}`)
	f.must(t, 201, "POST", "/v1/groups", `{"folder":"acme/eng","config":{"access":["telegram:42"],"pin":"operators"}}`)
	f.must(t, 201, "POST", "/v1/groups", `{"folder":"lone"}`)
	f.must(t, 201, "POST", "/v1/routes", `{"match":"chat_jid=telegram:-1 verb=mention","target":"acme/eng"}`)
	f.must(t, 201, "POST", "/v1/routes", `{"match":"sender=telegram:42","target":"acme"}`)
	if err := f.st.Write(t.Context(), func(tx *store.Tx) error { // as gated does
		if err := gatedtest.PutOperatorCode(tx, &gatedtest.OperatorCode{Hash: "h", By: "web:operator", ExpiresAt: 2}, 1); err != nil {
			return err
		}
		return gatedtest.AddOperator(tx, "telegram:2", "h", 1)
	}); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		chat, sender string
		want         string // folder, "!" if not admitted, rate: of message and mention; then the groups by @name
	}{
		"of the list, in a chat":  {"telegram:-1", "telegram:42", "acme/5 acme/eng/60 acme/eng"},
		"in a direct message":     {"telegram:42", "telegram:42", "acme/5 acme/5 acme/eng"},
		"not of the list":         {"telegram:-1", "telegram:7", "/0 acme/eng!/60 "},
		"a stranger":              {"telegram:998", "telegram:998", "/0 /0 "},
		"an operator":             {"telegram:-1", "telegram:1", "/0 acme/eng/0 acme lone"},
		"an operator by a code":   {"telegram:-1", "telegram:2", "/0 acme/eng/0 acme lone"},
		"the web chat's operator": {"web:acme/eng", msg.WebOperator, "acme/eng/0 acme/eng/0 acme lone"},
	} {
		a := f.access(t, tc.chat, tc.sender)
		var got []string
		for _, row := range a.Rows[:2] {
			folder := row.Answer.Folder
			if !row.Admitted {
				folder += "!"
			}
			got = append(got, fmt.Sprint(folder, "/", row.Rate))
		}
		var reaches []string
		if a.Home != nil {
			reaches = a.Home.Reaches
		}
		if line := strings.Join(append(got, strings.Join(reaches, " ")), " "); line != tc.want {
			t.Errorf("%s: %q, want %q", name, line, tc.want)
		}
	}
}

func TestAccess_PinAndEngagement_Decide(t *testing.T) {
	f := newFixture(t)
	f.must(t, 201, "POST", "/v1/groups", `{"folder":"acme","config":{"pin":"operators","access":["telegram:7"],"roles":{"operate":"operators"}}}`)
	f.must(t, 201, "POST", "/v1/groups", `{"folder":"ops"}`)
	f.must(t, 201, "POST", "/v1/routes", `{"match":"sender=telegram:42","target":"acme"}`)
	f.must(t, 200, "POST", "/v1/engagement", `{"jid":"telegram:-1","topic":"","folder":"acme"}`)
	a := f.access(t, "telegram:-1", "telegram:7")
	if got := a.Rows[0].Answer; got.Folder != "acme" || got.Reason != msg.ReasonEngaged || !slices.Contains(got.Trace, "acme is engaged here") {
		t.Errorf("a member of a chat where a group is engaged: %+v", got)
	}
	if a.Home.Pins || a.Home.Roles.Operate == nil || len(a.Home.Roles.Ask) != 1 {
		t.Errorf("%+v: only operators pin and operate, one user may ask", a.Home)
	}
	err := f.st.Write(t.Context(), func(tx *store.Tx) error {
		if err := tx.PutChat("telegram:-2", msg.ChatGroup, "", 1); err != nil {
			return err
		}
		return gatedtest.PinGroup(tx, "telegram:-2", "ops", 1)
	})
	if err != nil {
		t.Fatal(err)
	}
	a = f.access(t, "telegram:-2", "telegram:7")
	if a.Pinned != "ops" || a.Rows[0].Answer.Reason != msg.ReasonToSticky || !a.Home.Pins || a.Home.Folder != "ops" {
		t.Errorf("a pinned chat: %+v", a)
	}
}

func TestAccess_InvalidQuery_BadRequest(t *testing.T) {
	f := newFixture(t)
	f.refused(t, apierr.BadRequest, "is not platform:user", "GET", "/v1/access?jid=telegram:1&sender=Ann", "")
	f.refused(t, apierr.BadRequest, "is not platform:room", "GET", "/v1/access?sender=telegram:1", "")
}
