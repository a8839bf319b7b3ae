package login

import (
	"net/url"
	"strings"
)

const (
	// home is the page after a login that did not start from another page.
	home = "/chat/"
	// maxNext is the longest path to come back to, in bytes.
	maxNext = 2048
)

// localPath returns next if it is a path on this host, else home. It is stricter than a URL parser,
// because browsers take \ for / and drop tabs and newlines, so that `/\t/host` is another host.
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
