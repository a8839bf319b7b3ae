package mcp

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Why scenarios do not apply to gated's tools.
const (
	everything = "it calls tools of the suite's own server"
	resources  = "there are no resources"
	prompts    = "there are no prompts"
	completion = "there are no completions"
	logging    = "there are no log messages for clients"
	asking     = "no tool asks the client for something"
	sessions   = "there are no sessions"
	headers    = "no tool has arguments in headers"
)

// suite is the results of the scenarios of a version of the protocol with gated.
type suite struct {
	version string
	apply   []string          // they have to pass
	skipped map[string]string // the suite finds that they do not apply; why
	not     map[string]string // scenario or scenario:check that fails; why
}

var suites = []suite{
	{
		version: "2025-11-25",
		apply:   []string{"server-initialize", "ping", "tools-list", "dns-rebinding-protection"},
		skipped: map[string]string{"server-session-lifecycle": sessions},
		not: map[string]string{
			"server-sse-polling": sessions, "server-sse-multiple-streams": sessions, "logging-set-level": logging, "completion-complete": completion, "tools-call-simple-text": everything, "tools-call-image": everything,
			"tools-call-audio": everything, "tools-call-embedded-resource": everything, "tools-call-mixed-content": everything,
			"tools-call-with-logging": everything, "tools-call-error": everything, "tools-call-with-progress": everything,
			"tools-call-sampling": asking, "tools-call-elicitation": asking, "json-schema-2020-12": everything, "elicitation-sep1034-defaults": asking,
			"elicitation-sep1330-enums": asking, "resources-list": resources, "resources-read-text": resources, "resources-read-binary": resources,
			"resources-templates-read": resources, "resources-subscribe": resources, "resources-unsubscribe": resources, "prompts-list": prompts,
			"prompts-get-simple": prompts, "prompts-get-with-args": prompts, "prompts-get-embedded-resource": prompts, "prompts-get-with-image": prompts,
		},
	},
	{
		version: "2026-07-28",
		apply: []string{
			"server-stateless", "tools-list", "server-sse-multiple-streams", "dns-rebinding-protection", "caching", "http-header-validation",
			"input-required-result-unsupported-methods", "input-required-result-validate-input",
		},
		not: map[string]string{
			"server-stateless:sep-2575-server-rejects-undeclared-capability":          everything,
			"server-stateless:sep-2575-missing-capability-http-400":                   everything,
			"server-stateless:sep-2575-http-server-no-independent-requests-on-stream": everything,
			"server-stateless:sep-2575-server-no-log-without-loglevel":                everything,
			"caching:sep-2549-prompts-list-caching-hints":                             prompts,
			"caching:sep-2549-resources-list-caching-hints":                           resources,
			"caching:sep-2549-resources-templates-list-caching-hints":                 resources,
			"completion-complete": completion, "tools-call-simple-text": everything, "tools-call-image": everything, "tools-call-audio": everything,
			"sep-2164-resource-not-found": resources, "input-required-result-missing-input-response": asking, "input-required-result-ignore-extra-params": asking,
			"tools-call-embedded-resource": everything, "tools-call-mixed-content": everything, "tools-call-error": everything,
			"tools-call-with-progress": everything, "json-schema-2020-12": everything, "resources-list": resources, "resources-read-text": resources,
			"resources-read-binary": resources, "resources-templates-read": resources, "prompts-list": prompts,
			"prompts-get-simple": prompts, "prompts-get-with-args": prompts, "prompts-get-embedded-resource": prompts, "prompts-get-with-image": prompts,
			"http-custom-header-server-validation": headers, "input-required-result-basic-elicitation": asking,
			"input-required-result-basic-sampling": asking, "input-required-result-basic-list-roots": asking, "input-required-result-request-state": asking,
			"input-required-result-multiple-input-requests": asking, "input-required-result-multi-round": asking,
			"input-required-result-non-tool-request": asking, "input-required-result-result-type": asking,
			"input-required-result-tampered-state": asking, "input-required-result-capability-check": asking,
		},
	},
}

// withToken serves the tools to clients without a token: the suite has no option for one.
func (w *turn) withToken() (address string) {
	w.T.Helper()
	target, err := url.Parse(w.tools.URL)
	w.OK(err)
	server := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host // the header Host stays the client's
		r.Out.Header.Set("Authorization", "Bearer "+w.tools.Token)
	}})
	w.T.Cleanup(server.Close)
	return server.URL + target.Path
}

// outcome matches a line of the suite's summary.
var outcome = regexp.MustCompile(`(?m)^\S+ ([a-z0-9-]+): (\d+) passed, (\d+) failed`)

// Each scenario of the suite that applies to a server of tools without sessions passes. A new scenario fails
// this test until it passes or is listed with a reason, and so does one that is listed and passes, or is gone.
func TestConformance_ScenariosThatApply_Pass(t *testing.T) {
	w := startTurn(t)
	address := w.withToken()
	for _, s := range suites {
		t.Run(s.version, func(t *testing.T) {
			var baseline strings.Builder
			baseline.WriteString("server:\n")
			left := map[string]bool{} // scenarios that have not run
			for _, name := range slices.Concat(s.apply, slices.Collect(maps.Keys(s.skipped))) {
				left[name] = true
			}
			for name := range s.not {
				fmt.Fprintf(&baseline, "  - %s\n", name)
				scenario, _, _ := strings.Cut(name, ":")
				left[scenario] = true
			}
			file := filepath.Join(t.TempDir(), "expected.yml")
			if err := os.WriteFile(file, []byte(baseline.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			stdout, stderr, code := client(t, "conformance", "server", "--url", address, "--suite", "all", "--spec-version", s.version, "--expected-failures", file)
			for _, m := range outcome.FindAllStringSubmatch(stdout, -1) {
				name, passed, failed := m[1], m[2], m[3]
				if !left[name] {
					t.Errorf("scenario %s is not listed, or runs twice: %s passed, %s failed", name, passed, failed)
				}
				delete(left, name)
				switch {
				case slices.Contains(s.apply, name) && passed == "0":
					t.Errorf("scenario %s checks nothing", name)
				case s.skipped[name] != "" && passed+failed != "00":
					t.Errorf("scenario %s is not skipped: %s passed, %s failed", name, passed, failed)
				}
			}
			for name := range left {
				t.Errorf("scenario %s is gone", name)
			}
			if code != 0 || t.Failed() {
				t.Errorf("exit code %d\n%s\n%s", code, stdout, stderr)
			}
		})
	}
	w.stop()
}
