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

// duration words a time in ms. It is never negative: a clock that was set back makes it so.
func duration(ms int64) string {
	ms = max(ms, 0)
	switch d := time.Duration(ms) * time.Millisecond; {
	case d < time.Second:
		return fmt.Sprintf("%d ms", ms)
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	default:
		return fmt.Sprintf("%d d", d/(24*time.Hour))
	}
}

// ahead words how long after now a moment is, both in unix ms. assets/time.js words it the same way.
func ahead(now, at int64) string {
	switch left := time.Duration(at-now) * time.Millisecond; {
	case left <= 0:
		return "now"
	case left < time.Minute:
		return "in less than a minute"
	case left < 2*time.Hour:
		return fmt.Sprintf("in %d min", left/time.Minute)
	case left < 48*time.Hour:
		return fmt.Sprintf("in %d h", left/time.Hour)
	default:
		return fmt.Sprintf("in %d d", left/(24*time.Hour))
	}
}

// until returns a moment to come as a <time> that the page's script updates.
func until(now, at int64) template.HTML {
	machine := time.UnixMilli(at).UTC().Format(time.RFC3339)
	return template.HTML(fmt.Sprintf(`<time datetime="%s" data-until>%s</time>`, machine, ahead(now, at)))
}

// left words how long it is until a moment, both in unix ms.
func left(now, until int64) string {
	if until-now < time.Minute.Milliseconds() {
		return "less than a minute"
	}
	return duration((until - now) / 60_000 * 60_000)
}
