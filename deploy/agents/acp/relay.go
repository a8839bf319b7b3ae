package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
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

// toolRelay passes messages on over streamable HTTP.
type toolRelay struct {
	url, token string
	client     http.Client

	mu       sync.Mutex
	out      io.Writer
	session  string // that the server has named
	protocol string // the version that both have agreed on
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
		if m.Method == "initialize" { // the messages after it need its answer
			t.pass(ctx, m, line)
			continue
		}
		calls.Go(func() { t.pass(ctx, m, line) })
	}
	calls.Wait()
	return lines.Err()
}

// pass passes a message on to the server, and the server's answer to the agent. A call that fails is answered with
// an error.
func (t *toolRelay) pass(ctx context.Context, m message, line []byte) {
	err := t.post(ctx, m, line)
	if err == nil || m.ID == nil || m.Method == "" {
		return
	}
	fmt.Fprintln(os.Stderr, "acp: relay of arizuko's tools:", err)
	answer, err := json.Marshal(message{Version: "2.0", ID: m.ID,
		Error: &rpcError{Code: codeInternal, Message: "arizuko's tools cannot be reached"}})
	if err == nil {
		t.write(answer)
	}
}

func (t *toolRelay) post(ctx context.Context, m message, line []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(line))
	if err != nil {
		return err
	}
	t.mu.Lock()
	for name, value := range map[string]string{
		"Authorization": "Bearer " + t.token, "Content-Type": "application/json",
		"Accept":         "application/json, text/event-stream",
		"Mcp-Session-Id": t.session, "Mcp-Protocol-Version": t.protocol,
	} {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	t.mu.Unlock()
	response, err := t.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusAccepted || response.StatusCode == http.StatusNoContent:
		return nil
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s", m.Method, response.Status)
	}
	if id := response.Header.Get("Mcp-Session-Id"); id != "" {
		t.mu.Lock()
		t.session = id
		t.mu.Unlock()
	}
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		body, err := io.ReadAll(io.LimitReader(response.Body, subprocess.MaxLine))
		if err == nil {
			err = t.answer(m, body)
		}
		return err
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, subprocess.MaxLine)
	var data []byte
	for lines.Scan() {
		part, isData := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		switch {
		case isData:
			data = append(append(data, bytes.TrimPrefix(part, []byte(" "))...), '\n')
		case len(lines.Bytes()) == 0 && len(data) > 0:
			if err := t.answer(m, data); err != nil {
				return err
			}
			data = nil
		}
	}
	return lines.Err()
}

// answer writes a message of the server for the agent, in one line.
func (t *toolRelay) answer(asked message, body []byte) error {
	var line bytes.Buffer
	if err := json.Compact(&line, body); err != nil {
		return err
	}
	var m struct {
		Result struct {
			ProtocolVersion string `json:"protocolVersion"`
		} `json:"result"`
	}
	if asked.Method == "initialize" && json.Unmarshal(body, &m) == nil && m.Result.ProtocolVersion != "" {
		t.mu.Lock()
		t.protocol = m.Result.ProtocolVersion
		t.mu.Unlock()
	}
	t.write(line.Bytes())
	return nil
}

func (t *toolRelay) write(line []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = t.out.Write(append(line, '\n')) // an agent that has ended does not matter
}
