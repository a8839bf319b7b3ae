package api_test

import (
	"strings"
	"testing"

	"arizuko/pkg/apierr"
)

func TestRoutes_Changes_ListedInOrder(t *testing.T) {
	f := newFixture(t)
	f.must(t, 201, "POST", "/v1/groups", `{"folder":"acme"}`)
	equal(t, `{"routes":[]}`, f.must(t, 200, "GET", "/v1/routes", ""), "digest")
	first := `{"id":1,"seq":9,"match":"verb=mention platform=slack","target":"acme","impulse_config":{"quiet_ms":5}}`
	equal(t, first, f.must(t, 201, "POST", "/v1/routes",
		`{"seq":9,"match":"  verb=mention \t platform=slack ","target":"acme","impulse_config": { "quiet_ms": 5 } }`))
	second := `{"id":2,"seq":0,"match":"","target":"builtin:drop"}`
	equal(t, second, f.must(t, 201, "POST", "/v1/routes", `{"target":"builtin:drop","impulse_config":null}`))
	equal(t, `{"routes":[`+second+`,`+first+`]}`, f.must(t, 200, "GET", "/v1/routes", ""), "digest")

	second = `{"id":2,"seq":20,"match":"","target":"daemon:onbod"}`
	equal(t, second, f.must(t, 200, "PUT", "/v1/routes/2", second))
	equal(t, `{"routes":[`+first+`,`+second+`]}`, f.must(t, 200, "GET", "/v1/routes", ""), "digest")
	f.must(t, 204, "DELETE", "/v1/routes/2", "")
	equal(t, `{"routes":[`+first+`]}`, f.must(t, 200, "GET", "/v1/routes", ""), "digest")
}

func TestRoutes_UnknownID_NotFound(t *testing.T) {
	f := newFixture(t)
	for _, id := range []string{"9", "0", "-1", "9223372036854775807"} {
		f.must(t, 404, "DELETE", "/v1/routes/"+id, "")
		f.refused(t, apierr.NotFound, "there is no route "+id, "DELETE", "/v1/routes/"+id, "")
		f.refused(t, apierr.NotFound, "there is no route "+id, "PUT", "/v1/routes/"+id, `{"target":"builtin:drop"}`)
	}
}

func TestRoutes_InvalidID_BadRequest(t *testing.T) {
	f := newFixture(t)
	f.must(t, 201, "POST", "/v1/groups", `{"folder":"acme"}`)
	f.must(t, 201, "POST", "/v1/routes", `{"target":"acme"}`)
	for _, id := range []string{"two", "1.5", "1e3", "9223372036854775808"} {
		f.refused(t, apierr.BadRequest, "a route's id is a number", "PUT", "/v1/routes/"+id, `{"target":"acme"}`)
		f.refused(t, apierr.BadRequest, "a route's id is a number", "DELETE", "/v1/routes/"+id, "")
	}
	f.refused(t, apierr.BadRequest, "the body is about route 2", "PUT", "/v1/routes/1", `{"id":2,"target":"acme"}`)
	f.refused(t, apierr.BadRequest, "a new route has no id", "POST", "/v1/routes", `{"id":5,"target":"acme"}`)
}

func TestRoutes_InvalidBody_BadRequest(t *testing.T) {
	f := newFixture(t)
	f.must(t, 201, "POST", "/v1/groups", `{"folder":"acme"}`)
	f.must(t, 201, "POST", "/v1/routes", `{"target":"acme"}`)
	for body, reason := range map[string]string{
		`{"match":"platfrom=x","target":"acme"}`:                                        "unknown key",
		`{"match":"telegram","target":"acme"}`:                                          "key=glob",
		`{"match":"room=[","target":"acme"}`:                                            "bad glob",
		`{"match":"room=a room=b","target":"acme"}`:                                     "twice",
		`{"match":"sender=Ann","target":"acme"}`:                                        "use sender_name for a display name",
		`{"match":"sender_name=telegram:42","target":"acme"}`:                           "looks like an id",
		`{"match":"` + strings.Repeat("x", 1<<16) + `","target":"acme"}`:                "match has 65536 bytes, at most 4096",
		`{"target":"acme","impulse_config":{"x":"` + strings.Repeat("x", 1<<16) + `"}}`: "impulse_config has 65544 bytes, at most 65536",
		`{"target":"acme","impulse_config":` + strings.Repeat("[", 1<<16) + `}`:         "body: ",
		`{"match":"room=a"}`:                                                            "target is empty",
		`{"target":"acme#later"}`:                                                       "unknown fragment",
		`{"target":"http:acme"}`:                                                        "unknown target",
		`{"target":"builtin:pong"}`:                                                     "unknown builtin",
		`{"target":"daemon:../x"}`:                                                      "daemon",
		`{"target":"../etc"}`:                                                           "folder",
		`{"target":"ops"}`:                                                              "folder ops is not registered",
		`{"target":"acme","impulse_config":{"quiet":1}}`:                                "quiet",
		`{"target":"acme","impulse_config":{"threshold":-1}}`:                           "threshold",
		`{"target":"acme","impulse_config":[1]}`:                                        "impulse_config",
		`{"target":"acme","impulse_config":"{}"}`:                                       "impulse_config",
		`{"target":"acme","sequence":1}`:                                                "sequence",
		`{"target":"acme","seq":"1"}`:                                                   "seq",
		`{"target":"acme"} {}`:                                                          "more than one",
		`[]`:                                                                            "array",
		``:                                                                              "empty",
	} {
		for _, call := range []string{"POST /v1/routes", "PUT /v1/routes/1"} {
			method, path, _ := strings.Cut(call, " ")
			f.must(t, 400, method, path, body)
			f.refused(t, apierr.BadRequest, reason, method, path, body)
		}
	}
	equal(t, `{"routes":[{"id":1,"seq":0,"match":"","target":"acme"}]}`, f.must(t, 200, "GET", "/v1/routes", ""), "digest")
}
