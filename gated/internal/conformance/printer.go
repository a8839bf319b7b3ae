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

// style is how a terminal shows a text: SGR parameters, "" for as it is.
type style string

const (
	plain style = ""
	dim   style = "2"
	sent  style = "36" // cyan
	got   style = "32" // green
	bad   style = "31" // red
)

// paper is what is printed on. Only a terminal gets colours.
type printer struct {
	out      io.Writer
	colours  bool
	breached int
}

func newPrinter(out io.Writer) *printer { return &printer{out: out, colours: isTerminal(out)} }

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}

// say prints text line by line behind a mark. What the agent wrote cannot steer the terminal.
func (p *printer) print(s style, mark, text string) {
	text = cli.Printable(strings.NewReplacer("\t", "    ", "\r\n", "\n").Replace(strings.TrimRight(text, "\n")))
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(mark+line, " ")
		if p.colours && s != plain {
			line = "\x1b[" + string(s) + "m" + line + "\x1b[0m"
		}
		fmt.Fprintln(p.out, line)
	}
}

// answer prints what a chat would be shown of a frame.
func (p *printer) answer(f agentproto.Frame) {
	text := agentproto.Strip(f.Result)
	switch {
	case f.Status == agentproto.StatusError:
		p.print(bad, "  ", "error: "+f.Error)
	case text == "" && f.Result != "":
		p.print(dim, "  ", "(silence: all of the result is hidden)")
	case text == "":
		p.print(dim, "  ", "(silence)")
	default:
		p.print(plain, "  ", text)
	}
}

// breaches prints what the agent did wrong.
func (p *printer) breaches(all []breach) {
	for _, b := range all {
		p.breached++
		p.print(bad, "! ", b.what)
		p.print(plain, "  ", "do: "+b.do)
	}
}

// intro says what is on trial.
func (p *printer) intro(at *workspace) {
	p.print(plain, "", fmt.Sprintf("agent:  %s\nfolder: %s", at.agent.Command, at.dir))
	for _, name := range at.misplaced() {
		p.print(plain, "", fmt.Sprintf("note: %s is a file here, and not in that folder, where the agent runs: give its whole path", name))
	}
}
