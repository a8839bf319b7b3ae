package runtimes

import (
	"strings"
	"testing"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/testkit/docker"
	"arizuko/pkg/testkit/need"
)

// callerImage is the image of an agent that calls the tools which its messages name.
const callerImage = "arizuko-caller:1"

// Agents in each network of a sandbox reach the tools with their run's token: in one of their own by the door
// to that one port.
func TestTools_Bubblewrap_EachNetwork_Reached(t *testing.T) {
	need.Program(t, "bwrap", "bubblewrap")
	need.Program(t, "slirp4netns", "slirp4netns")
	caller := build(t, "deploy/e2e/agents/caller")
	for _, network := range []string{"bridge", "none", "host"} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			f := harness.Start(t, programs, harness.Options{Agent: "exec " + caller, Env: []string{
				"AGENT_SANDBOX=bwrap", "AGENT_NETWORK=" + network, readable(caller, caller),
			}})
			wantToolCalled(t, f)
		})
	}
}

// Containers reach the tools at an address of this machine in their network.
func TestTools_Docker_EachNetwork_ReachedAtItsAddress(t *testing.T) {
	need.Verify(t)
	e := docker.Start(t)
	e.Import(t, callerImage, map[string]string{"agent": build(t, "deploy/e2e/agents/caller")})
	e.Network(t, "agents", "172.31.251.1")
	env := append(e.Environ(), "AGENT_RUNTIME=docker", "AGENT_IMAGE="+callerImage)
	t.Run("host", func(t *testing.T) {
		wantToolCalled(t, harness.Start(t, programs, harness.Options{Agent: "exec /agent", Env: append(env, "AGENT_NETWORK=host")}))
	})
	t.Run("its own", func(t *testing.T) {
		wantToolCalled(t, harness.Start(t, programs, harness.Options{Agent: "exec /agent", Env: append(env, "AGENT_NETWORK=agents", "GATED_MCP_ADDR=172.31.251.1:8084")}))
	})
	t.Run("its own, and the tools on loopback", func(t *testing.T) {
		f := harness.Start(t, programs, harness.Options{Agent: "exec /agent", Env: append(env, "AGENT_NETWORK=agents")})
		f.AddGroups("main")
		f.AddRoute("", "main")
		if got := f.Answer(f.Say("telegram:5", `call poll_list {}`)); got != "poll_list error no tools" {
			t.Errorf("answer %q", got)
		}
		if log := f.Log(harness.Gated); !strings.Contains(log, "set GATED_MCP_ADDR to an address of this machine") {
			t.Errorf("the log does not say what to set:\n%s", log)
		}
	})
}

// wantToolCalled fails the test unless an agent reads with a tool, acts with one in its own group, and is
// refused another group.
func wantToolCalled(t *testing.T, f *harness.Fixture) {
	t.Helper()
	f.AddGroups("main", "other")
	f.AddRoute("", "main")
	got := f.Answer(f.Say("telegram:5", "call poll_list {}\ncall send_message {\"text\":\"by a tool\"}\ncall reset_session {\"groupFolder\":\"other\"}"))
	for _, want := range []string{`poll_list {"more":false,"polls":[]}`, `send_message {"message_id":`, "reset_session error group other is out of reach"} {
		if !strings.Contains(got, want) {
			t.Errorf("answer %q, want %q in it", got, want)
		}
	}
	if out := f.Outbound("telegram:5"); len(out) != 2 || out[0].Content != "by a tool" {
		t.Errorf("rows in the chat: %+v", out)
	}
}
