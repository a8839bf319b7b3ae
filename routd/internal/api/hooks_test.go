package api_test

import (
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/apierr"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/hooks"
	"arizuko/pkg/routeapi"
)

// added adds a hook to the group acme/eng.
func (f *fixture) added(t *testing.T, body string) (h routeapi.HookAdded) {
	t.Helper()
	if err := json.Unmarshal([]byte(f.must(t, 201, "POST", "/v1/hooks", body)), &h); err != nil {
		t.Fatal(err)
	}
	return h
}

func (f *fixture) secrets(t *testing.T, h routeapi.HookAdded) []string {
	t.Helper()
	all, err := hooks.Secrets(filepath.Dir(f.path), strings.TrimPrefix(h.ID, "acme/eng."), time.Now())
	if err != nil {
		t.Log(err)
	}
	return all
}

func TestHooks_Added_Tested_Rotated_Removed(t *testing.T) {
	f := newFixture(t)
	f.must(t, 201, "POST", "/v1/groups", eng)
	h := f.added(t, `{"folder":"acme/eng","name":"ci","hook":{"kind":"github","events":["issues"]}}`)
	if h.URL != "https://bot.example/hook/"+h.ID || len(f.secrets(t, h)) != 1 || f.secrets(t, h)[0] != h.Secret {
		t.Errorf("%+v, secrets %q", h, f.secrets(t, h))
	}
	if group := f.must(t, 200, "GET", "/v1/groups/acme/eng", ""); strings.Contains(group, h.Secret) || !strings.Contains(group, `"model":"m"`) {
		t.Errorf("group %s", group)
	}
	f.refused(t, apierr.Conflict, "has a hook ci already", "POST", "/v1/hooks", `{"folder":"acme/eng","name":"ci","hook":{"kind":"github"}}`)

	var tested routeapi.HookTested
	if err := json.Unmarshal([]byte(f.must(t, 200, "POST", "/v1/hooks/test", `{"id":"`+h.ID+`","event":"push"}`)), &tested); err != nil || tested.ID != 7 || tested.Event != "push" {
		t.Errorf("%+v, %v", tested, err)
	}
	got := f.hooks[0]
	body, _ := io.ReadAll(got.Body)
	if err := hooks.Verify(groupconfig.Hook{Kind: "github"}, f.secrets(t, h), got.Header, body, time.Now()); err != nil || got.URL.Path != "/hook/"+h.ID {
		t.Errorf("%s: %v", got.URL, err)
	}
	f.refused(t, apierr.BadRequest, `no sample "nonsense" of github`, "POST", "/v1/hooks/test", `{"id":"`+h.ID+`","event":"nonsense"}`)

	f.must(t, 200, "POST", "/v1/hooks/secret", `{"id":"`+h.ID+`","secret":"another one","overlap_seconds":60}`)
	if got := f.secrets(t, h); len(got) != 2 || got[0] != "another one" || got[1] != h.Secret {
		t.Errorf("secrets %q", got)
	}
	f.must(t, 204, "DELETE", "/v1/hooks/"+strings.ReplaceAll(h.ID, "/", "%2F"), "")
	f.refused(t, apierr.NotFound, "there is no hook", "DELETE", "/v1/hooks/"+h.ID, "")
	if got := f.secrets(t, h); got != nil {
		t.Errorf("secrets %q are left", got)
	}
	h = f.added(t, `{"folder":"acme/eng","name":"ci","hook":{"kind":"github"}}`)
	f.must(t, 204, "DELETE", "/v1/groups/acme/eng", "")
	if got := f.secrets(t, h); got != nil {
		t.Errorf("secrets %q are left of a group that was deleted", got)
	}
	if strings.Contains(f.log.String(), h.Secret) {
		t.Error("the log has the secret")
	}
}

func TestHooks_Refused_SaysWhy(t *testing.T) {
	f := newFixture(t)
	f.must(t, 201, "POST", "/v1/groups", eng)
	for body, words := range map[string]string{
		`{"folder":"acme/ops","name":"ci","hook":{"kind":"github"}}`:                      "there is no group",
		`{"folder":"acme/eng","name":"ci","hook":{"kind":"gitea"}}`:                       "kind must be one of",
		`{"folder":"acme/eng","name":"C I","hook":{"kind":"github"}}`:                     "is no name",
		`{"folder":"acme/eng","name":"ci","hook":{"kind":"hmac"}}`:                        "header is the one with the signature",
		`{"folder":"acme/eng","name":"ci","hook":{"kind":"github","to":"slack:C9"}}`:      "no route leads from slack:C9",
		`{"folder":"acme/eng","name":"ci","hook":{"kind":"github"},"secret":"short"}`:     "want a secret",
		`{"folder":"acme/eng","name":"ci","hook":{"kind":"github","events":["["]}}`:       "is no pattern",
		`{"folder":"acme/eng","name":"ci","hook":{"kind":"github","unknown":1}}`:          "unknown",
		`{"folder":"acme/eng","name":"ci","hook":{"kind":"github","topic":"no sign"}}`:    "must be # and a name",
		`{"folder":"acme/eng","name":"ci","hook":{"kind":"bearer","algorithm":"sha1"}}`:   "are for kind hmac",
		`{"folder":"acme/eng","name":"ci","hook":{"kind":"bearer","quiet_ms":999999999}}`: "quiet_ms",
	} {
		status, answer := f.call("POST", "/v1/hooks", body)
		if status < 400 || status > 499 || !strings.Contains(answer, words) {
			t.Errorf("%s: %d %s, want %q", body, status, answer, words)
		}
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(f.path), "hooks", "*")); err != nil || len(left) > 0 {
		t.Errorf("%q are left, %v", left, err)
	}
}
