package main

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest"
	"arizuko/pkg/config"
	"arizuko/pkg/config/configtest"
	fake "arizuko/pkg/testkit/fakes/slack"
	"arizuko/slakd/internal/inbound"
	"arizuko/slakd/internal/slackapi"
)

func TestEnvironment_PageMatchesConfig(t *testing.T) {
	configtest.CheckTable(t, "../docs/reference/environment.md", "slakd", Config{}, config.Base{}, adapter.Settings{})
}

func TestConfigProblems(t *testing.T) {
	for what, tt := range map[string]struct {
		env      []string
		problems int
	}{
		"nothing":        {nil, 2},
		"a blank":        {[]string{"SLACK_BOT_TOKEN=xoxb-1 ", "SLACK_APP_TOKEN='xapp-1'"}, 2},
		"no path":        {[]string{"SLACK_BOT_TOKEN=xoxb-1", "SLACK_APP_TOKEN=xapp-1", "SLACK_API_URL=https://slack.com"}, 1},
		"bad values":     {[]string{"SLAKD_ADDR=8093", "SLACK_API_URL=slack.com", "BOTS=some", "RESEND=never", "MEDIA_MAX=0", "POLL_INTERVAL=2ns"}, 8},
		"exchanged":      {[]string{"SLACK_BOT_TOKEN=xapp-1", "SLACK_APP_TOKEN=xoxb-1"}, 2},
		"bot token only": {[]string{"SLACK_BOT_TOKEN=xoxb-1"}, 1},
		"posted":         {[]string{"SLACK_BOT_TOKEN=xoxb-1", "SLACK_SIGNING_SECRET=s"}, 0},
		"Socket Mode":    {[]string{"SLACK_BOT_TOKEN=xoxb-1", "SLACK_APP_TOKEN=xapp-1"}, 0},
	} {
		_, err := config.Load[Config](tt.env)
		problems, _ := err.(config.Problems)
		if len(problems) != tt.problems || (err == nil) != (tt.problems == 0) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// listed are the entries of a list in the manifest, below the line that names it.
func listed(t *testing.T, name string) (entries []string) {
	t.Helper()
	text, err := os.ReadFile("../deploy/slack/manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(text), " "+name+":\n")
	if !found {
		t.Fatalf("the manifest has no %s", name)
	}
	for line := range strings.Lines(list) {
		entry, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
		if !ok {
			break
		}
		entries = append(entries, entry)
	}
	return entries
}

// The scopes that check requires, and the events that are read.
func TestManifest_RequestsWhatIsUsed(t *testing.T) {
	if diff := cmp.Diff(slices.Sorted(maps.Keys(slackapi.Scopes())), listed(t, "bot")); diff != "" {
		t.Errorf("scopes (-check +manifest):\n%s", diff)
	}
	for _, event := range listed(t, "bot_events") {
		kind, _, _ := strings.Cut(event, ".")
		e, err := inbound.Decode([]byte(`{"event":{"type":"` + kind + `"}}`))
		read := err == nil && (e.Message != nil || e.Reaction != nil || e.Member != nil || e.Pane != nil || e.Stopped != nil || e.Renamed != nil || e.User != nil)
		if !read && event != "assistant_thread_context_changed" { // an assistant has to ask for that
			t.Errorf("%s is asked for, and not read", event)
		}
	}
	for _, s := range listed(t, "bot") {
		if !slices.Contains(fake.DefaultScopes(), s) {
			t.Errorf("Slack knows no scope %s", s)
		}
	}
}

func TestCheck_ReportsProblemAndRemedy(t *testing.T) {
	for what, tt := range map[string]struct {
		o       fake.Options
		prepare func(*harness)
		code    int
		says    []string
		not     []string
	}{
		"all is well": {code: 0, says: []string{"connects as: @arizuko", "in Acme", "slakd: ok", "Messages Tab"}, not: []string{"missing", "no channel"}},
		"scopes": {
			o:    fake.Options{Scopes: []string{"chat:write", "channels:read", "groups:read"}},
			code: 1, says: []string{"scope users:read is missing: it is for the names of users", "the bot lacks app_mentions:read, assistant:write,", "install the app again"}, not: []string{"scope chat:write"},
		},
		"no scopes at all": {o: fake.Options{Scopes: []string{"commands"}}, code: 1, says: []string{"cannot tell which channels", "channels:read"}},
		"alone": {
			prepare: func(r *harness) { r.team.DeleteChannel() },
			code:    0, says: []string{"it is in no channel: write /invite @arizuko"},
		},
		"bot token":      {prepare: func(r *harness) { r.Revoke(r.BotToken(), "account_inactive") }, code: 78, says: []string{"SLACK_BOT_TOKEN", "account_inactive"}},
		"app token":      {prepare: func(r *harness) { r.Revoke(r.AppToken(), "invalid_auth") }, code: 78, says: []string{"SLACK_APP_TOKEN", "invalid_auth"}},
		"no Socket Mode": {prepare: func(r *harness) { r.SetSocketMode(false) }, code: 78, says: []string{"switch it on under Socket Mode"}},
		"posted": {
			prepare: func(r *harness) {
				r.SetSocketMode(false)
				r.Env = append(r.Env, "SLACK_APP_TOKEN=", "SLACK_SIGNING_SECRET=s")
			},
			code: 0, says: []string{"give the URL of /slack/events"},
		},
		"gone":          {prepare: func(r *harness) { r.SetReachable(false) }, code: 1, says: []string{"does not answer"}},
		"no token":      {prepare: func(r *harness) { r.Env = append(r.Env, "SLACK_BOT_TOKEN=") }, code: 78, says: []string{"SLACK_BOT_TOKEN: is not set"}},
		"a wrong token": {prepare: func(r *harness) { r.Env = append(r.Env, "SLACK_BOT_TOKEN=xoxb-wrong") }, code: 78, says: []string{"invalid_auth"}},
	} {
		t.Run(what, func(t *testing.T) {
			r := newHarness(t, tt.o)
			if tt.prepare != nil {
				tt.prepare(r)
			}
			for _, variable := range r.Env {
				name, value, _ := strings.Cut(variable, "=")
				t.Setenv(name, value)
			}
			run := func(out io.Writer) int { return program().Run(t.Context(), []string{"check"}, out, out) }
			adaptertest.Says(t, run, tt.code, tt.says, append(tt.not, r.BotToken(), r.AppToken()))
		})
	}
}

const botToken, appToken = "xoxb-1:secret/of+the=bot", "xapp-1:secret/of+the=app"

// checkAt runs check with the API of a server, and returns the exit code.
func checkAt(t *testing.T, ctx context.Context, api string, out io.Writer) int {
	for name, value := range map[string]string{
		"ARIZUKO_DATA": t.TempDir(), "SLACK_API_URL": api + "/api/", "SLACK_BOT_TOKEN": botToken, "SLACK_APP_TOKEN": appToken,
	} {
		t.Setenv(name, value)
	}
	return program().Run(ctx, []string{"check"}, out, out)
}

func TestCheck_OtherServer_NamesTheCause(t *testing.T) {
	adaptertest.CheckServers(t, "SLACK_API_URL", func(ctx context.Context, api string, out io.Writer) int { return checkAt(t, ctx, api, out) })
}

// answers are those of an API that does not say which scopes a token has, as servers other than Slack's.
func answers(socket string) map[string]string {
	return map[string]string{
		"/api/auth.test":             `{"ok":true,"user":"arizuko","user_id":"U1","bot_id":"B1","team":"Acme"}`,
		"/api/conversations.list":    `{"ok":true,"channels":[{"id":"C1","is_member":true}]}`,
		"/api/apps.connections.open": `{"ok":true,"url":"` + socket + `"}`,
	}
}

func TestCheck_OtherSocket_NamesTheCause(t *testing.T) {
	adaptertest.CheckGateways(t, answers, func(ctx context.Context, api string, out io.Writer) int { return checkAt(t, ctx, api, out) })
}

func TestCheck_ServerSaysLess_NamesTheCause(t *testing.T) {
	const user, noMethod = `{"ok":true,"user":"arizuko","user_id":"U1","team":"Acme"}`, `{"ok":false,"error":"unknown_method"}`
	socket := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ws, err := new(websocket.Upgrader).Upgrade(w, r, nil); err == nil {
			_ = ws.WriteJSON(map[string]any{"type": "hello", "num_connections": 2})
			_, _, _ = ws.ReadMessage()
			_ = ws.Close()
		}
	}))
	defer socket.Close()
	for name, tt := range map[string]struct {
		path, answer string
		code         int
		want         string
	}{
		"no scopes":      {"", "", 0, "cannot tell which scopes"},
		"user token":     {"/api/auth.test", user, 78, "SLACK_BOT_TOKEN is a user token"},
		"no Socket Mode": {"/api/apps.connections.open", noMethod, 1, "apps.connections.open: unknown_method: the server at SLACK_API_URL does not have this method"},
		"not Slack":      {"/api/auth.test", noMethod, 1, "auth.test: unknown_method: the server at SLACK_API_URL"},
		"second program": {"", "", 0, "another program is connected with this app token: stop it"},
	} {
		t.Run(name, func(t *testing.T) {
			paths := answers("ws" + strings.TrimPrefix(socket.URL, "http"))
			if tt.path != "" {
				paths[tt.path] = tt.answer
			}
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, paths[r.URL.Path]) }))
			defer api.Close()
			run := func(out io.Writer) int { return checkAt(t, t.Context(), api.URL, out) }
			adaptertest.Says(t, run, tt.code, []string{tt.want}, []string{"missing"})
		})
	}
}

func TestCheck_ServerEchoesToken_IsRedacted(t *testing.T) {
	const signing = "signing:secret/+=x"
	t.Setenv("SLACK_SIGNING_SECRET", signing)
	answers := map[string]int{
		`{"ok":false,"error":"no_such_token %s \u001b[31m"}`:                                   http.StatusOK,
		`{"ok":true,"user":"%s\u001b[2J","user_id":"U1","bot_id":"B1","team":"%s","url":"%s"}`: http.StatusOK,
	}
	adaptertest.CheckRedacts(t, []string{botToken, appToken, signing}, answers, func(api string, out io.Writer) { checkAt(t, t.Context(), api, out) })
}
