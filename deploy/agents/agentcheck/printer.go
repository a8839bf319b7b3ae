package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"arizuko/pkg/agentproto"
)

// style is how a terminal shows a text: SGR parameters, "" for none.
type style string

const (
	plain style = ""
	dim   style = "2"
	sent  style = "36" // cyan
	got   style = "32" // green
	bad   style = "31" // red
)

// printer prints to a terminal, with colours, or to a file, without.
type printer struct {
	out      io.Writer
	colours  bool
	breached int
	redact   func(string) string // nil changes nothing
}

func newPrinter(out io.Writer, redact func(string) string) *printer {
	return &printer{out: out, colours: isTerminal(out), redact: redact}
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}

// write prints text line by line after a prefix. Text of the agent cannot steer the terminal.
func (p *printer) write(s style, mark, text string) {
	if p.redact != nil {
		text = p.redact(text)
	}
	text = printable(strings.NewReplacer("\t", "    ", "\r\n", "\n").Replace(strings.TrimRight(text, "\n")))
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(mark+line, " ")
		if p.colours && s != plain {
			line = "\x1b[" + string(s) + "m" + line + "\x1b[0m"
		}
		fmt.Fprintln(p.out, line)
	}
}

// printable replaces control characters but line ends.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// answer prints the part of a frame that a chat would show.
func (p *printer) answer(f agentproto.Frame) {
	text := agentproto.Strip(f.Result)
	if f.Status == agentproto.StatusError {
		p.write(bad, "  ", failureLine(f))
		if text != "" {
			p.write(plain, "  ", text)
		}
		return
	}
	switch {
	case text == "" && f.Result != "":
		p.write(dim, "  ", "(silence: the whole result is hidden)")
	case text == "":
		p.write(dim, "  ", "(silence)")
	default:
		p.write(plain, "  ", text)
	}
}

// event prints an event of the agent.
func (p *printer) event(e *agentproto.Event) {
	switch {
	case e.Features != nil && e.Features.Fold:
		p.write(dim, "· ", "it folds: it takes in messages that come while it works")
	case e.Models != nil:
		p.write(dim, "· ", fmt.Sprintf("models (the one in use: %s):", cmp.Or(e.Models.Current, "not said")))
		for _, m := range e.Models.Models {
			p.write(dim, "·   ", strings.TrimSuffix(m.ID+": "+cmp.Or(m.Name, m.Description), ": "))
		}
	case e.Status != "":
		p.write(dim, "· ", "status: "+string(e.Status))
	case e.Text != nil:
		p.write(dim, "· ", "text so far: "+agentproto.Strip(*e.Text))
	case e.Tool != nil:
		p.write(dim, "· ", fmt.Sprintf("tool %s, %s: %s", e.Tool.ID, cmp.Or(e.Tool.Title, "without a title"),
			e.Tool.Status))
	case e.Plan != nil:
		p.write(dim, "· ", "plan:")
		for _, step := range e.Plan.Entries {
			p.write(dim, "·   ", fmt.Sprintf("%s: %s", step.Status, step.Content))
		}
	case e.Ask != nil:
		p.write(got, "? ", cmp.Or(e.Ask.Question, "a question without a text"))
		if e.Ask.Detail != "" {
			p.write(dim, "  ", e.Ask.Detail)
		}
		for i, option := range e.Ask.Options {
			p.write(got, "? ", fmt.Sprintf("%d. %s", i+1, option))
		}
		if e.Ask.PayloadHash != "" {
			p.write(dim, "  ", "permission request, hash "+e.Ask.PayloadHash)
		}
	case e.Usage != nil:
		p.write(dim, "· ", fmt.Sprintf("usage: %d tokens read, %d written, %d of %d in the conversation, "+
			"%.4f US dollars",
			e.Usage.Input, e.Usage.Output, e.Usage.ContextUsed, e.Usage.ContextSize, e.Usage.CostUSD))
	}
}

// failureLine is an error frame in a line.
func failureLine(f agentproto.Frame) string {
	if f.Kind.Known() {
		return fmt.Sprintf("error, %s: %s", f.Kind, f.Error)
	}
	return "error: " + f.Error
}

// breaches prints breaches and how to fix them.
func (p *printer) breaches(all breaches) {
	for _, b := range all {
		p.breached++
		p.write(bad, "! ", b.what)
		p.write(plain, "  ", "fix: "+b.fix)
	}
}

// intro prints the agent's command and folder.
func (p *printer) intro(at *workspace) {
	p.write(plain, "", fmt.Sprintf("agent:  %s\nfolder: %s", at.agent.Command, at.dir))
	for _, name := range at.misplaced() {
		p.write(plain, "", fmt.Sprintf("note: %s is a file in the current folder, but the agent runs in another: "+
			"give its full path", name))
	}
}
