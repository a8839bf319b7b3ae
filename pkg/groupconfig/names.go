package groupconfig

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// secret reports whether a variable holds a token of the daemons, or names the file of one. With
// it an agent could write as the bot, call the daemons, or change the database.
func secret(name string) bool {
	return slices.Contains([]string{
		"ARIZUKO_SECRET", "ARIZUKO_DB", "PGPASSWORD", "TELEGRAM_BOT_TOKEN", "DISCORD_BOT_TOKEN",
		"SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET", "DASH_PASSWORD", "HEARTBEAT_URL",
	}, strings.TrimSuffix(name, "_FILE"))
}

// CheckEnv returns an error if a variable of gated's environment must not be passed to an agent.
func CheckEnv(name string) error {
	switch {
	case !variable.MatchString(name):
		return fmt.Errorf("%.80q is not a variable name", name)
	case secret(name):
		return fmt.Errorf("%s is a secret of arizuko and is not passed to agents", name)
	}
	return nil
}

// checkSetting returns an error if a group must not set a variable.
func checkSetting(name string) error {
	switch {
	case !variable.MatchString(name):
		return fmt.Errorf("%.80q is not a variable name", name)
	case slices.Contains([]string{"PATH", "HOME", "TMPDIR"}, name), strings.HasPrefix(name, "ARIZUKO_"):
		return fmt.Errorf("%s is set by gated", name)
	case strings.HasPrefix(name, "LD_"), strings.HasPrefix(name, "DOCKER_"), strings.HasPrefix(name, "BWRAP_"):
		// The programs that start the agent read them too.
		return fmt.Errorf("%s changes the programs that run agents", name)
	}
	return nil
}

// RefreshSuffix follows the name of a secret that rotates where its refresh token is meant.
const RefreshSuffix = ".refresh"

// CheckSecretName returns why a secret cannot have a name, which is also that of a file.
func CheckSecretName(name string) error {
	const chars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	if name == "" || len(name) > 64 || strings.Trim(name, chars) != "" {
		return fmt.Errorf("secret %.80q: want a name of up to 64 letters, digits, - and _", name)
	}
	return nil
}
