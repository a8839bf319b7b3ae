package doctor

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
	"arizuko/pkg/msg"
)

// Environment has the variables of the other daemons that the doctor reads. Each of them has its own defaults
// and checks.
type Environment struct {
	Secret         string   `env:"ARIZUKO_SECRET" secret:"true"`
	Database       string   `env:"ARIZUKO_DB" secret:"true"`
	Password       string   `env:"DASH_PASSWORD" secret:"true"`
	TelegramToken  string   `env:"TELEGRAM_BOT_TOKEN" secret:"true"`
	DiscordToken   string   `env:"DISCORD_BOT_TOKEN" secret:"true"`
	SlackToken     string   `env:"SLACK_BOT_TOKEN" secret:"true"`
	SlackAppToken  string   `env:"SLACK_APP_TOKEN" secret:"true"`
	SlackSigning   string   `env:"SLACK_SIGNING_SECRET" secret:"true"`
	Operators      []string `env:"OPERATORS"`
	AgentRuntime   string   `env:"AGENT_RUNTIME"`
	AgentSandbox   string   `env:"AGENT_SANDBOX"`
	AgentEnv       []string `env:"AGENT_ENV"`
	MaxAgents      int      `env:"MAX_AGENTS" envDefault:"5"`
	secretVariable map[string]string
	accounts       []daemon.Account // those that ACCOUNTS names
}

// hasToken reports whether the token of an adapter, also of a further account, is in this environment.
func (v *Environment) hasToken(adapter string) bool {
	for i := range v.accounts {
		if a := &v.accounts[i]; a.Daemon == adapter {
			return a.HasToken()
		}
	}
	_, account := msg.SplitAccount(adapter)
	return account == "" && v.secretVariable[daemon.TokenVariable(adapter)] != ""
}

// configured are the adapters whose token is in this environment, and those of further accounts.
func (v *Environment) configured() (names []string) {
	for _, a := range daemon.Adapters() {
		if v.hasToken(a.Name) {
			names = append(names, a.Name)
		}
	}
	for i := range v.accounts {
		names = append(names, v.accounts[i].Daemon)
	}
	return names
}

// of is the environment of a daemon.
func (v *Environment) of(name string, all []string) []string {
	for i := range v.accounts {
		if v.accounts[i].Daemon == name {
			return v.accounts[i].Environ
		}
	}
	return all
}

// loadEnvironment reads the environment, and returns its mistakes.
func loadEnvironment(environ []string) (v Environment, problems []string) {
	v, err := config.Load[Environment](environ)
	if err != nil {
		problems = strings.Split(err.Error(), "\n")
	}
	v.secretVariable = v.secrets()
	if v.accounts, err = daemon.Accounts(environ); err != nil {
		return v, append(problems, err.Error())
	}
	for i := range v.accounts {
		a := &v.accounts[i]
		env, err := config.Load[Environment](a.Environ)
		if wrong := new(config.Problems); errors.As(err, wrong) {
			for _, problem := range *wrong {
				problems = append(problems, a.Daemon+": "+problem)
			}
		}
		own := env.secrets()
		for _, secret := range a.Secrets {
			v.secretVariable[secret+a.Suffix] = own[secret]
		}
	}
	return v, problems
}

// checkEnvironment checks the environment.
func checkEnvironment(e *examination) {
	for _, line := range e.wrong {
		e.Refuse("config", line, "correct it in the environment, then run `dashd doctor` again")
	}
	if problem := daemon.ZoneProblem(e.Environ); problem != "" {
		text, fix, _ := strings.Cut(problem, "; ")
		e.Refuse("timezone", text, fix)
	}
	checkSharedSecrets(e)
	e.InvalidOperators(e.env.Operators)
}

// secrets are the secrets by the names of their variables.
func (v *Environment) secrets() map[string]string {
	return map[string]string{
		"ARIZUKO_SECRET": v.Secret, "ARIZUKO_DB": v.Database, "DASH_PASSWORD": v.Password,
		"TELEGRAM_BOT_TOKEN": v.TelegramToken,
		"DISCORD_BOT_TOKEN":  v.DiscordToken, "SLACK_BOT_TOKEN": v.SlackToken, "SLACK_APP_TOKEN": v.SlackAppToken,
		"SLACK_SIGNING_SECRET": v.SlackSigning,
	}
}

// checkSharedSecrets finds secrets that are used for two things, or handed to agents.
func checkSharedSecrets(e *examination) {
	names := slices.Sorted(maps.Keys(e.env.secretVariable))
	first := map[string]string{}
	for _, name := range names {
		value := e.env.secretVariable[name]
		if value == "" {
			continue
		}
		if other := first[value]; other != "" {
			e.Refuse("secret-reused", other+" and "+name+" have the same value",
				"give each its own: a leak of one is a leak of both")
		}
		first[value] = cmp.Or(first[value], name)
	}
	for _, name := range e.env.AgentEnv {
		if slices.Contains(names, strings.TrimSuffix(name, "_FILE")) {
			e.Refuse("secret-to-agents", "AGENT_ENV hands "+name+" to every agent",
				"remove it from AGENT_ENV: who talks to an agent can talk it out of its environment")
		}
	}
}
