package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"

	"arizuko/deploy/agents/internal/subprocess"
	"arizuko/pkg/agentproto"
)

// An agent that takes tools from programs only gets this program, which passes messages of MCP on between its standard
// input and output and arizuko's tools.

const (
	relayCommand = "relay-of-arizukos-tools"
	relayURL     = "ARIZUKO_MCP_URL"
	relayToken   = "ARIZUKO_MCP_TOKEN" //nolint:gosec // the name of a variable
)

// relayServer is the entry of mcpServers that makes the agent run this program as its tools.
func relayServer(mcp *agentproto.MCP) any {
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	return map[string]any{
		"name": mcpServer, "command": program, "args": []string{relayCommand},
		"env": []any{map[string]string{"name": relayURL, "value": mcp.URL},
			map[string]string{"name": relayToken, "value": mcp.Token}},
	}
}

// toolRelay passes messages on over HTTP. Arizuko's server keeps no session, and answers each message with one of JSON.
type toolRelay struct {
	url, token string
	client     http.Client

	mu  sync.Mutex
	out io.Writer
}

// relay runs until its input ends. It returns an exit code.
func relay() int {
	t := &toolRelay{url: os.Getenv(relayURL), token: os.Getenv(relayToken), out: os.Stdout}
	if err := t.run(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "acp: relay of arizuko's tools:", err)
		return 1
	}
	return 0
}

func (t *toolRelay) run(in io.Reader) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var calls sync.WaitGroup
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, subprocess.MaxLine)
	for lines.Scan() {
		line := bytes.Clone(bytes.TrimSpace(lines.Bytes()))
		if len(line) == 0 {
			continue
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return err
		}
		calls.Go(func() { t.pass(ctx, m, line) })
	}
	calls.Wait()
	return lines.Err()
}

// pass passes a message on to the server, and the server's answer to the agent. A call that fails is answered with
// an error.
func (t *toolRelay) pass(ctx context.Context, m message, line []byte) {
	answer, err := t.post(ctx, line)
	if err != nil {
		fmt.Fprintf(os.Stderr, "acp: relay of arizuko's tools: %s: %v\n", m.Method, err)
		if m.ID == nil || m.Method == "" {
			return
		}
		answer, _ = json.Marshal(message{Version: "2.0", ID: m.ID,
			Error: &rpcError{Code: codeInternal, Message: "arizuko's tools cannot be reached"}})
	}
	if len(answer) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = t.out.Write(append(answer, '\n')) // an agent that has ended does not matter
}

// post returns the server's answer in one line; a notification has none.
func (t *toolRelay) post(ctx context.Context, line []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(line))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+t.token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	response, err := t.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusAccepted, http.StatusNoContent:
		return nil, nil
	case http.StatusOK:
	default:
		return nil, errors.New(response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, subprocess.MaxLine))
	if err != nil {
		return nil, err
	}
	var answer bytes.Buffer
	err = json.Compact(&answer, body)
	return answer.Bytes(), err
}
