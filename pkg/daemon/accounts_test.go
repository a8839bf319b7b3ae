package daemon

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestAccounts_VariablesWithSuffix_AreTheAccounts(t *testing.T) {
	t.Parallel()
	all, err := Accounts([]string{
		"ACCOUNTS=teled+work, slakd+my-team", "BOTS=none", "BOTS_WORK=all", "TELEGRAM_API_URL=http://x",
		"TELEGRAM_BOT_TOKEN_FILE=first", "TELED_ADDR=:1", "TELED_ADDR_WORK=:2", "TELEGRAM_BOT_TOKEN_WORK=second",
		"SLACK_BOT_TOKEN=a", "SLACK_APP_TOKEN=b", "SLACK_SIGNING_SECRET=c", "SLACK_BOT_TOKEN_MY_TEAM_FILE=d",
	})
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	work, team := all[0], all[1]
	for name, want := range map[string]string{
		"TELED_ACCOUNT": "work", "TELED_ADDR": ":2", "TELEGRAM_BOT_TOKEN": "second", "TELEGRAM_BOT_TOKEN_FILE": "", "BOTS": "all", "TELEGRAM_API_URL": "http://x",
	} {
		if got := work.Variable(name); got != want {
			t.Errorf("%s: %s is %q, want %q", work.Daemon, name, got, want)
		}
	}
	for name, want := range map[string]string{
		"SLAKD_ACCOUNT": "my-team", "SLAKD_ADDR": "", "SLACK_BOT_TOKEN": "", "SLACK_BOT_TOKEN_FILE": "d", "SLACK_APP_TOKEN": "", "SLACK_SIGNING_SECRET": "", "BOTS": "none",
	} {
		if got := team.Variable(name); got != want {
			t.Errorf("%s: %s is %q, want %q", team.Daemon, name, got, want)
		}
	}
	if !work.HasToken() || !team.HasToken() || work.Daemon != "teled+work" || team.Token != "SLACK_BOT_TOKEN" {
		t.Errorf("%+v", all)
	}
}

// The longest suffix of an account decides whose a variable is, and no daemon gets the token of another account.
func TestAccounts_TokensOfOthers_AreLeftOut(t *testing.T) {
	t.Parallel()
	all, err := Accounts([]string{
		"ACCOUNTS=slakd+work,slakd+team-work,slakd+team,teled+work", "SLACK_BOT_TOKEN=first", "SLACK_BOT_TOKEN_WORK=work",
		"SLACK_BOT_TOKEN_TEAM_WORK=team-work", "SLACK_BOT_TOKEN_TEAM_FILE=team", "SLACK_APP_TOKEN_OTHER_WORK=other", "DISCORD_BOT_TOKEN=discord",
		"TELEGRAM_BOT_TOKEN_WORK=telegram", "BOTS=none", "BOTS_TEAM_WORK=all", "DATA_DIR=/data",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"BOTS=none", "SLACK_BOT_TOKEN=work"}, {"BOTS=none", "SLACK_BOT_TOKEN=team-work", "BOTS=all"},
		{"BOTS=none", "SLACK_BOT_TOKEN_FILE=team"}, {"BOTS=none", "TELEGRAM_BOT_TOKEN=telegram"},
	}
	for i, a := range all {
		var got []string
		for _, entry := range a.Environ {
			if name, _, _ := strings.Cut(entry, "="); strings.Contains(name, "TOKEN") || name == "BOTS" || name == "BOTS_TEAM" {
				got = append(got, entry)
			}
		}
		if !slices.Equal(got, want[i]) || a.Variable("DATA_DIR") != "/data" {
			t.Errorf("%s: %q, want %q", a.Daemon, got, want[i])
		}
	}
}

func TestEnviron_OfFirstAccount_HasItsOwnSecretsOnly(t *testing.T) {
	t.Parallel()
	environ := []string{
		"ACCOUNTS=teled+work", "TELEGRAM_BOT_TOKEN_FILE=first", "TELEGRAM_BOT_TOKEN_WORK=second", "TELEGRAM_BOT_TOKEN_WORK_FILE=third",
		"SLACK_BOT_TOKEN=a", "SLACK_APP_TOKEN_FILE=b", "DISCORD_BOT_TOKEN=c", "SLACK_BOT_TOKEN_WORK=d", "BOTS=all", "TELED_ADDR=:1",
	}
	for name, want := range map[string][]string{
		"teled": {"ACCOUNTS=teled+work", "TELEGRAM_BOT_TOKEN_FILE=first", "BOTS=all", "TELED_ADDR=:1"},
		"slakd": {"ACCOUNTS=teled+work", "SLACK_BOT_TOKEN=a", "SLACK_APP_TOKEN_FILE=b", "BOTS=all", "TELED_ADDR=:1"},
		"routd": {"ACCOUNTS=teled+work", "BOTS=all", "TELED_ADDR=:1"},
		"gated": environ, "dashd": environ,
	} {
		if got := Environ(name, environ); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestAccounts_Invalid_Refused(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{
		"teled": "teled+work", "teled+": "teled+work", "teled+Work": "teled+work", "gated+work": "want teled", "work": "want teled",
		"teled+a-b,teled+a_b": "same variables", "teled+a,teled+a": "same variables",
		"teled+file": "choose another name", "slakd+my-file": "choose another name",
	} {
		if all, err := Accounts([]string{"ACCOUNTS=" + list}); err == nil || all != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v", list, all, err)
		}
	}
	for _, environ := range [][]string{nil, {"ACCOUNTS="}, {"ACCOUNTS= , "}} {
		if all, err := Accounts(environ); err != nil || len(all) > 0 {
			t.Errorf("%q: %v, %v", environ, all, err)
		}
	}
}

func TestAdapters_SecretsAndAddresses_AreVariablesOfTheirs(t *testing.T) {
	t.Parallel()
	for _, a := range Adapters() {
		source, err := os.ReadFile("../../" + a.Name + "/config.go")
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(source), `secret:"true"`); n != len(a.Secrets) || !slices.Contains(a.Secrets, a.Token) {
			t.Errorf("%s has %d secrets, listed are %q", a.Name, n, a.Secrets)
		}
		if got := TokenVariable(a.Name + "+work"); got != a.Token {
			t.Errorf("the token of %s is %s, want %s", a.Name, got, a.Token)
		}
		for _, name := range append(a.Secrets, a.AddrVariable(), a.accountVariable()) {
			if !strings.Contains(string(source), `env:"`+name+`"`) {
				t.Errorf("%s has no variable %s", a.Name, name)
			}
		}
	}
	if got := TokenVariable("gated"); got != "" {
		t.Errorf("gated has the token %s", got)
	}
}
