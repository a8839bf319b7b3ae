package failure

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"arizuko/pkg/agentproto"
)

// Texts of the commands and of the APIs that they call.
func TestClassify_Texts_HaveKindAndDelay(t *testing.T) {
	for text, want := range map[string]agentproto.Failure{
		"unexpected status 401 Unauthorized: bad key, url: http://127.0.0.1:18777/v1/responses":                {Kind: "permanent"},
		`[API Error: {"error":{"message":"bad key","type":"invalid_request_error","code":"invalid_api_key"}}]`: {Kind: "permanent"},
		"API key not valid. Please pass a valid API key.":                                                      {Kind: "permanent"},
		"Invalid auth method selected.":                                                                        {Kind: "permanent"},
		"Not logged in. Please run codex login":                                                                {Kind: "permanent"},
		"The model `gpt-9` does not exist or you do not have access to it.":                                    {Kind: "permanent"},
		"This model's maximum context length is 128000 tokens":                                                 {Kind: "permanent"},
		"You exceeded your current quota, please check your plan and billing details.":                         {Kind: "permanent"},
		"unexpected status 429: Rate limit reached for gpt-9 ... Please try again in 1.5s. Visit billing":      {Kind: "transient", RetryAfter: 1500 * time.Millisecond},
		"You exceeded your current quota, see your plan and billing details. Please retry in 26.3s.":           {Kind: "transient", RetryAfter: 26300 * time.Millisecond},
		"limit reached, try again in 6m0s.":                                                                    {Kind: "transient", RetryAfter: 6 * time.Minute},
		"Retry after 20 seconds":                                                                               {Kind: "transient", RetryAfter: 20 * time.Second},
		"You've hit your usage limit. Try again in 2 min":                                                      {Kind: "transient", RetryAfter: 2 * time.Minute},
		"unexpected status 503 Service Unavailable":                                                            {Kind: "transient"},
		"stream disconnected before completion: error sending request for url (https://api.openai.com)":        {Kind: "transient"},
		"Loop detected, stopping execution":                                                                    {Kind: "transient"},
		"retry 3 times":                                                                                        {Kind: "transient"},
	} {
		if got := Classify(text); got.Kind != want.Kind || got.RetryAfter != want.RetryAfter || got.Text != text {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

func TestOfStart_MissingProgram_IsPermanent(t *testing.T) {
	for name, want := range map[string]agentproto.Kind{"/nowhere/claude": "permanent", "nosuchclaude": "permanent", "/etc/passwd": "permanent"} {
		if got := OfStart(exec.Command(name).Start(), "t"); got.Kind != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := OfStart(&os.PathError{Op: "fork/exec", Path: "claude", Err: syscall.EAGAIN}, "t"); got.Kind != agentproto.KindTransient {
		t.Errorf("no process: %+v", got)
	}
}

func TestExcerpt_LongText_IsCut(t *testing.T) {
	got := Excerpt("x" + strings.Repeat("é", 300))
	if len(got) > 310 || !utf8.ValidString(got) || !strings.HasSuffix(got, "é…") {
		t.Errorf("got %d bytes: %q", len(got), got)
	}
}
