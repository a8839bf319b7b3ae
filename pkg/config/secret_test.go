package config

import (
	"slices"
	"testing"
)

func TestSecretName_ByItsWords(t *testing.T) {
	secret := []string{
		"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "AWS_SECRET_ACCESS_KEY", "ANTHROPIC_CUSTOM_HEADERS", "PASSWORD", "PGPASSWORD", "x_secret",
		"MYSQL_PWD", "GITHUB_PAT", "GITHUB_TOKEN_2", "OPENAI_API_KEY_WORK", "OPENAI_APIKEY", "SENTRY_DSN", "SLACK_WEBHOOK_URL", "GOOGLE_CREDENTIALS_JSON",
		"NPM_AUTH", "my-token", "KEY",
	}
	plain := []string{
		"CLAUDE_MODEL", "AGENT_MODEL", "CLAUDE_PERMISSION_MODE", "CLAUDE_ALLOWED_TOOLS", "CLAUDE_COMMAND", "CLAUDE_ARGS", "CLAUDE_CONFIG_DIR",
		"CLAUDE_CODE_MAX_RETRIES", "CLAUDE_CODE_MAX_OUTPUT_TOKENS", "CLAUDE_CODE_API_KEY_HELPER_TTL_MS", "ANTHROPIC_BASE_URL", "HTTPS_PROXY",
		"IS_SANDBOX", "KEYBOARD", "MONKEY", "PATH", "SHELL", "API_KEY_FILE", "AWS_ACCESS_KEY_ID", "SSH_AUTH_SOCK", "AUTHOR", "COMPASS", "", "_",
	}
	for _, name := range secret {
		if !SecretName(name) {
			t.Errorf("%s is not secret", name)
		}
	}
	for _, name := range plain {
		if SecretName(name) {
			t.Errorf("%s is secret", name)
		}
	}
}

func TestSecretValues_PlainSettingsAreKept(t *testing.T) {
	got := SecretValues([]string{
		"API_KEY=the-key=1", "CLAUDE_MODEL=claude-sonnet", "HTTPS_PROXY=http://user:the-password@proxy:3128", "BASE_URL=https://user@host", "odd", "ODD=%zz://",
	})
	if want := []string{"the-key=1", "the-password"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
