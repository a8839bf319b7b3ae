package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain makes this program oneshot, or a fake of a command, if it is called by that name: a fake takes the arguments
// of its command.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "plain":
		os.Exit(fakeCommand(os.Args[1:]))
	case "oneshot":
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// call is a call of a fake command. It is recorded in the file calls of its working folder.
type call struct {
	Args   []string
	Prompt string
}

const callsFile = "calls"

// fakeCommand follows an instruction in the prompt, or else echoes the prompt.
func fakeCommand(args []string) int {
	prompt, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 9
	}
	if err := record(call{args, string(prompt)}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 9
	}
	fmt.Fprintln(os.Stderr, "a warning")
	text := string(prompt)
	switch {
	case strings.Contains(text, "hang up"): // with or without an answer
		if strings.Contains(text, "answer") {
			fmt.Print("heard ", text)
		}
		_ = os.Stdout.Close()
		return stayOn()
	case strings.Contains(text, "slow"):
		return stayOn()
	case strings.Contains(text, "fail"):
		return 1
	case strings.Contains(text, "refuse"), strings.Contains(text, "empty"): // with exit code 0
		return 0
	case strings.Contains(text, "die"):
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case strings.Contains(text, "limit"):
		fmt.Fprintln(os.Stderr, "Error: 429, please try again in 20s")
		return 1
	case strings.Contains(text, "crash"):
		fmt.Fprintln(os.Stderr, "\x1b[91mError: \x1b[0mout of luck\n\nStack:\n   0: <unknown>")
		return 1
	}
	fmt.Print("heard ", text)
	return 0
}

// stayOn blocks until SIGTERM ends the process, or until nothing reads its stderr any more: its parent is gone.
func stayOn() int {
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(os.Stderr.Fd())}}, -1)
		if !errors.Is(err, unix.EINTR) {
			return 9
		}
	}
}

func record(c call) error {
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(callsFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.Write(append(line, '\n'))
	return err
}
