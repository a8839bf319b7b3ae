package daemon

import "arizuko/pkg/msg"

// Core returns the daemons that every instance runs, in the order of their start: none waits for a later one.
func Core() []string { return []string{"routd", "gated", "onbod", "dashd"} }

// Adapter is a daemon that connects a platform.
type Adapter struct {
	Name     string // of the daemon
	Platform string
	Token    string   // the variable with the token that it cannot start without
	Secrets  []string // the variables with its secrets, that one included
}

// Adapters returns the adapters of the suite. Other programs may be adapters too.
func Adapters() []Adapter {
	return []Adapter{
		{"teled", "telegram", "TELEGRAM_BOT_TOKEN", []string{"TELEGRAM_BOT_TOKEN"}},
		{"discd", "discord", "DISCORD_BOT_TOKEN", []string{"DISCORD_BOT_TOKEN"}},
		{"slakd", "slack", "SLACK_BOT_TOKEN", []string{"SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET"}},
	}
}

// Suite returns all daemons in the order of their start.
func Suite() []string {
	names := Core()
	for _, a := range Adapters() {
		names = append(names, a.Name)
	}
	return names
}

// TokenVariable returns the variable with the token of an adapter, of whichever account, "" for other daemons.
func TokenVariable(name string) string {
	name, _ = msg.SplitAccount(name)
	return adapterNamed(name).Token
}

// adapterNamed is an adapter of the suite, the zero value for other daemons.
func adapterNamed(name string) (none Adapter) {
	for _, a := range Adapters() {
		if a.Name == name {
			return a
		}
	}
	return none
}
