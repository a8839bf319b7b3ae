// Package groupconfig is the configuration in registered_groups.config: how a group's agent is run,
// its name and who may use it. routd checks it when it is written; gated reads it when it
// decides a message and when a run starts.
//
//	{
//	  "assistant_name": "Eng",
//	  "roles": {
//	    "ask": ["telegram:42", "slack:U0AB"],
//	    "approve": [{"who": "telegram:42", "hosts": ["api.github.com"], "tools": ["Bash"]}],
//	    "operate": "operators"
//	  },
//	  "rate": 60,
//	  "reach": "none",
//	  "pin": "operators",
//	  "observe": "all",
//	  "long": "file",
//	  "progress": "status",
//	  "tool_input": true,
//	  "steer": "queue",
//	  "budget": {"turn_usd": 0.5, "day_usd": 20},
//	  "agent": {
//	    "runtime": "docker",
//	    "image": "arizuko-claude",
//	    "model": "claude-sonnet-4-5",
//	    "network": "ask",
//	    "secrets": {"GH_TOKEN": "github"},
//	    "env": ["GITHUB_TOKEN"],
//	    "settings": {"CLAUDE_PERMISSION_MODE": "acceptEdits"}
//	  },
//	  "limits": {"memory": "2g", "cpus": 1.5, "pids": 512},
//	  "timeouts": {"timeout": "30m", "idle": "5m", "transcribe": "2m"},
//	  "transcribe": "whisper-cli -m /opt/whisper/ggml-base.bin -np -nt -f {file}",
//	  "hooks": {
//	    "ci": {"id": "k3q5…", "kind": "github", "to": "slack:C0ABC", "events": ["check_run.completed"],
//	      "only": {"check_run.conclusion": "failure"}}
//	  }
//	}
package groupconfig

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Config is a group's configuration. Fields that are not set fall back to the instance's.
type Config struct {
	AssistantName string   `json:"assistant_name,omitempty"` // the name its answers carry
	Roles         Roles    `json:"roles,omitzero"`
	Rate          *int     `json:"rate,omitempty"` // turns per sender and hour, 0 for no limit; nil means not set
	Reach         Reach    `json:"reach,omitempty"`
	Pin           Pin      `json:"pin,omitempty"`
	Observe       Observe  `json:"observe,omitempty"`
	Long          Long     `json:"long,omitempty"`
	Progress      Progress `json:"progress,omitempty"`
	ToolInput     bool     `json:"tool_input,omitempty"` // its chats see the inputs of tools
	Steer         Steer    `json:"steer,omitempty"`
	Budget        Budget   `json:"budget,omitzero"`
	Announce      bool     `json:"announce,omitempty"` // its chats get a message after a migration
	Agent         Agent    `json:"agent,omitzero"`
	Limits        Limits   `json:"limits,omitzero"`
	Timeouts      Timeouts `json:"timeouts,omitzero"`
	// Hooks are the addresses at which services deliver events, by name.
	Hooks map[string]Hook `json:"hooks,omitempty"`
	// Transcribe is a command for sh -c that prints the words of an audio file, FilePlaceholder; "" for none.
	Transcribe string `json:"transcribe,omitempty"`
	// Agents are those that a group may name. Only an instance has some.
	Agents Agents `json:"-"`
}

// Observe is which rows of other chats are shown to the agent.
type Observe string

// The values of Observe.
const (
	ObserveAll    Observe = "all"    // every one routed to the group, direct messages among them
	ObserveShared Observe = "shared" // no direct messages; the default
	ObserveNone   Observe = "none"
)

// Long is how a table or code block of an answer is sent that does not fit into one message of the platform.
type Long string

// The values of Long.
const (
	LongParts Long = "parts" // in several messages; the default
	LongFile  Long = "file"  // as a file after the answer
)

// Progress is how a chat shows the work on an answer before it is there. Not set, it is that of the chat's kind:
// live in direct messages, threads and web chats, status elsewhere.
type Progress string

// The values of Progress.
const (
	ProgressLive   Progress = "live"   // the answer as it grows
	ProgressStatus Progress = "status" // one line about the agent's work, after 10 seconds
	ProgressOff    Progress = "off"
)

// In returns the mode for a chat; private is whether it is a direct message, a thread or a web chat.
func (p Progress) In(private bool) Progress {
	switch {
	case p != "":
		return p
	case private:
		return ProgressLive
	}
	return ProgressStatus
}

// Steer says how to treat messages that come while an agent works on others of the same place.
type Steer string

// The values of Steer.
const (
	SteerFold  Steer = "fold"  // they reach it at once, if it can take them in; the default
	SteerQueue Steer = "queue" // each turn is answered on its own
)

// Budget limits the usage that the group's agents report, in US dollars; 0 means no limit.
type Budget struct {
	TurnUSD float64 `json:"turn_usd,omitempty"` // for one turn
	DayUSD  float64 `json:"day_usd,omitempty"`  // in a day of gated's time zone
}

// Runtime is a way to run an agent.
type Runtime string

// The values of Runtime.
const (
	Process Runtime = "process" // as gated's user, not confined
	Bwrap   Runtime = "bwrap"   // as gated's user, confined by bubblewrap
	Docker  Runtime = "docker"  // in a container
)

// Agent is the program that answers, and its settings.
type Agent struct {
	Name    string  `json:"name,omitempty"`    // of one of AGENTS, "" for the default one
	Runtime Runtime `json:"runtime,omitempty"` // where the group names an image, docker by default
	Command string  `json:"command,omitempty"` // for sh -c; with docker, inside the image
	Image   string  `json:"image,omitempty"`   // for docker, which runs the image's own program
	Model   string  `json:"model,omitempty"`   // passed to the agent as AGENT_MODEL
	Network Network `json:"network,omitempty"` // of a sandbox or container
	// Env names variables of gated's environment that the agent gets besides AGENT_ENV.
	Env []string `json:"env,omitempty"`
	// Settings are further variables. They are stored and shown in plain text: not for keys.
	Settings map[string]string `json:"settings,omitempty"`
	// Secrets are, by variables of the agent, names of secrets that the egress proxy sends in place of the variables'
	// values, or those with RefreshSuffix. The agent sees tokens that are worth nothing elsewhere.
	Secrets map[string]string `json:"secrets,omitempty"`
}

// Network is what a sandbox or container reaches.
type Network string

// The values of Network.
const (
	NetworkBridge Network = "bridge" // the outside world
	NetworkNone   Network = "none"
	NetworkAsk    Network = "ask"  // what rules and users allow, through the egress proxy
	NetworkHost   Network = "host" // this machine, too
)

// Limits bound the resources of a run; they need bwrap or docker. 0 means not set.
type Limits struct {
	Memory Bytes   `json:"memory,omitzero"`
	CPUs   float64 `json:"cpus,omitempty"`
	PIDs   int     `json:"pids,omitempty"`
}

const (
	// FilePlaceholder stands in Config.Transcribe for the file.
	FilePlaceholder = "{file}"
	// DefaultTranscribe is how long a message waits for its transcripts unless its group sets it.
	DefaultTranscribe = Duration(time.Minute)
)

// Timeouts of a run.
type Timeouts struct {
	Timeout Duration  `json:"timeout,omitzero"` // without a frame while it has turns; 0 means not set
	Idle    *Duration `json:"idle,omitempty"`   // kept alive without turns; nil means not set

	Transcribe Duration `json:"transcribe,omitzero"` // how long a message may wait for its transcripts; 0 means not set
}

// ForTranscripts is how long a message waits for its transcripts.
func (t Timeouts) ForTranscripts() time.Duration {
	return time.Duration(cmp.Or(t.Transcribe, DefaultTranscribe))
}

// Over returns c, a group's configuration, with the instance's values where c sets none. What c says
// about members stays as it is: an instance says nothing about them.
func (c Config) Over(instance Config) Config {
	c.AssistantName = cmp.Or(c.AssistantName, instance.AssistantName)
	c.Observe = cmp.Or(c.Observe, instance.Observe, ObserveShared)
	c.Long = cmp.Or(c.Long, instance.Long, LongParts)
	c.Steer = cmp.Or(c.Steer, instance.Steer, SteerFold)
	base := instance.Agent
	if named, ok := instance.Agents[c.Agent.Name]; ok {
		base = named.over(instance.Agent)
		c.Agent.Command = cmp.Or(c.Agent.Command, named.Command) // wherever the group runs it
	}
	c.Agent = c.Agent.over(base)
	c.Limits.Memory = cmp.Or(c.Limits.Memory, instance.Limits.Memory)
	c.Limits.CPUs = cmp.Or(c.Limits.CPUs, instance.Limits.CPUs)
	c.Limits.PIDs = cmp.Or(c.Limits.PIDs, instance.Limits.PIDs)
	c.Timeouts.Timeout = cmp.Or(c.Timeouts.Timeout, instance.Timeouts.Timeout)
	c.Timeouts.Idle = cmp.Or(c.Timeouts.Idle, instance.Timeouts.Idle)
	return c
}

func (a Agent) over(instance Agent) Agent {
	if a.Runtime == "" && a.Image != "" {
		a.Runtime = Docker
	}
	a.Runtime = cmp.Or(a.Runtime, instance.Runtime)
	if a.Runtime == Docker {
		// The instance's command is for the host: its program may be missing in the image, and
		// an image has its own.
		a.Image = cmp.Or(a.Image, instance.Image)
	} else {
		a.Command = cmp.Or(a.Command, instance.Command)
	}
	a.Model = cmp.Or(a.Model, instance.Model)
	a.Network = cmp.Or(a.Network, instance.Network)
	a.Env = slices.Compact(slices.Sorted(slices.Values(slices.Concat(instance.Env, a.Env))))
	settings := maps.Clone(instance.Settings)
	if settings == nil {
		settings = map[string]string{}
	}
	maps.Copy(settings, a.Settings)
	a.Settings = settings
	return a
}

// RunsLike reports whether an agent that began under one configuration may go on under the other: they differ in
// nothing but what they say about roles, members, announcements, long blocks, progress, inputs of tools, steering,
// budgets, transcripts and hooks.
func (c Config) RunsLike(other Config) bool {
	return reflect.DeepEqual(c.ofRuns(), other.ofRuns())
}

// ofRuns are the settings that a run depends on.
func (c Config) ofRuns() Config {
	c.Roles, c.Rate, c.Reach, c.Pin, c.Announce, c.Long, c.Progress, c.ToolInput, c.Steer = Roles{}, nil, "", "", false,
		"", "", false, ""
	c.Budget, c.Transcribe, c.Timeouts.Transcribe, c.Hooks = Budget{}, "", 0, nil
	return c
}

// Variables are the agent's variables besides gated's own: "NAME=value", sorted by name.
func (a Agent) Variables() []string {
	var all []string
	for name, value := range a.Settings {
		all = append(all, name+"="+value)
	}
	if _, set := a.Settings[modelVariable]; a.Model != "" && !set {
		all = append(all, modelVariable+"="+a.Model)
	}
	slices.Sort(all)
	return all
}

const modelVariable = "AGENT_MODEL"

// Duration is a time.Duration in Go's notation, "1h30m".
type Duration time.Duration

// UnmarshalText accepts the durations of time.ParseDuration.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err
}

// MarshalText writes the shortest form: 5m rather than 5m0s.
func (d Duration) MarshalText() ([]byte, error) {
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return []byte(text), nil
}
