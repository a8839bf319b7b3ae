package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
)

// dialect is how a command is called and how it answers.
type dialect struct {
	name string
	// args are its arguments: extra are those of the operator; model and session may be "".
	args func(extra []string, model, session string) []string
	// read parses a line of its output; nil: the whole output is the answer.
	read func(line []byte) event
	// sessions matches its session ids, nil if it has none. Other ids do not become arguments.
	sessions *regexp.Regexp
	// lost is a part of its message on stderr if a session does not exist.
	lost string
	// authHelp tells operators how to log it in.
	authHelp string
}

// event is a parsed line of output; the zero value for lines of no interest.
type event struct {
	session string
	text    string // a piece of the answer
	ends    bool   // the next piece is another text
	failure string // an error, after which there may still be an answer
}

// dialectOf selects the dialect by the name of the program.
func dialectOf(program string) dialect {
	d := dialect{name: filepath.Base(program)}
	switch d.name {
	case "gemini":
		d.args, d.read, d.sessions, d.lost, d.authHelp = geminiArgs, readGemini, uuid, "Error resuming session",
			geminiAuthHelp
	default:
		d.args = func(extra []string, _, _ string) []string { return extra }
	}
	return d
}

var uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// The group's folder is as trusted as the rest of the agent's input. Without --skip-trust gemini does
// nothing in it.
func geminiArgs(extra []string, model, session string) []string {
	args := append([]string{"--output-format=stream-json", "--skip-trust"}, extra...)
	if model != "" {
		args = append(args, "--model="+model)
	}
	if session != "" {
		args = append(args, "--resume="+session)
	}
	return append(args, "--prompt=")
}

// readGemini reads pieces of text, which a tool call ends.
func readGemini(line []byte) (e event) {
	var l struct {
		Type      string `json:"type"`
		SessionID string `json:"session_id"`
		Role      string `json:"role"`
		Content   string `json:"content"`
		Message   string `json:"message"` // of an error or a warning
		Error     struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(line, &l)
	switch {
	case l.Type == "error": // the result is a success all the same
		e.failure = l.Message
	case l.Type == "init":
		e.session = l.SessionID
	case l.Type == "message" && l.Role == "assistant":
		e.text = l.Content
	case l.Type == "tool_use":
		e.ends = true
	case l.Type == "result":
		e.failure = l.Error.Message
	}
	return e
}
