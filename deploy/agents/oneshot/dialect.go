package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
)

// dialect is how a command is asked and how it answers.
type dialect struct {
	name string
	// args are its arguments: extra are the operator's; model and session may be "".
	args func(extra []string, model, session string) []string
	// read understands a line of its output; nil: the output is the answer.
	read func(line []byte) event
	// escape writes a prompt, which is XML, so that nothing in it is taken for a command.
	escape func(prompt string) string
	// sessions are the names of its sessions, nil if it has none. Nothing else is put into its
	// arguments.
	sessions *regexp.Regexp
	// lost is what it says on stderr of a session that it does not have.
	lost string
}

// event is what a line of output says. Lines that say nothing to us are the zero value.
type event struct {
	session string
	text    string // a piece of the answer
	begins  bool   // what came before this was on the way to the answer, and is not part of it
	failure string // what went wrong, which may be mended yet
}

// dialectOf knows a command by the name of its program.
func dialectOf(program string) dialect {
	d := dialect{name: filepath.Base(program), escape: func(prompt string) string { return prompt }}
	switch d.name {
	case "codex":
		d.args, d.read, d.sessions, d.lost = codexArgs, readCodex, uuid, "no rollout found"
	case "gemini":
		d.args, d.read, d.sessions, d.lost = geminiArgs, readGemini, uuid, "Error resuming session"
		// @path would have it read that file into the prompt, whoever wrote it.
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

// readCodex takes the last message of the agent's for the answer, as codex itself does.
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
	_ = json.Unmarshal(line, &l) // what is no JSON is for people
	switch {
	case l.Type == "thread.started":
		e.session = l.ThreadID
	case l.Type == "item.completed" && l.Item.Type == "agent_message":
		e.text, e.begins = l.Item.Text, true
	case l.Type == "error":
		e.failure = l.Message
	case l.Type == "turn.failed":
		e.failure = l.Error.Message
	}
	return e
}

// The group's folder is as much to be trusted as the rest of what the agent is given; without
// that, gemini does nothing in it.
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

// readGemini joins the pieces of text that follow the last use of a tool.
func readGemini(line []byte) (e event) {
	var l struct {
		Type      string `json:"type"`
		SessionID string `json:"session_id"`
		Role      string `json:"role"`
		Content   string `json:"content"`
		Error     struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(line, &l)
	switch {
	case l.Type == "init":
		e.session = l.SessionID
	case l.Type == "message" && l.Role == "assistant":
		e.text = l.Content
	case l.Type == "tool_use":
		e.begins = true
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

// readOpencode joins the texts of the last step that has some.
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
			} `json:"data"`
		} `json:"error"`
	}
	_ = json.Unmarshal(line, &l)
	e.session = l.SessionID
	switch l.Type {
	case "step_start":
		e.begins = true
	case "text":
		e.text = l.Part.Text
	case "error":
		if e.failure = l.Error.Data.Message; e.failure == "" {
			e.failure = l.Error.Name
		}
	}
	return e
}
