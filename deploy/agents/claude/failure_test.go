package main

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"arizuko/pkg/agentproto"
)

func TestExplain_EachFailure_HelpsOperator(t *testing.T) {
	tests := []struct {
		line    line
		failure string
		want    string
	}{
		{line{APIStatus: 401}, "", "check ANTHROPIC_API_KEY"},
		{line{APIStatus: 403}, "", "check ANTHROPIC_API_KEY"},
		{line{APIStatus: 402}, "", "no credit"},
		{line{}, "billing_error", "no credit"},
		{line{APIStatus: 404}, "", "CLAUDE_MODEL"},
		{line{}, "model_not_found", "CLAUDE_MODEL"},
		{line{APIStatus: 413}, "", "too large"},
		{line{APIStatus: 429}, "rate_limit", "rate limit"},
		{line{APIStatus: 529}, "server_error", "overloaded"},
		{line{APIStatus: 502}, "", "failing (502)"},
		{line{Result: "Not logged in · Please run /login"}, "authentication_failed", "no credentials"},
		{line{Result: "Prompt is too long", APIStatus: 400}, "", "Claude Code failed: Prompt is too long"},
		{line{Errors: []string{"a", "b"}}, "", "Claude Code failed: a; b"},
		{line{Subtype: "error_max_turns"}, "", "Claude Code failed: error_max_turns"},
		{line{Result: `{"type":"error"}`}, "", "no error was printed"},
		{line{Result: "one\ntwo"}, "", "Claude Code failed: one"},
	}
	for _, tt := range tests {
		if got := explain(tt.line, tt.failure); !strings.Contains(got, tt.want) || strings.ContainsAny(got, "\n{") {
			t.Errorf("%+v: %q, want %q", tt.line, got, tt.want)
		}
	}
}

func TestExcerpt_LongText_IsCut(t *testing.T) {
	got := excerpt("x" + strings.Repeat("é", 300))
	if len(got) > 310 || !utf8.ValidString(got) || !strings.HasSuffix(got, "é…") {
		t.Errorf("got %d bytes: %q", len(got), got)
	}
}

func TestCut_AnyBytes_FitFrame(t *testing.T) {
	for name, piece := range map[string]string{"plain": "x", "controls": "\x01", "runes": "é", "three bytes": "€", "broken": "\xff"} {
		long := strings.Repeat(piece, 2*maxResult)
		got := cut(long)
		encoded, err := json.Marshal(got)
		if err != nil || len(encoded) > agentproto.MaxFrame-1024 || !strings.HasSuffix(got, " bytes]") || !strings.HasPrefix(long, got[:1000]) {
			t.Errorf("%s: %d bytes, encoded %d, %v", name, len(got), len(encoded), err)
		}
		if utf8.ValidString(piece) && !utf8.ValidString(got) {
			t.Errorf("%s: a rune is split", name)
		}
	}
	if got := cut("short"); got != "short" {
		t.Errorf("got %q", got)
	}
}

func TestUUID(t *testing.T) {
	if a, b := newUUID(), newUUID(); !isUUID(a) || a == b || a[14] != '4' {
		t.Errorf("%s, %s", a, b)
	}
	for _, bad := range []string{"", "demo-1", "--version", newUUID() + "0", "x" + newUUID()[1:]} {
		if isUUID(bad) {
			t.Errorf("%q", bad)
		}
	}
}
