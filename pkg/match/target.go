package match

import (
	"errors"
	"fmt"
	"strings"

	"arizuko/pkg/msg"
)

// TargetKind says how to handle an event whose row has the target.
type TargetKind int

const (
	Trigger TargetKind = iota + 1 // fires a turn of the folder
	Observe                       // is stored for the folder, fires nothing
	Daemon                        // is passed to the named daemon
	Builtin                       // is answered or dropped by the gateway
)

// String is "trigger", "observe", "daemon" or "builtin".
func (k TargetKind) String() string {
	return [...]string{Trigger: "trigger", Observe: "observe", Daemon: "daemon", Builtin: "builtin"}[k]
}

// Target is where a row sends its events.
type Target struct {
	Kind   TargetKind
	Folder string // of Trigger and Observe
	Name   string // of Daemon, and of Builtin: "ping" or "drop"
}

// ParseTarget parses a folder ("acme/eng", "folder:acme/eng", with an optional
// "#trigger" or "#observe"), "daemon:NAME", "builtin:ping" or "builtin:drop". The
// caller checks whether the folder is a registered group.
func ParseTarget(target string) (Target, error) {
	if target == "" {
		return Target{}, errors.New("target is empty")
	}
	scheme, name, ok := strings.Cut(target, ":")
	if !ok {
		scheme, name = "folder", target
	}
	switch scheme {
	case "folder":
		return parseFolder(name)
	case "daemon":
		if msg.ValidFolder(name) != nil || msg.Parent(name) != "" {
			return Target{}, fmt.Errorf("daemon %.80q: a name is a-z, 0-9, _ or -, starting with a letter or digit",
				name)
		}
		return Target{Kind: Daemon, Name: name}, nil
	case "builtin":
		if name != "ping" && name != "drop" {
			return Target{}, fmt.Errorf("unknown builtin %.80q: use ping or drop", name)
		}
		return Target{Kind: Builtin, Name: name}, nil
	default:
		return Target{}, fmt.Errorf("unknown target %.80q: use a folder, folder:NAME, daemon:NAME or builtin:NAME",
			target)
	}
}

func parseFolder(target string) (Target, error) {
	folder, fragment, ok := strings.Cut(target, "#")
	if !ok {
		fragment = "trigger"
	}
	if err := msg.ValidFolder(folder); err != nil {
		return Target{}, err
	}
	switch fragment {
	case "trigger":
		return Target{Kind: Trigger, Folder: folder}, nil
	case "observe":
		return Target{Kind: Observe, Folder: folder}, nil
	default:
		return Target{}, fmt.Errorf("unknown fragment %.80q: use #trigger or #observe", fragment)
	}
}

// String returns the shortest text that ParseTarget reads as t.
func (t Target) String() string {
	switch t.Kind {
	case Trigger:
		return t.Folder
	case Observe:
		return t.Folder + "#observe"
	default:
		return t.Kind.String() + ":" + t.Name
	}
}
