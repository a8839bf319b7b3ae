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
// of its command and prints as the command was recorded to print, see testdata.
func TestMain(m *testing.M) {
	switch name := filepath.Base(os.Args[0]); name {
	case "gemini", "plain":
		os.Exit(fakeCommand(name, os.Args[1:]))
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

// fakeCommand follows an instruction in the prompt, or else echoes the prompt. It knows the sessions
// that it has created in its working folder.
func fakeCommand(name string, args []string) int {
	prompt, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 9
	}
	if err := record(call{args, string(prompt)}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 9
	}
	answer := lines[name]
	session := resumed(args)
	if session == "" {
		session = answer.session
	} else if _, err := os.Stat(session); err != nil {
		fmt.Fprintln(os.Stderr, answer.lost)
		return 1
	}
	_ = os.WriteFile(session, nil, 0o600)
	fmt.Fprintln(os.Stderr, "a warning")
	switch text := string(prompt); {
	case strings.Contains(text, "hang up"): // with or without an answer
		if strings.Contains(text, "answer") {
			words, _ := json.Marshal("heard " + text)
			fmt.Printf(answer.answer, session, words)
		}
		_ = os.Stdout.Close()
		return stayOn()
	case strings.Contains(text, "slow"):
		return stayOn()
	case strings.Contains(text, "fail"):
		fmt.Printf(answer.failed, session)
		return 1
	case strings.Contains(text, "refuse"): // with exit code 0
		fmt.Printf(answer.failed, session)
		return 0
	case strings.Contains(text, "half"): // as gemini, with exit code 0
		fmt.Println(`{"type":"message","role":"assistant","content":"Let me look."}` + "\n" + `{"type":"tool_use"}` + "\n" +
			`{"type":"error","severity":"warning","message":"Loop detected"}` + "\n" + `{"type":"result","status":"success"}`)
		return 0
	case strings.Contains(text, "empty"):
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
	text, _ := json.Marshal("heard " + string(prompt))
	fmt.Printf(answer.answer, session, text)
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

// lines are the output of the commands: answer takes a session and a text as JSON, failed a session.
var lines = map[string]struct{ session, answer, failed, lost string }{
	"gemini": {
		"8e3a5e4f-696c-4943-bf87-9af9da23ee28",
		`{"type":"init","session_id":%q}` + "\n" + `{"type":"message","role":"user","content":"not this"}` + "\n" +
			`{"type":"message","role":"assistant","content":%s,"delta":true}` + "\n",
		`{"type":"init","session_id":%q}` + "\n" + `{"type":"result","status":"error","error":{"type":"unknown","message":"bad key"}}` + "\n",
		"Error resuming session: Invalid session identifier \"1\".\n  Use --list-sessions to see available sessions",
	},
	"plain": {"none", "%.0s%s", "%.0s", ""},
}

// resumed is the session in the arguments.
func resumed(args []string) string {
	for _, arg := range args {
		if id, is := strings.CutPrefix(arg, "--resume="); is {
			return id
		}
	}
	return ""
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
