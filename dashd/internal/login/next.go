package login

import (
	"net/url"
	"strings"
)

const (
	// home is where a login leads that came from nowhere in particular.
	home = "/chat/"
	// maxNext is the longest path to come back to, in bytes.
	maxNext = 2048
)

// localPath is next if it is a path on this host, else home. It leaves no room for how browsers
// read URLs: they take \ for / and drop tabs and newlines, so that `/\t/host` is another host.
func localPath(next string) string {
	switch {
	case !strings.HasPrefix(next, "/"), strings.HasPrefix(next, "//"), len(next) > maxNext:
		return home
	case strings.ContainsFunc(next, func(c rune) bool { return c == '\\' || c < ' ' || c == 0x7f }):
		return home
	}
	if parsed, err := url.Parse(next); err != nil || parsed.Scheme != "" || parsed.Host != "" {
		return home
	}
	return next
}
