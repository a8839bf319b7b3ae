// Package conformance tries programs that want to be agents, without a chat or a database: [Agent.Try]
// lets somebody talk to one at a terminal, [Agent.Conform] holds one to the protocol case by case.
// What runs the agent is what gated runs agents with; what gated would make of its answers is said
// in words.
package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"arizuko/gated/internal/prompt"
	"arizuko/gated/internal/runtime"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
)

// How long gated lets an agent finish: after its last answer, and after it failed or was told to
// stop.
const (
	EOFGrace  = 3 * time.Second
	FailGrace = time.Second
)

// Agent is a program on trial.
type Agent struct {
	Command string   // for sh -c
	Env     []string // see runtime.Environ
	Dir     string   // where it runs, as in a group's folder; "" is a new folder that is removed afterwards
	Session string   // that its first run resumes, "" for none
}

// place is where an agent's runs take place, one after another.
type workspace struct {
	agent Agent
	dir   string // the group's folder, as the agent sees it
	own   string // what is removed in the end
	runs  int64
	turns int
}

func (a Agent) workspace() (*workspace, error) {
	own, err := os.MkdirTemp("", "agent-trial-")
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

// start starts the agent, which is told nothing yet. Ending ctx kills it.
func (p *workspace) start(ctx context.Context) (*run, error) {
	p.runs++
	log, err := newLogPipe(filepath.Join(p.own, fmt.Sprintf("log-%d", p.runs)))
	if err != nil {
		return nil, err
	}
	proc, err := runtime.Process{Temp: filepath.Join(p.own, "tmp")}.Start(ctx, runtime.Spec{
		RunID: p.runs, Command: p.agent.Command, Dir: p.dir, Env: p.agent.Env, LogPath: log.path,
	})
	if err != nil {
		log.close()
		return nil, err
	}
	return newRun(proc, log.lines()), nil
}

// nextTurn is a turn's number. No two turns of a trial have the same.
func (p *workspace) nextTurn() string {
	p.turns++
	return strconv.Itoa(p.turns)
}

// The chat in which trials take place.
const (
	folder  = "trial"
	chat    = "web:trial"
	surface = "web"
	ceiling = 4000 // characters
)

// first is the line that opens a run.
func startLine(id, session, text string) agentproto.Start {
	return agentproto.Start{
		TurnID: id, Prompt: promptOf(id, text), SessionID: session, GroupFolder: folder,
		ChatJID: chat, Surface: surface, Ceiling: ceiling,
	}
}

// further is the line of one more turn.
func messageLine(id, text string) agentproto.Message {
	return agentproto.Message{TurnID: id, Prompt: promptOf(id, text)}
}

func promptOf(id, text string) string {
	turn := &msg.Turn{ChatJID: chat, Folder: folder, Surface: surface, Ceiling: ceiling}
	row := &msg.Message{Sender: "web:operator", SenderName: "You", Content: text, Timestamp: time.Now().UnixMilli()}
	row.ID, _ = strconv.ParseInt(id, 10, 64) // ours are numbers
	return prompt.Build(prompt.Input{Turn: turn, Messages: []*msg.Message{row}, Location: time.Local})
}

// misplaced names the words of a command that are files here and not where the agent runs.
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
