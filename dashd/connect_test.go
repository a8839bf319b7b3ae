package main

import (
	"html"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/daemon"
	"arizuko/pkg/testkit/executable"
)

// A token is tried by the adapter's own check, and is nowhere afterwards.
func TestConnect_Token_IsTriedAndForgotten(t *testing.T) {
	const token, other = "123456:AAF-typed-token", "xapp-typed-token"
	data := dataFolder(t)
	p := serve(t, data)
	p.console.Bin = t.TempDir()
	p.console.Environ = []string{"TELEGRAM_API_URL=http://api.example", "TELEGRAM_BOT_TOKEN=999999:of-the-instance", "SLACK_BOT_TOKEN_FILE=/nonexistent"}
	executable.Write(t, filepath.Join(p.console.Bin, "teled"), []byte(`#!/bin/sh
[ "$1 $TELEGRAM_BOT_TOKEN $TELEGRAM_API_URL$SLACK_BOT_TOKEN_FILE" = "check `+token+` http://api.example" ] || { echo "teled: wrong: $*" >&2; env >&2; exit 1; }
echo "connects as: @shop_bot (42)"
echo "the token is $TELEGRAM_BOT_TOKEN"
echo "teled: ok"
`))
	executable.Write(t, filepath.Join(p.console.Bin, "slakd"), []byte(`#!/bin/sh
echo "slakd: Slack does not accept SLACK_BOT_TOKEN $SLACK_BOT_TOKEN: invalid_auth" >&2
echo "slakd: second line" >&2
exit 78
`))
	b := p.operator()
	for _, tt := range []struct {
		daemon string
		form   url.Values
		want   []string
	}{
		{"teled", url.Values{"TELEGRAM_BOT_TOKEN": {" " + token + "\r\n"}}, []string{"It works.", "connects as: @shop_bot (42)", "the token is [redacted]"}},
		{"teled", url.Values{"TELEGRAM_BOT_TOKEN": {" "}}, []string{"Paste TELEGRAM_BOT_TOKEN to try it."}},
		{"teled", url.Values{"TELEGRAM_BOT_TOKEN": {token + "\nDASHD_ADDR=x"}}, []string{"characters that no token has"}},
		{"slakd", url.Values{"SLACK_BOT_TOKEN": {token}}, []string{"Paste SLACK_APP_TOKEN"}},
		{"slakd", url.Values{"SLACK_BOT_TOKEN": {token}, "SLACK_APP_TOKEN": {other}}, []string{"It does not work:\nSlack does not accept SLACK_BOT_TOKEN [redacted]: invalid_auth\nsecond line"}},
		{"discd", url.Values{"DISCORD_BOT_TOKEN": {token}}, []string{"The program discd is not installed beside dashd"}},
	} {
		page := b.submit("/connect/"+tt.daemon, tt.form).body
		contains(t, page, append(tt.want, "docker compose up -d", "arizuko@"+tt.daemon, "secrets/")...)
		if strings.Contains(page, "teled: ok") {
			t.Errorf("words of a terminal: %s", page)
		}
		for _, secret := range []string{token, other} {
			if strings.Contains(page, secret) || strings.Contains(p.log.String(), secret) {
				t.Errorf("%s with %v: the token is on the page or in the log", tt.daemon, tt.form)
			}
		}
	}
	files, err := filepath.Glob(data + "/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if content, err := os.ReadFile(file); err == nil && strings.Contains(string(content), token) {
			t.Errorf("the token is in %s", file)
		}
	}
	shell(t, data, `INSERT INTO daemons (name, connection, heartbeat_at, started_at) VALUES ('teled', 'connected', ?, 1)`, time.Now().UnixMilli())
	contains(t, b.must(200, "GET", "/connect/teled", "").body, "Telegram is connected.")
	b.must(404, "GET", "/connect/gated", "")
}

// What the page has to copy does, in a shell that it is pasted into, what the page says: the tokens are typed when they are asked
// for. The names are those of docker-compose.yml and of the units.
func TestConnect_Lines_SetTheTokens(t *testing.T) {
	p := serve(t, dataFolder(t))
	shell(t, p.data, `INSERT INTO daemons (name, connection, heartbeat_at, started_at) VALUES ('teled', 'connected', 1, 1), ('discd', 'stopped', 1, 1)`)
	b := p.operator()
	compose, err := os.ReadFile("../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range daemon.Adapters() {
		tokens := map[string]string{}
		var typed strings.Builder
		for _, variable := range a.Secrets {
			if variable != "SLACK_SIGNING_SECRET" { // in place of the app's token, see deploy/compose/slack-events.yml
				tokens[variable] = "token-" + strings.ToLower(variable)
				typed.WriteString(tokens[variable] + "\n")
			}
		}
		page := b.must(200, "GET", "/connect/"+a.Name, "").body
		run := func(section string) (dir, calls string) {
			t.Helper()
			match := regexp.MustCompile(`aria-labelledby="` + section + `"><code>([^<]*)</code>`).FindStringSubmatch(page)
			if match == nil {
				t.Fatalf("%s: the page has no lines for %s", a.Name, section)
			}
			return runLines(t, html.UnescapeString(match[1]), typed.String())
		}
		want := func(section, file, content string) {
			t.Helper()
			if got, err := os.ReadFile(file); err != nil || string(got) != content {
				t.Errorf("%s, %s: %q, %v, want %q", a.Name, section, got, err, content)
			}
		}
		profiles := a.Platform
		if a.Name != "teled" {
			profiles = "telegram," + profiles // it runs
		}
		dir, calls := run("compose")
		want("compose", dir+"/.env", "COMPOSE_PROFILES="+profiles+"\n")
		for variable, token := range tokens {
			file := "secrets/" + strings.ToLower(variable)
			want("compose", filepath.Join(dir, file), token+"\n")
			if !strings.Contains(string(compose), "{file: ./"+file+"}") || !strings.Contains(string(compose), "profiles: ["+a.Platform+"]") {
				t.Errorf("docker-compose.yml has no %s, or no profile %s", file, a.Platform)
			}
		}
		if calls != "docker compose up -d\ndocker compose restart "+a.Name+"\ndocker compose exec "+a.Name+" "+a.Name+" check\n" {
			t.Errorf("%s, compose: %s", a.Name, calls)
		}

		dir, calls = run("systemd")
		var lines, environ strings.Builder
		for _, variable := range a.Secrets {
			if token := tokens[variable]; token != "" {
				lines.WriteString(variable + "=" + token + "\n")
				environ.WriteString(variable + "=" + token + " ")
			}
		}
		want("systemd", filepath.Join(dir, "etc", a.Name+".env"), lines.String())
		if unit := "arizuko@" + a.Name; calls != "systemctl enable "+unit+"\nsystemctl restart "+unit+"\njournalctl -u "+unit+"\n" {
			t.Errorf("%s, systemd: %s", a.Name, calls)
		}
		if _, calls = run("run"); calls != environ.String()+"make run\n" {
			t.Errorf("%s, make run: %q", a.Name, calls)
		}
	}
}

// runLines runs lines in a shell in which the user types. It returns its folder, in which etc is /etc/arizuko, and the calls of
// programs with the tokens in their environment.
func runLines(t *testing.T, lines, typed string) (dir, calls string) {
	t.Helper()
	dir = t.TempDir()
	for _, folder := range []string{"etc", "bin", "deploy/compose"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	executable.Script(t, dir+"/deploy/compose/secrets.sh", "mkdir secrets")
	for _, program := range []string{"docker", "systemctl", "journalctl", "make"} {
		executable.Script(t, dir+"/bin/"+program, `for name in TELEGRAM_BOT_TOKEN DISCORD_BOT_TOKEN SLACK_BOT_TOKEN SLACK_APP_TOKEN; do
	eval "value=\$$name"; [ -z "$value" ] || printf '%s=%s ' "$name" "$value" >>"$DIR/calls"
done
[ -z "$*" ] || set -- " $*"
echo "${0##*/}$*" >>"$DIR/calls"`)
	}
	executable.Write(t, dir+"/bin/sudo", []byte(`#!/bin/bash
exec "${@//\/etc\/arizuko/$DIR/etc}"`))
	cmd := exec.Command("bash", "-euc", lines)
	cmd.Dir, cmd.Stdin, cmd.Env = dir, strings.NewReader(typed), []string{"PATH=" + dir + "/bin:/usr/bin:/bin", "DIR=" + dir}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s\n%s", err, out, lines)
	}
	content, err := os.ReadFile(dir + "/calls")
	if err != nil {
		t.Error(err)
	}
	return dir, string(content)
}
