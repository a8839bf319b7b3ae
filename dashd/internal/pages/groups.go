package pages

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"arizuko/dashd/internal/rows"
	"arizuko/pkg/config"
	"arizuko/pkg/egress"
	"arizuko/pkg/facts"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/hooks"
	"arizuko/pkg/msg"
)

// Groups is a list of groups by folder, and a form to add one.
type Groups struct {
	Lines        []GroupRow
	Folder, Name string // as typed into the form
	Next         string // address of what follows, "" for nothing
	Later        bool   // it is not the beginning
	Now          int64
}

// GroupRow is one group.
type GroupRow struct {
	msg.Group
	Chats        []string // whose messages routes lead there
	More         int      // further ones
	Turn, TurnAt int64    // the newest turn that began, 0 for none
	Warnings     int
}

// Group is one group.
type Group struct {
	Folder, Name, Config, Version string // Version is that of the name and config that the form changes
	Sections                      []ConfigSection
	Problem                       string // why the form was refused
	Choice                        AgentChoice
	Warnings, Chats               []string
	Addresses                     []string // of those Chats that are one chat
	MoreChats                     int
	Sessions                      []rows.TopicSession
	NextSession                   string // address of what follows
	Runs                          []*factrows.RunResult
	Requests                      []*egress.Receipt     // the newest ones that left its sandboxes, or wanted to
	Rules                         []*msg.PermissionRule // what the group always allows
	Files                         Files
	Hooks                         map[string]groupconfig.Hook // by name
	Typed                         url.Values                  // into the form for a new one
	Now                           int64
}

// ConfigSection is settings of a group that belong together. Name is "" for those at the top.
type ConfigSection struct {
	Name   string
	Wrong  bool // a field has a problem
	Fields []ConfigField
}

// ConfigField is a setting as a form has it.
type ConfigField struct {
	groupconfig.Key
	Value, Problem string // Value is "" for the default
}

// Label is the last name of its path.
func (f ConfigField) Label() string { return f.Path[strings.LastIndexByte(f.Path, '.')+1:] }

// Long reports whether it takes several lines: an input would join those of a command.
func (f ConfigField) Long() bool {
	return f.Kind == groupconfig.KindObject || strings.Contains(f.Value, "\n")
}

// markdownLink matches a link, with its text as a group.
var markdownLink = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// Hint is the help without markdown.
func (f ConfigField) Hint() string {
	return strings.ReplaceAll(markdownLink.ReplaceAllString(f.Help, "$1"), "`", "")
}

// Options are the values of a choice, with the present one even if it is none of them.
func (f ConfigField) Options() []Option {
	all := []Option{{"", "default", f.Value == ""}}
	values := f.Choices
	if f.Kind == groupconfig.KindSwitch {
		values = []string{"true", "false"}
	}
	if f.Value != "" && !slices.Contains(values, f.Value) {
		values = append([]string{f.Value}, values...)
	}
	for _, value := range values {
		all = append(all, Option{value, value, value == f.Value})
	}
	return all
}

// AgentChoice is which agent and model of a group answer, and between which an operator may choose.
type AgentChoice struct {
	Agent, Model string   // as the config has them, "default" for none
	Agents       []string // nil if gated does not say
	Models       []string // ids that the agent has offered, nil for none
	Missing      bool     // gated has no agent of that name: the group cannot answer
	Own          bool     // the group has an agent of its own, not one of AGENTS
}

// Hook is one hook with its last deliveries.
type Hook struct {
	hooks.Found
	ID, URL  string   // ID is the end of the address
	Samples  []string // events of test deliveries
	Lines    []*msg.Message
	Next     string // address of older ones
	Refusals []rows.HookRefusal
	Now      int64
}

// sessionID is the beginning of a session's id.
func sessionID(id string) string { return Cut(id, 8) }

// Files is a folder of a group.
type Files struct {
	// below the group's folder, "" for that itself; addresses of the folder above and of the next files
	Dir, Up, Next string
	Lines         []FileLine
	Cut           bool // it has more names than are listed
}

// FileLine is a file, or a folder.
type FileLine struct {
	Name, Path      string // Path is below the group's folder
	Folder, Regular bool
	Size, At        int64 // bytes; unix ms
}

// Settings is the configuration of dashd.
type Settings struct {
	Set, Defaults []config.Shown // those with a value of their own, and the others
	Paths         []config.Shown // without the doc
	Daemons       facts.Daemons
	Version       string
	Schema        int
	Now           int64
}
