package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/buildinfo"
)

// agentCommand replaces this process by the program agentcheck, in the same folder, which does the work of
// `gated agent`. Its environment is that of agents.
func agentCommand(_ context.Context, args []string, _ io.Writer) error {
	cfg, err := loadConfig()
	if err != nil && len(args) > 0 && !buildinfo.IsHelp(args[0]) {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	secrets, err := memoryFile(hiddenSecrets())
	if err != nil {
		return fmt.Errorf("secrets to hide: %w", err)
	}
	defer secrets.Close()
	env := append(runtime.Environ(environ(), cfg.AgentEnv), fmt.Sprintf("ARIZUKO_SECRETS_FD=%d", secrets.Fd()))
	program := filepath.Join(filepath.Dir(self), "agentcheck")
	err = unix.Exec(program, append([]string{program}, args...), env)
	return fmt.Errorf("cannot start %s: %w: build it there", program, err)
}

// memoryFile is a file without a name, which outlives a change of program, with v in JSON.
func memoryFile(v any) (*os.File, error) {
	fd, err := unix.MemfdCreate("secrets", 0)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "secrets")
	if err := json.NewEncoder(file).Encode(v); err != nil {
		return nil, err
	}
	_, err = file.Seek(0, io.SeekStart)
	return file, err
}
