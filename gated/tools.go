package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"arizuko/gated/internal/running/runtime"
	"arizuko/gated/internal/tools"
	"arizuko/pkg/config"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/httpx"
)

// toolServer serves the tools of agents on a listener of its own.
type toolServer struct {
	*httpx.Server
	tokens   *tools.Tokens
	services *tools.Services
}

// listenForTools binds the listener. It serves once the services are complete.
func (g *gated) listenForTools() (s toolServer, err error) {
	s.tokens = &tools.Tokens{}
	s.services = &tools.Services{Store: g.Store, Now: g.Now, Log: g.Log}
	s.Server, err = httpx.Listen(string(g.cfg.MCPAddr), tools.NewHandler(s.tokens, s.services, g.Log, g.Metrics), g.Log)
	if err != nil {
		return s, fmt.Errorf("GATED_MCP_ADDR: %w", err)
	}
	g.Stop.Add("tools", s.Close)
	return s, nil
}

// serveTools answers agents until the listener is closed, after all runs have ended.
func (g *gated) serveTools() {
	go func() { g.toolsFailed <- g.tools.Serve() }()
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
	return fmt.Sprintf("tools of the agents: none, since containers of the network %s do not reach %s: set GATED_MCP_ADDR to an address of this machine "+
		"in that network, such as 172.17.0.1:8084, or set AGENT_MCP_URL", c.AgentNetwork, c.MCPAddr)
}
