package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/internal/running/agentuser"
	"arizuko/gated/internal/running/runtime"
	"arizuko/gated/internal/running/runtime/enter"
	"arizuko/pkg/config"
	"arizuko/pkg/config/configtest"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestMain(m *testing.M) {
	enter.Intercept(os.Environ())
	configtest.Isolate(Config{})
	os.Exit(m.Run())
}

func TestAgentConfig(t *testing.T) {
	tests := []struct {
		name string
		env  []string
		want []string // parts of the problems, in their order
	}{
		{"nothing", nil, nil},
		{"all of it", []string{"AGENT_RUNTIME=docker", "AGENT_IMAGE=i:1", "AGENT_NETWORK=none", "AGENT_MEMORY=512m", "AGENT_CPUS=0.5", "AGENT_PIDS=0", "AGENT_DOCKER=sudo docker"}, nil},
		{"confined", []string{"AGENT_SANDBOX=bwrap", "AGENT_READABLE=/opt/a,/srv/b", "AGENT_ENV=ANTHROPIC_API_KEY"}, nil},
		{"no such runtime", []string{"AGENT_RUNTIME=bwrap"}, []string{`AGENT_RUNTIME: "bwrap" is neither`}},
		{"no such sandbox", []string{"AGENT_SANDBOX=firejail"}, []string{`AGENT_SANDBOX: "firejail" is not bwrap`}},
		{"confined twice", []string{"AGENT_RUNTIME=docker", "AGENT_IMAGE=i", "AGENT_SANDBOX=bwrap"}, []string{"AGENT_SANDBOX: is for AGENT_RUNTIME=process"}},
		{"no image", []string{"AGENT_RUNTIME=docker"}, []string{"AGENT_IMAGE: AGENT_RUNTIME=docker needs"}},
		{"options for words", []string{"AGENT_IMAGE=--privileged", "AGENT_NETWORK=none -v /:/host"}, []string{`AGENT_IMAGE: "--privileged"`, `AGENT_NETWORK: "none -v`}},
		{"relative", []string{"AGENT_READABLE=agents"}, []string{`AGENT_READABLE: "agents" is not an absolute path`}},
		{"less than nothing", []string{"AGENT_CPUS=-1"}, []string{"must not be negative"}},
		{"no amount", []string{"AGENT_MEMORY=lots"}, []string{`AGENT_MEMORY="lots": want a number`}},
		{"secrets", []string{"AGENT_ENV=OK,SLACK_BOT_TOKEN,ARIZUKO_SECRET_FILE"}, []string{"ARIZUKO_SECRET_FILE is a secret", "SLACK_BOT_TOKEN is a secret"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := config.Load[Config](tt.env)
			problems, _ := err.(config.Problems)
			if len(problems) != len(tt.want) {
				t.Fatalf("problems %q, want %q", problems, tt.want)
			}
			for i, want := range tt.want {
				if !strings.Contains(problems[i], want) {
					t.Errorf("problem %q, want %q", problems[i], want)
				}
			}
		})
	}
}

func TestGroupDefaults(t *testing.T) {
	for want, env := range map[groupconfig.Runtime][]string{
		groupconfig.Process: {"AGENT_COMMAND=mine"},
		groupconfig.Bwrap:   {"AGENT_COMMAND=mine", "AGENT_SANDBOX=bwrap"},
		groupconfig.Docker:  {"AGENT_RUNTIME=docker", "AGENT_IMAGE=i"}, // needs no command
	} {
		cfg := storetest.Must(config.Load[Config](append(env, "AGENT_ENV=KEY", "AGENT_TIMEOUT=5m", "AGENT_IDLE=0s")))(t)
		got, err := cfg.groupDefaults()
		if err != nil {
			t.Errorf("%s: %v", want, err)
		}
		if got.Agent.Runtime != want || got.Timeouts.Idle == nil || *got.Timeouts.Idle != 0 || got.Limits.Memory != 2<<30 {
			t.Errorf("%s: %+v", want, got)
		}
		if diff := cmp.Diff([]string{"KEY"}, got.Agent.Env); diff != "" {
			t.Errorf("%s (-want +got):\n%s", want, diff)
		}
	}
	cfg := storetest.Must(config.Load[Config](nil))(t)
	if _, err := cfg.groupDefaults(); err == nil || !strings.Contains(err.Error(), "AGENT_COMMAND is not set") {
		t.Errorf("without an agent: %v", err)
	}
}

func TestRuntimes(t *testing.T) {
	cfg := storetest.Must(config.Load[Config]([]string{"AGENT_DOCKER=podman", "AGENT_NETWORK=agents", "AGENT_READABLE=/opt/a"}))(t)
	got := storetest.Must(cfg.runtimes("/srv/data", "127.0.0.1:8084", []string{"PATH=/bin"}))(t)
	self := storetest.Must(os.Executable())(t)
	readable := []string{"/opt/a", filepath.Dir(self)}
	want := map[groupconfig.Runtime]runtime.Runtime{
		groupconfig.Process: runtime.Process{Temp: "/srv/data/run/tmp", Readable: readable},
		groupconfig.Bwrap:   runtime.Sandbox{Temp: "/srv/data/run/tmp", Data: "/srv/data", Readable: readable, Network: "agents", Forward: "127.0.0.1:8084"},
		groupconfig.Docker: runtime.Docker{
			Client: "podman", Environ: []string{"PATH=/bin"}, Instance: runtime.InstanceOf("/srv/data"), Network: "agents",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCheck(t *testing.T) {
	t.Setenv("ARIZUKO_DATA", t.TempDir())
	t.Setenv("ARIZUKO_SECRET", "0123456789abcdef")
	user := agentuser.New("", runtime.User{}, nil).Describe()
	for command, want := range map[string]string{
		"exec sh -s":   "agents run as process: exec sh -s\nuser of the agents: " + user + "\n",
		"nosuchagent ": "agents cannot be run as process: the agent's program nosuchagent is not found",
	} {
		t.Setenv("AGENT_COMMAND", command)
		var out bytes.Buffer
		if err := check(t.Context(), &out); err != nil {
			out.WriteString(err.Error())
		}
		if !strings.HasPrefix(out.String(), want) {
			t.Errorf("%q: %q, want %q", command, &out, want)
		}
	}
}

func TestCheck_NamedAgents(t *testing.T) {
	data := t.TempDir()
	t.Setenv("ARIZUKO_DATA", data)
	t.Setenv("ARIZUKO_SECRET", "0123456789abcdef")
	t.Setenv("AGENT_COMMAND", "exec sh -s")
	for agents, want := range map[string]string{
		`{"codex":{"command":"exec sh"}}`:                                    "agents that groups may name: default, codex\n",
		`{"codex":{"command":"nosuchagent -x"},"two":{"command":"exec sh"}}`: "agent codex of AGENTS cannot be run as process: the agent's program nosuchagent is not found",
		`codex`: `AGENTS`,
	} {
		t.Setenv("AGENTS", agents)
		var out bytes.Buffer
		if err := check(t.Context(), &out); err != nil {
			out.WriteString(err.Error())
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: %q, want %q", agents, &out, want)
		}
	}
}

func TestUnknownAgents_GroupNamesOne_Warned(t *testing.T) {
	groups := []msg.Group{{Folder: "a", Config: []byte(`{"agent":{"name":"gone"}}`)}, {Folder: "b", Config: []byte(`{"agent":{"name":"codex"}}`)}, {Folder: "c", Config: []byte(`{}`)}}
	p, got := programs{defaults: groupconfig.Config{Agents: groupconfig.Agents{"codex": {}}}}, []string(nil)
	for _, g := range groups {
		got = append(got, storetest.Must(p.warnings(t.Context(), store.Reader{}, g, time.Now()))(t)...)
	}
	if len(got) != 1 || !strings.HasPrefix(got[0], `group a cannot answer: agent.name: there is no agent "gone"; AGENTS has: default, codex; switch it by /agent`) {
		t.Errorf("%q", got)
	}
}

// The web chat's first screen says so.
func TestNoteAgent_StoresWhetherTheDemoAgentAnswers(t *testing.T) {
	g := startGated(t, &syncBuffer{})
	defer runGated(t, g)()
	for _, tt := range []struct {
		command, runtime string
		want             bool
	}{{"", "process", true}, {"", "docker", false}, {"", "process", true}, {"exec claude", "process", false}} {
		g.cfg.AgentCommand, g.cfg.AgentRuntime = tt.command, tt.runtime
		if err := g.noteAgent(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := factrows.DemoAgent(t.Context(), g.Store.Reader); got != tt.want || err != nil {
			t.Errorf("%q as %s: %t, %v", tt.command, tt.runtime, got, err)
		}
	}
}
