package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/config"
	"arizuko/pkg/config/configtest"
	"arizuko/pkg/store/storetest"
)

func TestEnvironment_PageMatchesConfig(t *testing.T) {
	configtest.CheckTable(t, "../docs/reference/environment.md", "dashd", Config{}, config.Base{})
}

func TestConfig_InvalidValues_AllReported(t *testing.T) {
	_, err := config.Load[Config]([]string{
		"DASHD_ADDR=8083", "DASHD_URL=localhost", "DASH_PUBLIC_URL=https://x?y", "POLL_INTERVAL=2ns", "MEDIA_MAX=0", "MEDIA_DAILY=-1",
		"ALERTS=no", "ALERT_QUIET=7:00-08:00", "HEARTBEAT_URL=ftp://x",
	})
	problems, ok := err.(config.Problems)
	if !ok || len(problems) != 9 {
		t.Errorf("got %v", err)
	}
}

func TestConfig_TrivialPassword_Refused(t *testing.T) {
	const short, trivial = "must have at least", "one of the first that are tried"
	for _, tc := range []struct{ password, addr, public, want string }{
		{"x", "", "", short}, {"1234567", "", "", short}, {"   x    ", "", "", short}, {"ab       cd", "", "", trivial},
		{"aaaaaaaaaaaa", "", "", trivial}, {"abababababab", "", "", trivial}, {"password", "", "", trivial}, {"PassWord", "", "", trivial},
		{"12345678", "", "", trivial}, {"123456789012", "0.0.0.0:8083", "", trivial},
		{"h7Gq-k2s", "", "", ""}, {"h7Gq-k2s", "[::1]:8083", "", ""}, {"h7Gq-k2s", "localhost:8083", "", ""},
		{"h7Gq-k2s", "0.0.0.0:8083", "", short}, {"h7Gq-k2s", ":8083", "", short}, {"h7Gq-k2s", "192.0.2.1:8083", "", short},
		{"h7Gq-k2s", "", "https://chat.example", "must have at least 12 characters, as other machines"},
		{"h7Gq-k2s-9Lp", "0.0.0.0:8083", "https://chat.example", ""}, {"", "0.0.0.0:8083", "", ""},
	} {
		_, err := config.Load[Config]([]string{"DASH_PASSWORD=" + tc.password, "DASHD_ADDR=" + tc.addr, "DASH_PUBLIC_URL=" + tc.public})
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}

func TestConfig_PublicURLWithPath_Refused(t *testing.T) {
	for public, refused := range map[string]bool{"https://a.example": false, "https://a.example:8443//": false,
		"https://a.example/dash": true, "http://a.example/%2e": true, "https://a.example//x/": true} {
		_, err := config.Load[Config]([]string{"DASH_PUBLIC_URL=" + public})
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "give it a host name of its own") {
			t.Errorf("%s: %v", public, err)
		}
	}
}

// call runs dashd with arguments and returns its exit code and what it printed.
func call(t *testing.T, ctx context.Context, args ...string) (code int, printed string) {
	t.Helper()
	var out bytes.Buffer
	code = program().Run(ctx, args, &out, &out)
	return code, out.String()
}

func TestProgram_Failures_GiveExitCodes(t *testing.T) {
	p := serve(t, dataFolder(t))
	for name, test := range map[string]struct {
		env  []string
		args string
		code int
		text string
	}{
		"a good configuration": {nil, "check", 0, "dashd: ok"},
		"bad values":           {[]string{"POLL_INTERVAL=soon", "DASHD_ADDR=x"}, "check", 78, "dashd: POLL_INTERVAL"},
		"no secret":            {[]string{"ARIZUKO_DATA=" + t.TempDir()}, "check", 1, "run `migrate up`"},
		"bad values, serve":    {[]string{"POLL_INTERVAL=soon"}, "serve", 78, "POLL_INTERVAL"},
		"a second one":         {nil, "serve", 75, "is locked by process"},
		"unknown command":      {nil, "dance", 78, "usage: dashd [serve | check | health | backup | doctor | login | restore | status | --help | --version]"},
		"healthy":              {nil, "health", 0, "ok"},
		"not running":          {[]string{"ARIZUKO_DATA=" + t.TempDir()}, "health", 1, "does not answer"},
		"not running, status":  {[]string{"DASHD_URL=http://127.0.0.1:1"}, "status", 1, "dashd is not running at http://127.0.0.1:1"},
		"no socket, status":    {[]string{"ARIZUKO_DATA=" + t.TempDir()}, "status", 1, "run/dashd.http.sock: start it with `dashd`, or set DASHD_URL"},
		"status":               {nil, "status", 0, "Running turns: none"},
		"status of a chat":     {[]string{"DASHD_URL=http://" + p.Addr}, "status web:main", 0, "Group: main"},
		"a stranger's status":  {[]string{"DASHD_URL=http://" + p.Addr, "ARIZUKO_SECRET=a guess of 16 letters"}, "status", 1, "without a valid signature"},
		"login":                {nil, "login", 0, p.first},
		"doctor":               {nil, "doctor", 1, "problem: gated has never run with this data folder\n  fix: start it"},
		"doctor, bad values":   {[]string{"POLL_INTERVAL=soon"}, "doctor --json", 78, `"text": "POLL_INTERVAL`},
		"doctor, no data":      {[]string{"ARIZUKO_DATA=" + t.TempDir() + "/none"}, "doctor", 78, "fix: set ARIZUKO_DATA"},
		"doctor, usage":        {nil, "doctor now", 78, "usage: dashd doctor [--json] [--deep] [--fix]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("ARIZUKO_DATA", p.data)
			for _, variable := range test.env {
				name, value, _ := strings.Cut(variable, "=")
				t.Setenv(name, value)
			}
			if code, out := call(t, t.Context(), strings.Fields(test.args)...); code != test.code || !strings.Contains(out, test.text) {
				t.Errorf("exit %d, want %d with %q:\n%s", code, test.code, test.text, out)
			}
		})
	}
}

func TestStart_Stopped_NoError(t *testing.T) {
	t.Setenv("ARIZUKO_DATA", dataFolder(t))
	t.Setenv("DASHD_ADDR", "127.0.0.1:0")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, out := call(t, ctx); code != 0 {
		t.Errorf("exit %d: %s", code, out)
	}
}

func TestStart_InvalidConfig_Refused(t *testing.T) {
	tooNew := dataFolder(t)
	shell(t, tooNew, `UPDATE schema_floor SET floor = 1000`)
	noSecret := dataFolder(t)
	if err := os.Remove(filepath.Join(noSecret, "secret")); err != nil {
		t.Fatal(err)
	}
	for data, text := range map[string]string{tooNew: "schema", noSecret: "no secret"} {
		t.Setenv("ARIZUKO_DATA", data)
		t.Setenv("DASHD_ADDR", "127.0.0.1:0")
		if code, out := call(t, t.Context()); code != 78 || !strings.Contains(out, text) {
			t.Errorf("exit %d, want 78 with %q: %s", code, text, out)
		}
	}
}

// Every test checks its log for secrets when it ends; this one puts them where they could leak.
func TestLog_Secrets_Redacted(t *testing.T) {
	p := serve(t, dataFolder(t), "DASH_PASSWORD="+password)
	b := p.browser()
	b.get("/login?token=" + secret + "&next=" + password)
	b.get("/" + secret + "/" + password)
	b.form("/login", map[string][]string{"password": {password + "x"}, "next": {secret}})
	b.form("/login", map[string][]string{"password": {password}})
	shell(t, p.data, `ALTER TABLE registered_groups RENAME TO gone`)
	b.get("/chat/" + secret + password)
	metrics := b.must(200, "GET", "/metrics", "").body
	for _, hidden := range []string{secret, password} {
		if strings.Contains(metrics, hidden) {
			t.Errorf("%s is in the metrics", hidden)
		}
	}
}

func TestRevoked_Expired_Deleted(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	st := storetest.Open(t)
	r := revoked{st, func() time.Time { return now }, func() {}}
	add := func(id string, life time.Duration) {
		t.Helper()
		if err := r.Add(t.Context(), id, now.Add(life)); err != nil {
			t.Fatal(err)
		}
	}
	want := func(id string, is bool) {
		t.Helper()
		if got, err := r.Has(t.Context(), id); got != is || err != nil {
			t.Errorf("%s: %v %v, want %v", id, got, err, is)
		}
	}
	add("one", time.Hour)
	add("two", 3*time.Hour)
	add("one", time.Hour) // twice
	want("one", true)
	now = now.Add(2 * time.Hour)
	want("one", true) // until the next Add
	add("three", time.Hour)
	want("one", false)
	want("two", true)
	want("three", true)
	want("", false)
}
