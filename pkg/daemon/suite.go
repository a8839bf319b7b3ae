package daemon

// Core returns the daemons that every instance runs, in the order of their start: none waits for a later one.
func Core() []string { return []string{"routd", "gated", "onbod", "dashd"} }

// Adapter is a daemon that connects a platform.
type Adapter struct {
	Name     string // of the daemon
	Platform string
	Token    string // the variable with the token that it cannot start without
}

// Adapters returns the adapters of the suite. Other programs may be adapters too.
func Adapters() []Adapter {
	return []Adapter{
		{"teled", "telegram", "TELEGRAM_BOT_TOKEN"},
		{"discd", "discord", "DISCORD_BOT_TOKEN"},
		{"slakd", "slack", "SLACK_BOT_TOKEN"},
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

// TokenVariable returns the variable with the token of an adapter, "" for other daemons.
func TokenVariable(name string) string {
	for _, a := range Adapters() {
		if a.Name == name {
			return a.Token
		}
	}
	return ""
}
