// Package doctor examines an instance from outside, whether its daemons run or not, and reports each problem with its
// remedy. It changes nothing but what Fix repairs.
package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/cli"
	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
	"arizuko/pkg/disk"
	"arizuko/pkg/facts"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Report is the result of an examination.
type Report struct {
	Findings []facts.Fact `json:"findings"` // problems first
	Facts    []string     `json:"facts"`    // observations, in words
}

// Count returns how many findings of a level there are.
func (r Report) Count(level facts.Level) (n int) {
	for _, f := range r.Findings {
		if f.Level == level {
			n++
		}
	}
	return n
}

// Exit is the exit code: daemon.ExitRefused if the configuration is wrong, daemon.ExitFailure if there is
// another problem, else daemon.ExitOK. Warnings do not count.
func (r Report) Exit() int {
	switch {
	case slices.ContainsFunc(r.Findings, func(f facts.Fact) bool { return f.Level == facts.Problem && f.Config }):
		return daemon.ExitRefused
	case r.Count(facts.Problem) > 0:
		return daemon.ExitFailure
	}
	return daemon.ExitOK
}

// Config of Examine.
type Config struct {
	Base     config.Base
	Problems []string // of dashd's own environment
	Environ  []string
	Bin      string     // folder with the programs of the daemons
	Daemons  []Endpoint // asked over HTTP
	Deep     bool       // read the whole database and check it
	Now      func() time.Time

	// The machine: disk.Of, disk.CheckCarry and "/proc".
	Disk  func(folder string) (disk.Space, error)
	Carry func(path string) error
	Proc  string
	Media *disk.Usage // the files of messages
}

// Endpoint is where a daemon answers: at a URL, or at its socket in the data folder.
type Endpoint struct {
	Name string
	URL  config.URL
}

// examination is one run of the doctor: the state it has read, and its findings. A check is a function that adds to it.
// Later checks leave out what earlier ones explain.
type examination struct {
	Config
	env    Environment
	wrong  []string // about the environment
	redact config.Redactor
	now    int64 // unix ms
	in     facts.Instance
	facts.List
	facts []string // as in Report

	self     string // the daemon that examines itself: it runs, whatever its row says
	secret   string
	schema   bool // a problem of the database has been reported: daemons that wait for it are not
	checked  map[string]bool
	st       *store.ReadOnly // nil if the database cannot be read
	answers  answers
	locks    locks
	groups   []msg.Group
	runtimes map[string]string // how the newest run of each folder was run
}

// newExamination reads the environment.
func newExamination(cfg Config) *examination {
	e := &examination{Config: cfg, now: cfg.Now().UnixMilli(), checked: map[string]bool{},
		wrong: slices.Clone(cfg.Problems)}
	env, problems := loadEnvironment(cfg.Environ)
	e.env = env
	for _, problem := range problems {
		if !slices.Contains(e.wrong, problem) { // dashd checks ACCOUNTS, too
			e.wrong = append(e.wrong, problem)
		}
	}
	e.secret, _ = cfg.Base.Secret() // its absence is reported with the folder
	e.redact = config.NewRedactor(slices.Concat(slices.Collect(maps.Values(env.secretVariable)),
		config.SecretValues(cfg.Environ), cfg.Base.DB.Secrets(), []string{e.secret})...)
	return e
}

// Examine examines the instance. It takes as long as the slowest check of a daemon, half a minute at most,
// unless Deep is set.
func Examine(ctx context.Context, cfg Config) Report {
	e := newExamination(cfg)
	checkEnvironment(e)
	waitPrograms := startChecks(ctx, e)
	removeLog := newLog(ctx, e.Base)
	e.answers = ask(ctx, e.Base, e.Daemons)
	if e.schema = !checkFolder(e); !e.schema {
		checkDisk(e)
		checkWAL(e)
		checkDatabase(ctx, e)
	}
	if e.st != nil {
		examineRows(ctx, e)
		_ = e.st.Close() // it was only read
	}
	removeLog()
	reportPrograms(e, waitPrograms())
	reportUnready(e)
	return e.result()
}

// examineRows runs the checks that read the database. One that fails is a finding, and the others are left out.
func examineRows(ctx context.Context, e *examination) {
	all := []func(context.Context, *examination) error{checkRows, checkRoutes, checkGroupFolders}
	for _, check := range all {
		if err := check(ctx, e); err != nil {
			e.unreadable(err)
			return
		}
	}
}

// result bounds and orders the findings. A text that two checks give is one finding.
func (e *examination) result() Report {
	seen := map[string]bool{}
	found := make([]facts.Fact, 0, len(e.Found)) // an empty list in JSON, never null
	for _, f := range e.Found {
		f.Text, f.Fix, f.Page.Fix = e.line(f.Text), e.line(f.Fix), e.line(f.Page.Fix)
		f.Restart = slices.DeleteFunc(f.Restart, func(name string) bool { return !e.locks.launched(name) })
		for _, name := range f.Restart {
			f.Press("/daemons/"+name+"/restart", "Restart "+name)
		}
		if !seen[f.Text] {
			found = append(found, f)
		}
		seen[f.Text] = true
	}
	// "problem" is before "warning"
	slices.SortStableFunc(found, func(a, b facts.Fact) int { return cmp.Compare(a.Level, b.Level) })
	looked := make([]string, len(e.facts))
	for i, fact := range e.facts {
		looked[i] = e.line(fact)
	}
	return Report{found, looked}
}

// maxLine bounds a line of the report, in bytes: rows and other programs may say anything.
const maxLine = 500

// line makes a text one printable line without secrets.
func (e *examination) line(text string) string {
	text = e.redact.String(text)
	if len(text) > maxLine {
		text = store.Truncate(text, maxLine) + "…"
	}
	return cli.PrintableLine(strings.TrimSpace(text))
}

func (e *examination) looked(at string) { e.facts = append(e.facts, at) }

// Rows examines the rows alone: which daemons run, and whether anything waits, has failed or is late. It asks no daemon
// and starts no program, so that dashd can do it for its pages again and again. Findings are as those of Examine,
// problems first.
func Rows(ctx context.Context, cfg Config, st store.Reader) ([]facts.Fact, error) {
	e := newExamination(cfg)
	e.self, e.st = "dashd", &store.ReadOnly{Reader: st}
	if err := checkRows(ctx, e); err != nil {
		return nil, err
	}
	_, _ = fullDisk(e) // a disk that cannot be measured is no finding
	checkFiles(e)
	return e.result().Findings, nil
}

// checkRows are the checks that read rows alone.
func checkRows(ctx context.Context, e *examination) (err error) {
	e.in = facts.Instance{
		Rows: e.st.Reader, Now: e.now, Operators: e.env.Operators, MaxAgents: e.env.MaxAgents, HasToken: e.env.hasToken,
	}
	if e.in.Daemons, err = facts.ReadDaemons(ctx, e.st.Reader); err != nil {
		return err
	}
	if e.self != "" {
		e.in.Daemons.Ask(ctx, e.Base, e.now)
	}
	checkDaemons(ctx, e)
	stored, err := e.in.Stored(ctx)
	e.Add(stored...)
	return errors.Join(err, checkUnsaved(ctx, e))
}

// Print writes the report for an operator: one finding a line, its remedy below it.
func (r Report) Print(out io.Writer) error {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s: %s\n  fix: %s\n", f.Level, f.Text, f.Fix)
	}
	for _, fact := range r.Facts {
		fmt.Fprintf(&b, "%s\n", fact)
	}
	if len(r.Findings) == 0 {
		b.WriteString("no problem found\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// PrintJSON writes the report for programs.
func (r Report) PrintJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(struct {
		OK bool `json:"ok"`
		Report
	}{r.Count(facts.Problem) == 0, r})
}

// Summary is one line with the number of findings.
func (r Report) Summary() string {
	return facts.Count(r.Count(facts.Problem), "problem", "problems") + ", " +
		facts.Count(r.Count(facts.Warning), "warning", "warnings")
}
