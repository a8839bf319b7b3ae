package main

import (
	"cmp"
	"context"
	_ "embed"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"arizuko/pkg/agentproto"
)

// How long gated lets an agent finish: after its last answer, and after it failed or received an
// interrupt.
const (
	EOFGrace  = 3 * time.Second
	FailGrace = time.Second
)

// Agent is the program under test.
type Agent struct {
	Command string   // for sh -c
	Env     []string // of the agent
	Dir     string   // working directory, as a group's folder is; "" makes a new folder that is removed afterwards
	Session string   // resumed by its first run, "" for none
	// Redact hides secrets in the output; nil hides none.
	Redact func(string) string
	// Grace is how long it may go on after it failed or received an interrupt; 0: FailGrace.
	Grace time.Duration
}

// workspace is where an agent's runs take place, one after another.
type workspace struct {
	agent Agent
	dir   string // the group's folder, as the agent sees it
	own   string // removed at the end
	turns int
}

func (a Agent) workspace() (*workspace, error) {
	own, err := os.MkdirTemp("", "arizuko-agent-")
	if err != nil {
		return nil, err
	}
	p := &workspace{agent: a, own: own, dir: filepath.Join(own, "group")}
	if a.Dir == "" {
		err = os.Mkdir(p.dir, 0o700)
	} else {
		p.dir, err = filepath.Abs(a.Dir)
	}
	if err != nil {
		p.remove()
		return nil, err
	}
	return p, nil
}

func (p *workspace) remove() { _ = os.RemoveAll(p.own) }

// start starts the agent and sends it nothing. The end of ctx kills it.
func (p *workspace) start(ctx context.Context) (*run, error) {
	temp, err := os.MkdirTemp(p.own, "tmp-")
	if err != nil {
		return nil, err
	}
	isTemp := func(entry string) bool { return strings.HasPrefix(entry, "TMPDIR=") }
	env := slices.DeleteFunc(slices.Clone(p.agent.Env), isTemp)
	proc, err := startProcess(ctx, p.agent.Command, p.dir, append(env, "TMPDIR="+temp))
	if err != nil {
		return nil, err
	}
	return &run{proc: proc, failGrace: cmp.Or(p.agent.Grace, FailGrace)}, nil
}

// nextTurn returns a new turn id.
func (p *workspace) nextTurn() string {
	p.turns++
	return strconv.Itoa(p.turns)
}

// The chat that agents see.
const (
	folder  = "main"
	chat    = "web:main"
	surface = "web"
	ceiling = 4000 // characters
)

// startLine is the line that opens a run.
func startLine(id, session, text string) agentproto.Start {
	return agentproto.Start{
		TurnID: id, Prompt: promptOf(id, text), SessionID: session, GroupFolder: folder,
		ChatJID: chat, Surface: surface, Ceiling: ceiling, System: systemText,
	}
}

// messageLine is the line of a further turn.
func messageLine(id, text string) agentproto.Message {
	return agentproto.Message{TurnID: id, Prompt: promptOf(id, text)}
}

// systemText is the text that gated gives agents in the web chat, without tools.
//
//go:embed system.txt
var systemText string

// promptText is the prompt that gated makes of a message in the web chat. Tests of gated's packages briefing and prompt
// compare both files with it.
//
//go:embed prompt.xml
var promptText string

func promptOf(id, text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' { // not in XML
			return -1
		}
		return r
	}, strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.ToValidUTF8(text, "\ufffd")))
	text = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
	values := strings.NewReplacer("{ID}", id, "{TIME}", time.Now().Format(time.RFC3339), "{TEXT}", text)
	return agentproto.Inert(values.Replace(promptText))
}

// misplaced returns the words of the command that are files in the current directory but not in the agent's.
func (p *workspace) misplaced() (names []string) {
	for _, word := range strings.Fields(p.agent.Command) {
		name := strings.Trim(word, `'"`)
		if filepath.IsAbs(name) || !isFile(name) || isFile(filepath.Join(p.dir, name)) {
			continue
		}
		names = append(names, name)
	}
	return names
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
