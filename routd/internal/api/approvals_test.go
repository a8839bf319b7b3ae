package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"arizuko/pkg/apierr"
	"arizuko/pkg/chatmove"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

const approvals = routeapi.ApprovalPath

func (f *fixture) approve(t testing.TB, body string) (done routeapi.Approved) {
	t.Helper()
	if err := json.Unmarshal([]byte(f.must(t, 200, "POST", approvals, body)), &done); err != nil {
		t.Fatal(err)
	}
	return done
}

func TestApprove_NewGroupChat_AnswersWhenCalledAndObserves(t *testing.T) {
	f := newFixture(t)
	body := `{"code":"ABCD-1234","chat_jid":"telegram:-1","kind":"group","folder":"fam","by":"telegram:42"}`
	done := f.approve(t, body)
	if !done.Created || len(done.Routes) != 3 || done.Folder != "fam" || done.ChatJID != "telegram:-1" {
		t.Errorf("%+v", done)
	}
	for verb, action := range map[string]routeapi.Action{"mention": routeapi.Trigger, "reply": routeapi.Trigger, "": routeapi.Observe} {
		if a := f.resolve(t, routeapi.Item{ChatJID: "telegram:-1", Verb: verb}); a.Action != action || a.Folder != "fam" {
			t.Errorf("%q: %+v", verb, a)
		}
	}
	again := f.approve(t, body)
	if again.Created || len(again.Routes) != 0 {
		t.Errorf("again: %+v", again)
	}
	if !strings.Contains(f.log.String(), "chat connected") {
		t.Errorf("log: %s", &f.log)
	}
}

func TestApprove_DirectChat_OneRouteAheadOfTheCatchAll(t *testing.T) {
	f := newFixture(t)
	f.must(t, 201, "POST", "/v1/routes", `{"match":"sender=telegram:6","target":"builtin:drop"}`)
	f.must(t, 201, "POST", "/v1/routes", `{"target":"daemon:onbod"}`)
	f.approve(t, `{"code":"ABCD-1234","chat_jid":"telegram:7","folder":"ada","by":"telegram:42"}`)
	for sender, action := range map[string]routeapi.Action{"telegram:7": routeapi.Trigger, "telegram:6": routeapi.Builtin} {
		if a := f.resolve(t, routeapi.Item{ChatJID: "telegram:7", Sender: sender}); a.Action != action {
			t.Errorf("%s: %+v", sender, a)
		}
	}
	if a := f.resolve(t, routeapi.Item{ChatJID: "telegram:8"}); a.Target != "daemon:onbod" {
		t.Errorf("another chat: %+v", a)
	}
}

func TestApprove_ExistingGroup_SaysWhatItShares(t *testing.T) {
	f := newFixture(t)
	f.must(t, 201, "POST", "/v1/groups", `{"folder":"main","config":{"rate":5}}`)
	f.must(t, 201, "POST", "/v1/routes", `{"match":"sender=telegram:42","target":"main"}`)
	done := f.approve(t, `{"code":"ABCD-1234","chat_jid":"telegram:7","folder":"main","by":"telegram:42"}`)
	if done.Created || len(done.Routes) != 1 || len(done.Shared) != 1 || done.Shared[0] != "sender=telegram:42" {
		t.Errorf("%+v", done)
	}
	if got := f.must(t, 200, "GET", "/v1/groups/main", ""); !strings.Contains(got, `"rate":5`) {
		t.Errorf("the group was changed: %s", got)
	}
}

func TestApprove_Connected_Conflict(t *testing.T) {
	f := newFixture(t)
	f.approve(t, `{"code":"A","chat_jid":"telegram:-1","folder":"fam","by":"x:1"}`)
	f.refused(t, apierr.Conflict, "chat telegram:-1 is connected to the group fam already, by route 1 (chat_jid=telegram:-1 verb=mention)",
		"POST", approvals, `{"code":"B","chat_jid":"telegram:-1","folder":"other","by":"x:1"}`)
	if got := f.must(t, 200, "GET", "/v1/groups", ""); strings.Contains(got, "other") {
		t.Errorf("the refused approval left a group: %s", got)
	}
}

func TestApprove_MovedChat_PresentAddress(t *testing.T) {
	f := newFixture(t)
	if err := f.st.Write(t.Context(), func(tx *store.Tx) error { return chatmove.Move(tx, "telegram:-1", "telegram:-1001", 1) }); err != nil {
		t.Fatal(err)
	}
	done := f.approve(t, `{"code":"A","chat_jid":"telegram:-1","folder":"fam","by":"x:1"}`)
	if a := f.resolve(t, routeapi.Item{ChatJID: "telegram:-1001", Verb: msg.VerbMention}); done.ChatJID != "telegram:-1001" || a.Folder != "fam" {
		t.Errorf("%+v, then %+v", done, a)
	}
}

func TestApprove_InvalidFields_NamedAndNothingMade(t *testing.T) {
	f := newFixture(t)
	for text, body := range map[string]string{
		`chat_jid "telegram" is not`:    `{"chat_jid":"telegram","folder":"fam"}`,
		`without white space`:           `{"chat_jid":"x:a b","folder":"fam"}`,
		`names its group`:               `{"chat_jid":"web:fam","folder":"fam"}`,
		`kind "web" is not`:             `{"chat_jid":"x:1","kind":"web","folder":"fam"}`,
		`folder is empty`:               `{"chat_jid":"x:1"}`,
		`segment ".." must be`:          `{"chat_jid":"x:1","folder":"../etc"}`,
		`unknown field \"sender\"`:      `{"chat_jid":"x:1","folder":"fam","sender":"y"}`,
		`segment \"Fam\" must be a-z, `: `{"chat_jid":"x:1","folder":"Fam"}`,
	} {
		f.refused(t, apierr.BadRequest, strings.ReplaceAll(text, `\"`, `"`), "POST", approvals, body)
	}
	if got := f.must(t, 200, "GET", "/v1/groups", "") + f.must(t, 200, "GET", "/v1/routes", ""); got != `{"groups":[]}{"digest":"`+routeapi.Digest(nil)+`","routes":[]}` {
		t.Errorf("left: %s", got)
	}
}
