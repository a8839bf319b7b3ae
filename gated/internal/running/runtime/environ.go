package runtime

import (
	"slices"
	"strings"
)

// Environ picks an agent's environment from base ("NAME=value" entries, as from
// os.Environ): PATH, HOME, LANG, TZ and the variables in names, if they are set.
// Agents get nothing else, above all no platform tokens.
func Environ(base, names []string) []string {
	allowed := append([]string{"PATH", "HOME", "LANG", "TZ"}, names...)
	var env []string
	for _, entry := range base {
		if name, _, ok := strings.Cut(entry, "="); ok && slices.Contains(allowed, name) {
			env = append(env, entry)
		}
	}
	return env
}

// without leaves variables out of an environment.
func without(env []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(names, name)
	})
}
