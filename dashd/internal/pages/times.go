package pages

import (
	"fmt"
	"html/template"
	"time"
)

// ago words how long before now a moment was, both in unix ms. assets/time.js words it the same way
// when it updates a page.
func ago(now, at int64) string {
	switch passed := time.Duration(now-at) * time.Millisecond; {
	case passed < time.Minute:
		return "just now"
	case passed < time.Hour:
		return fmt.Sprintf("%d min ago", passed/time.Minute)
	case passed < 24*time.Hour:
		return fmt.Sprintf("%d h ago", passed/time.Hour)
	case passed < 7*24*time.Hour:
		return fmt.Sprintf("%d d ago", passed/(24*time.Hour))
	}
	return time.UnixMilli(at).UTC().Format(time.DateOnly)
}

// when returns a moment as a <time> that the page's script updates.
func when(now, at int64) template.HTML {
	machine := time.UnixMilli(at).UTC().Format(time.RFC3339)
	return template.HTML(fmt.Sprintf(`<time datetime="%s">%s</time>`, machine, ago(now, at)))
}
