package main

import (
	"os/exec"
	"testing"
	"time"

	"arizuko/pkg/agentproto"
)

// Texts of the commands and of the APIs that they call.
func TestClassify(t *testing.T) {
	for text, want := range map[string]failure{
		"unexpected status 401 Unauthorized: bad key, url: http://127.0.0.1:18777/v1/responses":                {kind: "permanent"},
		`[API Error: {"error":{"message":"bad key","type":"invalid_request_error","code":"invalid_api_key"}}]`: {kind: "permanent"},
		"API key not valid. Please pass a valid API key.":                                                      {kind: "permanent"},
		"Invalid auth method selected.":                                                                        {kind: "permanent"},
		"Not logged in. Please run codex login":                                                                {kind: "permanent"},
		"The model `gpt-9` does not exist or you do not have access to it.":                                    {kind: "permanent"},
		"This model's maximum context length is 128000 tokens":                                                 {kind: "permanent"},
		"You exceeded your current quota, please check your plan and billing details.":                         {kind: "permanent"},
		"unexpected status 429: Rate limit reached for gpt-9 ... Please try again in 1.5s. Visit billing":      {kind: "transient", retryAfter: 1500 * time.Millisecond},
		"You exceeded your current quota, see your plan and billing details. Please retry in 26.3s.":           {kind: "transient", retryAfter: 26300 * time.Millisecond},
		"limit reached, try again in 6m0s.":                                                                    {kind: "transient", retryAfter: 6 * time.Minute},
		"Retry after 20 seconds":                                                                               {kind: "transient", retryAfter: 20 * time.Second},
		"You've hit your usage limit. Try again in 2 min":                                                      {kind: "transient", retryAfter: 2 * time.Minute},
		"unexpected status 503 Service Unavailable":                                                            {kind: "transient"},
		"stream disconnected before completion: error sending request for url (https://api.openai.com)":        {kind: "transient"},
		"Loop detected, stopping execution":                                                                    {kind: "transient"},
		"retry 3 times":                                                                                        {kind: "transient"},
	} {
		if got := classify(text); got.kind != want.kind || got.retryAfter != want.retryAfter || got.text != text {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

func TestExplain_ProgramOfScriptMissing_IsPermanent(t *testing.T) {
	c := newCLI("sh", nil, "", nil)
	err := exec.Command("sh", "-c", "nosuchprogram").Run()
	if f := c.explain(err, "", "sh: 1: nosuchprogram: not found"); f.kind != agentproto.KindPermanent {
		t.Errorf("%+v", f)
	}
}
