package api_test

import (
	"strings"
	"testing"

	"arizuko/pkg/apierr"
)

const eng = `{"folder":"acme/eng","name":"Eng","config":{"observe":"none", "agent":{"model":"m"}}}`

func TestGroups_None_EmptyList(t *testing.T) {
	f := newFixture(t)
	if got := f.must(t, 200, "GET", "/v1/groups", ""); got != `{"groups":[]}` {
		t.Errorf("no groups: %s", got)
	}
}

func TestAddGroup_Repeated_Same(t *testing.T) {
	f := newFixture(t)
	equal(t, eng, f.must(t, 201, "POST", "/v1/groups", eng), "created_at")
	equal(t, eng, f.must(t, 200, "POST", "/v1/groups", `{"config":{"agent":{"model":"m"},"observe":"none"},"name":"Eng","folder":"acme/eng"}`), "created_at")
	equal(t, `{"folder":"acme","name":"","config":{}}`, f.must(t, 201, "POST", "/v1/groups", `{"folder":"acme"}`), "created_at")
	equal(t, `{"folder":"acme","name":"","config":{}}`, f.must(t, 200, "POST", "/v1/groups", `{"folder":"acme","config":null}`), "created_at")
}

func TestAddGroup_Different_Conflict(t *testing.T) {
	f := newFixture(t)
	f.must(t, 201, "POST", "/v1/groups", eng)
	for _, body := range []string{
		`{"folder":"acme/eng","name":"Other"}`,
		`{"folder":"acme/eng","name":"Eng","config":{"observe":"all","agent":{"model":"m"}}}`,
	} {
		f.must(t, 409, "POST", "/v1/groups", body)
		f.refused(t, apierr.Conflict, "PUT /v1/groups/acme/eng changes it", "POST", "/v1/groups", body)
	}
	equal(t, eng, f.must(t, 200, "GET", "/v1/groups/acme/eng", ""), "created_at")
}

func TestGetGroup_FolderInPath(t *testing.T) {
	f := newFixture(t)
	f.must(t, 201, "POST", "/v1/groups", eng)
	for _, path := range []string{"/v1/groups/acme/eng", "/v1/groups/acme%2Feng"} {
		equal(t, eng, f.must(t, 200, "GET", path, ""), "created_at")
	}
	for _, path := range []string{"/v1/groups/acme", "/v1/groups/acme/ops", "/v1/groups/acme/eng/", "/v1/groups/..%2Facme", "/v1/groups/%25"} {
		f.must(t, 404, "GET", path, "")
		f.refused(t, apierr.NotFound, "there is no group", "GET", path, "")
	}
}

func TestReplaceGroup_Body_Replaces(t *testing.T) {
	f := newFixture(t)
	f.must(t, 201, "POST", "/v1/groups", eng)
	before := f.must(t, 200, "GET", "/v1/groups/acme/eng", "")
	if got := f.must(t, 200, "PUT", "/v1/groups/acme/eng", before); got != before {
		t.Errorf("PUT of what GET answered: %s", got)
	}
	equal(t, `{"folder":"acme/eng","name":"E","config":{}}`, f.must(t, 200, "PUT", "/v1/groups/acme/eng", `{"name":"E"}`), "created_at")
	f.refused(t, apierr.NotFound, "there is no group", "PUT", "/v1/groups/acme/ops", `{}`)
	f.refused(t, apierr.BadRequest, `the body is about group "acme"`, "PUT", "/v1/groups/acme/eng", `{"folder":"acme"}`)
}

func TestDeleteGroup_InUse_Conflict(t *testing.T) {
	f := newFixture(t)
	f.must(t, 201, "POST", "/v1/groups", `{"folder":"acme"}`)
	f.must(t, 201, "POST", "/v1/groups", eng)
	f.must(t, 201, "POST", "/v1/groups", `{"folder":"acme/eng2"}`)
	f.must(t, 201, "POST", "/v1/routes", `{"target":"folder:acme/eng#observe"}`)
	for path, reason := range map[string]string{
		"/v1/groups/acme": "below it", "/v1/groups/acme/eng": "route 1 leads to group acme/eng", "/v1/groups/acme%2Feng": "route 1 leads",
	} {
		f.must(t, 409, "DELETE", path, "")
		f.refused(t, apierr.Conflict, reason, "DELETE", path, "")
		f.must(t, 200, "GET", path, "")
	}

	f.must(t, 204, "DELETE", "/v1/routes/1", "")
	for _, folder := range []string{"acme/eng", "acme/eng2", "acme"} {
		f.must(t, 204, "DELETE", "/v1/groups/"+folder, "")
		f.refused(t, apierr.NotFound, "there is no group", "DELETE", "/v1/groups/"+folder, "")
	}
	if got := f.must(t, 200, "GET", "/v1/groups", ""); got != `{"groups":[]}` {
		t.Errorf("after all: %s", got)
	}
}

func TestGroups_InvalidBody_BadRequest(t *testing.T) {
	f := newFixture(t)
	for body, reason := range map[string]string{
		`{}`: "folder", `{"folder":"Acme"}`: "folder", `{"folder":"a/../b"}`: "folder", `{"folder":"a/b/c/d/e/f/g/h/i"}`: "folder",
		`{"folder":"ops","config":[]}`: "config", `{"folder":"ops","config":{"observe":"some"}}`: "observe",
		`{"folder":"ops","colour":"red"}`: "colour", `{"folder":7}`: "folder", `[]`: "array", `{"folder":"ops"} {}`: "more than one", ``: "empty",
		`{"folder":"ops","config":{"x":"` + strings.Repeat("x", 1<<16) + `"}}`:                                "name or config has 65544 bytes, at most 65536",
		`{"folder":"ops","config":` + strings.Repeat(`{"x":`, 1<<15) + `1` + strings.Repeat(`}`, 1<<15) + `}`: "body: ",
	} {
		f.must(t, 400, "POST", "/v1/groups", body)
		f.refused(t, apierr.BadRequest, reason, "POST", "/v1/groups", body)
	}

	f.must(t, 201, "POST", "/v1/groups", `{"folder":"ops"}`)
	invalid := `{"folder":"ops","config":{"modle":"m","limits":{"pids":"many"},"agent":{"env":["SLACK_BOT_TOKEN"]}}}`
	for _, call := range [][2]string{{"POST", "/v1/groups"}, {"PUT", "/v1/groups/ops"}} {
		got := f.must(t, 400, call[0], call[1], invalid)
		for _, problem := range []string{"did you mean agent.model?", "limits.pids: must be a number", "SLACK_BOT_TOKEN is a secret"} {
			if !strings.Contains(got, problem) {
				t.Errorf("%s: no %q in %s", call[0], problem, got)
			}
		}
	}
	equal(t, `{"folder":"ops","name":"","config":{}}`, f.must(t, 200, "GET", "/v1/groups/ops", ""), "created_at")
}

func TestWrite_StoreClosed_Unavailable(t *testing.T) {
	f := newFixture(t)
	f.must(t, 201, "POST", "/v1/groups", `{"folder":"acme"}`)
	if err := f.st.Close(); err != nil {
		t.Fatal(err)
	}
	for _, call := range [][3]string{
		{"POST", "/v1/groups", `{"folder":"ops"}`}, {"DELETE", "/v1/groups/acme", ""}, {"POST", "/v1/routes", `{"target":"acme"}`},
		{"POST", "/v1/resolve", `{"items":[]}`},
	} {
		f.must(t, 503, call[0], call[1], call[2])
	}
}
