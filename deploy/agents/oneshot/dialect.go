package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// dialect is how a command is called and how it answers.
type dialect struct {
	name string
	// args are its arguments: extra are those of the operator; model and session may be "".
	args func(extra []string, model, session string) []string
	// read parses a line of its output; nil: the whole output is the answer.
	read func(line []byte) event
	// escape escapes a prompt, which is XML, so that the command interprets nothing in it.
	escape func(prompt string) string
	// sessions matches its session ids, nil if it has none. Other ids do not become arguments.
	sessions *regexp.Regexp
	// lost is a part of what it prints on stderr if a session does not exist.
	lost string
}

// event is a parsed line of output; the zero value for lines of no interest.
type event struct {
	session string
	text    string // a piece of the answer
	ends    bool   // what follows is another text
	failure string // an error, after which there may still be an answer
}

// dialectOf selects the dialect by the name of the program.
func dialectOf(program string) dialect {
	d := dialect{name: filepath.Base(program), escape: func(prompt string) string { return prompt }}
	switch d.name {
	case "codex":
		d.args, d.read, d.sessions, d.lost = codexArgs, readCodex, uuid, "no rollout found"
	case "gemini":
		d.args, d.read, d.sessions, d.lost = geminiArgs, readGemini, uuid, "Error resuming session"
		// Gemini replaces @path by that file, whichever user wrote it.
		d.escape = func(prompt string) string { return strings.ReplaceAll(prompt, "@", "&#64;") }
	case "opencode":
		d.args, d.read, d.sessions, d.lost = opencodeArgs, readOpencode, opencodeSession, "Session not found"
	default:
		d.args = func(extra []string, _, _ string) []string { return extra }
	}
	return d
}

var (
	uuid            = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	opencodeSession = regexp.MustCompile(`^ses_[0-9A-Za-z]+$`)
)

// A group's folder is no git repository.
func codexArgs(extra []string, model, session string) []string {
	args := append([]string{"exec", "--json", "--skip-git-repo-check"}, extra...)
	if model != "" {
		args = append(args, "--model="+model)
	}
	if session != "" {
		args = append(args, "resume", session)
	}
	return append(args, "-")
}

// readCodex reads each message of the agent as a text.
func readCodex(line []byte) (e event) {
	var l struct {
		Type     string `json:"type"`
		ThreadID string `json:"thread_id"`
		Message  string `json:"message"`
		Item     struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"item"`
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(line, &l) // other lines are not for programs
	switch {
	case l.Type == "thread.started":
		e.session = l.ThreadID
	case l.Type == "item.completed" && l.Item.Type == "agent_message":
		e.text, e.ends = l.Item.Text, true
	case l.Type == "error":
		e.failure = l.Message
	case l.Type == "turn.failed":
		e.failure = l.Error.Message
	}
	return e
}

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

func opencodeArgs(extra []string, model, session string) []string {
	args := append([]string{"run", "--format=json"}, extra...)
	if model != "" {
		args = append(args, "--model="+model)
	}
	if session != "" {
		args = append(args, "--session="+session)
	}
	return args
}

// readOpencode reads pieces of text, which a step ends.
func readOpencode(line []byte) (e event) {
	var l struct {
		Type      string `json:"type"`
		SessionID string `json:"sessionID"`
		Part      struct {
			Text string `json:"text"`
		} `json:"part"`
		Error struct {
			Name string `json:"name"`
			Data struct {
				Message string `json:"message"`
				Status  int    `json:"statusCode"`
			} `json:"data"`
		} `json:"error"`
	}
	_ = json.Unmarshal(line, &l)
	e.session = l.SessionID
	switch l.Type {
	case "step_start":
		e.ends = true
	case "text":
		e.text = l.Part.Text
	case "error":
		e.failure = cmp.Or(l.Error.Data.Message, l.Error.Name)
		if l.Error.Data.Status != 0 {
			e.failure = fmt.Sprintf("%s (%d)", e.failure, l.Error.Data.Status)
		}
	}
	return e
}
