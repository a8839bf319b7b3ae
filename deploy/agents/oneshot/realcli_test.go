//go:build realcli

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// These tests run the real commands, in the versions that package.json pins, with a fake model. They
// need 860 MB and some minutes, and run only with a build tag:
//
//	npm ci --prefix deploy/agents/oneshot
//	go test -tags realcli -run TestRealCLI arizuko/deploy/agents/oneshot

// modelServer answers as the services of OpenAI and Google do, with the text "You said something". A
// prompt with the word slow takes 20 seconds, or until the client disconnects.
func modelServer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	const text = "You said something"
	if last := strings.LastIndex(string(body), "<messages>"); last >= 0 && strings.Contains(string(body[last:]), ">slow ") {
		timer := time.NewTimer(20 * time.Second)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return
		}
	}
	var events []any
	switch {
	case r.Method != http.MethodPost:
		http.NotFound(w, r)
		return
	case strings.HasSuffix(r.URL.Path, "/responses"):
		item := map[string]any{"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
			"content": []any{map[string]any{"type": "output_text", "text": text, "annotations": []any{}}}}
		response := map[string]any{"id": "resp_1", "usage": map[string]int{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}
		events = []any{
			map[string]any{"type": "response.created", "response": map[string]any{"id": "resp_1"}},
			map[string]any{"type": "response.output_item.done", "output_index": 0, "item": item},
			map[string]any{"type": "response.completed", "response": response},
		}
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		for i, delta := range []map[string]string{{"role": "assistant", "content": text}, {}} {
			reason := []any{nil, "stop"}[i]
			choice := map[string]any{"index": 0, "delta": delta, "finish_reason": reason}
			events = append(events, map[string]any{"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []any{choice}})
		}
	case strings.HasSuffix(r.URL.Path, ":streamGenerateContent"):
		candidate := map[string]any{"index": 0, "finishReason": "STOP",
			"content": map[string]any{"role": "model", "parts": []any{map[string]string{"text": text}}}}
		events = []any{map[string]any{"candidates": []any{candidate}, "usageMetadata": map[string]int{"totalTokenCount": 2}}}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range events {
		data, err := json.Marshal(event)
		if err != nil {
			return
		}
		if typed, ok := event.(map[string]any)["type"]; ok {
			fmt.Fprintf(w, "event: %s\n", typed)
		}
		fmt.Fprintf(w, "data: %s\n\n", data)
	}
}

func TestRealCLI(t *testing.T) {
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "arizuko/gated", ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server := httptest.NewServer(http.HandlerFunc(modelServer))
	defer server.Close()
	codex := fmt.Sprintf(`-c 'model_providers.fake={name="fake",base_url="%s/v1",env_key="FAKE_KEY",wire_api="responses"}' -c 'model_provider="fake"'`, server.URL)
	opencode := fmt.Sprintf(`{"provider":{"fake":{"npm":"@ai-sdk/openai-compatible","name":"fake",`+
		`"options":{"baseURL":"%s/v1","apiKey":"k"},"models":{"m":{"name":"m"}}}},"model":"fake/m"}`, server.URL)
	for name, tt := range map[string]struct{ args, env string }{
		"codex":    {codex, "FAKE_KEY=k"},
		"gemini":   {"--model=gemini-2.5-flash", "GEMINI_API_KEY=k GOOGLE_GEMINI_BASE_URL=" + server.URL},
		"opencode": {"", "OPENCODE_CONFIG_CONTENT=" + opencode},
	} {
		t.Run(name, func(t *testing.T) {
			program, err := filepath.Abs(filepath.Join("node_modules", ".bin", name))
			if err == nil {
				_, err = os.Stat(program)
			}
			if err != nil {
				t.Fatalf("%v: install it with `npm ci --prefix deploy/agents/oneshot`", err)
			}
			home := t.TempDir()
			settings := filepath.Join(home, ".gemini", "settings.json")
			if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(settings, []byte(`{"security":{"auth":{"selectedType":"gemini-api-key"}}}`), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, filepath.Join(bin, "gated"), "agent", "conform", "-wait", "90s", "-grace", "10s", "--",
				"exec "+filepath.Join(bin, "oneshot")+" "+program+" "+tt.args)
			cmd.Env = append([]string{"HOME=" + home, "PATH=" + os.Getenv("PATH"),
				"AGENT_ENV=FAKE_KEY,GEMINI_API_KEY,GOOGLE_GEMINI_BASE_URL,OPENCODE_CONFIG_CONTENT"}, strings.Fields(tt.env)...)
			out, err := cmd.CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Error(err)
			}
			for _, c := range []string{"a first answer", "a session is taken up again", "a session that is gone", "interrupt, then another turn"} {
				if !strings.Contains(string(out), "ok         "+c) {
					t.Errorf("not passed: %s", c)
				}
			}
		})
	}
}
