package main

import (
	"os"
	"path/filepath"
	"strings"

	"arizuko/deploy/agents/internal/failure"
	"arizuko/pkg/agentproto"
)

// conversation is a session of Claude Code as it was after an answer. Claude Code keeps one id for all of it, so the
// name that gated gets has the answer's last message too: with an earlier name, later turns are taken back.
type conversation struct {
	id      string // "" for none
	message string // "" before the first answer, and in names of earlier versions
}

// readConversation reads a name. ok is false if another agent made it.
func readConversation(name string) (c conversation, ok bool) {
	id, message, named := strings.Cut(name, "@")
	return conversation{id, message}, name == "" || isUUID(id) && named == isUUID(message)
}

func (c conversation) name() string {
	if c.message == "" {
		return c.id
	}
	return c.id + "@" + c.message
}

// begin sets the session by its name, and reports whether it can be one. With RewindSuffix, it leaves out turns that
// ended without an answer.
func (r *run) begin(name string) (ok bool) {
	name, rewinds := strings.CutSuffix(name, agentproto.RewindSuffix)
	if r.session, ok = readConversation(name); ok && rewinds && r.session.message != "" {
		r.setNewest(rewound)
	}
	return ok
}

// rewound is the newest message of a session that goes on from an earlier one and has no answer since.
const rewound = "rewound"

// newest returns the last message of the session's newest answer, "" if that is not known.
func (r *run) newest() string {
	content, _ := os.ReadFile(r.newestFile()) // without it, Claude Code looks for the message
	return string(content)
}

func (r *run) setNewest(message string) {
	path := r.newestFile()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(message), 0o600)
	}
	if err != nil {
		r.log("newest message of the session not stored: %v", err)
	}
}

func (r *run) newestFile() string { return filepath.Join(r.cfg.ConfigDir, "arizuko", r.session.id) }

// answered makes the last message of the model the end of the session.
func (r *run) answered() {
	if r.session.id != "" && r.message != "" {
		r.session.message = r.message
		r.setNewest(r.message)
	}
}

// resume returns the CLI's arguments that resume the session, none for a new one. Turns that failed or were interrupted
// after its last answer are resumed with it. If answers follow that one, all after it is left out.
func (r *run) resume() ([]string, error) {
	newest := r.newest()
	switch {
	case r.session.id == "":
		return nil, nil
	case r.session.message == newest:
		return []string{"--resume=" + r.session.id}, nil
	case r.session.message == "":
		return nil, r.fail(failure.SessionLost("it has later turns, and its name does not say where they begin"))
	}
	r.setNewest(rewound)
	return []string{"--resume=" + r.session.id, "--resume-session-at=" + r.session.message}, nil
}
