// Package conformance runs agents without a chat or a database: [Agent.Try] is a conversation at a
// terminal, [Agent.Conform] checks an agent against the protocol case by case. Agents run in the same
// runtime as under gated; what gated would do with each answer is printed.
package conformance

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"arizuko/gated/internal/running/runtime"
	"arizuko/gated/internal/shown/briefing"
	"arizuko/gated/internal/shown/prompt"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
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
	Env     []string // see runtime.Environ
	Dir     string   // working directory, as a group's folder is; "" makes a new folder that is removed afterwards
	Session string   // resumed by its first run, "" for none
	// Redact hides secrets in what is printed; nil hides none.
	Redact func(string) string
	// Grace is how long it may go on after it failed or received an interrupt; 0: FailGrace.
	Grace time.Duration
}

// workspace is where an agent's runs take place, one after another.
type workspace struct {
	agent Agent
	dir   string // the group's folder, as the agent sees it
	own   string // removed at the end
	runs  int64
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
	p.runs++
	log, err := newLogPipe(filepath.Join(p.own, fmt.Sprintf("log-%d", p.runs)))
	if err != nil {
		return nil, err
	}
	proc, err := runtime.Process{Temp: filepath.Join(p.own, "tmp"), AsRoot: true}.Start(ctx, runtime.Spec{
		RunID: p.runs, Command: p.agent.Command, Dir: p.dir, Env: p.agent.Env, LogPath: log.path, OutputGrace: EOFGrace,
	})
	if err != nil {
		log.close()
		return nil, err
	}
	r := newRun(proc, log.lines())
	r.failGrace = cmp.Or(p.agent.Grace, FailGrace)
	return r, nil
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
		ChatJID: chat, Surface: surface, Ceiling: ceiling, System: systemText(),
	}
}

// systemText is what agents get in the web chat, without tools.
func systemText() string {
	return briefing.Text(briefing.Input{Assistant: "arizuko", ChatJID: chat, Surface: surface, Ceiling: ceiling})
}

// messageLine is the line of a further turn.
func messageLine(id, text string) agentproto.Message {
	return agentproto.Message{TurnID: id, Prompt: promptOf(id, text)}
}

func promptOf(id, text string) string {
	turn := &msg.Turn{ChatJID: chat, Folder: folder, Surface: surface, Ceiling: ceiling}
	row := &msg.Message{Sender: "web:operator", SenderName: "You", Content: text, Timestamp: time.Now().UnixMilli()}
	row.ID, _ = strconv.ParseInt(id, 10, 64) // turn ids are numbers
	return prompt.Build(prompt.Input{Turn: turn, Messages: []*msg.Message{row}, Location: time.Local})
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
