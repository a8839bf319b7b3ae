package main

import (
	"context"
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
)

const token = "12345:secret-of-the-bot"

func TestMain(m *testing.M) {
	configtest.Isolate(Config{})
	os.Exit(m.Run())
}

func TestEnvironment_PageMatchesConfig(t *testing.T) {
	configtest.CheckTable(t, "../docs/reference/environment.md", "teled", Config{}, config.Base{}, adapter.Settings{})
}

func TestConfigProblems(t *testing.T) {
	_, err := config.Load[Config]([]string{
		"TELED_ADDR=8091", "TELEGRAM_API_URL=api.telegram.org", "BOTS=some", "RESEND=never", "MEDIA_MAX=0", "POLL_INTERVAL=2ns",
	})
	problems, ok := err.(config.Problems)
	if !ok || len(problems) != 7 { // with the token that is not set
		t.Errorf("got %v", err)
	}
}

// botAPI answers the calls of check.
type botAPI struct {
	readsAll, joinsGroups bool
	webhook               string
	rival                 bool
}

func (b botAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/bot" + token + "/getMe":
		fmt.Fprintf(w, `{"ok":true,"result":{"id":12345,"is_bot":true,"username":"arizuko_bot","can_read_all_group_messages":%t,"can_join_groups":%t}}`, b.readsAll, b.joinsGroups)
	case "/bot" + token + "/getUpdates":
		if b.rival {
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"ok":false,"error_code":409,"description":"Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"}`)
			return
		}
		fmt.Fprint(w, `{"ok":true,"result":[]}`)
	case "/bot" + token + "/getWebhookInfo":
		fmt.Fprintf(w, `{"ok":true,"result":{"url":%q}}`, b.webhook)
	default:
		fmt.Fprint(w, `{"ok":false,"error_code":401,"description":"Unauthorized"}`)
	}
}

func TestCheck_ReportsProblemAndRemedy(t *testing.T) {
	good := botAPI{readsAll: true, joinsGroups: true}
	for name, tt := range map[string]struct {
		api  botAPI
		env  string
		args []string
		code int
		want string
		not  string
	}{
		"further account":  {good, "TELED_ACCOUNT=work", []string{"check"}, 0, "teled+work: ok", "teled: ok"},
		"invalid account":  {good, "TELED_ACCOUNT=Work", []string{"check"}, 78, `teled: TELED_ACCOUNT="Work": cannot be the name of an account`, "connects"},
		"no problem":       {good, "", []string{"check"}, 0, "connects as: @arizuko_bot (12345)\nanyone on Telegram may write", "privacy mode"},
		"privacy mode":     {botAPI{joinsGroups: true}, "", []string{"check"}, 0, "/setprivacy", "/setjoingroups"},
		"no groups":        {botAPI{readsAll: true}, "", []string{"check"}, 0, "/setjoingroups", "/setprivacy"},
		"webhook":          {botAPI{webhook: "https://example.org/hook"}, "", []string{"check"}, 1, "updates go to https://example.org/hook", "teled: ok"},
		"access list":      {good, "", []string{"check"}, 0, "its access list in @BotFather", "privacy mode"},
		"second poller":    {botAPI{readsAll: true, joinsGroups: true, rival: true}, "", []string{"check"}, 1, "another program reads this bot's updates: stop it, or use another bot", "teled: ok"},
		"wrong token":      {good, "TELEGRAM_BOT_TOKEN=wrong", []string{"check"}, 78, "teled: Telegram does not accept TELEGRAM_BOT_TOKEN: ask @BotFather", "connects"},
		"token in quotes":  {good, `TELEGRAM_BOT_TOKEN="` + token + `"`, []string{"check"}, 78, "TELEGRAM_BOT_TOKEN: contains a quote", "connects"},
		"token with blank": {good, "TELEGRAM_BOT_TOKEN=" + token + " ", nil, 78, "TELEGRAM_BOT_TOKEN: contains a blank", "connects"},
		"token with bot":   {good, "TELEGRAM_BOT_TOKEN=bot" + token, nil, 78, "TELEGRAM_BOT_TOKEN: begins with bot", "connects"},
		"host named bot":   {good, "TELEGRAM_API_URL=http://bot.invalid:8081", []string{"check"}, 1, "http://bot.invalid:8081 does not answer", "connects"},
		"whole path":       {good, "TELEGRAM_API_URL=https://api.telegram.org/bot12:ab/getMe", nil, 78, "TELEGRAM_API_URL: ends before /bot", "connects"},
		"wrong path":       {good, "TELEGRAM_API_URL=https://api.telegram.org/bot", nil, 78, "TELEGRAM_API_URL: ends before /bot", "connects"},
		"not reachable":    {good, "TELEGRAM_API_URL=http://127.0.0.1:1", []string{"check"}, 1, "http://127.0.0.1:1 does not answer", "connects"},
		"invalid value":    {good, "BOTS=some", []string{"check"}, 78, `BOTS="some": must be`, "connects"},
		"not running":      {good, "", []string{"health"}, 1, "teled.http.sock does not answer", "connects"},
		"unknown command":  {good, "", []string{"dance"}, 78, "usage: teled [serve | check | health", "connects"},
		"invalid at serve": {good, "BOTS=some", nil, 78, `BOTS="some": must be`, "connects"},
	} {
		t.Run(name, func(t *testing.T) {
			api := httptest.NewServer(tt.api)
			defer api.Close()
			for _, variable := range []string{"ARIZUKO_DATA=" + t.TempDir(), "TELEGRAM_API_URL=" + api.URL, "TELEGRAM_BOT_TOKEN=" + token, tt.env} {
				if name, value, ok := strings.Cut(variable, "="); ok {
					t.Setenv(name, value)
				}
			}
			run := func(out io.Writer) int { return program().Run(t.Context(), tt.args, out, out) }
			adaptertest.Says(t, run, tt.code, []string{tt.want}, []string{tt.not, token})
		})
	}
}

func TestCheck_OtherServer_NamesTheCause(t *testing.T) {
	adaptertest.CheckServers(t, "TELEGRAM_API_URL", func(ctx context.Context, api string, out io.Writer) int { return checkAt(t, ctx, api, out) })
}

// checkAt runs check with the API at a URL, and returns the exit code.
func checkAt(t *testing.T, ctx context.Context, api string, out io.Writer) int {
	t.Setenv("ARIZUKO_DATA", t.TempDir())
	t.Setenv("TELEGRAM_API_URL", api)
	t.Setenv("TELEGRAM_BOT_TOKEN", token)
	return program().Run(ctx, []string{"check"}, out, out)
}

func TestCheck_ServerEchoesToken_IsRedacted(t *testing.T) {
	answers := map[string]int{
		`{"ok":false,"error_code":400,"description":"bad path /bot%s/getMe \u001b[31m"}`:               http.StatusBadRequest,
		`{"ok":false,"error_code":401,"description":"no bot %s"}`:                                      http.StatusUnauthorized,
		`{"ok":true,"result":{"id":1,"is_bot":true,"username":"%s\u001b[2J","url":"https://a.bc/%s"}}`: http.StatusOK,
	}
	adaptertest.CheckRedacts(t, []string{token}, answers, func(api string, out io.Writer) { checkAt(t, t.Context(), api, out) })
}
