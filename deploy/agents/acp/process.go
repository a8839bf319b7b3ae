package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"arizuko/deploy/agents/internal/subprocess"
	"arizuko/pkg/agentproto"
)

const (
	// maxNoise is how much of a line is logged if it is not a message, in bytes.
	maxNoise = 300
	// exitGrace is how long the agent may take to exit after the end of its input. Some never do.
	exitGrace = time.Second
)

// message is a line of JSON-RPC 2.0: a request has a method and an id, a notification a method, a response an id.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"` // a number, a string or null, as the sender wrote it
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

// named reports whether a message has an id.
func (m message) named() bool { return m.ID != nil && string(m.ID) != "null" }

// equals reports whether two requests ask for the same.
func (m message) equals(other message) bool {
	return m.Method == other.Method && bytes.Equal(m.ID, other.ID) && bytes.Equal(m.Params, other.Params)
}

// version is that of JSON-RPC, in each message.
const version = "2.0"

// process is one process of the agent. Its methods are called by one goroutine.
type process struct {
	program *subprocess.Process[message]
	lastID  int
	calls   map[string]call // that wait for their responses, by id
}

// call is a request to the agent.
type call struct {
	method string
	done   func(message) error // gets the response
}

// start starts the agent. The end of ctx terminates it. tools may be nil.
func start(ctx context.Context, cfg *Config, tools *agentproto.MCP, stderr io.Writer) (*process, error) {
	last := &subprocess.LastLine{Out: stderr, Redact: cfg.redact}
	program := subprocess.Program{Args: cfg.command, Env: cfg.agentEnviron(), Stderr: last, ExitGrace: exitGrace}
	if cfg.name() == codexProgram {
		args, env := codexConfig(cfg, tools)
		program.Args, program.Env = slices.Concat(program.Args, args), slices.Concat(program.Env, env)
	}
	p, err := subprocess.Start(ctx, program, func(line []byte) (message, bool) { return readMessage(line, last) })
	if err != nil {
		return nil, err
	}
	return &process{program: p, calls: map[string]call{}}, nil
}

// readMessage reads a message. Some agents print other lines between them, which go to the log: of those in JSON some
// have an error, too.
func readMessage(line []byte, log io.Writer) (m message, ok bool) {
	var otherForm *json.UnmarshalTypeError // of a field, which is left out
	if err := json.Unmarshal(line, &m); err != nil && !errors.As(err, &otherForm) ||
		m.Method == "" && !m.named() && (m.Error == nil || m.Version != version) {
		fmt.Fprintf(log, "not a message: %s\n", agentproto.Truncate(strings.ToValidUTF8(string(line), "�"), maxNoise))
		return message{}, false
	}
	return m, true
}

// call sends a request. done gets the response, unless the agent ends before.
func (p *process) call(method string, params any, done func(message) error) error {
	p.lastID++
	id := strconv.Itoa(p.lastID)
	p.calls[id] = call{method, done}
	return p.send(message{ID: json.RawMessage(id), Method: method}, params)
}

func (p *process) notify(method string, params any) error {
	return p.send(message{Method: method}, params)
}

// respond answers a request of the agent.
func (p *process) respond(request message, result any) error {
	data, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return p.send(message{ID: request.ID, Result: data}, nil)
}

func (p *process) refuse(request message, e rpcError) error {
	return p.send(message{ID: request.ID, Error: &e}, nil)
}

// send queues a message for the agent's stdin.
func (p *process) send(m message, params any) error {
	m.Version = version
	if params != nil {
		data, err := json.Marshal(params)
		if err != nil {
			return err
		}
		m.Params = data
	}
	return p.program.Send(m)
}

// returned hands a response to the call that waits for it. It reports whether one does. The error of a request that an
// agent cannot read has no id, or null: it is that of the last one, since the others were read.
func (p *process) returned(m message) (known bool, err error) {
	id := strings.Trim(string(m.ID), `"`) // some agents send a text back
	if number, err := strconv.ParseFloat(id, 64); err == nil {
		id = strconv.FormatFloat(number, 'f', -1, 64) // 1.0 is 1
	}
	if m.Error != nil && !m.named() {
		id = strconv.Itoa(p.lastID)
	}
	c, known := p.calls[id]
	if !known {
		return false, nil
	}
	delete(p.calls, id)
	return true, c.done(m)
}
