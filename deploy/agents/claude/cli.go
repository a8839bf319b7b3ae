package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"arizuko/deploy/agents/internal/subprocess"
	"arizuko/pkg/agentproto"
)

const (
	// exitGrace is how long the CLI may take to exit after the end of its input.
	exitGrace = 2 * time.Second
	// mcpServer is the CLI's name for arizuko's tools.
	mcpServer = "arizuko"
)

// cli is one Claude Code process.
type cli struct {
	program *subprocess.Process[line]
	begun   bool    // it has begun a turn
	model   string  // that it uses
	cost    float64 // US dollars so far
}

// startCLI starts the CLI with the arguments that resume a session, if any. The end of ctx terminates it.
func startCLI(ctx context.Context, cfg *Config, resume []string, start agentproto.Start, stderr io.Writer) (*cli,
	error) {
	mcpPath, mcpFile, err := mcpConfig(start.MCP)
	if err != nil {
		return nil, err
	}
	program, err := subprocess.Start(ctx, subprocess.Program{
		Args: append([]string{cfg.Command}, cfg.cliArgs(resume, mcpPath, start.System)...), Env: cfg.cliEnviron(),
		Files:  mcpFile,
		Stderr: &subprocess.LastLine{Out: stderr, Redact: cfg.redact}, ExitGrace: exitGrace,
	}, func(data []byte) (line, bool) { return readLine(data), true })
	if err != nil {
		return nil, err
	}
	return &cli{program: program}, nil
}

// mcpConfig is a pipe with the configuration of arizuko's tools, and its path for the CLI. The token is
// in no argument, file or variable that the agent's commands could read.
func mcpConfig(mcp *agentproto.MCP) (path string, files []*os.File, err error) {
	if mcp == nil {
		return "", nil, nil
	}
	content, err := json.Marshal(map[string]any{"mcpServers": map[string]any{mcpServer: map[string]any{
		"type": "http", "url": mcp.URL, "headers": map[string]string{"Authorization": "Bearer " + mcp.Token},
	}}})
	if err != nil {
		return "", nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return "", nil, err
	}
	defer w.Close()
	const pipeSize = 64 << 10 // fits in without a reader
	if len(content) > pipeSize {
		r.Close()
		return "", nil, fmt.Errorf("configuration of the tools has %d bytes, at most %d are possible", len(content),
			pipeSize)
	}
	if _, err := w.Write(content); err != nil {
		r.Close()
		return "", nil, err
	}
	return "/dev/fd/3", []*os.File{r}, nil
}
