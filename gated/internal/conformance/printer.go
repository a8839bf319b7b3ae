package conformance

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/cli"
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
	text = cli.Printable(strings.NewReplacer("\t", "    ", "\r\n", "\n").Replace(strings.TrimRight(text, "\n")))
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(mark+line, " ")
		if p.colours && s != plain {
			line = "\x1b[" + string(s) + "m" + line + "\x1b[0m"
		}
		fmt.Fprintln(p.out, line)
	}
}

// answer prints what a chat would show of a frame.
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

// failureLine is an error frame in a line.
func failureLine(f agentproto.Frame) string {
	if f.Kind.Known() {
		return fmt.Sprintf("error, %s: %s", f.Kind, f.Error)
	}
	return "error: " + f.Error
}

// breaches prints what the agent did wrong and how to fix it.
func (p *printer) breaches(all []breach) {
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
		p.write(plain, "", fmt.Sprintf("note: %s is a file in the current folder, but the agent runs in another: give its full path", name))
	}
}
