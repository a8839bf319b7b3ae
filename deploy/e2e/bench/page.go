package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// defaultPage is relative to the root of the workspace.
const defaultPage = "docs/reference/benchmark.md"

// The lines of a page between which the table is.
const (
	tableStart = "<!-- bench:start -->"
	tableEnd   = "<!-- bench:end -->"
)

// page is a markdown file with a place for the table.
type page struct {
	path          string
	before, after string // including the markers
}

// openPage reads a page, by default defaultPage. It fails if the markers are missing.
func openPage(ctx context.Context, path string) (*page, error) {
	if path == "" {
		root, err := workspaceRoot(ctx)
		if err != nil {
			return nil, err
		}
		path = filepath.Join(root, defaultPage)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	before, rest, hasStart := strings.Cut(string(text), tableStart)
	_, after, hasEnd := strings.Cut(rest, tableEnd)
	if !hasStart || !hasEnd {
		return nil, fmt.Errorf("%s: no line %s followed by %s", path, tableStart, tableEnd)
	}
	return &page{path: path, before: before + tableStart, after: tableEnd + after}, nil
}

// write replaces the text between the markers.
func (p *page) write(table string) error {
	return os.WriteFile(p.path, []byte(p.before+"\n\n"+strings.TrimSpace(table)+"\n\n"+p.after), 0o644)
}

func workspaceRoot(ctx context.Context) (string, error) {
	work, err := exec.CommandContext(ctx, "go", "env", "GOWORK").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOWORK: %w", err)
	}
	path := string(bytes.TrimSpace(work))
	if path == "" || path == "off" {
		return "", errors.New("not inside the workspace: name the page with -page")
	}
	return filepath.Dir(path), nil
}
