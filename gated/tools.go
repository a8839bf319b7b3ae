package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"arizuko/gated/internal/chats"
	"arizuko/gated/internal/running/agents"
	"arizuko/gated/internal/running/runtime"
	"arizuko/gated/internal/timed/reminders"
	"arizuko/gated/internal/tools"
	"arizuko/pkg/config"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

// toolServer serves the tools of agents on a listener of its own.
type toolServer struct {
	listener net.Listener
	tokens   tools.Tokens
	server   *httpx.Server // nil until serveTools
}

// addr is where it listens, "host:port".
func (s *toolServer) addr() string { return s.listener.Addr().String() }

// access gives a run its access to the tools.
func (s *toolServer) access(run msg.Run, redact func(string) string) agents.Access {
	return s.tokens.Issue(run, redact)
}

func (s *toolServer) close(ctx context.Context) error {
	if s.server == nil {
		return s.listener.Close()
	}
	return s.server.Close(ctx)
}

// listenForTools binds the listener: agents receive its port.
func (g *gated) listenForTools() (err error) {
	if g.tools.listener, err = net.Listen("tcp", string(g.cfg.MCPAddr)); err != nil {
		return fmt.Errorf("GATED_MCP_ADDR: listen on %s: %w", g.cfg.MCPAddr, err)
	}
	g.Stop.Add("tools", g.tools.close)
	return nil
}

// serveTools answers agents until the listener is closed, after all runs have ended.
func (g *gated) serveTools(homes *chats.Chats, routd *httpx.Client) {
	handler := tools.NewHandler(&g.tools.tokens, &tools.Services{
		Store: g.Store, Runs: g.agents, Asks: g.agents.Asks(), Files: g.agents.Files(), MediaDaily: g.cfg.MediaDaily,
		Routd: routd, Now: g.Now, Operators: g.cfg.Operators, Chats: homes, Zone: reminders.LocalZone(),
		Reminders: g.reminders, Objects: g.objects, Log: g.Log,
	}, g.Log, g.Metrics)
	g.tools.server = httpx.NewServer(g.tools.listener, handler, g.Log)
	go func() { g.toolsFailed <- g.tools.server.Serve() }()
}

// watchTools ends the process if the listener fails.
func (g *gated) watchTools(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-g.toolsFailed:
		return err
	}
}

// toolsURLs says where agents of each runtime reach the tools that are served at bound,
// "host:port"; "" if they cannot.
func (c *Config) toolsURLs(bound string) func(groupconfig.Runtime) string {
	local := string(config.Addr(bound).URL()) + tools.Path
	return func(runtimeName groupconfig.Runtime) string {
		switch {
		case runtimeName == groupconfig.Bwrap && c.AgentNetwork != string(runtime.NetworkHost):
			_, port, _ := net.SplitHostPort(bound)
			return "http://" + net.JoinHostPort("127.0.0.1", port) + tools.Path // through the door of the sandbox
		case c.MCPURL != "":
			return mcpURL(c.MCPURL)
		case runtimeName == groupconfig.Docker && c.AgentNetwork != string(runtime.NetworkHost) && !reachable(bound):
			return ""
		}
		return local
	}
}

// mcpURL is the URL of AGENT_MCP_URL, which may leave the path out.
func mcpURL(base config.URL) string {
	u, err := url.Parse(string(base))
	if err == nil && u.Path == "" {
		return string(base) + tools.Path
	}
	return string(base)
}

// reachable reports whether other machines and containers can know an address by its
// listener's: it is neither loopback nor every interface.
func reachable(bound string) bool {
	host, _, _ := net.SplitHostPort(bound)
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host != "" && host != "localhost" && !strings.HasSuffix(host, ".localhost")
	}
	return !ip.Unmap().IsLoopback() && !ip.IsUnspecified()
}

// forward is the address that sandboxes forward a port to, for tools that are served at
// bound.
func forward(bound string) string {
	return strings.TrimPrefix(string(config.Addr(bound).URL()), "http://")
}

// describeTools says whether agents with the default settings reach the tools.
func (c *Config) describeTools() string {
	if to := c.toolsURLs(string(c.MCPAddr))(c.runtime()); to != "" {
		return "tools of the agents: " + to
	}
	return fmt.Sprintf("tools of the agents: none, since containers of the network %s do not reach %s: "+
		"set GATED_MCP_ADDR to an address of this machine in that network, such as 172.17.0.1:8084, "+
		"or set AGENT_MCP_URL",
		c.AgentNetwork, c.MCPAddr)
}
