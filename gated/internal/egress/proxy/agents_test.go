package proxy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"arizuko/pkg/egress"
	"arizuko/pkg/testkit/fakes/anthropic"
	"arizuko/pkg/testkit/fakes/llm"
	"arizuko/pkg/testkit/need"
)

// subscription is a login whose tokens a server replaces, and the API that takes them.
type subscription struct {
	api http.Handler
	key string // that api takes

	mu         sync.Mutex
	generation int // of the tokens, 0 before the first refresh
	problems   []string
}

// accessToken and refreshToken are of a generation.
func accessToken(n int) string  { return fmt.Sprintf("real-access-token-%d", n) }
func refreshToken(n int) string { return fmt.Sprintf("real-refresh-token-%d", n) }

// idToken is one as OpenAI's, whose claims the client reads.
const idToken = "eyJhbGciOiJub25lIn0.eyJlbWFpbCI6Im1lQGV4YW1wbGUuY29tIiwiaHR0cHM6Ly9hcGkub3BlbmFpLmNvbS9hdXRoIjp7ImNoYXRncHRfcGxhbl90eXBlIjoicHJvIiwiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjdCJ9fQ."

func (s *subscription) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/oauth/token") {
		var in map[string]string
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &in); err != nil || in["refresh_token"] != refreshToken(s.generation) {
			s.problems = append(s.problems, "refreshed with "+string(body))
			http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
			return
		}
		s.generation++
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": accessToken(s.generation), "refresh_token": refreshToken(s.generation),
			"id_token": idToken + "real-signature", "expires_in": 3600, "token_type": "Bearer", "scope": "user:inference user:profile"})
		return
	}
	got := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if s.generation == 0 {
		got = cmp.Or(got, r.Header.Get("X-Api-Key"))
	}
	if got != accessToken(s.generation) && (got != s.key || s.generation > 0) {
		http.Error(w, `{"error":{"type":"authentication_error","message":"token expired"}}`, http.StatusUnauthorized)
		return
	}
	r.Header.Set("Authorization", "Bearer "+s.key)
	s.api.ServeHTTP(w, r)
}

// npmProgram is a program that npm has installed in a folder of deploy.
func npmProgram(t *testing.T, folder, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../../../deploy", folder, "node_modules/.bin", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%v: run `VERIFY=1 make setup`", err)
	}
	return path
}

// TestAgents: Claude Code and Codex work with tokens in place of a key, and of a login that they refresh.
func TestAgents(t *testing.T) {
	t.Parallel()
	need.Verify(t)
	claude := npmProgram(t, "agents/claude", "claude") + " -p 'say hello'"
	codex := npmProgram(t, "e2e/clients", "codex") + " exec --skip-git-repo-check 'say hello'"
	// Settings of its own provider, without web sockets and questions about the account, which the fake does not have.
	const provider = ` -c 'model_providers.x={name="x",base_url="https://%s",wire_api="responses",requires_openai_auth=true}' -c 'model_provider="x"'`
	for name, tt := range map[string]struct {
		command     string
		env         string
		file, login string // in its home
		hosts       []string
	}{
		"Claude Code, key": {command: claude, env: "ANTHROPIC_API_KEY=ACCESS", hosts: []string{"api.anthropic.com"}},
		"Claude Code, login": {command: claude, file: ".claude/.credentials.json",
			login: `{"claudeAiOauth":{"accessToken":"ACCESS","refreshToken":"REFRESH","expiresAt":1000,"scopes":["user:inference","user:profile"],"subscriptionType":"max"}}`,
			hosts: []string{"api.anthropic.com", "platform.claude.com"}},
		"Codex, key": {command: codex + fmt.Sprintf(provider, "api.openai.com/v1"), env: "CODEX_API_KEY=ACCESS", hosts: []string{"api.openai.com"}},
		"Codex, login": {command: codex + fmt.Sprintf(provider, "chatgpt.com/backend-api/codex"), file: ".codex/auth.json",
			login: `{"auth_mode":"chatgpt","tokens":{"id_token":"` + idToken + `x","access_token":"ACCESS","refresh_token":"REFRESH","account_id":"acct"},"last_refresh":"2020-01-01T00:00:00Z"}`,
			hosts: []string{"chatgpt.com", "auth.openai.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &subscription{api: llm.New(), key: llm.Key}
			if strings.HasPrefix(name, "Claude") {
				model := anthropic.New(anthropic.Options{})
				s.api, s.key = model, model.Key()
			}
			var rules []egress.Rule
			for _, host := range tt.hosts {
				rules = append(rules, egress.Rule{Host: host, Action: egress.Inject, Secret: "login"})
			}
			w := newWorld(t, s.ServeHTTP, append(rules, egress.Rule{Host: "*", Action: egress.Deny})...)
			secret := s.key
			if tt.file != "" {
				secret = fmt.Sprintf(`{"access_token":%q,"refresh_token":%q}`, accessToken(0), refreshToken(0))
			}
			tokens := strings.NewReplacer("ACCESS", w.setSecret("login", secret), "REFRESH", w.Token("main", "login.refresh"))
			home := t.TempDir()
			file := filepath.Join(home, tt.file)
			if tt.file != "" {
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(tokens.Replace(tt.login)), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-c", tt.command+" </dev/null")
			cmd.Dir = t.TempDir()
			out, err := w.run(t, cmd, "HOME="+home, tokens.Replace(tt.env), "DISABLE_TELEMETRY=1")
			if err != nil || !strings.Contains(out, "hello") || s.problems != nil {
				t.Errorf("%v, problems %q: %s", err, s.problems, out)
			}
			if tt.file != "" && s.generation != 1 {
				t.Errorf("the tokens are of generation %d", s.generation)
			}
			wantNoSecrets(t, home, out, s.key)
			if t.Failed() {
				for _, r := range w.receipts {
					t.Log(r)
				}
			}
		})
	}
}

// wantNoSecrets fails the test if what the agent got has a secret.
func wantNoSecrets(t *testing.T, home, out string, others ...string) {
	t.Helper()
	all := out
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		all += string(content)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for _, secret := range append(others, "real-access-token", "real-refresh-token", "real-signature") {
		if strings.Contains(all, secret) {
			t.Errorf("the agent has %s", secret)
		}
	}
}
