package main

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
`))
	executable.Write(t, filepath.Join(p.console.Bin, "slakd"), []byte(`#!/bin/sh
echo "slakd: Slack does not accept SLACK_BOT_TOKEN $SLACK_BOT_TOKEN: invalid_auth" >&2
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
		{"slakd", url.Values{"SLACK_BOT_TOKEN": {token}, "SLACK_APP_TOKEN": {other}}, []string{"slakd check: Slack does not accept SLACK_BOT_TOKEN", "invalid_auth"}},
		{"discd", url.Values{"DISCORD_BOT_TOKEN": {token}}, []string{"There is no discd beside dashd"}},
	} {
		page := b.submit("/connect/"+tt.daemon, tt.form).body
		for _, want := range append(tt.want, "docker compose up -d", "arizuko@"+tt.daemon, "secrets/") {
			if !strings.Contains(page, want) {
				t.Errorf("%s with %v: no %q in %s", tt.daemon, tt.form, want, page)
			}
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
	b.must(404, "GET", "/connect/gated", "")
}
