package egress

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRules_FirstMatchDecides(t *testing.T) {
	t.Parallel()
	rules := Rules{
		{ID: 1, Folder: "acme", Host: "api.github.com", Method: "POST", Path: "/repos/acme/", Action: Pass},
		{ID: 2, Host: "api.github.com", Action: Inject, Secret: "github"},
		{ID: 3, Host: "*.example.com", Action: Pass},
		{ID: 4, Host: "example.com:8443", Action: Deny},
		{ID: 5, Host: "203.0.113.7", Action: Pass},
		{ID: 6, Folder: "open", Host: "*", Action: Pass},
	}
	for _, tt := range []struct {
		request Request
		rule    int64 // 0: none
		by      int64 // the rule that decides by the host alone, 0: it does not
	}{
		{Request{"acme", "api.github.com", 443, "POST", "/repos/acme/x/issues"}, 1, 0},
		{Request{"acme", "api.github.com", 443, "GET", "/repos/acme/x/issues"}, 2, 0},
		{Request{"acme", "api.github.com", 443, "POST", "/user"}, 2, 0},
		{Request{"main", "api.github.com", 443, "POST", "/repos/acme/x"}, 2, 0},
		{Request{"main", "api.github.com", 22, "", ""}, 0, 0},
		{Request{"main", "a.b.example.com", 443, "GET", "/"}, 3, 3},
		{Request{"main", "example.com", 443, "GET", "/"}, 0, 0},
		{Request{"main", "evilexample.com", 443, "GET", "/"}, 0, 0},
		{Request{"main", "example.com", 8443, "GET", "/"}, 4, 4},
		{Request{"main", "203.0.113.7", 80, "GET", "/"}, 5, 5},
		{Request{"open", "203.0.113.8", 80, "GET", "/"}, 0, 0}, // addresses are named
		{Request{"open", "whatever.test", 443, "PUT", "/"}, 6, 6},
	} {
		id := func(r *Rule) int64 {
			if r == nil {
				return 0
			}
			return r.ID
		}
		byHost, decided := rules.ForHost(&tt.request)
		if got := id(rules.For(&tt.request)); got != tt.rule || id(byHost) != tt.by || decided != (tt.by != 0) {
			t.Errorf("%+v: rule %d, by host %d %v", tt.request, got, id(byHost), decided)
		}
	}
	if diff := cmp.Diff([]string{"github"}, rules.Secrets(&Request{"acme", "api.github.com", 443, "POST", "/repos/acme/x"})); diff != "" {
		t.Error(diff)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rule Rule
		want string // in the error; "" for none
	}{
		{Rule{Host: " API.GitHub.com. ", Method: "post", Path: "/repos/", Action: Pass}, ""},
		{Rule{Host: "*", Action: Ask}, ""},
		{Rule{Host: "*.example.com:8443", Action: Deny}, ""},
		{Rule{Host: "h", Action: Inject, Secret: "github_2"}, ""},
		{Rule{Host: "", Action: Pass}, "host"},
		{Rule{Host: "a*.example.com", Action: Pass}, "host"},
		{Rule{Host: "https://x", Action: Pass}, "want a name"},
		{Rule{Host: "*", Action: Inject, Secret: "x"}, "names of the hosts"},
		{Rule{Host: "*:8443", Action: Inject, Secret: "x"}, "names of the hosts"},
		{Rule{Host: "h:0", Action: Pass}, "port"},
		{Rule{Host: "h", Method: "PO ST", Action: Pass}, "method"},
		{Rule{Host: "h", Path: "repos", Action: Pass}, "path"},
		{Rule{Host: "h", Path: "/a/../b", Action: Pass}, "path"},
		{Rule{Host: "h", Action: "let"}, "action"},
		{Rule{Host: "h", Action: Inject, Secret: "../x"}, "secret"},
		{Rule{Host: "h", Action: Inject}, "secret"},
		{Rule{Host: "h", Action: Pass, Secret: "x"}, "secret"},
		{Rule{Host: "h", Folder: "../x", Action: Pass}, "folder"},
		{Rule{Seq: -1, Host: "h", Action: Pass}, "seq"},
		{Rule{Seq: maxSeq + 1, Host: "h", Action: Pass}, "seq"},
	} {
		err := tt.rule.Check()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt.rule, err)
		}
	}
}

func TestPlainPath(t *testing.T) {
	t.Parallel()
	for escaped, want := range map[string]string{
		"/": "/", "/a/b/": "/a/b/", "/%61/b": "/a/b", "/a%20b": "/a%20b", "/ä": "/%C3%A4", "/a;v=1/b;": "/a;v=1/b;",
		"": "", "a": "", "/a/../b": "", "/a/%2e%2e/b": "", "/a//b": "", "/a%2fb": "", "/a\\b": "", "/a%5cb": "", "/%zz": "", "/./a": "", "/a/.": "", "/%00": "", "/a/..;x/b": "", "/a/..%3b/b": "", "/;/a": "", "/a/.;": "",
	} {
		if got, ok := PlainPath(escaped); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %v", escaped, got, ok)
		}
	}
}
