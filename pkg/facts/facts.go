// Package facts finds the problems of an instance by its rows, each with its remedy. Doctor, status,
// why, the daemons' checks, /readyz and the dashboard print these facts, so that all of them find the same in the same
// words.
package facts

import (
	"fmt"
	"slices"
	"time"
)

// Level says how urgent a fact is.
type Level string

// The levels.
const (
	Problem Level = "problem" // something does not work
	Warning Level = "warning" // it works, but an operator should know
)

// Fact is one thing that is wrong, and its remedy.
type Fact struct {
	Kind   string `json:"id"` // for programs
	Level  Level  `json:"level"`
	Text   string `json:"text"` // one line
	Fix    string `json:"fix"`  // one line, for a reader at a shell
	Config bool   `json:"config"`
	Page   Page   `json:"-"` // for a reader of the dashboard

	// Restart are the daemons whose restart is the remedy.
	Restart []string `json:"-"`
	// Subject is what it is about, where there may be several of a kind: the text changes while the problem lasts.
	Subject string `json:"-"`
}

// Key names the problem as long as it lasts.
func (f *Fact) Key() string { return f.Kind + " " + f.Subject }

// Alerts reports whether operators are notified of it: of problems, and of the warnings that users do not report.
func (f *Fact) Alerts() bool {
	return f.Level == Problem || slices.Contains([]string{"backup-none", "backup-old", "refused"}, f.Kind)
}

// About sets what a fact is about.
func (f *Fact) About(subject string) *Fact {
	f.Subject = subject
	return f
}

// Restarts sets the daemons whose restart is the remedy.
func (f *Fact) Restarts(names ...string) *Fact {
	f.Restart = names
	return f
}

// Page is the page of the dashboard that shows or fixes something. Without a path there is none.
type Page struct {
	Path, Text string
	Fix        string // the remedy there, "" if the page only shows the fact and the remedy is the one for the shell
	Buttons    []Button
}

// Button carries out a remedy by a POST to its path.
type Button struct{ Path, Text string }

// String is the fact and its remedy on one line.
func (f Fact) String() string { return f.Text + ": " + f.Fix }

// List collects facts.
type List struct{ Found []Fact }

// Add adds facts.
func (l *List) Add(found ...Fact) { l.Found = append(l.Found, found...) }

func (l *List) put(f Fact) *Fact {
	l.Add(f)
	return &l.Found[len(l.Found)-1]
}

// Problem adds one.
func (l *List) Problem(kind, text, fix string) *Fact {
	return l.put(Fact{Kind: kind, Level: Problem, Text: text, Fix: fix})
}

// Warn adds a warning.
func (l *List) Warn(kind, text, fix string) *Fact {
	return l.put(Fact{Kind: kind, Level: Warning, Text: text, Fix: fix})
}

// Refuse adds a problem of the configuration.
func (l *List) Refuse(kind, text, fix string) { l.Problem(kind, text, fix).Config = true }

// Has reports whether there is a fact of a kind.
func (l *List) Has(kind string) bool {
	return slices.ContainsFunc(l.Found, func(f Fact) bool { return f.Kind == kind })
}

// on adds the page of a fact.
func (f *Fact) on(path, text, fix string) *Fact {
	f.Page = Page{Path: path, Text: text, Fix: fix}
	return f
}

// Press adds a button to a fact.
func (f *Fact) Press(path, text string) { f.Page.Buttons = append(f.Page.Buttons, Button{path, text}) }

// maxNamed is how many examples a line has.
const maxNamed = 3

// Ago words a time before now, both in unix ms.
func Ago(now, at int64) string { return Span(now-at) + " ago" }

// Span words a duration in ms. It is never negative.
func Span(ms int64) string {
	switch d := time.Duration(max(0, ms)) * time.Millisecond; {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	default:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
}

// Count words a number of things.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}
