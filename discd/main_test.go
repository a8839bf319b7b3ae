package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest"
	"arizuko/pkg/config"
	"arizuko/pkg/config/configtest"
	fake "arizuko/pkg/testkit/fakes/discord"
)

func TestMain(m *testing.M) {
	configtest.Isolate(Config{})
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // they mostly wait
		panic(err)
	}
	os.Exit(m.Run())
}

func TestEnvironment_PageMatchesConfig(t *testing.T) {
	configtest.CheckTable(t, "../docs/reference/environment.md", "discd", Config{}, config.Base{}, adapter.Settings{})
}

func TestConfigProblems(t *testing.T) {
	_, err := config.Load[Config]([]string{"DISCD_ADDR=8092", "DISCORD_API_URL=discord.com", "POLL_INTERVAL=2ns", "BOTS=some", "RESEND=twice"})
	if problems, ok := err.(config.Problems); !ok || len(problems) != 6 {
		t.Errorf("got %v", err)
	}
	_, err = config.Load[Config](nil)
	if problems, ok := err.(config.Problems); !ok || len(problems) != 1 || !strings.Contains(err.Error(), "DISCORD_BOT_TOKEN: is not set") {
		t.Errorf("got %v", err)
	}
}

func TestCheck_ReportsProblemAndRemedy(t *testing.T) {
	for name, test := range map[string]struct {
		options fake.Options
		guild   bool
		env     string
		code    int
		says    []string
		not     string
	}{
		"all is well":                   {fake.Options{}, true, "", 0, []string{"connects as: arizuko (", "is in 1 guilds", "https://discord.com/oauth2/authorize?client_id=", "discd: ok"}, "switch"},
		"in no guild":                   {fake.Options{}, false, "", 0, []string{"is in 0 guilds", "https://discord.com/oauth2/authorize?client_id=", "scope=bot+applications.commands&permissions=563259191446592"}, "switch"},
		"joins are not seen":            {fake.Options{Denied: fake.GuildMembers}, true, "", 0, []string{"Server Members Intent is off", "discord.com/developers/applications/"}, "Message Content"},
		"content is not seen":           {fake.Options{Denied: fake.MessageContent}, true, "", 1, []string{"Message Content Intent is off", "discord.com/developers/applications/"}, "discd: ok"},
		"a wrong token":                 {fake.Options{}, true, "DISCORD_BOT_TOKEN=wrong", 78, []string{"discd: Discord does not accept DISCORD_BOT_TOKEN"}, "connects"},
		"Bot before the token":          {fake.Options{}, true, "DISCORD_BOT_TOKEN=Bot abc", 78, []string{`DISCORD_BOT_TOKEN: begins with "Bot "`}, "connects"},
		"a token in quotes":             {fake.Options{}, true, "DISCORD_BOT_TOKEN='abc'", 78, []string{"DISCORD_BOT_TOKEN: contains a quote"}, "connects"},
		"a host named api":              {fake.Options{}, true, "DISCORD_API_URL=http://api.discord.invalid", 1, []string{"http://api.discord.invalid does not answer"}, "connects"},
		"a path":                        {fake.Options{}, true, "DISCORD_API_URL=https://discord.com/api/v10", 78, []string{"DISCORD_API_URL: ends before /api"}, "connects"},
		"Discord is not there":          {fake.Options{}, true, "DISCORD_API_URL=http://127.0.0.1:1", 1, []string{"http://127.0.0.1:1 does not answer"}, "connects"},
		"a bad configuration":           {fake.Options{}, true, "BOTS=some", 78, []string{`BOTS="some": must be`}, "connects"},
		"not running: health":           {fake.Options{}, true, "", 1, []string{"discd.http.sock does not answer"}, "connects"},
		"a command that does not exist": {fake.Options{}, true, "", 78, []string{"usage: discd [serve | check | health | --help | --version]"}, "connects"},
	} {
		t.Run(name, func(t *testing.T) {
			s := fake.New(test.options)
			base, err := s.Start("127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if test.guild {
				s.Guild("Team", s.User("Alice", "alice"))
			}
			for _, variable := range []string{"ARIZUKO_DATA=" + t.TempDir(), "DISCORD_API_URL=" + base, "DISCORD_BOT_TOKEN=" + s.Token(), test.env} {
				if name, value, ok := strings.Cut(variable, "="); ok {
					t.Setenv(name, value)
				}
			}
			args := []string{"check"}
			switch _, what, _ := strings.Cut(name, ": "); {
			case what != "":
				args = []string{what}
			case strings.HasPrefix(name, "a command"):
				args = []string{"dance"}
			}
			run := func(out io.Writer) int { return program().Run(t.Context(), args, out, out) }
			adaptertest.Says(t, run, test.code, test.says, []string{test.not, s.Token()})
		})
	}
}

func TestCheck_Application_ReportsProblemAndRemedy(t *testing.T) {
	s := fake.New(fake.Options{})
	gateway, err := s.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const settings = "https://discord.com/developers/applications/1"
	for name, tt := range map[string]struct {
		application string
		permissions string
		left        int
		code        int
		want        string
	}{
		"no problem": {``, "8", 9, 0, "permissions=563259191446592\ndiscd: ok"},
		"endpoint": {
			`,"interactions_endpoint_url":"https://example.org/hook"`, "8", 9, 0,
			"commands are not received, they go to https://example.org/hook:\n  remove the Interactions Endpoint URL at " + settings + "/information\n",
		},
		"code grant": {`,"bot_require_code_grant":true`, "8", 9, 0, "the bot cannot be added to guilds: switch off Requires OAuth2 Code Grant at " + settings + "/bot\n"},
		"permissions": {
			``, "562984313539584", 9, 0,
			`in "Team" it lacks Add Reactions, Send Messages in Threads: give them to its role, or open the link above again`,
		},
		"many sessions": {``, "8", 0, 1, "the bot has connected too often: Discord lets it connect again in 1h0m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			api := httptest.NewServer(answers(map[string]string{
				"applications/@me": `{"id":"1","flags":16777215` + tt.application + `}`,
				"users/@me/guilds": `[{"id":"5","name":"Team","permissions":"` + tt.permissions + `"},{"id":"6","name":"Silent"}]`,
				"gateway/bot": fmt.Sprintf(`{"url":"ws%s/gateway","session_start_limit":{"remaining":%d,"reset_after":3600000}}`,
					strings.TrimPrefix(gateway, "http"), tt.left),
			}))
			defer api.Close()
			run := func(out io.Writer) int { return checkAt(t, t.Context(), api.URL, out) }
			adaptertest.Says(t, run, tt.code, []string{tt.want}, nil)
		})
	}
}

// answers are those of an API, by their paths.
func answers(paths map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, cmp.Or(paths[strings.TrimPrefix(r.URL.Path, "/api/v9/")], `{"id":"1","username":"arizuko"}`))
	}
}

const token = "MTIz.secret:of/the+bot"

// checkAt runs check with the API at a URL, and returns the exit code.
func checkAt(t *testing.T, ctx context.Context, api string, out io.Writer) int {
	t.Setenv("ARIZUKO_DATA", t.TempDir())
	t.Setenv("DISCORD_API_URL", api)
	t.Setenv("DISCORD_BOT_TOKEN", token)
	return program().Run(ctx, []string{"check"}, out, out)
}

func TestCheck_OtherServer_NamesTheCause(t *testing.T) {
	adaptertest.CheckServers(t, "DISCORD_API_URL", func(ctx context.Context, api string, out io.Writer) int { return checkAt(t, ctx, api, out) })
}

func TestCheck_OtherGateway_NamesTheCause(t *testing.T) {
	adaptertest.CheckGateways(t, func(gateway string) map[string]string {
		return map[string]string{
			"/api/v9/users/@me": `{"id":"1","username":"arizuko"}`, "/api/v9/applications/@me": `{"id":"1","flags":16777215}`,
			"/api/v9/users/@me/guilds": `[]`, "/api/v9/gateway/bot": `{"url":"` + gateway + `","session_start_limit":{"remaining":1}}`,
		}
	}, func(ctx context.Context, api string, out io.Writer) int { return checkAt(t, ctx, api, out) })
}

func TestCheck_ServerEchoesToken_IsRedacted(t *testing.T) {
	answers := map[string]int{
		`{"code":50035,"message":"bad header Bot %s \u001b[31m"}`: http.StatusBadRequest,
		`{"code":10001,"message":"%s"}`:                           http.StatusNotFound,
		`{"id":"1","username":"%s\u001b[2J","flags":0}`:           http.StatusOK,
	}
	adaptertest.CheckRedacts(t, []string{token}, answers, func(api string, out io.Writer) { checkAt(t, t.Context(), api, out) })
}
